/* eval/runner/inside: what every runner process does: map what it was given, hear "go", say "done",
 * or give up. Runner process only. */
#pragma once

#include "base/err.h"
#include "eval/runner/wire.h"

#include <stddef.h>

/* The reason is the last line of stderr. */
_Noreturn void give_up(const char *format, ...) PRINTF_LIKE(1, 2);

void prefer_as_victim(void); /* where the machine has no memory left */
void wait_go(void);
void say_done(void);
void *map_shared(int fd, size_t bytes, int protection, int flags); /* or gives up */
