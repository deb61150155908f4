/* eval/sets/coarse: what the definition gives where an input lacks its lowest bits. */
#include "base/mem.h"
#include "eval/reference/private.h"
#include "eval/sets/session.h"
#include "eval/sets/wide.h"

#include <math.h>
#include <string.h>

enum { FLOAT32_BITS = 23 };

bool session_low_bits_apply(const struct session *session)
{
    const struct problem *problem = session->problem;
    return problem_precise(problem)->dtype == DTYPE_FLOAT32 && !problem->tolerance_fixed &&
           reference_bits(problem, PRECISION_SPEC) < 0;
}

/* To the middle of the cell of numbers that `bits` bits of mantissa leave alike: what was taken off
 * is as often above as below, whichever way a kernel cuts. What lies on a cell's edge stays, since
 * a rounding takes it to either side. */
static size_t coarsen(const uint32_t *from, size_t count, int bits, uint32_t *to)
{
    const uint32_t low = (UINT32_C(1) << (FLOAT32_BITS - bits)) - 1;
    size_t changed = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t middle = (from[i] & ~low) | (low / 2 + 1);
        to[i] = (from[i] & low) == 0 ? from[i] : middle;
        changed += to[i] != from[i];
    }
    return changed;
}

static int compute(struct session *session, const struct set *set, void **results, struct err *err)
{
    struct call call;
    if (wide_compute(session, set, PRECISION_EXACT, results))
        return 0;
    set_place(session, set, &call);
    return reference_compute(session->reference, &set->shape->layout, &call, PRECISION_EXACT,
                             results, err);
}

/* Its threads may spin on for a while. */
static void rest(const struct session *session)
{
    struct subject *subject = reference_subject(session->reference);
    if (subject != NULL && session->drawn_ahead == 0)
        subject->ops->pause(subject);
}

int session_coarsen(struct session *session, const struct set *set, size_t input, int bits,
                    void **results, struct err *err)
{
    enum { CHANGED_LEAST = 1024 }; /* fewer numbers change all outputs alike */
    const struct placed *placed = &set->shape->layout.inputs[input];
    struct set coarse = *set;
    if (session->problem->inputs[input].dtype != DTYPE_FLOAT32 || placed->elements < CHANGED_LEAST)
        return 0;
    coarse.inputs[input] = (unsigned char *)parallel_alloc(placed->bytes);
    size_t changed = coarsen((const uint32_t *)(const void *)set->inputs[input], placed->elements,
                             bits, (uint32_t *)(void *)coarse.inputs[input]);
    for (size_t i = 0; i < session->problem->output_count; i++)
        results[i] =
            session_scratch(session, i, set->shape->layout.outputs[i].elements * sizeof(double));
    int status = changed >= CHANGED_LEAST ? compute(session, &coarse, results, err) : 0;
    rest(session);
    mem_free(coarse.inputs[input]);
    return status != 0 ? -1 : changed >= CHANGED_LEAST;
}

int session_sums_products(struct session *session, const struct set *set, size_t output,
                          struct err *err)
{
    const struct layout *layout = &set->shape->layout;
    struct set ones = *set;
    void *results[OUTPUTS_MAX];
    double most = 0.0;
    struct call call;
    set_place(session, set, &call);
    if (session_find_additive(session, set, &call, err) != 0)
        return -1;
    if (session->additive != 1 || session->problem->normwise)
        return 0;
    for (size_t i = 0; i < session->problem->input_count; i++) {
        ones.inputs[i] = (unsigned char *)parallel_alloc(layout->inputs[i].bytes);
        for (size_t k = 0; k < layout->inputs[i].elements; k++)
            dtype_store(session->problem->inputs[i].dtype, ones.inputs[i], k, 1.0);
    }
    for (size_t i = 0; i < session->problem->output_count; i++)
        results[i] = session_scratch(session, i, layout->outputs[i].elements * sizeof(double));
    int status = compute(session, &ones, results, err);
    rest(session);
    for (size_t i = 0; i < session->problem->input_count; i++)
        mem_free(ones.inputs[i]);
    for (size_t k = 0; status == 0 && k < layout->outputs[output].elements; k++)
        most = fmax(most, ((const double *)results[output])[k]);
    return status != 0 ? -1 : fabs(most - (double)set->shape->reduction) < 0.5;
}

int session_compute_honest(struct session *session, const struct set *set, void **results,
                           struct err *err)
{
    const struct layout *layout = &set->shape->layout;
    struct call call;
    for (size_t i = 0; i < session->problem->output_count; i++)
        results[i] = session_scratch(session, OUTPUTS_MAX + i, layout->outputs[i].bytes);
    set_place(session, set, &call);
    int status = reference_compute(session->reference, layout, &call, PRECISION_SPEC, results, err);
    rest(session);
    return status;
}
