/* eval/measure/session_sanitize: a candidate's small shapes under the sanitizer. Of a device's, for
 * what may win, they are given to the tools one after the other between the checks, which take as
 * long: nothing of it is left to wait for when the win is there. Else they are run behind the
 * timing. Either way the same shapes, and all of them. */
#include "base/clock.h"
#include "base/mem.h"
#include "eval/measure/session_private.h"

#include <math.h>

enum {
    REPORT_MOST = 1 << 16,
    SANITIZED_SHAPES = 6,
    SANITIZED_ELEMENTS = 1 << 20, /* of inputs and outputs; where all shapes have more: */
    SANITIZED_ELEMENTS_MOST = 1 << 26,
    /* But for a final: a tool makes a kernel 100 times slower. Of a shape, and behind one element
     * of its outputs: a small shape with long sums is a block or two that go through them alone. */
    SANITIZED_FLOPS = 1 << 24,
    SANITIZED_FLOPS_EACH = 1 << 10,
};

struct sanitizing {
    const char *artifact;
    struct set *sets[SHAPES_MOST]; /* the longest first */
    size_t count, next, given;
    bool large;     /* the one that there is: a tool that takes too long says nothing */
    bool settled;   /* nothing runs any more */
    struct err err; /* of a call */
    struct buf report;
};

/* ---- which shapes ---- */

static double work_of(const struct bench *bench, const struct shape *shape)
{
    double flops = 0.0, bytes = 0.0;
    struct err ignored;
    if (problem_work(bench->session->problem, &shape->dims, &flops, &bytes, &ignored) != 0)
        return 0.0;
    return flops;
}

/* Before a final a win waits for this. */
static bool is_quick(const struct bench *bench, const struct shape *shape)
{
    double flops = work_of(bench, shape), outputs = (double)shape->layout.outputs[0].elements;
    return bench->request->effort == EFFORT_FINAL ||
           (flops <= SANITIZED_FLOPS && flops <= SANITIZED_FLOPS_EACH * outputs);
}

static void add(const struct bench *bench, struct sanitizing *sanitizing, struct set *set)
{
    size_t at = sanitizing->count++;
    for (; at > 0 && work_of(bench, sanitizing->sets[at - 1]->shape) < work_of(bench, set->shape);
         at--)
        sanitizing->sets[at] = sanitizing->sets[at - 1];
    sanitizing->sets[at] = set;
}

/* One set a shape, hidden shapes always; for a problem whose weights alone are large, as those of
 * PyTorch files often are, the smallest. */
static void choose(struct bench *bench, struct sanitizing *sanitizing)
{
    struct session *session = bench->session;
    const struct shape *last = NULL;
    struct set *least = NULL;
    for (size_t i = 0; i < session->edge_case; i++) {
        struct set *set = &session->cases[i];
        bool small = set->shape->elements <= SANITIZED_ELEMENTS && is_quick(bench, set->shape);
        if (least == NULL || set->shape->elements < least->shape->elements)
            least = set;
        if (!small || set->shape == last || sanitizing->count == SHAPES_MOST ||
            (sanitizing->count >= SANITIZED_SHAPES && i < session->hidden_case))
            continue;
        last = set->shape;
        add(bench, sanitizing, set);
    }
    if (sanitizing->count > 0)
        return;
    if (least != NULL && least->shape->elements <= SANITIZED_ELEMENTS_MOST)
        add(bench, sanitizing, least);
    else
        bench_note(bench, "sanitizer: not run, no check shape has less than %d million elements",
                   SANITIZED_ELEMENTS_MOST >> 20);
    sanitizing->large = least != NULL && least->shape->elements > SANITIZED_ELEMENTS;
}

static struct sanitizing *begin(struct bench *bench, const char *artifact)
{
    struct sanitizing *sanitizing = bench->sanitizing = MEM_NEW(struct sanitizing);
    sanitizing->artifact = artifact;
    buf_init(&sanitizing->report, REPORT_MOST);
    choose(bench, sanitizing);
    return sanitizing;
}

/* ---- one of them ---- */

/* `call` NULL: the last word. */
static int run(struct bench *bench, const struct call *call, struct err *err)
{
    const struct session *session = bench->session;
    const struct measure_request *request = bench->request;
    const struct program program = {session->problem, request->candidate, request->tune, NULL};
    if (session->backend->sanitize == NULL)
        return err_set(err, ERR_UNSUPPORTED, "backend %s has none", session->backend->target->name);
    return session->backend->sanitize(session->lane, bench->region, bench->sanitizing->artifact,
                                      &program, call, &bench->sanitizing->report, err);
}

/* What the sanitizer says against it is kept; an error is ours. */
static int give_next(struct bench *bench, struct err *err)
{
    struct sanitizing *sanitizing = bench->sanitizing;
    struct set *set = sanitizing->sets[sanitizing->next++];
    struct arrangement arrangement;
    if (set_expect(bench->session, set, err) != 0)
        return -1;
    if (set->unfit)
        return 0;
    if (bench_arrange(bench, set->shape, &arrangement, err) != 0)
        return bench_failed(bench, err);
    call_place(bench, set, &arrangement);
    sanitizing->given++;
    (void)!run(bench, &arrangement.call, &sanitizing->err);
    return 0;
}

static bool has_more(const struct sanitizing *sanitizing)
{
    return sanitizing->next < sanitizing->count && sanitizing->err.code == ERR_NONE;
}

