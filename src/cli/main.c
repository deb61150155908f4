/* The program's entry: finds the command, loads its settings, runs it. */
#include "base/file.h"
#include "cli/help.h"
#include "cli/mcp/children.h"
#include "cli/options/backends.h"
#include "cli/options/command.h"
#include "cli/options/devices.h"
#include "eval/worker/worker.h"
#include "process/keep.h"
#include "process/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

/* The commands that the program runs itself as; they read no configuration. True where argv[1]
 * names one; then *code is its exit code. */
static bool internal_dispatch(int argc, char **argv, int *code)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } internals[] = {
        {"worker", worker},        {"runner", runner},          {"sandbox", sandbox_main},
        {"keep", keep_main},       {"detached", detached_main}, {"both", both_main},
        {"attempt", attempt_main}, {"document", document_main}, {"acp", acp_main}};
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

const struct command commands[] = {
    {"run", COMMAND_RUN, "PROBLEM", "search for the fastest kernel and prove it", NULL, 0, 1,
     command_run},
    {"resume", COMMAND_RESUME, "[RUN]", "go on with a run that was paused, stopped or died",
     "A paused run goes on where it is. One that was stopped or died goes on in this terminal, as "
     "it was told when it began: options here take the place of that, and the defaults below are a "
     "new run's. What was paid for is not asked again. Without RUN, the one that goes on now, or "
     "the "
     "latest.",
     0, 1, command_resume},
    {"pause", COMMAND_PAUSE, "[RUN]", "let a run that goes on wait",
     "Nothing new is asked or measured until twagent resume; what is under way ends and is kept. "
     "Without RUN, the one that goes on now.",
     0, 1, command_pause},
    {"stop", COMMAND_STOP, "[RUN]", "end a run within seconds, everything kept",
     "As Ctrl-C in its own terminal. Without RUN, the one that goes on now.", 0, 1, command_stop},
    {"status", COMMAND_STATUS, "[RUN]", "where a run stands, from another terminal",
     "Without RUN, the one that goes on now, or the last one.", 0, 1, command_status},
    {"serve", COMMAND_SERVE, "", "runs in a browser, live; pause, go on and stop there",
     "Pages and JSON at http://127.0.0.1:7007/ for you alone, metrics at /metrics, until Ctrl-C. "
     "Runs go on without it and are not slowed by it. docs/serve.md has the rest.",
     0, 0, command_serve},
    {"mcp", COMMAND_MCP, "", "tools for a coding agent, on stdin and stdout",
     "A server of the Model Context Protocol, which the agent's program starts; docs/mcp.md has "
     "the "
     "line for each. It reads and writes in the folder that it is started in, and stores where "
     "$TWAGENT_STORE says.",
     0, 0, command_mcp},
    {"skill", COMMAND_SKILL, "[DIR]",
     "write a page that tells a coding agent how to work with this",
     "DIR (twagent-skill) is made, with SKILL.md in it: put it where your agent looks for skills "
     "(docs/mcp.md).",
     0, 1, command_skill},
    {"eval", COMMAND_EVAL, "PROBLEM FILE...", "check and time one candidate, or several in turn",
     "The FILE's language says which backend, unless --backend does. Where there is no GPU a "
     "FILE.cu is "
     "read, "
     "compiled for sm_90a where NVRTC is found, and its launch plan computed as for an H100; then "
     "the "
     "exit code is 3, and what a verdict lacks is said. With several FILEs the worst exit code "
     "counts, and --json prints one object with each one's record.",
     2, 33, command_eval},
    {"tune", COMMAND_TUNE, "PROBLEM [KERNEL]", "find the best numbers of a tune space, and say why",
     "KERNEL is a source with a tune space, or a candidate's id (r3-c17); without it the starts "
     "that "
     "ship with the problem are tuned, or its best kernel where there are none. Then: which "
     "parameter mattered and how much, what cannot be told from the best, and the winner at other "
     "sizes. A tune is a run: list, show and resume know it (docs/tuning.md).",
     1, 2, command_tune},
    {"profile", COMMAND_PROFILE, "PROBLEM FILE", "say what holds a kernel back, with the numbers",
     "On a GPU from hardware counters, where they may be read; docs/profile.md says what the "
     "numbers are. The FILE's language says which backend, unless --backend does.",
     2, 2, command_profile},
    {"problem", COMMAND_PROBLEM, "new|check DIR",
     "write a new problem's skeleton; say if one is fit",
     "A problem is a folder with spec.yaml, a shipped problem's name, or FILE.py with a PyTorch "
     "Model, or another of the forms that docs/problem-format.md has; so it is for eval and run. "
     "check of a folder of "
     "problems checks each: fit, refused with the reason, not run (this machine cannot) or error.",
     2, 2, command_problem},
    {"list", COMMAND_LIST, "[runs|problems|candidates RUN]", "list what is there", NULL, 0, 2,
     command_list},
    {"show", COMMAND_SHOW, "ID", "show a run, an idea or a candidate", NULL, 1, 1, command_show},
    {"best", COMMAND_BEST, "PROBLEM", "show or write the best kernel found so far", NULL, 1, 1,
     command_best},
    {"verify", COMMAND_VERIFY, "BUNDLE", "prove a kernel from elsewhere again, here",
     "BUNDLE is a file that best or show wrote with --bundle: a kernel with its problem and its "
     "evidence. It is checked and timed as eval does, in the sandbox; then: is it right here, its "
     "speed-up here, and whether that is what the bundle says, or why not. Exit code 0: it is "
     "(docs/archive.md).",
     1, 1, command_verify},
    {"rerun", COMMAND_RERUN, "ID...", "measure stored kernels again, here and now",
     "An ID is a candidate (r3-c17), a run (its best) or a problem (the best of it). Each is "
     "checked and timed as eval does, in turns with the baseline that its figure is against; then: "
     "whether the old figure holds. Exit code 0: all of them do (docs/archive.md).",
     1, 64, command_rerun},
    {"emit", COMMAND_EMIT, "ID DIR", "write a kernel as a folder that works without twagent",
     "ID is a candidate (r3-c17), a run (its best) or a problem (the best of it); DIR is made. A "
     "CUDA "
     "kernel becomes a Python package for PyTorch, with ModelNew in place of the file's Model; a "
     "CPU "
     "kernel a folder of C with its build.sh, and a numpy module. Each has a test against the "
     "definition. Where a dim is larger than the kernel was checked at, the package takes the "
     "library's own way with one warning, or refuses.",
     2, 2, command_emit},
    {"cache", COMMAND_CACHE, "list|show|run|clear [NAME] [IN.npy...]",
     "verdicts that are told again instead of measured",
     "eval and run leave theirs here, and answer from it where nothing has changed, saying so; "
     "--force measures again, and what was rejected is always measured again. run NAME IN.npy... "
     "-o OUT.npy calls a cached kernel once on your own arrays, in the sandbox; clear takes out "
     "NAMEs, those that --older-than or --status say, or all (docs/cache.md).",
     1, 64, command_cache},
    {"history", COMMAND_HISTORY, "PROBLEM", "what made a problem faster, over all runs",
     "Each kernel whose speed-up was above all before it, in order of time. Kernels for another "
     "size, device or baseline are not ranked against these: they are a list of their own.",
     1, 1, command_history},
    {"stats", COMMAND_STATS, "[PROBLEM]",
     "what paid: by model, kind of idea, language; what failed", NULL, 0, 1, command_stats},
    {"diff", COMMAND_DIFF, "ID ID", "two candidates side by side, and their sources' difference",
     NULL, 2, 2, command_diff},
    {"export", COMMAND_EXPORT, "[PROBLEM]", "every candidate as JSON lines, CSV, SQL or Parquet",
     "docs/archive.md has the columns.", 0, 1, command_export},
    {"import", COMMAND_IMPORT, "FILE.py[:FUNCTION] [PROBLEM]",
     "a Triton file with a Python wrapper as a candidate, or why not",
     "The file is read, not run: its @triton.jit kernels, the function that computes a grid and "
     "launches them, @triton.autotune and @triton.heuristics. FUNCTION is the one that launches, "
     "where there are several. With a PROBLEM its tensors and dims are named as the problem's, in "
     "order. Exit code 1: it cannot be one, with the line and the reason "
     "(docs/candidate-format.md).",
     1, 2, command_import},
    {"docs", COMMAND_DOCS, "add|list|search|show|remove|stats|check|update [ARGUMENTS]",
     "the manuals and headers that prompts quote",
     "add PATH... takes in Markdown, HTML, reStructuredText, plain text, C, C++ and CUDA sources, "
     "and PDF where pdftotext is installed; add --builtin, the guides that ship with twagent; "
     "update "
     "looks at those paths again; search WORDS... "
     "finds passages; show prints a passage by its id, or a document's passages; remove takes a "
     "PATH or tag:NAME out.",
     1, 64, command_docs},
    {"lessons", COMMAND_LESSONS, "list|show|export|import [ID|FILE]",
     "what finished evaluations have taught",
     "list shows the last ones, show one with its ID and what contradicts it; export writes them "
     "as "
     "JSON lines, import takes such a FILE in, all of it or nothing, each lesson once.",
     1, 2, command_lessons},
    {"doctor", COMMAND_DOCTOR, "[PART]", "say what this machine has and what is missing",
     "With --adversarial, PART picks the attacks whose file name has it.", 0, 1, command_doctor},
    {"config", COMMAND_CONFIG, "", "show every setting and where it came from",
     "Takes the options of every command too, and shows what they would come to: the models "
     "chosen, "
     "and which keys are set (never what they are).",
     0, 0, command_config},
    {"report", COMMAND_REPORT, "[RUN]", "a run's report: text, --html or --json",
     "Without RUN, the one that goes on now, or the last one. Every run leaves its report at its "
     "end, too.",
     0, 1, command_report},
    {"gc", COMMAND_GC, "", "take old runs out of the store",
     "Verified wins, the best kernel of each problem and all that these came from stay, and so do "
     "lessons. A run of which something stays cannot be resumed any more. --dry-run says what "
     "would go.",
     0, 0, command_gc},
    {"backup", COMMAND_BACKUP, "DIR", "copy the store, compacted, while a run goes on", NULL, 1, 1,
     command_backup},
};
const size_t command_count = sizeof commands / sizeof commands[0];

