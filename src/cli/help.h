/* cli/help: what --help, --man and --completion print, all from the tables of commands and options.
 */
#pragma once

#include <stdio.h>

struct command;

void help_program(FILE *out);
void help_command(const struct command *command, FILE *out);
void help_man(FILE *out);        /* roff; cmake --install puts it under share/man/man1 */
void help_completion(FILE *out); /* bash; under share/bash-completion/completions */
