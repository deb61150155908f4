#include "cli/internal.h"

#include "cli/mcp/attempt.h"
#include "cli/mcp/both.h"
#include "cli/mcp/detached.h"
#include "cli/options/backends.h"
#include "cli/options/command.h"
#include "cli/options/devices.h"
#include "eval/worker/worker.h"
#include "process/keep.h"
#include "process/sandbox.h"

#include <stdio.h>
#include <string.h>

/* twagent worker [--backend NAME] [--cores LIST] [--folder DIR] [--device N] */
static int worker(int argc, char **argv)
{
    const char *backend = "cpu";
    struct worker_options options = {0};
    for (int i = 0; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--backend") == 0)
            backend = argv[i + 1];
        else if (strcmp(argv[i], "--cores") == 0)
            options.cores = argv[i + 1];
        else if (strcmp(argv[i], "--folder") == 0)
            options.folder = argv[i + 1];
        else if (strcmp(argv[i], "--device") == 0)
            options.gpu_index = devices_first(argv[i + 1]);
    }
    if (options.gpu_index < 0) {
        fprintf(stderr, "twagent worker: --device: expected the number of a GPU\n");
        return EXIT_USAGE;
    }
    options.backend = backends_find(backend);
    if (!options.backend) {
        fprintf(stderr, "twagent worker: no backend \"%s\"\n", backend);
        return EXIT_USAGE;
    }
    return worker_main(&options);
}

/* twagent runner BACKEND ... */
static int runner(int argc, char **argv)
{
    const struct backend *backend = argc >= 1 ? backends_find(argv[0]) : NULL;
    if (backend && backend->runner)
        return backend->runner(argc - 1, argv + 1);
    fprintf(stderr, "twagent runner: which backend?\n");
    return EXIT_USAGE;
}

static bool is_compiler(const struct backend *backend, const char *name)
{
    size_t length = strlen(backend->target->name);
    return backend->compiler && strncmp(name, backend->target->name, length) == 0 &&
           strcmp(name + length, "-compile") == 0;
}

bool internal_dispatch(int argc, char **argv, int *code)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } internals[] = {{"worker", worker},          {"runner", runner},
                     {"sandbox", sandbox_main},   {"keep", keep_main},
                     {"detached", detached_main}, {"both", both_main},
                     {"attempt", attempt_main}};
    int (*run)(int argc, char **argv) = NULL;
    for (size_t i = 0; argc >= 2 && i < sizeof internals / sizeof internals[0]; i++)
        if (strcmp(argv[1], internals[i].name) == 0)
            run = internals[i].run;
    for (size_t i = 0; argc >= 2 && backends[i]; i++)
        if (is_compiler(backends[i], argv[1]))
            run = backends[i]->compiler;
    if (run)
        *code = run(argc - 2, argv + 2);
    return run != NULL;
}
