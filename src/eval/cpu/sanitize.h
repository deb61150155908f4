/* eval/cpu/sanitize: what the programs of eval/cpu/source.h are given. Any thread. */
#pragma once

#include "eval/candidate/layout.h"

/* A descriptor with the call's numbers, for the program's descriptor 3; -1 with *err. *exit_code is
 * drawn: what the program ends with when it has gone to its end. Inputs end at the next multiple of
 * `unit` bytes. */
int sanitize_numbers(const struct call *call, size_t unit, int *exit_code, struct err *err);
