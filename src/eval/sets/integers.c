/* eval/sets/integers: how large integers without a range may be. As large as their type holds where
 * the definition takes them: it does not raise, and gives the same where it computes in 64 bits.
 * What overflows in between is nothing that two honest kernels would agree about. */
#include "base/clock.h"
#include "eval/reference/private.h"
#include "eval/sets/session.h"

#include <math.h>

/* 1: in 64 bits the definition gives the same, which the outputs' types hold; 0; -1 with *err.
 * `exact` has its results, and the inputs are in place. */
static int stands(struct session *session, const struct shape *shape, const struct call *call,
                  double *const *exact, struct err *err)
{
    const struct layout *layout = &shape->layout;
    void *wide[OUTPUTS_MAX];
    for (size_t i = 0; i < session->problem->output_count; i++)
        wide[i] = session_scratch(session, 2 * OUTPUTS_MAX + i,
                                  (layout->outputs[i].elements + 1) * sizeof(double));
    if (reference_compute(session->reference, layout, call, PRECISION_WIDE, wide, err) != 0)
        return -1;
    for (size_t i = 0; i < session->problem->output_count; i++) {
        double most = dtype_max(session->problem->outputs[i].dtype);
        for (size_t k = 0; k < layout->outputs[i].elements; k++) {
            double number = ((const double *)wide[i])[k];
            if (number != exact[i][k] || fabs(number) > most)
                return 0;
        }
    }
    return 1;
}

static int try_up_to(struct session *session, double most, struct set *probe, struct err *err)
{
    const struct layout *layout = &probe->shape->layout;
    double *exact[OUTPUTS_MAX];
    void *results[OUTPUTS_MAX], *own[OUTPUTS_MAX];
    struct call call;
    session->integers = most;
    set_redraw(probe);
    set_draw(session, probe);
    set_place(session, probe, &call);
    for (size_t i = 0; i < session->problem->output_count; i++) {
        size_t bytes = (layout->outputs[i].elements + 1) * sizeof(double);
        results[i] = session_scratch(session, 3 * OUTPUTS_MAX + i, bytes);
        own[i] = session_scratch(session, i, bytes);
        exact[i] = (double *)results[i];
    }
    if (reference_compute(session->reference, layout, &call, PRECISION_EXACT, results, err) != 0 ||
        reference_compute(session->reference, layout, &call, PRECISION_SPEC, own, err) != 0)
        return -1;
    return stands(session, probe->shape, &call, exact, err);
}

/* From below: what takes an integer for an index raises at once, and nothing is made as long as the
 * largest of them. */
void session_know_integers(struct session *session, const struct set *set)
{
    static const double asked[] = {0x1p16, 0x1p20, 0x1p24, 0x1p28, 0x1p30 - 1.0, INT32_MAX};
    static const uint64_t most_ns = 1000000000;
    struct set probe = {.shape = session_small_shape(session), .distribution = DRAW_EXTREMES};
    double found = 0.0;
    uint64_t started = clock_now_ns();
    if (session->integers_known || !set_is_whole_integers(session, set))
        return;
    session->integers_known = true;
    session->integers_terms = probe.shape->reduction > 1 ? (double)probe.shape->reduction : 1.0;
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        struct err ignored = {0};
        if (clock_now_ns() - started > most_ns ||
            try_up_to(session, asked[i], &probe, &ignored) != 1)
            break;
        found = asked[i];
    }
    session->integers = found;
    set_free(&probe);
}

int session_takes_whole(struct session *session, const struct set *set, const struct call *call,
                        struct err *err)
{
    static const double less = 256.0;
    if (session_whole_integer(session, set->shape) == 0.0)
        return 1;
    int takes = stands(session, set->shape, call, set->exact, err);
    if (takes == 0)
        session->integers /= less;
    return takes;
}
