/* twagent run PROBLEM: a search from start to report; resume goes the same way.
 *
 *   STARTING -> CHECKING (are the models there?) -> SEARCHING (redraws at every wake and once a
 *     second) -> done; the report is written after the loop
 */
#include "cli/run/run.h"

#include "agents/llm/preflight.h"
#include "agents/prompt/prompt.h"
#include "agents/search/search.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log_file.h"
#include "base/mem.h"
#include "base/random.h"
#include "cli/cache/use.h"
#include "cli/find/find.h"
#include "cli/options/backends.h"
#include "cli/options/command.h"
#include "cli/options/devices.h"
#include "cli/options/settings.h"
#include "cli/print/display.h"
#include "cli/run/result.h"
#include "cli/tune/ladder.h"
#include "eval/candidate/definition.h"
#include "eval/problem/torch.h"
#include "loop/loop.h"
#include "store/store.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SKELETON_MOST = 1 << 18 };

static void put_names(const struct tensor_spec *tensors, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++)
        buf_addf(out, "%s, ", tensors[i].name);
}

/* A program for each element of the first output. */
static void put_launch(const struct problem *problem, const struct language *language,
                       struct buf *out)
{
    const struct tensor_spec *output = &problem->outputs[0];
    buf_addf(out, "%s\nlaunch:\n  - entry: first\n    grid: ceil_div(1", language->open);
    for (size_t i = 0; i < output->rank; i++)
        buf_addf(out, " * (%s)", output->shape_text[i]);
    buf_addf(out, ", BLOCK)\n%s    args: [", language->fixes_block ? "" : "    block: BLOCK\n");
    put_names(problem->inputs, problem->input_count, out);
    put_names(problem->outputs, problem->output_count, out);
    for (size_t i = 0; i < problem->dim_count; i++)
        buf_addf(out, "%s, ", problem->dims[i].name);
    out->data[out->length -= 2] = '\0';
    buf_addf(out, "]\ntune:\n  BLOCK: [256, 128, 512]\n%s\n", language->close);
}

static void put_triton(const struct problem *problem, struct buf *out)
{
    buf_add_text(out, "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef first(");
    put_names(problem->inputs, problem->input_count, out);
    put_names(problem->outputs, problem->output_count, out);
    for (size_t i = 0; i < problem->dim_count; i++)
        buf_addf(out, "%s, ", problem->dims[i].name);
    buf_add_text(out, "BLOCK: tl.constexpr):\n");
}

static void put_outputs(const struct problem *problem, struct buf *out)
{
    put_names(problem->outputs, problem->output_count, out);
    out->data[out->length -= 2] = '\0'; /* its last comma */
}

static void put_skeleton(const struct problem *problem, const struct language *language,
                         struct buf *out)
{
    const char *what = problem->torch != NULL ? "Model.forward" : problem->reference_function;
    if (language->plan)
        put_launch(problem, language, out);
    if (language->fixes_block) {
        put_triton(problem, out);
        buf_addf(out, "    pass  # To be written: what %s computes, into ", what);
        put_outputs(problem, out);
        buf_add_text(out, ".\n");
        return;
    }
    if (language->plan) {
        buf_add_text(out, "extern \"C\" __global__ void first(");
        prompt_arguments(problem, out);
        buf_add_char(out, ')');
    } else {
        prompt_signature(problem, out);
    }
    buf_addf(out, "\n{\n    /* To be written: what %s computes, into ", what);
    put_outputs(problem, out);
    buf_add_text(out, ". */\n}\n");
}

static void print_next(const struct settings *settings, const char *name,
                       const struct problem *problem, const struct language *language)
{
    const struct target *target = target_find(settings->search.backend);
    const char *suffix = language->suffixes[0];
    const char *folder = problem_starts_folder(problem, language_folder(target, language));
    char option[80] = "";
    BUF_LOCAL(text, SKELETON_MOST);
    put_skeleton(problem, language, &text);
    if (settings_given(settings, offsetof(struct settings, search.backend)))
        snprintf(option, sizeof option, " --backend %s", target->name);
    if (settings->search.language != NULL)
        snprintf(option + strlen(option), sizeof option - strlen(option), " --language %s",
                 settings->search.language);
    printf(
        "\nfirst%s, which compiles and is not right yet:\n\ncat >first%s <<'END'\n%sEND\n\nnext\n",
        suffix, suffix, buf_text(&text));
    printf("  twagent problem check %s%s     # whether kernels of it can be judged\n"
           "  twagent eval %s first%s%s     # until it is a kernel\n"
           "  mkdir -p %s && cp first%s %s/ && twagent run %s%s     # searches from there\n"
           "  twagent run %s%s --model NAME     # asks a model for the first kernel as well\n",
           name, option, name, suffix, option, folder, suffix, folder, name, option, name, option);
}

