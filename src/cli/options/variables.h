/* cli/options/variables: the environment variables that are no option's, for `twagent config` and
 * the manual page. A test compares them with what src asks for. */
#pragma once

#include <stddef.h>

struct variable {
    const char *name, *help;
};

extern const struct variable variables[];
extern const size_t variable_count;
