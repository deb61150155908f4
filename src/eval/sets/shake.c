/* eval/sets/shake: how far exact results move when the inputs do. By a part of each number: what
 * moves a lot there hangs on a tie (excuse.c). By a part of each tensor's largest: the error that a
 * computation may make which is stable by its inputs' norms alone, as Strassen's product is. */
#include "eval/sets/shake.h"
#include "eval/sets/session.h"

#include <math.h>
#include <string.h>

static uint64_t hashed(size_t element, uint64_t key)
{
    uint64_t bits = (element + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ key;
    return (bits ^ bits >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
}

static double hashed_sign(size_t element, uint64_t key)
{
    return (hashed(element, key) >> 40 & 1) != 0 ? 1.0 : -1.0;
}

/* From a half to one, so that a quotient of two numbers moves, too. */
static double hashed_part(size_t element, uint64_t key)
{
    return 0.5 + 0.5 * (double)(hashed(element, key) >> 41 & 0xffff) / 0x10000;
}

static double largest_of(enum dtype dtype, const void *values, size_t count)
{
    double most = 0.0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs(dtype_load(dtype, values, i)));
    return most;
}

static void shake_input(const struct session *session, const struct set *set, size_t input,
                        const struct shake *shake)
{
    const struct tensor_spec *tensor = &session->problem->inputs[input];
    const struct placed *placed = &set->shape->layout.inputs[input];
    unsigned char *to = session->region.inputs + placed->offset;
    memcpy(to, set->inputs[input], placed->bytes);
    if (!dtype_is_float(tensor->dtype))
        return;
    double all =
        shake->by_norm || shake->zeros ? largest_of(tensor->dtype, to, placed->elements) : 0.0;
    double size = shake->size * (shake->by_type != NULL ? shake->by_type[tensor->dtype] : 1.0);
    for (size_t i = 0; i < placed->elements; i++) {
        double number = dtype_load(tensor->dtype, to, i), of = shake->by_norm ? all : number;
        if (shake->zeros && !(fabs(number) > 0.0))
            of = all > 0.0 ? all : 1.0;
        double step =
            size * of * (shake->by_type != NULL ? hashed_part(i, shake->key + input) : 1.0);
        number += step * hashed_sign(i, shake->key + input);
        if (!shake->by_norm && tensor->low <= tensor->high)
            number = fmin(fmax(number, tensor->low), tensor->high);
        dtype_store(tensor->dtype, to, i, number);
    }
}

int session_shake(struct session *session, const struct set *set, const struct shake *shake,
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
    return reference_compute(session->reference, layout, &call,
                             shake->honest ? PRECISION_SPEC : PRECISION_EXACT, results, err);
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
