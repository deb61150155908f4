#include "cli/eval/sweep.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/value.h"
#include "cli/print/print.h"
#include "eval/candidate/candidate.h"
#include "eval/lane/lane.h"

#include <stdio.h>
#include <string.h>

enum {
    DEPTH = 3,      /* one measured, one compiled, one on its way */
    TRIES = 3,      /* of a point whose worker died */
    ORDER_SEED = 1, /* the same points in the same order each time */
};
static const uint64_t space_most = (uint64_t)1 << 22;

struct asked {
    struct lane_request request;
    char *tune; /* NULL: free */
};

struct sweep {
    const struct settings *settings;
    struct problem *problem;
    struct candidate *candidate;
    const char *name, *source;
    size_t length;
    uint64_t *points;
    size_t count, next, kernels;
    struct asked asked[DEPTH];
    bool failed;
    struct err err;
};

int sweep_new(const struct settings *settings, const char *problem, const char *name,
              const char *source, size_t length, struct sweep **out, struct err *err)
{
    struct sweep *sweep = MEM_NEW(struct sweep);
    sweep->settings = settings;
    sweep->name = name;
    sweep->source = source;
    sweep->length = length;
    if (problem_load(problem, &sweep->problem, err) != 0 ||
        candidate_parse(sweep->problem, name, source, length, &sweep->candidate, err) != 0) {
        sweep_free(sweep);
        return -1;
    }
    if (tune_points(sweep->candidate) > space_most) {
        err_set(err, ERR_LIMIT, "%s: --sweep: %llu points, expected at most %llu", name,
                (unsigned long long)tune_points(sweep->candidate), (unsigned long long)space_most);
        sweep_free(sweep);
        return -1;
    }
    *out = sweep;
    return 0;
}

static void shuffle(uint64_t *points, size_t count)
{
    struct random random;
    random_init(&random, ORDER_SEED);
    for (size_t i = count; i > 1; i--) {
        size_t other = (size_t)random_below(&random, i);
        uint64_t kept = points[i - 1];
        points[i - 1] = points[other];
        points[other] = kept;
    }
}

int sweep_choose(struct sweep *sweep, const struct value *facts, struct err *err)
{
    uint64_t all = tune_points(sweep->candidate);
    struct names names = {0}, tune;
    for (size_t i = 0; facts != NULL && i < facts->count; i++)
        if (facts->items[i]->kind == VALUE_INT &&
            names_set(&names, facts->keys[i], facts->items[i]->integer, err) != 0)
            return -1;
    sweep->points = mem_array(all, sizeof *sweep->points);
    for (uint64_t i = 0; i < all; i++) {
        tune_at(sweep->candidate, i, &tune);
        if (tune_valid(sweep->candidate, &sweep->problem->shapes[0], &names, &tune))
            sweep->points[sweep->count++] = i;
    }
    if (sweep->count == 0)
        return err_set(err, ERR_USAGE, "%s: --sweep: its `where` leaves no point", sweep->name);
    shuffle(sweep->points, sweep->count);
    size_t wanted = (size_t)sweep->settings->sweep;
    if (wanted > 0 && wanted < sweep->count)
        sweep->count = wanted;
    return 0;
}

static char *tune_text(const struct candidate *candidate, uint64_t point)
{
    struct names tune;
    tune_at(candidate, point, &tune);
    JSON_LOCAL(json, text, 1 << 14);
    json_names(&json, &tune);
    return buf_take(&text);
}

static enum effort effort_of(const struct settings *settings)
{
    if (!settings_given(settings, offsetof(struct settings, effort)))
        return EFFORT_SEARCH; /* many points, each with its interval */
    return effort_find(settings->effort);
}

static void ask(struct sweep *sweep, struct asked *asked, struct lane *lane, struct task *owner)
{
    const struct settings *settings = sweep->settings;
    bool profiled = settings_given(settings, offsetof(struct settings, profile));
    asked->tune = tune_text(sweep->candidate, sweep->points[sweep->next++]);
    asked->request = (struct lane_request){.op = LANE_EVALUATE,
                                           .id = "sweep",
                                           .name = sweep->name,
                                           .source = sweep->source,
                                           .source_length = sweep->length,
                                           .tune = asked->tune,
                                           .effort = effort_of(settings),
                                           .profile = profiled && settings->profile,
                                           .sanitize = settings->sanitize,
                                           .cachegrind = settings->cachegrind};
    lane_submit(lane, &asked->request, owner);
}

static void let_go(struct asked *asked)
{
    arena_free(asked->request.arena);
    mem_free(asked->tune);
    *asked = (struct asked){.tune = NULL};
}

/* False where it is asked for once more. */
static bool take(struct sweep *sweep, struct asked *asked, struct lane *lane, struct task *owner)
{
    struct lane_request *request = &asked->request;
    if (request->err.code == ERR_CHILD && ++request->deaths < TRIES) {
        arena_free(request->arena);
        lane_submit(lane, request, owner);
        return false;
    }
    if (request->err.code != ERR_NONE && !sweep->failed) {
        sweep->failed = true;
        sweep->err = request->err;
    } else if (request->err.code == ERR_NONE) {
        sweep->kernels += request->evaluation.verdict == VERDICT_KERNEL;
        print_evaluation_json(&request->evaluation, stdout);
        fflush(stdout); /* whoever stops it keeps what was measured */
    }
    let_go(asked);
    return true;
}

bool sweep_step(struct sweep *sweep, struct lane *lane, struct task *owner, struct err *err)
{
    bool more = false;
    for (size_t i = 0; i < DEPTH; i++)
        if (sweep->asked[i].tune != NULL && sweep->asked[i].request.done)
            (void)take(sweep, &sweep->asked[i], lane, owner);
    for (size_t i = 0; i < DEPTH; i++) {
        struct asked *asked = &sweep->asked[i];
        if (asked->tune == NULL && !sweep->failed && sweep->next < sweep->count)
            ask(sweep, asked, lane, owner);
        more = more || asked->tune != NULL;
    }
    if (!more && sweep->failed)
        *err = sweep->err;
    return more;
}

size_t sweep_kernels(const struct sweep *sweep)
{
    return sweep->kernels;
}

void sweep_free(struct sweep *sweep)
{
    if (sweep == NULL)
        return;
    for (size_t i = 0; i < DEPTH; i++)
        if (sweep->asked[i].tune != NULL)
            let_go(&sweep->asked[i]);
    mem_free(sweep->points);
    candidate_free(sweep->candidate);
    problem_free(sweep->problem);
    mem_free(sweep);
}
