/* eval/sets/non_finite: sets whose inputs hold NaN and infinities (DRAW_NON_FINITE). Inside
 * src/eval. Worker's measuring thread. */
#pragma once

#include "eval/sets/sets.h"

/* Whether that is a question: of floats without a range, on a backend that has such numbers. */
bool session_non_finite_applies(const struct session *session);
/* Which input holds them; all others are normal. By the set's seed. */
size_t set_spoiled_input(const struct session *session, const struct set *set);
/* Replaces what is not asked in the set's exact results (check.h). The inputs are in place, and are
 * so again. Where nothing is left to ask the set is unfit. */
int session_ask_non_finite(struct session *session, struct set *set, const struct call *call,
                           const struct results *results, struct err *err) MUST_USE;
