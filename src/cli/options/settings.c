#include "cli/options/settings.h"

#include "cli/options/backends.h"

#include "base/file.h"
#include "base/mem.h"
#include "cli/options/devices.h"

#include <stdlib.h>
#include <string.h>

/* Where an option is stored and, for what a search is told, by which name a run's record has it: a
 * resume takes the record's value unless its own command line says another. */
#define AT(field)     offsetof(struct settings, field), NULL
#define SEARCH(field) offsetof(struct settings, search.field), #field

enum {
    SEARCHING = COMMAND_RUN | COMMAND_RESUME,
    CONTROLLING = COMMAND_RESUME | COMMAND_PAUSE | COMMAND_STOP | COMMAND_STATUS,
    EVALUATING = COMMAND_EVAL | COMMAND_PROFILE | COMMAND_VERIFY | COMMAND_RERUN,
    MEASURING = COMMAND_RUN | COMMAND_TUNE | COMMAND_PROBLEM | COMMAND_DOCTOR | EVALUATING,
    STORED = COMMAND_PROFILE | COMMAND_RUN | COMMAND_TUNE | COMMAND_EVAL | COMMAND_LIST |
             COMMAND_SHOW | COMMAND_BEST | COMMAND_DOCTOR | COMMAND_BACKUP | COMMAND_PROBLEM |
             COMMAND_DOCS | COMMAND_LESSONS | COMMAND_EMIT | COMMAND_HISTORY | COMMAND_STATS |
             COMMAND_DIFF | COMMAND_EXPORT | COMMAND_SERVE | COMMAND_GC | COMMAND_VERIFY |
             COMMAND_RERUN | COMMAND_REPORT | COMMAND_CACHE | CONTROLLING,
};

