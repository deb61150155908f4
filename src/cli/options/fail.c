#include "cli/options/command.h"

#include <stdio.h>

int command_fail(const struct err *err)
{
    fprintf(stderr, "twagent: %s\n", err->message);
    return err_exit_code(err->code);
}
