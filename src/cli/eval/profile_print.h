/* cli/eval/profile_print: a kernel's profile for a person at a terminal. Any thread. */
#pragma once

#include "eval/data/evaluation.h"

#include <stdio.h>

/* `facts`: the lane's, as JSON; "" where not known. What the profile does not hold is left out. */
void profile_print(const struct evaluation *evaluation, const char *facts, FILE *out);
