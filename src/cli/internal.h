/* cli/internal: the commands that the program runs itself as: worker, runner, sandbox. They read no
 * configuration. */
#pragma once

#include <stdbool.h>

/* True where argv[1] names one; then *code is its exit code. */
bool internal_dispatch(int argc, char **argv, int *code);