/* A problem that a search has nothing to begin with, for want of starts and of a model: a source to
 * fill in, and what to do next. It is told at once, for a check takes a minute and more. An exit
 * code, or -1: it has starts, or cannot be read, which whoever goes on with it tells. */
static int no_starts(const struct settings *settings, const char *name)
{
    struct problem *problem;
    struct err ignored;
    const char *paths[1];
    const struct language *chosen[TARGET_FOLDERS_MAX];
    const struct target *target = target_find(settings->search.backend);
    size_t languages = target_choose(target, settings->search.language, chosen), found = 0;
    if (languages == 0) /* the search says it */
        return -1;
    if (problem_load_with(name, settings->search.python, &problem, &ignored))
        return -1;
    for (size_t i = 0; i < languages; i++)
        found += problem_starts(problem, language_folder(target, chosen[i]), paths, 1) +
                 definition_is_candidate(problem, chosen[i]);
    if (found > 0) {
        problem_free(problem);
        return -1;
    }
    fprintf(stderr,
            "twagent: %s: nothing to begin a search with: no starts in %s, and no --model\n", name,
            problem_starts_folder(problem, language_folder(target, chosen[0])));
    print_next(settings, name, problem,
               settings->search.language != NULL ? chosen[0] : language_of_text(target, ""));
    problem_free(problem);
    return EXIT_USAGE;
}

enum { STARTING, CHECKING, SEARCHING, STATES };
static const char *const states[STATES] = {"starting", "checking the models", "searching"};
static const uint32_t moves[STATES] = {1u << CHECKING | 1u << SEARCHING, 1u << SEARCHING, 0};

