/* One size after the other:  OPENING (a worker, the problem at that size) -> MEASURING -> CLOSING
 */
#include "cli/tune/ladder.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cli/find/history.h"
#include "eval/lane/lane.h"
#include "loop/loop.h"
#include "loop/process.h"
#include "loop/task.h"
#include "report/words.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { OPENING, MEASURING, CLOSING, STATES };
static const char *const states[STATES] = {"opening", "measuring", "closing"};
static const uint32_t moves[STATES] = {1u << MEASURING | 1u << CLOSING, 1u << CLOSING, 0};

enum { SIGNALS = 3 };
static const int signals[SIGNALS] = {SIGINT, SIGTERM, SIGHUP};

struct rung {
    struct task task;
    const struct settings *settings;
    const char *problem; /* with its size */
    const struct candidate_record *candidate;
    const char *source;
    struct lane *lane;
    struct lane_request open, evaluate;
    struct signal_watch signals[SIGNALS];
    struct err err;
};

/* ---- sizes ---- */

static bool varies(const struct problem *problem, size_t dim)
{
    const struct dim_spec *spec = &problem->dims[dim];
    bool differs = spec->hidden_low != spec->hidden_high;
    for (size_t i = 1; i < problem->shape_count; i++)
        differs = differs || problem->shapes[i].number[dim] != problem->shapes[0].number[dim];
    return differs && !spec->derived;
}

size_t ladder_sizes(struct arena *arena, const struct problem *problem,
                    const char *sizes[LADDER_MAX])
{
    static const struct {
        int64_t over, plus;
    } steps[LADDER_MAX] = {{4, 0}, {2, 0}, {2, 1}, {1, -1}, {1, 0}};
    size_t count = 0;
    for (size_t s = 0; s < LADDER_MAX; s++) {
        struct names given = {0}, dims;
        struct err ignored;
        BUF_LOCAL(text, 1 << 14);
        for (size_t i = 0; i < problem->dim_count; i++) {
            int64_t whole = problem->shapes[0].number[i], number = whole;
            if (problem->dims[i].derived)
                continue;
            if (varies(problem, i) && whole > 1)
                number = whole / steps[s].over + steps[s].plus;
            number = number < 1 ? 1 : number > whole ? whole : number;
            (void)!names_set(&given, problem->dims[i].name, number, &ignored);
            buf_addf(&text, "%s%s=%lld", text.length ? "," : "", problem->dims[i].name,
                     (long long)number);
        }
        bool fits = problem_dims(problem, &given, &dims, &ignored) == 0;
        for (size_t k = 0; k < count; k++)
            fits = fits && strcmp(sizes[k], buf_text(&text)) != 0;
        if (fits)
            sizes[count++] = arena_strdup(arena, buf_text(&text));
    }
    return count;
}

const char *ladder_key(struct arena *arena, const char *candidate, const char *size)
{
    return arena_printf(arena, "%s-at-%s", candidate, size);
}

/* ---- one size ---- */

static enum task_result rung_open(struct rung *rung)
{
    const struct search_options *options = &rung->settings->search;
    const struct lane_spec spec = {.launcher = options->launcher,
                                   .backend = options->backend,
                                   .cores = options->cores,
                                   .device = options->devices,
                                   .problem = rung->problem,
                                   .python = options->python,
                                   .baseline = options->baseline,
                                   .call_timeout_ms = (uint64_t)options->call_timeout_ms,
                                   .time_budget_ms = (uint64_t)options->time_budget_ms,
                                   .later = true,
                                   .fitness = DEMAND_MAY, /* the record says where it is not */
                                   .walls = options->unconfined ? DEMAND_MAY : DEMAND_MUST};
    if (!rung->lane) {
        for (int i = 0; i < SIGNALS; i++)
            (void)!signal_watch_start(rung->task.loop, &rung->signals[i], &rung->task, signals[i],
                                      &rung->err);
        if (lane_open(rung->task.loop, &spec, &rung->lane, &rung->err))
            return TASK_DONE;
        rung->open.op = LANE_OPEN;
        rung->open.id = "open";
        lane_submit(rung->lane, &rung->open, &rung->task);
    }
    if (!rung->open.done)
        return TASK_WAIT;
    rung->err = rung->open.err;
    if (rung->err.code) {
        task_move(&rung->task, CLOSING);
        return TASK_AGAIN;
    }
    rung->evaluate = (struct lane_request){.op = LANE_EVALUATE,
                                           .id = rung->candidate->id,
                                           .name = rung->candidate->name,
                                           .source = rung->source,
                                           .source_length = strlen(rung->source),
                                           .tune = rung->candidate->tune,
                                           .effort = EFFORT_FULL};
    lane_submit(rung->lane, &rung->evaluate, &rung->task);
    task_move(&rung->task, MEASURING);
    return TASK_WAIT;
}