static int usage(const char *message, const char *word, const char *nearest)
{
    fprintf(stderr, "twagent: %s \"%s\"", message, word);
    if (nearest)
        fprintf(stderr, "; did you mean \"%s\"?", nearest);
    fprintf(stderr, " (twagent --help)\n");
    return EXIT_USAGE;
}

static const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

/* -h and --help anywhere before "--" win over everything else. */
static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

/* "" is a variable that a script forgot to set; nothing is called that, and nothing begins with it.
 */
static bool has_empty(const char *const *positionals, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (*positionals[i] == '\0')
            return true;
    return false;
}

static int command_start(const struct command *command, int argc, char **argv)
{
    struct settings settings;
    struct err err = {0};
    const char *positionals[64];
    size_t count = 0;
    ARENA_LOCAL(arena);
    uint32_t takes = command->bit == COMMAND_CONFIG ? COMMAND_ALL : command->bit;
    int code;
    if (asks_for_help(argc, argv)) {
        help_command(command, stdout);
        code = 0;
    } else if (settings_load(arena, takes, argc, argv, &settings, positionals, 64, &count, &err)) {
        code = command_fail(&err);
    } else if (has_empty(positionals, count)) {
        fprintf(stderr, "twagent: %s: an argument is empty: expected %s\n", command->name,
                command->arguments);
        code = EXIT_USAGE;
    } else if (count < command->least || count > command->most) {
        fprintf(stderr, "twagent: usage: twagent %s [OPTIONS] %s (twagent %s --help)\n",
                command->name, command->arguments, command->name);
        code = EXIT_USAGE;
    } else {
        if (settings.search.python) /* problem_load() asks it about a PyTorch file */
            setenv("TWAGENT_PYTHON", settings.search.python, 1);
        code = command->run(&settings, positionals, count);
    }
    return code;
}