/* ---- ahead ---- */

/* One that is behind where it was checked will be no win. */
static bool may_win(const struct bench *bench)
{
    const struct session *session = bench->session;
    double usual = baseline_median(&session->baselines[session->baseline]);
    return isnan(usual) || bench->request->effort == EFFORT_FINAL ||
           (bench->estimate_ns > 0.0 && bench->estimate_ns < usual);
}

int sanitize_ahead(struct bench *bench, struct err *err)
{
    const struct sanitizer_ahead *ahead = bench->session->backend->ahead;
    if (ahead == NULL || !bench->request->sanitizes || bench->ended || !ahead->takes())
        return 0;
    if (bench->sanitizing == NULL && !may_win(bench))
        return 0;
    struct sanitizing *sanitizing = bench->sanitizing;
    if (sanitizing == NULL)
        sanitizing = begin(bench, bench->request->artifact);
    return has_more(sanitizing) ? give_next(bench, err) : 0;
}

bool sanitize_runs(const struct bench *bench)
{
    return bench->sanitizing != NULL && !bench->sanitizing->settled;
}

/* What timing will ask for is computed while the tools are at work. */
static int expect_one(struct bench *bench, bool *was_there, struct err *err)
{
    struct session *session = bench->session;
    *was_there = false;
    for (size_t i = 0; i < session->pool_count && !*was_there; i++)
        if (!session->pool[i].expected) {
            *was_there = true;
            if (set_expect(session, &session->pool[i], err) != 0)
                return -1;
        }
    return 0;
}

int sanitize_settle(struct bench *bench, struct err *err)
{
    const struct sanitizer_ahead *ahead = bench->session->backend->ahead;
    struct sanitizing *sanitizing = bench->sanitizing;
    if (!sanitize_runs(bench))
        return 0;
    for (bool busy = true; busy && has_more(sanitizing) && !bench->ended;) {
        int status = ahead->takes() ? give_next(bench, err) : expect_one(bench, &busy, err);
        if (status != 0)
            return -1;
    }
    while (has_more(sanitizing) && !bench->ended)
        if (give_next(bench, err) != 0)
            return -1;
    ahead->dismiss();
    for (bool busy = true; busy && !bench->ended && !ahead->takes();)
        if (expect_one(bench, &busy, err) != 0)
            return -1;
    ahead->settle();
    sanitizing->settled = true;
    return 0;
}

/* ---- what it says ---- */

/* What its failure means; a sanitizer that cannot be had is asked once. */
static int take_finding(struct bench *bench, struct err *err)
{
    struct sanitizing *sanitizing = bench->sanitizing;
    bool slow = err->code == ERR_TIMEOUT && sanitizing->large;
    if (!slow && (err->code == ERR_CHILD || err->code == ERR_TIMEOUT)) {
        bench_reject(bench, VERDICT_REJECTED, arena_strdup(bench->arena, err->message),
                     arena_strdup(bench->arena, buf_text(&sanitizing->report)));
        return 0;
    }
    if (!slow && err->code != ERR_UNSUPPORTED)
        return -1;
    bench_note(bench, "sanitizer: %s", err->message);
    sanitizing->given = 0;
    return 0;
}

static void take_last_word(struct bench *bench)
{
    struct sanitizing *sanitizing = bench->sanitizing;
    struct err last_word = {0};
    if (run(bench, NULL, &last_word) != 0 && sanitizing->err.code == ERR_NONE)
        sanitizing->err = last_word;
}

/* What was found of one that is no win decides nothing, for others like it were not asked. */
void sanitize_tell(struct bench *bench)
{
    struct sanitizing *sanitizing = bench->sanitizing;
    if (sanitizing == NULL)
        return;
    take_last_word(bench);
    if (sanitizing->err.code == ERR_CHILD)
        bench_note(bench, "sanitizer: %s; a win would be refused", sanitizing->err.message);
}

int sanitize_finish(struct bench *bench, struct err *err)
{
    struct evaluation *evaluation = bench->evaluation;
    struct sanitizing *sanitizing = bench->sanitizing;
    uint64_t started = clock_now_ns();
    bench->stage = STAGE_SANITIZE;
    if (sanitizing == NULL)
        sanitizing = begin(bench, bench->request->sanitized);
    while (has_more(sanitizing) && !bench->ended)
        if (give_next(bench, err) != 0)
            return -1;
    if (bench->ended)
        return 0;
    take_last_word(bench);
    bool found = sanitizing->err.code != ERR_NONE;
    if (found && take_finding(bench, &sanitizing->err) != 0) {
        *err = sanitizing->err;
        return -1;
    }
    evaluation->checks_total += (int64_t)sanitizing->given;
    evaluation->checks_passed += (int64_t)sanitizing->given - (bench->ended ? 1 : 0);
    if (!found || bench->ended)
        evaluation->stage_ms[STAGE_SANITIZE] = (double)(clock_now_ns() - started) / 1e6;
    return 0;
}

void sanitize_close(struct bench *bench)
{
    struct sanitizing *sanitizing = bench->sanitizing;
    if (sanitizing == NULL)
        return;
    const struct sanitizer_ahead *ahead = bench->session->backend->ahead;
    if (ahead != NULL)
        ahead->drop();
    buf_free(&sanitizing->report);
    mem_free(sanitizing);
    bench->sanitizing = NULL;
}
