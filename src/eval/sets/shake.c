/* eval/sets/shake: how far exact results move when the inputs do. By a part of each
 * number: what moves a lot there hangs on a tie, and is no question to an honest computation. By a
 * part of each tensor's largest: the error that a computation may make which is stable by its
 * inputs' norms alone, as Strassen's product is. */
#include "base/mem.h"
#include "eval/sets/session.h"

#include <math.h>
#include <string.h>

static double hashed_sign(size_t element, uint64_t key)
{
    uint64_t bits = (element + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ key;
    bits = (bits ^ bits >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    return (bits >> 40 & 1) != 0 ? 1.0 : -1.0;
}

static double largest_of(enum dtype dtype, const void *values, size_t count)
{
    double most = 0.0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs(dtype_load(dtype, values, i)));
    return most;
}

struct shake {
    bool by_norm; /* each number moves by `size` of its tensor's largest; else of itself */
    double size;  /* up or down, by the key */
    uint64_t key;
    size_t scratch; /* where results lie: session_scratch() from here on */
};

static void shake_input(const struct session *session, const struct set *set, size_t input,
                        const struct shake *shake)
{
    const struct tensor_spec *tensor = &session->problem->inputs[input];
    const struct placed *placed = &set->shape->layout.inputs[input];
    unsigned char *to = session->region.inputs + placed->offset;
    memcpy(to, set->inputs[input], placed->bytes);
    if (!dtype_is_float(tensor->dtype))
        return;
    double all = shake->by_norm ? largest_of(tensor->dtype, to, placed->elements) : 0.0;
    for (size_t i = 0; i < placed->elements; i++) {
        double number = dtype_load(tensor->dtype, to, i);
        double step = shake->size * (shake->by_norm ? all : number);
        number += step * hashed_sign(i, shake->key + input);
        if (!shake->by_norm && tensor->low <= tensor->high)
            number = fmin(fmax(number, tensor->low), tensor->high);
        dtype_store(tensor->dtype, to, i, number);
    }
}

static int session_shake(struct session *session, const struct set *set, const struct shake *shake,
                         void **results, struct err *err)
{
    const struct layout *layout = &set->shape->layout;
    struct call call;
    call_make(layout, 0, 0, &call);
    for (size_t i = 0; i < session->problem->input_count; i++)
        shake_input(session, set, i, shake);
    for (size_t i = 0; i < session->problem->output_count; i++)
        results[i] = session_scratch(session, shake->scratch + i,
                                     layout->outputs[i].elements * sizeof(double));
    return reference_compute(session->reference, layout, &call, PRECISION_EXACT, results, err);
}

/* --- what is stable by norms alone --- */

int session_norm_errors(struct session *session, const struct set *set, double *errors,
                        struct err *err)
{
    static const double size = 0x1p-8;
    const struct shake shake = {.by_norm = true,
                                .size = size,
                                .key = random_next(&session->random),
                                .scratch = 2 * OUTPUTS_MAX};
    void *shaken[OUTPUTS_MAX];
    if (session_shake(session, set, &shake, shaken, err) != 0)
        return -1;
    for (size_t i = 0; i < session->problem->output_count; i++) {
        const double *moved = (const double *)shaken[i], *exact = set->exact[i];
        errors[i] = 0.0;
        for (size_t k = 0; k < set->shape->layout.outputs[i].elements; k++)
            if (isfinite(moved[k]) && isfinite(exact[k]))
                errors[i] = fmax(errors[i], fabs(moved[k] - exact[k]) / size);
    }
    return 0;
}

/* --- what hangs on a tie --- */

/* Whether a row moves by more than a part of its scale that no rounding explains. */
static bool row_moves(const double *exact, const double *shaken, size_t count)
{
    static const double much = 1.0 / 16.0;
    double squares = 0.0;
    for (size_t i = 0; i < count; i++)
        squares += isfinite(exact[i]) ? exact[i] * exact[i] : 0.0;
    double rms = sqrt(squares / (double)count);
    for (size_t i = 0; i < count; i++)
        if (fabs(shaken[i] - exact[i]) > much * fmax(fabs(exact[i]), rms))
            return true;
    return false;
}

/* Rows that move are taken for right where they are finite; all the rest must be. */
static bool passes_without(const struct set *set, const struct tensor_spec *tensor, size_t output,
                           void *const shaken[2], const void *got)
{
    const struct placed *placed = &set->shape->layout.outputs[output];
    const double *exact = set->exact[output];
    size_t row = tensor_row(tensor, placed);
    struct mismatch mismatch;
    unsigned char *mended = (unsigned char *)mem_alloc(placed->bytes + 1);
    memcpy(mended, got, placed->bytes);
    for (size_t first = 0; row > 0 && first + row <= placed->elements; first += row)
        if (row_moves(exact + first, (const double *)shaken[0] + first, row) ||
            row_moves(exact + first, (const double *)shaken[1] + first, row))
            for (size_t i = first; i < first + row; i++)
                if (isfinite(dtype_load(tensor->dtype, got, i)))
                    dtype_store(tensor->dtype, mended, i, exact[i]);
    check_compare(tensor, placed->extents, placed->elements, &set->bounds[output], exact, mended,
                  &mismatch);
    mem_free(mended);
    return mismatch.passed;
}

bool session_excuses(struct session *session, const struct set *set, size_t output, const void *got)
{
    static const double size = 0x1p-17, slow_ns = 1e9;
    struct shake shake = {.size = size, .key = random_next(&session->random)};
    void *results[2][OUTPUTS_MAX], *shaken[2];
    struct err ignored;
    const struct bound *bound = &set->bounds[output];
    if (bound->fixed || bound->exact_equality ||
        (set->shape == &session->shapes[0] && session->exact_ns > slow_ns))
        return false;
    for (size_t i = 0; i < 2; i++) { /* what does not tip one way tips the other */
        shake.size = i == 0 ? size : -size;
        shake.scratch = (2 + i) * OUTPUTS_MAX;
        if (session_shake(session, set, &shake, results[i], &ignored) != 0)
            return false;
        shaken[i] = results[i][output];
    }
    struct subject *subject = reference_subject(session->reference);
    if (subject != NULL)
        subject->ops->pause(subject);
    return passes_without(set, &session->problem->outputs[output], output, shaken, got);
}