/* What was printed must have arrived: a script that keeps it in a file on a full disk is told. */
static int close_output(int code)
{
    bool failed = ferror(stdout) != 0;
    failed = fflush(stdout) != 0 || failed;
    if (!failed || errno == EPIPE) /* whoever reads has seen enough: head, or a pager that ended */
        return code;
    fprintf(stderr, "twagent: cannot write the output: %s\n", strerror(errno));
    return code ? code : EXIT_ENVIRONMENT;
}

static int unknown_command(const char *word)
{
    static const char *const flags[] = {"--help", "--version", NULL};
    const char *names[sizeof commands / sizeof commands[0] + 1] = {NULL};
    for (size_t i = 0; i < command_count; i++)
        names[i] = commands[i].name;
    return usage(*word == '-' ? "no option" : "no command", word,
                 options_nearest(word, *word == '-' ? flags : names));
}

static int dispatch(int argc, char **argv)
{
    const char *word = argc >= 2 ? argv[1] : "--help";
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        const struct command *command = argc >= 3 ? command_find(argv[2]) : NULL;
        if (command)
            help_command(command, stdout);
        else
            help_program(argc >= 2 ? stdout : stderr);
        return argc >= 2 ? 0 : EXIT_USAGE;
    }
    if (strcmp(word, "--version") == 0) {
        printf("twagent %s\n", TWAGENT_VERSION);
        return 0;
    }
    if (strcmp(word, "--man") == 0 || strcmp(word, "--completion") == 0) {
        word[2] == 'm' ? help_man(stdout) : help_completion(stdout);
        return 0;
    }
    const struct command *command = command_find(word);
    return command ? command_start(command, argc - 2, argv + 2) : unknown_command(word);
}

int main(int argc, char **argv)
{
    int code;
    backends_begin();
    if (internal_dispatch(argc, argv, &code))
        return code;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file limit is an error to report, not an end */
    return close_output(dispatch(argc, argv));
}