/* clang-format off */
static const struct option options[] = {
    {"problem", 'p', OPTION_TEXT, SEARCH(problem), NULL, 0, 0, NULL, NULL, "NAME",
     "problem to work on, as the argument PROBLEM: a shipped name, a folder or a spec.yaml, with @SIZE behind it for another main shape (emit: where it lies now)", COMMAND_RUN | COMMAND_EMIT},
    {"branching", 'b', OPTION_INT, SEARCH(branching), "8", 1, 512, NULL, NULL, "N",
     "ideas asked for in each round", COMMAND_RUN},
    {"select", 's', OPTION_REAL, SEARCH(select), "0.25", 0.0001, 1, NULL, NULL, "F",
     "share of the kept kernels that become parents of the next round", COMMAND_RUN},
    {"rounds", 'r', OPTION_INT, SEARCH(rounds), "8", 1, 100000, NULL, NULL, "N",
     "rounds of the search", SEARCHING},
    {"implementations", 'i', OPTION_INT, SEARCH(implementations), "2", 1, 64, NULL, NULL, "N",
     "independent implementations of each idea", COMMAND_RUN},
    {"beam", 0, OPTION_INT, SEARCH(beam), "0", 0, 4096, NULL, NULL, "N",
     "number of parents kept each round, in place of --select; 0: by --select", COMMAND_RUN},
    {"repairs", 0, OPTION_INT, SEARCH(repairs), "2", 0, 64, NULL, NULL, "N",
     "times a candidate that fails or is wrong goes back with its diagnostics", COMMAND_RUN},
    {"dry-run", 0, OPTION_BOOL, SEARCH(dry_run), "false", 0, 0, NULL, NULL, NULL,
     "run: evaluate a single candidate, then stop; gc: only say what would go", COMMAND_RUN | COMMAND_GC},
    {"force", 0, OPTION_BOOL, AT(force), "false", 0, 0, NULL, NULL, NULL,
     "measure, or search, although the cache has the answer (docs/cache.md)", COMMAND_RUN | COMMAND_EVAL},
    {"unfit", 0, OPTION_BOOL, SEARCH(unfit), "false", 0, 0, NULL, NULL, NULL,
     "go on with a problem whose tolerance lets zeros, ones or lower precision pass (every line then says so)", COMMAND_RUN | COMMAND_TUNE | EVALUATING},
    {"unconfined", 0, OPTION_BOOL, SEARCH(unconfined), "false", 0, 0, NULL, NULL, NULL,
     "go on where this machine lacks seccomp, so that a candidate could reach its verdict (every line then says so)", SEARCHING | COMMAND_TUNE | EVALUATING | COMMAND_DOCTOR | COMMAND_CACHE},
    {"final", 0, OPTION_BOOL, SEARCH(final), "true", 0, 0, NULL, NULL, NULL,
     "measure the champion again, with fresh processes, fresh seeds and sanitizers", SEARCHING | COMMAND_TUNE},
    {"lessons", 0, OPTION_BOOL, SEARCH(lessons), "true", 0, 0, NULL, NULL, NULL,
     "begin with what earlier runs of the problem's family have taught", COMMAND_RUN},
    {"passage-tokens", 0, OPTION_INT, SEARCH(passage_tokens), "1600", 0, 1000000, NULL, NULL, "N",
     "most that a prompt quotes from the guides and manuals (twagent docs), at 4 bytes a token; 0: nothing", COMMAND_RUN},
    {"strategy", 0, OPTION_ENUM, SEARCH(strategy), "beam", 0, 0, "beam|greedy|islands", NULL, "NAME",
     "who become parents: the best by --select or --beam, the best one alone, or the best of each island", COMMAND_RUN},
    {"islands", 0, OPTION_INT, SEARCH(islands), "4", 1, 64, NULL, NULL, "N",
     "pools that seldom meet, with --strategy islands", COMMAND_RUN},
    {"migration", 0, OPTION_INT, SEARCH(migration), "4", 1, 100000, NULL, NULL, "N",
     "rounds between visits of islands", COMMAND_RUN},
    {"tuning", 0, OPTION_INT, SEARCH(tuning), "-1", -1, 100000, NULL, NULL, "N",
     "points of tune spaces measured beside each round of a model; -1: as many as it writes, and on while it thinks",
     COMMAND_RUN},
    {"lanes", 0, OPTION_INT, SEARCH(lanes), "1", 1, 1024, NULL, NULL, "N",
     "workers that evaluate at once, each alone on its cores (serve: of each backend)", SEARCHING | COMMAND_TUNE | COMMAND_SERVE},
    {"launcher", 0, OPTION_TEXT, SEARCH(launcher), NULL, 0, 0, NULL, NULL, "WORDS",
     "what stands before a worker's command, as in \"ssh node7\" (docs/cluster.md)", SEARCHING | MEASURING | COMMAND_SERVE},
    {"model", 'm', OPTION_TEXT, AT(model), NULL, 0, 0, NULL, "TWAGENT_MODEL", "NAME[@WEIGHT],...",
     "models that are asked, by weight (command/NAME: a program of models.yaml); none: the built-in proposer has the ideas", SEARCHING | COMMAND_TUNE},
    {"idea-model", 0, OPTION_TEXT, AT(idea_model), NULL, 0, 0, NULL, NULL, "NAME[@WEIGHT],...",
     "models for ideas, in place of --model", SEARCHING},
    {"code-model", 0, OPTION_TEXT, AT(code_model), NULL, 0, 0, NULL, NULL, "NAME[@WEIGHT],...",
     "models that write and repair code, in place of --model", SEARCHING},
    {"provider", 0, OPTION_CHOICE, AT(provider), NULL, 0, 0,
     "openai|responses|anthropic|gemini|mailbox|replay|builtin", "TWAGENT_PROVIDER", "NAME",
     "whose format the models speak (default: their entry's; builtin where no model is named)", SEARCHING | COMMAND_TUNE},
    {"base-url", 0, OPTION_TEXT, AT(base_url), NULL, 0, 0, NULL, "TWAGENT_BASE_URL", "URL",
     "the provider's address, for any server that speaks its format", SEARCHING | COMMAND_TUNE | COMMAND_DOCS},
    {"models", 0, OPTION_TEXT, AT(models), NULL, 0, 0, NULL, "TWAGENT_MODELS", "FILE",
     "models with addresses and prices, over those shipped (default: ~/.config/twagent/models.yaml)", SEARCHING | COMMAND_TUNE | COMMAND_DOCS},
    {"env-file", 0, OPTION_TEXT, AT(env_file), NULL, 0, 0, NULL, "TWAGENT_ENV_FILE", "FILE",
     "where keys are that the environment lacks (default: ./.env)", SEARCHING | COMMAND_TUNE | COMMAND_DOCS},
    {"ca-file", 0, OPTION_TEXT, SEARCH(ca_file), NULL, 0, 0, NULL, "TWAGENT_CA_FILE", "FILE",
     "certificates to trust in place of the system's", SEARCHING | COMMAND_TUNE | COMMAND_DOCS},
    {"temperature", 0, OPTION_REAL, AT(temperature), "-1", -1, 2, NULL, NULL, "T",
     "sampling temperature; -1: left to the model's entry or the provider", COMMAND_RUN | COMMAND_TUNE},
    {"max-tokens", 0, OPTION_INT, AT(max_tokens), "0", 0, 10000000, NULL, NULL, "N",
     "most tokens of one completion; 0: left to the model's entry or the provider", COMMAND_RUN | COMMAND_TUNE},
    {"requests", 0, OPTION_INT, SEARCH(requests), "0", 0, 4096, NULL, NULL, "N",
     "most requests in flight for one key; 0: as many as a round writes, from 8 to 64", SEARCHING},
    {"seed", 0, OPTION_INT, SEARCH(seed), "0", 0, 0, NULL, NULL, "N",
     "seed of the search's own choices; 0: drawn (inputs are always drawn afresh)", COMMAND_RUN | COMMAND_TUNE},
    {"budget-time", 't', OPTION_DURATION, SEARCH(budget_ms), "0", 0, 0, NULL, NULL, "TIME",
     "wall time for the whole run, final measurement included (90s, 10m, 8h); 0: none", SEARCHING | COMMAND_TUNE},
    {"budget-evaluations", 0, OPTION_INT, SEARCH(budget_evaluations), "0", 0, 0, NULL, NULL, "N",
     "most evaluations; 0: none", SEARCHING},
    {"budget-usd", 0, OPTION_DOLLARS, SEARCH(budget_micro_dollars), "0", 0, 1000000, NULL, NULL, "DOLLARS",
     "most that completions may cost, by the prices in models.yaml; 0: no cap", SEARCHING | COMMAND_TUNE},
    {"budget-tokens", 0, OPTION_INT, SEARCH(budget_tokens), "0", 0, 0, NULL, NULL, "N",
     "most tokens, of prompts and answers; 0: no cap", SEARCHING | COMMAND_TUNE},
    {"target", 0, OPTION_REAL, SEARCH(target), "0", 0, 1000000, NULL, NULL, "X",
     "end once a kernel is at least so many times faster; 0: none", SEARCHING | COMMAND_TUNE},
    {"floor-share", 0, OPTION_REAL, SEARCH(floor_share), "0.95", 0, 1, NULL, NULL, "F",
     "end once a kernel reaches this share of what the machine can do; 0: never", SEARCHING},
    {"patience", 0, OPTION_INT, SEARCH(patience), "0", 0, 100000, NULL, NULL, "N",
     "end after so many rounds (tune: evaluations) without a better kernel; 0: never", SEARCHING | COMMAND_TUNE},
    {"mailbox-wait", 0, OPTION_DURATION, SEARCH(mailbox_ms), "0", 0, 0, NULL, NULL, "TIME",
     "how long a run with nothing else to do waits for answers in mailboxes (10m, 8h) before it stops, to be resumed; 0: takes only those that are there", SEARCHING | COMMAND_TUNE},
    {"disk-quota", 0, OPTION_SIZE, SEARCH(disk_quota), "0", 0, 0, NULL, NULL, "SIZE",
     "pause while the store's folder takes more; 0: no limit", SEARCHING | COMMAND_TUNE},
    {"disk-floor", 0, OPTION_SIZE, SEARCH(disk_floor), "256M", 0, 0, NULL, NULL, "SIZE",
     "pause while the store's disk has less left; 0: no limit", SEARCHING | COMMAND_TUNE},
    {"watch", 'w', OPTION_BOOL, AT(watch), "false", 0, 0, NULL, NULL, NULL,
     "go on showing it, redrawn each second, until the run ends", COMMAND_STATUS},
    {"metrics", 0, OPTION_BOOL, AT(metrics), "false", 0, 0, NULL, NULL, NULL,
     "print OpenMetrics text, as Prometheus reads it", COMMAND_STATUS},
    {"listen", 0, OPTION_TEXT, AT(listen), "127.0.0.1:7007", 0, 0, NULL, NULL, "ADDRESS:PORT",
     "where the pages are; at an address that others reach, only with the token that is printed; port 0: any that is free", COMMAND_SERVE},
    {"report", 0, OPTION_TEXT, AT(report), NULL, 0, 0, NULL, NULL, "DIR",
     "folder for the report and the best kernel (default: reports/RUN in the store's folder)", SEARCHING | COMMAND_TUNE},
    {"tune", 0, OPTION_TEXT, AT(tune), NULL, 0, 0, NULL, NULL, "A=1,B=2",
     "numbers for the candidate's tune parameters (default: each one's first)", COMMAND_EVAL | COMMAND_PROFILE},
    {"effort", 0, OPTION_CHOICE, AT(effort), "full", 0, 0, "search|full|final", NULL, "LEVEL",
     "how much is measured: as in a search, in full, or as a champion", COMMAND_EVAL},
    {"until", 0, OPTION_CHOICE, AT(until), NULL, 0, 0, "compile|check", NULL, "STAGE",
     "end behind this stage: does it compile, is it right; no kernel comes of that (default: all of it)", COMMAND_EVAL},
    {"against", 0, OPTION_TEXT, AT(against), NULL, 0, 0, NULL, NULL, "FILE|ID",
     "another source, or a candidate of the store (r3-c17), timed in turns with it in place of the baseline", COMMAND_EVAL},
    {"profile", 0, OPTION_BOOL, AT(profile), "true", 0, 0, NULL, NULL, NULL,
     "profile a candidate that is right", COMMAND_EVAL},
    {"sanitize", 0, OPTION_BOOL, AT(sanitize), "false", 0, 0, NULL, NULL, NULL,
     "also run a build with address and undefined-behaviour sanitizers, on CUDA compute-sanitizer's four tools (always with --effort final, and for a win with --effort full)", COMMAND_EVAL},
    {"cachegrind", 0, OPTION_BOOL, AT(cachegrind), "false", 0, 0, NULL, NULL, NULL,
     "also count instructions, cache misses and branches with valgrind, on a small shape", COMMAND_EVAL},
    {"max-evaluations", 'n', OPTION_INT, AT(max_evaluations), "100", 0, 0, NULL, NULL, "N",
     "most points that are measured; 0: no cap", COMMAND_TUNE},
    {"strategy", 0, OPTION_ENUM, SEARCH(tune_strategy), "auto", 0, 0, "auto|exhaustive|proposer|random", NULL, "NAME",
     "which points: exhaustive (every one, in a random order), proposer (by a model of time, every third by chance), random; auto: exhaustive up to 128 valid points, else proposer", COMMAND_TUNE},
    {"stable", 0, OPTION_BOOL, SEARCH(stable), "false", 0, 0, NULL, NULL, NULL,
     "the best kernel that is right at every size of the ladder and slower at none wins, of the best five (none: exit code 1)", COMMAND_TUNE},
    {"kernel", 0, OPTION_TEXT, SEARCH(kernel), NULL, 0, 0, NULL, NULL, "KERNEL",
     "whose tune space, as the argument KERNEL: a file, a candidate's id, or starts", COMMAND_TUNE},
    {"sweep", 0, OPTION_INT, AT(sweep), "-1", -1, 1000000, NULL, NULL, "N",
     "evaluate N points of the tune space, drawn by chance, or all with 0: a JSON line for each; -1: one evaluation", COMMAND_EVAL},
    {"baseline", 0, OPTION_TEXT, SEARCH(baseline), NULL, 0, 0, NULL, NULL, "NAME",
     "what speed-ups are against: reference, or one of the problem's baselines (default: the problem's choice)", COMMAND_RUN | COMMAND_TUNE | COMMAND_EVAL},
    {"backend", 0, OPTION_CHOICE, SEARCH(backend), "cpu", 0, 0, backends_choices, NULL, "NAME",
     "where candidates run", MEASURING},
    {"language", 0, OPTION_CHOICE, SEARCH(language), NULL, 0, 0, "cuda|triton|both", NULL, "NAME",
     "on NVIDIA GPUs: whose starts a search begins with and what models write; both: by islands with --strategy islands, else as the parent (default: cuda)", COMMAND_RUN | COMMAND_TUNE},
    {"devices", 0, OPTION_TEXT, SEARCH(devices), NULL, 0, 0, NULL, NULL, "LIST",
     "GPUs for the backend cuda, as nvidia-smi numbers them (or CUDA_VISIBLE_DEVICES, where it is set): 0,2 or all; a run has a lane on each, all of one kind, other commands use the first (default: 0)", MEASURING | COMMAND_CACHE | COMMAND_SERVE},
    {"cores", 0, OPTION_TEXT, SEARCH(cores), NULL, 0, 0, NULL, NULL, "LIST",
     "CPUs of the lane, as in 0-3,8 (default: all that are allowed)", MEASURING | COMMAND_SERVE},
    {"first-byte-limit", 0, OPTION_DURATION, SEARCH(first_byte_ms), "10m", 1000, 0, NULL, NULL, "TIME",
     "longest wait for the first byte of an answer", SEARCHING | COMMAND_TUNE},
    {"silence-limit", 0, OPTION_DURATION, SEARCH(silence_ms), "2m", 1000, 0, NULL, NULL, "TIME",
     "longest wait between two bytes of an answer", SEARCHING | COMMAND_TUNE},
    {"answer-limit", 0, OPTION_DURATION, SEARCH(answer_ms), "1h", 1000, 0, NULL, NULL, "TIME",
     "longest answer, from its request to its end", SEARCHING | COMMAND_TUNE},
    {"call-timeout", 0, OPTION_DURATION, SEARCH(call_timeout_ms), "10s", 1, 0, NULL, NULL, "TIME",
     "longest single call of a candidate", MEASURING | COMMAND_CACHE | COMMAND_SERVE},
    {"time-budget", 0, OPTION_DURATION, SEARCH(time_budget_ms), "400ms", 1, 0, NULL, NULL, "TIME",
     "time spent on timed samples of one evaluation", MEASURING | COMMAND_SERVE},
    {"python", 0, OPTION_TEXT, SEARCH(python), NULL, 0, 0, NULL, "TWAGENT_PYTHON", "PATH",
     "Python with numpy or torch, for references (default: found in $VIRTUAL_ENV, PATH, /usr/bin)", MEASURING | COMMAND_RESUME | COMMAND_EMIT | COMMAND_EXPORT | COMMAND_CACHE | COMMAND_SERVE},
    {"output", 'o', OPTION_TEXT, AT(output), NULL, 0, 0, NULL, NULL, "FILE",
     "write the kernel's source, what lessons, export or report writes, or what cache run computes, there", COMMAND_CACHE | COMMAND_BEST | COMMAND_SHOW | COMMAND_LESSONS | COMMAND_EXPORT | COMMAND_REPORT | COMMAND_IMPORT},
    {"html", 0, OPTION_BOOL, AT(html), "false", 0, 0, NULL, NULL, NULL,
     "the page in place of the text", COMMAND_REPORT},
    {"format", 0, OPTION_CHOICE, AT(format), "jsonl", 0, 0, "jsonl|csv|sql|parquet", NULL, "NAME",
     "jsonl, csv, sql (a table \"kernels\" for SQLite or DuckDB), parquet (needs a Python with pyarrow)", COMMAND_EXPORT},
    {"bundle", 0, OPTION_TEXT, AT(bundle), NULL, 0, 0, NULL, NULL, "FILE",
     "write the kernel with its problem and its evidence there, for twagent verify on any machine", COMMAND_BEST | COMMAND_SHOW},
    {"source", 0, OPTION_BOOL, AT(source), "false", 0, 0, NULL, NULL, NULL,
     "print the source only", COMMAND_CACHE | COMMAND_BEST | COMMAND_SHOW},
    {"to", 0, OPTION_CHOICE, AT(to), NULL, 0, 0, "pytorch|numpy|c|web", NULL, "FORM",
     "for whom: pytorch (CUDA kernels), numpy or c (CPU kernels), web (WGSL); default: pytorch, numpy, web", COMMAND_EMIT},
    {"unchecked-shapes", 0, OPTION_BOOL, AT(unchecked_shapes), "false", 0, 0, NULL, NULL, NULL,
     "a package that calls the kernel at any size, also larger than it was checked at", COMMAND_EMIT},
    {"jobs", 'j', OPTION_INT, AT(jobs), "1", 1, 64, NULL, NULL, "N",
     "check of a folder: files at once, each on its share of the cores", COMMAND_PROBLEM},
    {"elements", 0, OPTION_INT, AT(elements), "0", 0, 0, NULL, NULL, "N",
     "check of a folder: where a tensor is larger, a smaller first dimension, if it can vary; 0: as the file has it", COMMAND_PROBLEM},
    {"each", 0, OPTION_DURATION, AT(each_ms), "10m", 1, 0, NULL, NULL, "TIME",
     "check of a folder: longest that one file may take", COMMAND_PROBLEM},
    {"tag", 0, OPTION_TEXT, AT(tag), NULL, 0, 0, NULL, NULL, "NAME,...",
     "add: what the documents are marked with; search: only documents marked with one of them", COMMAND_DOCS},
    {"exclude", 0, OPTION_TEXT, AT(exclude), NULL, 0, 0, NULL, NULL, "PATTERN,...",
     "files and folders that add leaves out, as in \"*.inl,detail\"", COMMAND_DOCS},
    {"builtin", 0, OPTION_BOOL, AT(builtin), "false", 0, 0, NULL, NULL, NULL,
     "add: the guides that ship with twagent, tagged \"builtin\"", COMMAND_DOCS},
    {"embedding-model", 0, OPTION_TEXT, AT(embedding_model), NULL, 0, 0, NULL, NULL, "NAME",
     "docs add, update: ask it for vectors of all passages; docs search, run: rank by them too (run: as the index; none: not)", COMMAND_DOCS | SEARCHING},
    {"limit", 0, OPTION_INT, AT(limit), "5", 1, 1000, NULL, NULL, "N",
     "most passages that search shows", COMMAND_DOCS},
    {"tokens", 0, OPTION_INT, AT(tokens), "0", 0, 10000000, NULL, NULL, "N",
     "most tokens of all passages together, at 4 bytes each; 0: no budget", COMMAND_DOCS},
    {"family", 0, OPTION_TEXT, AT(family), NULL, 0, 0, NULL, NULL, "NAME",
     "only lessons of this family of problems", COMMAND_LESSONS},
    {"wins", 0, OPTION_BOOL, AT(wins), "false", 0, 0, NULL, NULL, NULL,
     "only lessons of what was faster than its parent beyond doubt", COMMAND_LESSONS},
    {"last", 0, OPTION_INT, AT(last), "40", 0, 0, NULL, NULL, "N",
     "how many list shows, of lessons or runs, the latest ones; 0: all", COMMAND_LESSONS | COMMAND_LIST},
    {"older-than", 0, OPTION_DURATION, AT(older_than_ms), "0", 0, 0, NULL, NULL, "TIME",
     "runs that ended, or entries of the cache that were written, longer ago (30d, 12h)", COMMAND_GC | COMMAND_CACHE},
    {"status", 0, OPTION_CHOICE, AT(status), NULL, 0, 0, "c|r", NULL, "S",
     "only entries that are c, kernels, or r, rejected or failed", COMMAND_CACHE},
    {"max-size", 0, OPTION_SIZE, AT(max_size), "0", 0, 0, NULL, NULL, "SIZE",
     "the oldest runs, until the store's records take no more (500M, 2G)", COMMAND_GC},
    {"adversarial", 0, OPTION_BOOL, AT(adversarial), "false", 0, 0, NULL, NULL, NULL,
     "run the shipped attacks and honest controls on this machine, and say which verdicts held", COMMAND_DOCTOR},
    {"measure", 0, OPTION_BOOL, AT(measure), "true", 0, 0, NULL, NULL, NULL,
     "measure bandwidth and FMA rate", COMMAND_DOCTOR},
    {"store", 0, OPTION_TEXT, AT(store), NULL, 0, 0, NULL, "TWAGENT_STORE", "DIR",
     "where runs are kept (default: $XDG_STATE_HOME/twagent or ~/.local/state/twagent)", STORED},
    {"config", 0, OPTION_TEXT, AT(config), NULL, 0, 0, NULL, "TWAGENT_CONFIG", "FILE",
     "configuration in YAML: any option by its name (default: ~/.config/twagent/config.yaml)", COMMAND_ALL},
    {"json", 0, OPTION_BOOL, AT(json), "false", 0, 0, NULL, NULL, NULL,
     "print JSON for programs in place of text for people", COMMAND_ALL},
    {"quiet", 'q', OPTION_BOOL, AT(quiet), "false", 0, 0, NULL, NULL, NULL,
     "no progress, only the result", SEARCHING | COMMAND_TUNE | EVALUATING},
    {"verbose", 'v', OPTION_BOOL, AT(verbose), "false", 0, 0, NULL, NULL, NULL,
     "every event as a line", SEARCHING | COMMAND_TUNE | EVALUATING},
};
/* clang-format on */