enum { STOP_SIGNALS = 3, PAUSE = STOP_SIGNALS, GO_ON, SIGNALS, REDRAW_MS = 1000 };
static const int signals[SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

enum { LOG_BYTES = 8 << 20, LOGS_KEPT = 3 };

struct run {
    struct task task;
    const struct settings *settings;
    const char *folder;
    const struct models *models[2];
    struct store *store;
    struct preflight *preflight;
    struct search *search;
    struct signal_watch signals[SIGNALS];
    unsigned stops, pauses, goes_on;
    struct timer redraw;
    struct display display;
    struct log_file *log;
    char *log_path; /* NULL: the search did not begin */
    struct err err;
};

/* ---- signals ---- */

static void watch_signals(struct run *run)
{
    for (int i = 0; i < SIGNALS && run->err.code == ERR_NONE; i++)
        (void)!signal_watch_start(run->task.loop, &run->signals[i], &run->task, signals[i],
                                  &run->err);
}

/* From here on none of them may end the program: the report takes a moment, and is worth it. */
static enum task_result finish(struct run *run)
{
    timer_stop(&run->redraw);
    for (int i = 0; i < SIGNALS; i++) {
        if (run->signals[i].handle)
            signal_watch_stop(&run->signals[i]);
        signal(signals[i], SIG_IGN);
    }
    display_stop(&run->display);
    return TASK_DONE;
}

static unsigned stops_asked(const struct run *run)
{
    unsigned count = 0;
    for (int i = 0; i < STOP_SIGNALS; i++)
        count += run->signals[i].count;
    return count;
}

/* The first signal stops softly, the second at once. */
static void heed_signals(struct run *run)
{
    unsigned count = stops_asked(run);
    for (; run->stops < count && run->stops < 2; run->stops++) {
        if (run->stops == 0)
            display_say(&run->display,
                        "stopping: finishing what is being measured (again to stop at once)");
        search_stop(run->search);
    }
    if (run->signals[PAUSE].count > run->pauses)
        search_pause(run->search, true);
    if (run->signals[GO_ON].count > run->goes_on)
        search_pause(run->search, false);
    run->pauses = run->signals[PAUSE].count;
    run->goes_on = run->signals[GO_ON].count;
}

/* ---- steps ---- */

static enum task_result start_search(struct run *run)
{
    struct search_progress progress;
    struct err ignored;
    if (search_start(run->task.loop, &run->task, run->store, &run->settings->search, &run->search,
                     &run->err))
        return finish(run);
    search_progress(run->search, &progress);
    run->log_path = mem_alloc(strlen(run->folder) + strlen(progress.run) + 16);
    sprintf(run->log_path, "%s/logs/%s.log", run->folder, progress.run);
    if (log_file_open(run->log, run->log_path, &ignored)) /* a run without its log is still a run */
        log_event(LOG_WARN, "log.file", progress.run, "no log is kept: %s", ignored.message);
    task_move(&run->task, SEARCHING);
    return TASK_AGAIN;
}

static enum task_result step_starting(struct run *run)
{
    watch_signals(run);
    display_start(&run->display, stderr, &run->settings->search, run->settings->quiet,
                  run->settings->verbose);
    if (run->err.code)
        return finish(run);
    timer_start(run->task.loop, &run->redraw, &run->task, REDRAW_MS);
    if (run->models[0]->count == 0)
        return start_search(run);
    run->preflight = preflight_start(run->task.loop, &run->task, run->models, 2,
                                     run->settings->search.ca_file, &run->err);
    if (!run->preflight)
        return finish(run);
    task_move(&run->task, CHECKING);
    return TASK_WAIT;
}

static enum task_result step_checking(struct run *run)
{
    if (stops_asked(run) > run->stops) {
        run->stops = stops_asked(run);
        (void)err_set(&run->err, ERR_CANCELLED, "stopped before the search began");
        preflight_cancel(run->preflight);
    }
    if (!preflight_done(run->preflight)) {
        if (run->redraw.fired) {
            display_wait(&run->display, "asking whether the models are there ...");
            timer_start(run->task.loop, &run->redraw, &run->task, REDRAW_MS);
        }
        return TASK_WAIT;
    }
    if (run->err.code == ERR_NONE)
        run->err = *preflight_error(run->preflight);
    return run->err.code ? finish(run) : start_search(run);
}

static enum task_result step_searching(struct run *run)
{
    struct search_progress progress;
    heed_signals(run);
    search_progress(run->search, &progress);
    display_update(&run->display, &progress);
    if (search_done(run->search))
        return finish(run);
    if (run->redraw.fired) {
        log_file_flush(run->log);
        timer_start(run->task.loop, &run->redraw, &run->task, REDRAW_MS);
    }
    return TASK_WAIT;
}

static enum task_result run_step(struct task *task)
{
    struct run *run = container_of(task, struct run, task);
    return task->state == STARTING   ? step_starting(run)
           : task->state == CHECKING ? step_checking(run)
                                     : step_searching(run);
}

static const struct task_type run_type = {"run", states, moves, STATES, run_step, NULL};

/* ---- the whole ---- */

/* What is left to do where nothing can be timed. */
static void explain_no_device(const struct run *run)
{
    const struct search_options *options = &run->settings->search;
    const struct backend *backend = backends_find(options->backend);
    const struct language *chosen[TARGET_FOLDERS_MAX];
    const char *start[1];
    struct problem *problem;
    struct err ignored;
    if (run->err.code != ERR_ENVIRONMENT || !backend->compile_only || options->launcher ||
        target_choose(backend->target, options->language, chosen) == 0 ||
        problem_load_with(options->problem, options->python, &problem, &ignored))
        return;
    if (problem_starts(problem, language_folder(backend->target, chosen[0]), start, 1) > 0)
        fprintf(stderr,
                "A search times kernels, so that it needs the device. What can be known without "
                "one:\n  twagent eval %s %s\ncompiles a kernel for it%s.\n",
                problem->name, start[0],
                chosen[0]->interpreted ? ", and runs it at small shapes in the language's own "
                                         "interpreter"
                                       : "");
    problem_free(problem);
}

static int run_loop(struct run *run)
{
    struct loop *loop = loop_new();
    run->log = log_file_new(LOG_BYTES, LOGS_KEPT);
    log_add_sink(log_file_sink, run->log, LOG_DEBUG);
    task_start(loop, &run->task, &run_type, NULL, "run");
    loop_run(loop);
    struct search_progress progress;
    int code;
    if (run->err.code == ERR_NONE && search_error(run->search)->code)
        run->err = *search_error(run->search);
    if (run->err.code == ERR_CANCELLED && !run->search) {
        fprintf(stderr, "twagent: %s\n", run->err.message);
        code = EXIT_STOPPED;
    } else if (run->err.code) {
        code = command_fail(&run->err);
        explain_no_device(run);
        if (run->search)
            run_result_hint(run->search, stderr);
    } else {
        search_progress(run->search, &progress);
        if (run->settings->search.kernel)
            ladder_climb(run->settings, run->store, progress.run);
        code = run_result(run->settings, run->store, run->search, run->folder);
        cache_keep_found(run->settings, run->store, progress.run);
    }
    log_remove_sink(log_file_sink, run->log);
    log_file_free(run->log);
    if (run->search)
        search_free(run->search);
    preflight_free(run->preflight);
    loop_free(loop);
    return code;
}

/* It was the only one of its store, which is gone: with the folders that held no more than that. */
static void remove_log(char *path)
{
    (void)unlink(path);
    for (int levels = 0; levels < 2; levels++) {
        *strrchr(path, '/') = '\0';
        if (rmdir(path) != 0)
            break;
    }
}

int run_search(struct arena *arena, struct settings *settings, const struct chosen *chosen,
               const char *folder)
{
    struct search_options *options = &settings->search;
    struct run run = {
        .settings = settings, .folder = folder, .models = {&chosen->ideas, &chosen->code}};
    options->idea_models = &chosen->ideas;
    options->code_models = &chosen->code;
    options->embedding_models = &chosen->embedding;
    options->embedding_note = chosen->embedding_note;
    options->choice = chosen->text;
    if (devices_resolve(arena, options->backend, options->launcher, &options->devices, &run.err) ||
        store_open(folder, true, false, &run.store, &run.err))
        return command_fail(&run.err);
    options->record = options_encode(&settings_table, settings, arena);
    int code = run_loop(&run);
    bool unused = store_close_unused(run.store);
    if (unused && run.log_path != NULL)
        remove_log(run.log_path);
    mem_free(run.log_path);
    return code;
}

int command_run(const struct settings *settings, const char *const *arguments, size_t count)
{
    const char *problem = count ? arguments[0] : settings->search.problem;
    struct settings now = *settings;
    if (now.search.language && !settings_given(settings, offsetof(struct settings, search.backend)))
        now.search.backend = backends_of_language(now.search.language);
    now.search.kernel = NULL;             /* whatever a configuration says: that is a tune */
    now.search.begun_ns = clock_now_ns(); /* reading a PyTorch file can take seconds */
    struct chosen chosen;
    struct err err = {0};
    if (!problem && file_exists("spec.yaml"))
        problem = "./";
    if (!problem) {
        fprintf(stderr,
                "twagent: run: which problem? There is no spec.yaml here. Type\n"
                "  twagent run conv2d         # or another one that ships: twagent list problems\n"
                "  twagent run FOLDER         # one of yours; twagent problem new FOLDER writes a "
                "skeleton\n"
                "  twagent run FILE.py        # a PyTorch module as KernelBench has them\n");
        return EXIT_USAGE;
    }
    ARENA_LOCAL(arena);
    if (find_problem(arena, problem, now.search.backend, &now.search.problem,
                     &err)) { /* a resume may stand elsewhere */
        return command_fail(&err);
    }
    char *folder = settings->store ? mem_strdup(settings->store) : store_default_folder();
    int code;
    if (chosen_from_settings(arena, &now, &chosen, &err)) {
        code = command_fail(&err);
    } else if (!cache_answers_run(&now, chosen.text, &code)) {
        if (now.search.seed == 0)
            now.search.seed = (int64_t)(random_seed() >> 12);
        if (chosen.ideas.count > 0 || (code = no_starts(&now, now.search.problem)) < 0)
            code = run_search(arena, &now, &chosen, folder);
    }
    mem_free(folder);
    return code;
}
