/* twagent run PROBLEM: a search from start to report.
 *
 *   SEARCHING (redraws at every wake and once a second) -> done; the report is written after the
 * loop
 */
#include "agents/search.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/display.h"
#include "cli/run_result.h"
#include "loop/loop.h"
#include "store/store.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STARTING, SEARCHING, STATES };
static const char *const states[STATES] = {"starting", "searching"};
static const uint32_t moves[STATES] = {1u << SEARCHING, 0};

static const int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { STOP_SIGNALS = sizeof stop_signals / sizeof stop_signals[0], REDRAW_MS = 1000 };

struct run {
    struct task task;
    const struct settings *settings;
    struct search_options options;
    struct store *store;
    struct search *search;
    struct signal_watch signals[STOP_SIGNALS];
    unsigned stops;
    struct timer redraw;
    struct display display;
    struct err err;
};

static enum task_result run_start(struct run *run)
{
    for (int i = 0; i < STOP_SIGNALS; i++)
        if (signal_watch_start(run->task.loop, &run->signals[i], &run->task, stop_signals[i],
                               &run->err))
            return TASK_DONE;
    if (search_start(run->task.loop, &run->task, run->store, &run->options, &run->search,
                     &run->err)) {
        for (int i = 0; i < STOP_SIGNALS; i++)
            signal_watch_stop(&run->signals[i]);
        return TASK_DONE;
    }
    display_start(&run->display, stderr, run->settings->quiet, run->settings->verbose);
    timer_start(run->task.loop, &run->redraw, &run->task, REDRAW_MS);
    task_move(&run->task, SEARCHING);
    return TASK_WAIT;
}

/* The first signal stops softly, the second at once. */
static void run_signals(struct run *run)
{
    unsigned count = 0;
    for (int i = 0; i < STOP_SIGNALS; i++)
        count += run->signals[i].count;
    for (; run->stops < count && run->stops < 2; run->stops++) {
        if (run->stops == 0 && !run->settings->quiet)
            fprintf(stderr,
                    "\nstopping: finishing what is being measured (again to stop at once)\n");
        run->display.lines = 0;
        search_stop(run->search);
    }
}

static enum task_result run_step(struct task *task)
{
    struct run *run = container_of(task, struct run, task);
    if (task->state == STARTING)
        return run_start(run);
    struct search_progress progress;
    run_signals(run);
    search_progress(run->search, &progress);
    display_update(&run->display, &progress);
    if (!search_done(run->search)) {
        if (run->redraw.fired)
            timer_start(task->loop, &run->redraw, task, REDRAW_MS);
        return TASK_WAIT;
    }
    timer_stop(&run->redraw);
    for (int i = 0; i < STOP_SIGNALS; i++) {
        signal_watch_stop(&run->signals[i]);
        signal(stop_signals[i], SIG_IGN); /* the report takes a moment, and is worth it */
    }
    display_stop(&run->display);
    return TASK_DONE;
}

static const struct task_type run_type = {"run", states, moves, STATES, run_step, NULL};

static struct search_options options_of(const struct settings *s, const char *problem)
{
    return (struct search_options){.problem = problem,
                                   .backend = s->backend,
                                   .python = s->python,
                                   .baseline = s->baseline,
                                   .cores = s->cores,
                                   .branching = s->branching,
                                   .rounds = s->rounds,
                                   .implementations = s->implementations,
                                   .repairs = s->repairs,
                                   .beam = s->beam,
                                   .select = s->select,
                                   .seed = s->seed,
                                   .budget_ms = s->budget_time_ms,
                                   .budget_evaluations = s->budget_evaluations,
                                   .call_timeout_ms = s->call_timeout_ms,
                                   .time_budget_ms = s->time_budget_ms,
                                   .dry_run = s->dry_run,
                                   .final = s->final};
}

static int run_loop(struct run *run, const char *folder)
{
    struct loop *loop = loop_new();
    task_start(loop, &run->task, &run_type, NULL, "run");
    loop_run(loop);
    int code;
    if (run->err.code == 0 && search_error(run->search)->code)
        run->err = *search_error(run->search);
    if (run->err.code)
        code = command_fail(&run->err);
    else
        code = run_result(run->settings, run->store, run->search, folder, stdout);
    if (run->search)
        search_free(run->search);
    loop_free(loop);
    return code;
}

int command_run(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct run run = {.settings = settings};
    const char *problem = count ? arguments[0] : settings->problem;
    if (!problem) {
        fprintf(stderr, "twagent: run: which problem? (twagent list problems)\n");
        return EXIT_USAGE;
    }
    if (strcmp(settings->provider, "openai") == 0 && !settings->model) {
        fprintf(stderr, "twagent: run: --provider openai needs --model NAME\n");
        return EXIT_USAGE;
    }
    run.options = options_of(settings, problem);
    struct arena *arena = arena_new();
    struct catalogue *catalogue;
    struct models models = {0};
    const struct model_defaults defaults = {.provider = settings->provider,
                                            .base_url = settings->base_url,
                                            .temperature = settings->temperature,
                                            .max_tokens = settings->max_tokens};
    if (strcmp(settings->provider, "builtin") != 0 &&
        (catalogue_load(arena, NULL, &catalogue, &run.err) ||
         models_choose(arena, catalogue, settings->model, &defaults, &models, &run.err))) {
        arena_free(arena);
        return command_fail(&run.err);
    }
    run.options.idea_models = &models;
    char *folder = settings->store ? mem_strdup(settings->store) : store_default_folder();
    int code;
    if (store_open(folder, true, false, &run.store, &run.err))
        code = command_fail(&run.err);
    else
        code = run_loop(&run, folder);
    store_close(run.store);
    mem_free(folder);
    arena_free(arena);
    return code;
}