static bool stopped(const struct rung *rung)
{
    unsigned count = 0;
    for (int i = 0; i < SIGNALS; i++)
        count += rung->signals[i].count;
    return count > 0;
}

static enum task_result rung_step(struct task *task)
{
    struct rung *rung = container_of(task, struct rung, task);
    if (stopped(rung) && rung->err.code == ERR_NONE) {
        (void)err_set(&rung->err, ERR_CANCELLED, "stopped");
        lane_cancel(rung->lane, task->state == OPENING ? &rung->open : &rung->evaluate);
    }
    if (task->state == OPENING)
        return rung_open(rung);
    if (task->state == MEASURING && !rung->evaluate.done)
        return TASK_WAIT;
    if (task->state == MEASURING) {
        if (rung->err.code == ERR_NONE)
            rung->err = rung->evaluate.err;
        task_move(task, CLOSING);
    }
    for (int i = 0; i < SIGNALS; i++)
        if (rung->signals[i].handle)
            signal_watch_stop(&rung->signals[i]);
    lane_close(rung->lane);
    return TASK_DONE;
}

static const struct task_type rung_type = {"rung", states, moves, STATES, rung_step, NULL};

static int keep(struct store *store, const char *key, const struct evaluation *evaluation,
                struct err *err)
{
    struct store_batch *batch = store_batch_new();
    struct json json;
    BUF_LOCAL(text, 64 << 20);
    json_init(&json, &text);
    evaluation_to_json(evaluation, &json);
    store_batch_put(batch, STORE_EVALUATIONS, key, buf_text(&text), text.length);
    int failed = store_commit(store, batch, err);
    store_batch_free(batch);
    return failed;
}

static int measure(struct rung *rung, struct store *store, const char *key)
{
    struct loop *loop = loop_new();
    task_start(loop, &rung->task, &rung_type, NULL, key);
    loop_run(loop);
    for (int i = 0; i < SIGNALS; i++) /* whoever calls prints and ends: not in the middle */
        signal(signals[i], SIG_IGN);
    if (rung->err.code == ERR_NONE && !rung->evaluate.evaluation.ours)
        (void)!keep(store, key, &rung->evaluate.evaluation, &rung->err);
    if (rung->lane)
        lane_free(rung->lane);
    arena_free(rung->open.arena);
    arena_free(rung->evaluate.arena);
    loop_free(loop);
    return rung->err.code ? -1 : 0;
}

/* ---- all of them ---- */

static void climb(const struct settings *settings, struct store *store, struct arena *arena,
                  const struct run_record *run, const struct candidate_record *candidate)
{
    struct problem *problem;
    struct err err;
    const char *sizes[LADDER_MAX], *at = problem_size_of(run->problem_file);
    const char *source = history_source(store, arena, candidate);
    char *plain = arena_strndup(arena, run->problem_file,
                                at ? (size_t)(at - run->problem_file) : strlen(run->problem_file));
    if (!source || problem_load(run->problem_file, &problem, &err))
        return;
    size_t count = ladder_sizes(arena, problem, sizes);
    uint64_t began = clock_now_ns(), left_ms = (uint64_t)settings->search.budget_ms, longest = 0;
    left_ms -=
        left_ms > 0 && run->elapsed_ms < (double)left_ms ? (uint64_t)run->elapsed_ms : left_ms;
    for (size_t i = 0; i + 1 < count; i++) { /* the last is the main one, which the run measured */
        const char *key = ladder_key(arena, candidate->id, sizes[i]);
        uint64_t now = clock_now_ns(), gone_ms = (now - began) / 1000000;
        if (history_measured(store, arena, key))
            continue;
        if (settings->search.budget_ms > 0 && gone_ms + longest >= left_ms)
            break;
        if (!settings->quiet && !settings->json)
            fprintf(stderr, "        %s at %s\n", candidate->id, sizes[i]);
        struct rung rung = {.settings = settings,
                            .problem = arena_printf(arena, "%s@%s", plain, sizes[i]),
                            .candidate = candidate,
                            .source = source};
        if (measure(&rung, store, key)) {
            if (rung.err.code != ERR_CANCELLED)
                fprintf(stderr, "        not measured: %s\n", rung.err.message);
            if (rung.err.code == ERR_CANCELLED)
                break;
        }
        uint64_t took = (clock_now_ns() - now) / 1000000;
        longest = took > longest ? took : longest;
    }
    problem_free(problem);
}

void ladder_climb(const struct settings *settings, struct store *store, const char *id)
{
    ARENA_LOCAL(arena);
    struct run_record run;
    struct candidate_record candidate;
    struct err ignored;
    if (history_run(store, arena, id, &run, &ignored) == 0 && *run.best && run.verified &&
        strcmp(run.state, "done") == 0 &&
        history_candidate(store, arena, run.best, &candidate, &ignored) == 0)
        climb(settings, store, arena, &run, &candidate);
}
