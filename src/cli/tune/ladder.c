/* One size after the other, each in a worker of its own. */
#include "cli/tune/ladder.h"

#include "agents/search/search.h"
#include "base/clock.h"
#include "base/mem.h"
#include "cli/find/history.h"
#include "cli/tune/facts.h"
#include "eval/lane/lane.h"
#include "report/words.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, 0};

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

static int keep(struct store *store, const char *key, const struct evaluation *evaluation,
                struct err *err)
{
    struct store_batch *batch = store_batch_new();
    JSON_LOCAL(json, text, 64 << 20);
    evaluation_to_json(evaluation, &json);
    store_batch_put(batch, STORE_EVALUATIONS, key, buf_text(&text), text.length);
    int failed = store_commit(store, batch, err);
    store_batch_free(batch);
    return failed;
}

static int measure(const struct settings *settings, const char *problem,
                   struct lane_request *evaluate, struct store *store, const char *key,
                   struct err *err)
{
    struct lane_spec spec = settings_lane(settings, problem);
    struct lane_request open;
    spec.baseline = settings->search.baseline;
    spec.later = true;
    spec.fitness = DEMAND_MAY; /* the record says where it is not */
    spec.walls = settings->search.unconfined ? DEMAND_MAY : DEMAND_MUST;
    lane_ask(&spec, key, &open, evaluate, signals);
    for (int i = 0; signals[i] != 0; i++) /* whoever calls prints and ends: not in the middle */
        signal(signals[i], SIG_IGN);
    *err = open.err.code ? open.err : evaluate->err;
    if (err->code == ERR_NONE && !evaluate->evaluation.ours)
        (void)!keep(store, key, &evaluate->evaluation, err);
    arena_free(open.arena);
    arena_free(evaluate->arena);
    return err->code ? -1 : 0;
}

/* ---- all of them ---- */

struct climb { /* of one run */
    const struct settings *settings;
    struct store *store;
    struct arena *arena;
    struct run_record run;
    struct problem *problem;
    const char *plain; /* the problem without its size */
    uint64_t began_ns, left_ms, longest_ms;
};

static bool in_time(const struct climb *climb)
{
    uint64_t gone_ms = (clock_now_ns() - climb->began_ns) / 1000000;
    return climb->settings->search.budget_ms == 0 || gone_ms + climb->longest_ms < climb->left_ms;
}

/* One measurement of a candidate, unless the store has it; false: there is no time left, or a
 * person ended it. One that fails is said, and is not there. */
static bool add(struct climb *climb, const struct candidate_record *candidate, const char *problem,
                const char *size, const char *key, enum effort effort)
{
    uint64_t now = clock_now_ns();
    const char *source = history_source(climb->store, climb->arena, candidate);
    if (history_measured(climb->store, climb->arena, key) || !source)
        return true;
    if (!in_time(climb))
        return false;
    if (!climb->settings->quiet && !climb->settings->json)
        fprintf(stderr, "        %s at %s\n", candidate->id, size);
    bool final = effort == EFFORT_FINAL; /* as a champion, with sanitizers and a profile */
    struct lane_request evaluate = {.op = LANE_EVALUATE,
                                    .id = candidate->id,
                                    .name = candidate->name,
                                    .source = source,
                                    .source_length = strlen(source),
                                    .tune = candidate->tune,
                                    .effort = effort,
                                    .profile = final,
                                    .sanitize = final};
    struct err err = {0};
    bool measured = measure(climb->settings, problem, &evaluate, climb->store, key, &err) == 0;
    if (!measured && err.code != ERR_CANCELLED)
        fprintf(stderr, "        not measured: %s\n", err.message);
    uint64_t took = (clock_now_ns() - now) / 1000000;
    climb->longest_ms = took > climb->longest_ms ? took : climb->longest_ms;
    return measured || err.code != ERR_CANCELLED;
}

/* At all sizes but the main one, which the run measured. */
static bool climb_one(struct climb *climb, const struct candidate_record *candidate)
{
    const char *sizes[LADDER_MAX];
    size_t count = ladder_sizes(climb->arena, climb->problem, sizes);
    for (size_t i = 0; i + 1 < count; i++)
        if (!add(climb, candidate, arena_printf(climb->arena, "%s@%s", climb->plain, sizes[i]),
                 sizes[i], ladder_key(climb->arena, candidate->id, sizes[i]), EFFORT_FULL))
            return false;
    return true;
}

static int crown(struct climb *climb, const char *id, struct err *err)
{
    struct evaluation evaluation;
    const struct value *last = history_evaluation(climb->store, climb->arena, id);
    if (evaluation_from_value(climb->arena, last, &evaluation, err))
        return -1;
    struct store_batch *batch = store_batch_new();
    BUF_LOCAL(text, 64 << 20);
    search_crown(climb->arena, id, &evaluation, &climb->run);
    run_record_encode(&climb->run, &text);
    store_batch_put(batch, STORE_RUNS, climb->run.id, buf_text(&text), text.length);
    int failed = store_commit(climb->store, batch, err);
    store_batch_free(batch);
    return failed;
}

/* --stable: the next best is in the place of one that is not steady, until one is; measured as a
 * champion is before it becomes one. */
static void choose(struct climb *climb, const struct tuning *tuning)
{
    for (size_t i = 0; i < tuning->top_count && i < LADDER_TRIES; i++) {
        struct candidate_record candidate;
        struct tuning_ladder ladder;
        struct err err = {0};
        const char *id = tuning->top[i].id;
        if (history_candidate(climb->store, climb->arena, id, &candidate, &err) ||
            !climb_one(climb, &candidate))
            return;
        tune_ladder(climb->store, climb->arena, climb->problem, id, &ladder);
        if (ladder.unsteady)
            continue;
        if (!add(climb, &candidate, climb->run.problem_file, "the main size, as a champion",
                 arena_printf(climb->arena, "%s-final", id), EFFORT_FINAL))
            return;
        tune_ladder(climb->store, climb->arena, climb->problem, id, &ladder);
        if (!ladder.stable)
            continue;
        if (strcmp(id, climb->run.best) != 0 && crown(climb, id, &err))
            fprintf(stderr, "twagent: %s\n", err.message);
        return;
    }
}

void ladder_climb(const struct settings *settings, struct store *store, const char *id)
{
    ARENA_LOCAL(arena);
    struct climb climb = {
        .settings = settings, .store = store, .arena = arena, .began_ns = clock_now_ns()};
    struct candidate_record candidate;
    struct tuning tuning;
    struct err ignored;
    if (history_run(store, arena, id, &climb.run, &ignored) || !*climb.run.best ||
        !climb.run.verified || strcmp(climb.run.state, "done") != 0 ||
        history_candidate(store, arena, climb.run.best, &candidate, &ignored) ||
        problem_load(climb.run.problem_file, &climb.problem, &ignored))
        return;
    const char *file = climb.run.problem_file, *at = problem_size_of(file);
    climb.plain = arena_strndup(arena, file, at ? (size_t)(at - file) : strlen(file));
    uint64_t budget_ms = (uint64_t)settings->search.budget_ms;
    if ((double)budget_ms > climb.run.elapsed_ms)
        climb.left_ms = budget_ms - (uint64_t)climb.run.elapsed_ms;
    if (!settings->search.stable)
        (void)climb_one(&climb, &candidate);
    else if (tune_facts(store, arena, &climb.run, true, &tuning, &ignored) == 0)
        choose(&climb, &tuning);
    problem_free(climb.problem);
}
