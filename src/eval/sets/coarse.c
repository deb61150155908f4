/* eval/sets/coarse: what the definition gives where an input lacks its lowest bits. */
#include "eval/sets/coarse.h"

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

/* The dim along which an input's numbers are terms of a sum: no output has it. Of several one that
 * another input has, too, as both factors of a product do; then the longest. -1: none. */
static int dim_of_terms(const struct problem *problem, const struct shape *shape, size_t input)
{
    int found = -1;
    double best = 0.0;
    for (size_t axis = 0; axis < problem->inputs[input].rank; axis++) {
        const int dim = axis_dim(problem, &problem->inputs[input], axis);
        bool shared = false, kept = false;
        for (size_t i = 0; i < problem->input_count && dim >= 0; i++)
            shared = shared || (i != input && tensor_has_dim(problem, &problem->inputs[i], dim));
        for (size_t i = 0; i < problem->output_count && dim >= 0; i++)
            kept = kept || tensor_has_dim(problem, &problem->outputs[i], dim);
        if (dim < 0 || kept)
            continue;
        double worth = (double)shape->dims.number[dim] * (shared ? 0x1p40 : 1.0);
        if (worth > best) {
            best = worth;
            found = dim;
        }
    }
    return found;
}

bool session_terms(const struct session *session, const struct set *set, size_t input,
                   struct terms *terms)
{
    const struct problem *problem = session->problem;
    const struct tensor_spec *tensor = &problem->inputs[input];
    int dim = dim_of_terms(problem, set->shape, input);
    if (dim < 0 || set->shape->dims.number[dim] < 2 * TERMS_PARTS)
        return false;
    *terms = (struct terms){.count = (size_t)set->shape->dims.number[dim], .run = 1};
    for (size_t axis = tensor->rank; axis-- > 0 && axis_dim(problem, tensor, axis) != dim;)
        terms->run *= (size_t)set->shape->layout.inputs[input].extents[axis];
    return true;
}

/* Which part a term is of; the others keep all of their bits. */
static size_t part_of(const struct terms *terms, size_t term)
{
    return terms->apart ? term % TERMS_PARTS : term * TERMS_PARTS / terms->count;
}

/* `bits` 0: they are left out. */
static size_t coarsen_some(const uint32_t *from, size_t count, int bits, const struct terms *terms,
                           uint32_t *to)
{
    size_t changed = 0;
    memcpy(to, from, count * sizeof *to);
    for (size_t at = 0; at < count; at += terms->run) {
        if (part_of(terms, at / terms->run % terms->count) != terms->part)
            continue;
        if (bits > 0)
            changed += coarsen(from + at, terms->run, bits, to + at);
        else
            memset(to + at, 0, terms->run * sizeof *to);
        changed += bits > 0 ? 0 : terms->run;
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
                    const struct terms *terms, void **results, struct err *err)
{
    enum { CHANGED_LEAST = 1024, OF_TERMS = 256 }; /* fewer numbers change all outputs alike */
    const struct placed *placed = &set->shape->layout.inputs[input];
    const size_t least = terms != NULL ? OF_TERMS : CHANGED_LEAST;
    struct set coarse = *set;
    if (session->problem->inputs[input].dtype != DTYPE_FLOAT32 || placed->elements < least)
        return 0;
    coarse.inputs[input] = (unsigned char *)parallel_alloc(placed->bytes);
    const uint32_t *from = (const uint32_t *)(const void *)set->inputs[input];
    uint32_t *to = (uint32_t *)(void *)coarse.inputs[input];
    size_t changed = terms != NULL ? coarsen_some(from, placed->elements, bits, terms, to)
                                   : coarsen(from, placed->elements, bits, to);
    for (size_t i = 0; i < session->problem->output_count; i++)
        results[i] =
            session_scratch(session, i, set->shape->layout.outputs[i].elements * sizeof(double));
    int status = changed >= least ? compute(session, &coarse, results, err) : 0;
    rest(session);
    mem_free(coarse.inputs[input]);
    return status != 0 ? -1 : changed >= least;
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
