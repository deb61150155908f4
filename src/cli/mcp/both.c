#include "cli/mcp/both.h"

#include "base/file.h"
#include "base/mem.h"
#include "cli/options/command.h"
#include "process/spawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OUTPUT_MOST = 15 << 20, LIMIT_MS = 120000 };

static int run(const char *const *words, struct buf *out, struct buf *errors)
{
    extern char **environ;
    MEM_LOCAL char *folder = getcwd(NULL, 0);
    struct err ignored;
    const struct spawn_spec spec = {
        .argv = words, .env = (const char *const *)environ, .folder = folder};
    return spawn_run(&spec, LIMIT_MS, 0, out, errors, &ignored);
}

int both_main(int argc, char **argv)
{
    BUF_LOCAL(text, OUTPUT_MOST);
    BUF_LOCAL(json, OUTPUT_MOST);
    BUF_LOCAL(errors, 1 << 16);
    const char **words = (const char **)mem_array((size_t)argc + 2, sizeof *words);
    size_t count = 1;
    words[0] = file_program_path();
    for (int i = 0; i < argc; i++)
        if (i != 1)
            words[count++] = argv[i];
    int failed = run(words, &text, &errors);
    for (int i = 0; i < argc; i++)
        words[i + 1] = argv[i];
    failed = failed || run(words, &json, &errors);
    mem_free(words);
    fputs(buf_text(&errors), stderr);
    if (failed)
        return EXIT_NONE;
    fwrite(buf_text(&text), 1, text.length, stdout);
    putchar('\0');
    fwrite(buf_text(&json), 1, json.length, stdout);
    return 0;
}
