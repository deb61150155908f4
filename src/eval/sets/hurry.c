/* eval/sets/hurry: what there is time for where all that is asked for is to be done by some time.
 * There are fewer sets of the main shape, one of each distribution. Where the definition would take
 * too long for even those, and little for samples of them, they are views (view.h), as where memory
 * is short; but their inputs are kept. */
#include "base/clock.h"
#include "base/mem.h"
#include "eval/data/timeline.h"
#include "eval/sets/session.h"
#include "eval/sets/view.h"
#include "eval/sets/wide.h"

#include <math.h>
#include <string.h>

/* How many times the work of `shape` the main one is. */
static double times_of(const struct session *session, const struct shape *shape)
{
    double flops = 0.0, all_flops = 0.0, bytes;
    const struct shape *all = &session->shapes[0];
    if (problem_work(session->problem, &shape->dims, &flops, &bytes, NULL) == 0 && flops > 0.0 &&
        problem_work(session->problem, &all->dims, &all_flops, &bytes, NULL) == 0)
        return all_flops / flops;
    return (double)all->elements / (double)shape->elements;
}

static bool make(struct session *session, const int64_t *numbers, struct shape *shape)
{
    const struct problem *problem = session->problem;
    struct names given = {0}, dims;
    for (size_t i = 0; i < problem->dim_count; i++)
        if (!problem->dims[i].derived &&
            names_set(&given, problem->dims[i].name, numbers[i], NULL) != 0)
            return false;
    return problem_dims(problem, &given, &dims, NULL) == 0 &&
           shape_make(session, &dims, shape, NULL) == 0 && shape_fits(session, shape);
}

/* A part of the main shape that says how long the definition takes for all of it; false: none is
 * small enough. */
static bool choose_part(struct session *session, struct shape *shape)
{
    enum { WANTED = 16, LEAST = 8 };
    const struct problem *problem = session->problem;
    int64_t numbers[DIMS_MAX] = {0};
    *shape = session->shapes[0];
    memcpy(numbers, shape->dims.number, sizeof numbers);
    while (times_of(session, shape) < WANTED) {
        int most = -1;
        for (size_t i = 0; i < problem->dim_count; i++)
            if ((session->slices >> i & 1) != 0 && numbers[i] > 1 &&
                (most < 0 || numbers[i] > numbers[most]))
                most = (int)i;
        if (most < 0)
            break;
        numbers[most] = (numbers[most] + 1) / 2;
        if (!make(session, numbers, shape))
            return false;
    }
    return times_of(session, shape) >= LEAST;
}

/* What the definition takes for a whole set in float64, by a part of one; 0: not known. */
static double whole_ns(struct session *session)
{
    struct shape *shape = MEM_NEW(struct shape);
    struct set set = {.shape = shape, .distribution = DRAW_NORMAL, .optional = true};
    struct call call;
    void *exact[OUTPUTS_MAX];
    struct err ignored = {0};
    double ns = 0.0;
    session_find_slices(session);
    if (session->slices != 0 && choose_part(session, shape)) {
        set_draw(session, &set);
        set_place(session, &set, &call);
        for (size_t i = 0; i < session->problem->output_count; i++)
            exact[i] = session_scratch(session, i,
                                       (shape->layout.outputs[i].elements + 1) * sizeof(double));
        uint64_t started = clock_now_ns();
        if (reference_compute(session->reference, &shape->layout, &call, PRECISION_EXACT, exact,
                              &ignored) == 0)
            ns = (double)(clock_now_ns() - started) * times_of(session, shape);
    }
    set_free(&set);
    mem_free(shape);
    return ns;
}

/* Where a small part of a set stands for it. Where every sum runs over a large part of all inputs,
 * as in attention, a sample costs the definition seconds, too, and each set does so anew. */
static bool samples_are_cheap(struct session *session)
{
    enum { TIMES = 16 };
    struct set set = {.shape = &session->shapes[0], .distribution = DRAW_NORMAL};
    session->sliced = true; /* as they will be */
    session->sliced = view_open(session, &set, VIEW_SAMPLED, false) &&
                      times_of(session, &set.view->small) >= TIMES;
    set_free(&set);
    return session->sliced;
}

/* Whole sets are computed in float64, in the spec's precision and in a lower one, and bounded. With
 * a kernel beside the definition that goes for the first of them, and for the bounds. */
static void slice_for_time(struct session *session)
{
    enum { ALL = 2, BESIDE = 4, SHARE = 3 };
    bool beside = session->wide != NULL;
    uint64_t begun = timeline_begin();
    double ns = session->sliced || session->pool[0].expected ? 0.0 : whole_ns(session);
    double all_ns = ns * (beside ? (double)BESIDE : (double)(ALL * POOL_LEAST));
    if (all_ns > (double)session->options.within_ms * 1e6 / SHARE && samples_are_cheap(session)) {
        session->wide_over = true;
        session->exact_ns = ns;
        wide_close(session);
    }
    timeline_end("open.hurry", begun);
}

static void drop_sets(struct session *session, size_t count)
{
    while (session->pool_count > count)
        set_free(&session->pool[--session->pool_count]);
}

int session_hurry(struct session *session, struct err *err)
{
    enum { SHARE = 8 };
    uint64_t within_ms = session->options.within_ms;
    if (within_ms == 0 || session->scarce || session->pool[0].expected)
        return 0;
    slice_for_time(session);
    if (session->sliced) {
        drop_sets(session, POOL_LEAST);
        return 0;
    }
    if (session->backend->device)
        return 0;
    uint64_t started = clock_now_ns();
    if (set_expect(session, &session->pool[0], err) != 0)
        return -1;
    size_t count = session->pool_count;
    double all_ns = (double)(clock_now_ns() - started) * (double)count;
    double most_ns = (double)within_ms * 1e6 / SHARE;
    if (all_ns > most_ns)
        count = (size_t)((double)count * most_ns / all_ns);
    count = count < POOL_LEAST ? POOL_LEAST : count;
    drop_sets(session, count);
    return 0;
}
