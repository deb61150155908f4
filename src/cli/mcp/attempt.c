#include "cli/mcp/attempt.h"

#include "agents/workplace/workplace.h"
#include "base/file.h"
#include "cli/options/command.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MOST = 8 << 20 };

/* Its folder: where it says so, else the one that it stands in. */
static const char *folder_of_attempt(void)
{
    const char *said = getenv("TWAGENT_ATTEMPT");
    return said && *said ? said : ".";
}

int attempt_main(int argc, char **argv)
{
    BUF_LOCAL(source, WORKPLACE_SOURCE_MOST + 1);
    BUF_LOCAL(answer, ANSWER_MOST);
    struct err err = {0};
    while (argc > 0 && argv[0][0] == '-') { /* the server asks for --json, which it always is */
        argc--;
        argv++;
    }
    bool submits = argc == 2 && strcmp(argv[0], "submit") == 0;
    if (argc != 2 || (!submits && strcmp(argv[0], "evaluate") != 0)) {
        fprintf(stderr, "twagent: usage: twagent attempt evaluate|submit FILE\n");
        return EXIT_USAGE;
    }
    if (file_read(argv[1], &source, &err) != 0 ||
        workplace_ask(folder_of_attempt(), submits, buf_text(&source), source.length, &answer,
                      &err) != 0)
        return command_fail(&err);
    fwrite(buf_text(&answer), 1, answer.length, stdout);
    putchar('\n');
    return fflush(stdout) == 0 ? 0 : EXIT_ENVIRONMENT;
}
