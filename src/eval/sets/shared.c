/* eval/sets/shared: several sets, of which the kernel in float64 and the definition each compute
 * what is theirs, at the same time. */
#include "base/clock.h"
#include "eval/data/timeline.h"
#include "eval/sets/session.h"
#include "eval/sets/wide.h"

static struct set *next_shared(struct session *session, const struct set *after)
{
    for (size_t i = after != NULL ? (size_t)(after - session->pool) + 1 : 0;
         i < session->pool_count; i++) {
        struct set *set = &session->pool[i];
        if (!set->expected && !set_bounds_known(session, set))
            return set;
    }
    return NULL;
}

/* Its inputs are where the definition reads them, and that one begins. */
static bool begin_shared(struct session *session, struct set *set, struct call *call)
{
    struct err ignored = {0};
    set_place(session, set, call);
    return reference_send(session->reference, &set->shape->layout, call, PRECISION_SPEC,
                          &ignored) == 0;
}

static bool compute_shared(struct session *session, struct set *set, struct results *results)
{
    const struct layout *layout = &set->shape->layout;
    void *exact[OUTPUTS_MAX];
    results_place(session, layout, results);
    for (size_t i = 0; i < session->problem->output_count; i++) {
        if (set->exact[i] == NULL)
            set->exact[i] =
                (double *)parallel_alloc((layout->outputs[i].elements + 1) * sizeof(double));
        exact[i] = set->exact[i];
    }
    results->has_lower = wide_compute(session, set, PRECISION_EXACT, exact) &&
                         wide_compute(session, set, PRECISION_LOWER, results->lower);
    return results->has_lower;
}

void session_expect_shared(struct session *session)
{
    struct err ignored = {0};
    struct call call;
    struct set *set = next_shared(session, NULL), *next;
    const struct problem *problem = session->problem;
    if (set == NULL || !set_is_shared(session, set) || !problem_has_floats(problem) ||
        problem->tolerance_fixed || problem->normwise)
        return;
    uint64_t started = clock_now_ns(), begun = timeline_begin();
    if (!set->drawn)
        set_draw(session, set);
    bool sent = begin_shared(session, set, &call);
    for (; set != NULL && sent; set = next) {
        struct results results = {0};
        bool computed = compute_shared(session, set, &results);
        next = computed && !atomic_load(&session->cancelled) ? next_shared(session, set) : NULL;
        if (next != NULL && !next->drawn)
            set_draw(session, next);
        results.has_honest =
            reference_take(session->reference, &set->shape->layout, results.honest, &ignored) == 0;
        sent = next != NULL && results.has_honest && begin_shared(session, next, &call);
        set->unfit = false;
        if (computed && results.has_honest)
            set_derive(session, set, &results);
    }
    struct subject *subject = reference_subject(session->reference);
    if (subject != NULL)
        subject->ops->pause(subject);
    session->costs.spent_ms += (double)(clock_now_ns() - started) / 1e6;
    timeline_end("set.shared", begun);
}
