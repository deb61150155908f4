/* eval/sets/helpers: more processes of a definition that takes its time on one core, so
 * that what several sets should give is computed at once. Inside src/eval. Worker's measuring
 * thread. */
#pragma once

#include "eval/sets/session.h"

/* Expected outputs of the pool's sets that lack them, where that is worth it: what cannot be had
 * this way is left to set_expect(), with its errors. */
void session_expect_pool(struct session *session);
void helpers_close(struct session *session);
