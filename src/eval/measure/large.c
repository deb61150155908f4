/* eval/measure/large: calls of shapes that are as large as the timed one in every dim, and of that
 * one on inputs that it is not timed with (sets/large.h). */
#include "base/clock.h"
#include "eval/data/timeline.h"
#include "eval/measure/session_private.h"
#include "eval/sets/view.h"

/* A search asks fewer of each of its many candidates; what it finds is asked all. Where the other
 * calls of the timed shape compare samples, these alone compare every element. */
size_t large_calls(const struct bench *bench)
{
    bool few = bench->request->effort == EFFORT_SEARCH && !bench->session->sliced;
    return few ? 1 : LARGE_SETS;
}

/* All threads at once: one after another they would take as many times longer. */
static int check(struct bench *bench, struct set *set, struct err *err)
{
    const bool held = bench->held;
    struct outcome outcome;
    bench->held = false;
    int status = bench->subject != NULL ? 0 : bench_open(bench, err);
    if (status == 0 && !bench->ended)
        status = bench_check(bench, set, &outcome, err);
    bench->held = held;
    return status;
}

/* What threads write to the same place is mostly what each of them would have written alone. It
 * shows where the work is uneven, as at sizes that no tile divides, and not in every call. */
static int check_again(struct bench *bench, struct set *set, struct err *err)
{
    const size_t times = set->view != NULL && set->view->kind == VIEW_SAMPLED ? 1 : 3;
    uint64_t begun = timeline_begin();
    int status = 0;
    if (!large_is_beyond(bench->session, set) || bench->request->effort == EFFORT_SEARCH)
        return 0;
    for (size_t i = 0; i < times && status == 0 && !bench->ended; i++)
        if (bench->subject != NULL && bench->subject->threads > 0)
            status = check(bench, set, err);
    timeline_end("check.again", begun);
    return status;
}

int large_check(struct bench *bench, size_t index, struct err *err)
{
    enum { TRIES = 3 };
    struct session *session = bench->session;
    int status = 0;
    bool unfit = true;
    uint64_t begun = timeline_begin();
    for (int i = 0; i < TRIES && unfit && status == 0 && !bench->ended; i++) {
        struct set *set = session_next_large(session, index);
        if (set == NULL)
            break;
        status = check(bench, set, err);
        unfit = set->unfit; /* of these inputs: others may do */
        bench->accuracy.beyond =
            bench->accuracy.beyond || (!unfit && large_is_beyond(session, set));
        if (status == 0 && !unfit && !bench->ended)
            status = check_again(bench, set, err);
        large_rest(session, set);
    }
    timeline_end("check.large", begun);
    return status;
}

void large_tell(struct bench *bench)
{
    const struct session *session = bench->session;
    if (session->sliced)
        bench_note(bench,
                   "whole sets of inputs have no %s: results of the timed shape were compared in "
                   "samples, and in calls on rows or columns that repeat in every element",
                   session->scarce ? "room in this machine's memory" : "time in this budget");
    if (bench->accuracy.beyond || bench->ended)
        return;
    bench_note(bench, "no shape larger than the timed one was asked: %s",
               session->large_shape_count == 0
                   ? "none is drawn (no dimension may grow, or the machine's memory is too small)"
               : session->slices == 0 ? "nothing of the definition can be sliced, and whole it "
                                        "takes too long there"
                                      : "the smallest slice of it takes too long");
}

/* --- of a win --- */

/* One distribution whole, at a shape and by a way that nothing tells before. */
static int ask(struct bench *bench, enum distribution distribution, struct err *err)
{
    struct session *session = bench->session;
    size_t which = (size_t)random_below(&session->random, session->large_shape_count + 1);
    const struct shape *shape =
        which == 0 ? &session->timed_shape : &session->large_shapes[which - 1];
    enum view_kind kind = random_below(&session->random, 2) == 0 ? VIEW_EXPANDED : VIEW_SAMPLED;
    struct set set = {0};
    int status = 0;
    if (large_open(session, &set, shape, distribution, kind, false))
        status = check(bench, &set, err);
    set_free(&set);
    return status;
}

/* What claims to be faster is asked about every distribution: a champion always, another one as
 * long as its time lasts. */
int large_of_win(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    const enum stage stage = bench->stage;
    const bool final = bench->request->effort == EFFORT_FINAL;
    size_t first = (size_t)random_below(&session->random, DISTRIBUTIONS);
    uint64_t started = clock_now_ns(), budget_ns = session->options.time_budget_ms * 1000000 / 2;
    int status = 0;
    if (!final &&
        (bench->request->effort == EFFORT_SEARCH || bench->evaluation->finding != FINDING_FASTER))
        return 0;
    bench->stage = STAGE_CHECK; /* it is not timed */
    for (size_t i = 0; i < DISTRIBUTIONS && status == 0 && !bench->ended; i++) {
        enum distribution distribution = (enum distribution)((first + i) % DISTRIBUTIONS);
        bool late = final ? bench_left_ms(bench) <= 0.0 : clock_now_ns() - started > budget_ns;
        if (late)
            break;
        if (session_draws(session, distribution))
            status = ask(bench, distribution, err);
    }
    bench->stage = stage;
    timeline_put("large.of_win", started, clock_now_ns() - started);
    return status;
}