const struct option_table settings_table = {options, sizeof options / sizeof options[0]};

struct lane_spec settings_lane(const struct settings *settings, const char *problem)
{
    const struct search_options *search = &settings->search;
    return (struct lane_spec){.launcher = search->launcher,
                              .backend = search->backend,
                              .cores = search->cores,
                              .device = search->devices,
                              .problem = problem,
                              .python = search->python,
                              .call_timeout_ms = (uint64_t)search->call_timeout_ms,
                              .time_budget_ms = (uint64_t)search->time_budget_ms};
}

bool settings_given(const struct settings *settings, size_t offset)
{
    for (size_t i = 0; i < settings_table.count; i++)
        if (settings_table.options[i].offset == offset)
            return settings->origins[i] == ORIGIN_COMMAND_LINE;
    return false;
}

/* --config is needed before the file is read: it is looked for ahead of the others. */
static const char *config_path(struct arena *arena, int argc, char **argv, bool *required)
{
    *required = true;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--config") == 0 && i + 1 < argc)
            return argv[i + 1];
        if (strncmp(argv[i], "--config=", 9) == 0)
            return argv[i] + 9;
    }
    const char *path = getenv("TWAGENT_CONFIG");
    if (path && *path)
        return path;
    *required = false;
    MEM_LOCAL char *own = file_user_path("XDG_CONFIG_HOME", ".config", "twagent/config.yaml");
    return own ? arena_strdup(arena, own) : NULL;
}

int settings_load(struct arena *arena, uint32_t command, int argc, char **argv,
                  struct settings *settings, const char **positionals, size_t most, size_t *count,
                  struct err *err)
{
    memset(settings, 0, sizeof *settings);
    enum option_origin *origins = arena_array(arena, settings_table.count, sizeof *origins);
    settings->origins = origins;
    if (options_defaults(&settings_table, settings, origins, arena, err))
        return -1;
    bool required = false;
    const char *path = config_path(arena, argc, argv, &required);
    if (path && (required || file_exists(path)))
        settings->file = path;
    if (settings->file && options_file(&settings_table, settings, origins, arena, path, err))
        return -1;
    if (options_environment(&settings_table, settings, origins, arena, err))
        return -1;
    if (options_command_line(&settings_table, settings, origins, arena, command, argc, argv,
                             positionals, most, count, err))
        return -1;
    return devices_check(settings->search.devices, err);
}
