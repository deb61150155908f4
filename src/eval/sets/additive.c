/* eval/sets/additive: is the definition a sum of terms that are 0 where an input is 0?
 * Then inputs with few numbers that are not zero make sums of few terms, whose rounding errors
 * cannot grow with the length of the sum, and a kernel's error there is the precision that it
 * computes in. Asked of the definition itself: each input is split in two, what is in the one half
 * being 0 in the other, and the two results must add up to that of the whole. */
#include "eval/sets/session.h"

#include <math.h>
#include <string.h>

/* Half of the elements, by a hash of their place. */
static bool is_in(size_t element, uint64_t key)
{
    uint64_t bits = (element + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ key;
    bits = (bits ^ bits >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return (bits >> 40 & 1) != 0;
}

static void put_half(const struct session *session, const struct set *set, size_t input,
                     uint64_t key, bool half)
{
    const struct placed *placed = &set->shape->layout.inputs[input];
    size_t bytes = dtype_bytes(session->problem->inputs[input].dtype);
    unsigned char *to = session->region.inputs + placed->offset;
    memcpy(to, set->inputs[input], placed->bytes);
    for (size_t i = 0; i < placed->elements; i++)
        if (is_in(i, key) != half)
            memset(to + i * bytes, 0, bytes);
}

static bool adds_up(const struct session *session, const struct set *set, void *const *a,
                    void *const *b)
{
    static const double rounding = 1e-10;
    for (size_t i = 0; i < session->problem->output_count; i++) {
        const double *x = (const double *)a[i], *y = (const double *)b[i], *e = set->exact[i];
        size_t count = set->shape->layout.outputs[i].elements;
        double size = 0.0, off = 0.0;
        for (size_t k = 0; k < count; k++) {
            size += fabs(x[k]) + fabs(y[k]) + fabs(e[k]);
            off += fabs(x[k] + y[k] - e[k]);
        }
        if (!(off <= rounding * size))
            return false;
    }
    return true;
}

/* 1, 0, or -1 with *err. The inputs are in place, and are so again. */
static int is_additive_in(struct session *session, const struct set *set, const struct call *call,
                          size_t input, struct err *err)
{
    const struct layout *layout = &set->shape->layout;
    void *halves[2][OUTPUTS_MAX];
    uint64_t key = random_next(&session->random);
    int status = 0;
    for (size_t half = 0; half < 2 && status == 0; half++) {
        for (size_t i = 0; i < session->problem->output_count; i++)
            halves[half][i] = session_scratch(session, 2 * i + half,
                                              layout->outputs[i].elements * sizeof(double));
        put_half(session, set, input, key, half == 1);
        status =
            reference_compute(session->reference, layout, call, PRECISION_EXACT, halves[half], err);
    }
    memcpy(session->region.inputs + layout->inputs[input].offset, set->inputs[input],
           layout->inputs[input].bytes);
    return status != 0 ? -1 : adds_up(session, set, halves[0], halves[1]);
}

int session_find_additive(struct session *session, const struct set *set, const struct call *call,
                          struct err *err)
{
    if (session->additive >= 0)
        return 0;
    int additive = 1;
    for (size_t i = 0; i < session->problem->input_count && additive == 1; i++)
        if (dtype_is_float(session->problem->inputs[i].dtype))
            additive = is_additive_in(session, set, call, i, err);
    if (additive < 0 && err->code != ERR_USAGE)
        return -1;
    session->additive = additive == 1; /* one that raises on a half is none */
    return 0;
}

/* --- huge integers --- */

/* What it gives with the first input times `factor`. */
static int scaled(struct session *session, const struct set *set, const struct call *call,
                  double factor, size_t scratch, void **results, struct err *err)
{
    const struct layout *layout = &set->shape->layout;
    const struct placed *placed = &layout->inputs[0];
    enum dtype dtype = session->problem->inputs[0].dtype;
    unsigned char *to = session->region.inputs + placed->offset;
    for (size_t k = 0; k < placed->elements; k++)
        dtype_store(dtype, to, k, factor * dtype_load(dtype, set->inputs[0], k));
    for (size_t i = 0; i < session->problem->output_count; i++)
        results[i] =
            session_scratch(session, scratch + i, layout->outputs[i].elements * sizeof(double));
    int status = reference_compute(session->reference, layout, call, PRECISION_EXACT, results, err);
    memcpy(to, set->inputs[0], placed->bytes);
    return status;
}

int session_takes_huge(struct session *session, const struct set *set, const struct call *call,
                       struct err *err)
{
    void *half[OUTPUTS_MAX], *none[OUTPUTS_MAX];
    if (scaled(session, set, call, 0.5, 2 * OUTPUTS_MAX, half, err) != 0 ||
        scaled(session, set, call, 0.0, 3 * OUTPUTS_MAX, none, err) != 0)
        return -1;
    for (size_t i = 0; i < session->problem->output_count; i++) {
        const double *h = (const double *)half[i], *n = (const double *)none[i];
        for (size_t k = 0; k < set->shape->layout.outputs[i].elements; k++)
            if (fabs(set->exact[i][k] + n[k] - 2.0 * h[k]) > 0.0)
                return 0;
    }
    return 1;
}
