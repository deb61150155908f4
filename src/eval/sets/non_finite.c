/* eval/sets/non_finite: inputs that hold NaN and infinities, and what is asked of a kernel there.
 *
 * Asked is what the definition settles: an element's class (NaN, +inf, -inf, finite) where it is
 * the same in float64 and in the spec's precision. Not asked is a class that no kernel needs to
 * have: of an element that does not change with the numbers in those places, as behind a mask that
 * multiplies by zero; and a NaN that comes of infinities alone, as inf - inf.
 *
 * Where products are summed, or an output is linear in that input, an honest kernel may split its
 * factors, or take sums and differences, and then an infinity becomes a NaN and spreads. There it
 * is asked that what is not finite stays so. `non_finite: propagate` asks for every element's
 * class. */
#include "eval/sets/non_finite.h"

#include "eval/sets/session.h"

#include <math.h>
#include <string.h>

bool session_non_finite_applies(const struct session *session)
{
    return problem_is_spoiled(session->problem) && !session->backend->target->finite_only;
}

/* The first that may, or any. */
size_t set_spoiled_input(const struct session *session, const struct set *set)
{
    const struct problem *problem = session->problem;
    uint64_t bits = set->seed * UINT64_C(0x9e3779b97f4a7c15);
    size_t count = 0, wanted = 0, found = 0;
    for (size_t i = 0; i < problem->input_count; i++)
        count += problem_may_spoil(problem, i);
    if ((bits >> 40 & 1) != 0)
        wanted = (size_t)(bits >> 44) % (count > 0 ? count : 1);
    for (size_t i = 0; i < problem->input_count; i++)
        if (problem_may_spoil(problem, i) && wanted-- == 0)
            found = i;
    return found;
}

/* --- the definition, with other numbers in those places --- */

enum stand_in { STAND_IN_UP, STAND_IN_DOWN, STAND_IN_FOR_NAN, STAND_IN_SCALED };

#define SCALED_BY (-0.5)

static double number_for(enum stand_in stand_in, double number, size_t place)
{
    double size = 20.0 + (double)(place % 61) / 4.0; /* of two signs and two sizes */
    if (stand_in == STAND_IN_SCALED)
        return SCALED_BY * (isfinite(number) ? number : size);
    if (isfinite(number) || (stand_in == STAND_IN_FOR_NAN && isinf(number)))
        return number;
    return stand_in == STAND_IN_DOWN ? -0.625 * size : size;
}

static int compute_with(struct session *session, const struct set *set, const struct call *call,
                        enum stand_in stand_in, size_t scratch, void **results, struct err *err)
{
    const struct layout *layout = &set->shape->layout;
    size_t input = set_spoiled_input(session, set);
    const struct placed *placed = &layout->inputs[input];
    enum dtype dtype = session->problem->inputs[input].dtype;
    unsigned char *to = session->region.inputs + placed->offset;
    for (size_t i = 0; i < placed->elements; i++)
        dtype_store(dtype, to, i,
                    number_for(stand_in, dtype_load(dtype, set->inputs[input], i), i));
    for (size_t i = 0; i < session->problem->output_count; i++)
        results[i] =
            session_scratch(session, scratch + i, layout->outputs[i].elements * sizeof(double));
    int status = reference_compute(session->reference, layout, call, PRECISION_EXACT, results, err);
    memcpy(to, set->inputs[input], placed->bytes);
    return status;
}

/* Of sums, whose terms an honest algorithm may add and subtract in another order. */
static bool is_linear(const double *whole, const double *scaled, size_t count)
{
    static const double rounding = 1e-10;
    double size = 0.0, off = 0.0;
    for (size_t i = 0; i < count; i++) {
        size += fabs(whole[i]);
        off += fabs(scaled[i] - SCALED_BY * whole[i]);
    }
    return off <= rounding * size;
}

/* Of each output; where nothing is summed a NaN stays where it is. */
static void find_linear(const struct session *session, const struct set *set, void *const *whole,
                        void *const *scaled, bool linear[OUTPUTS_MAX])
{
    for (size_t i = 0; i < session->problem->output_count; i++)
        linear[i] = session->shapes[0].products != 1 &&
                    is_linear((const double *)whole[i], (const double *)scaled[i],
                              set->shape->layout.outputs[i].elements);
}

/* Whether a matrix unit's factors may stand behind an output: of several inputs, and of as many
 * products as only sums of them have. */
static bool sums_products(const struct session *session)
{
    enum { PRODUCTS = 8, ROW = 16 };
    const struct shape *shape = &session->shapes[0]; /* a small one may have but one product */
    size_t floats = 0;
    for (size_t i = 0; i < session->problem->input_count; i++)
        floats += dtype_is_float(session->problem->inputs[i].dtype);
    if (floats < 2)
        return false;
    return shape->products == 0
               ? shape->reduction >= PRODUCTS
               : shape->products >= PRODUCTS && shape->reduction <= ROW * shape->products;
}

/* --- what is asked --- */

static bool same_class(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return isinf(a) || isinf(b) ? isinf(a) && isinf(b) && (a > 0.0) == (b > 0.0) : true;
}

struct asking {
    const struct tensor_spec *tensor;
    size_t count;
    double *exact;
    const void *honest;
    const double *up, *down, *without_nan;
    bool spreads;
};

/* Returns how many are asked anything. */
static size_t ask(const struct asking *asking)
{
    double most = dtype_max(asking->tensor->dtype) * 0.999;
    size_t asked = 0;
    for (size_t i = 0; i < asking->count; i++) {
        double *exact = &asking->exact[i],
               honest = dtype_load(asking->tensor->dtype, asking->honest, i);
        bool finite = fabs(*exact) <= most;
        bool settled = same_class(*exact, honest) && (finite || !isfinite(*exact));
        bool moves = asking->up[i] < asking->down[i] || asking->up[i] > asking->down[i];
        bool made = isnan(*exact) && isnan(asking->without_nan[i]);
        if (!dtype_is_float(asking->tensor->dtype) || !settled || (finite && asking->spreads) ||
            (!finite && (!moves || made)))
            *exact = check_anything();
        else if (!finite && asking->spreads)
            *exact = check_not_finite();
        asked += !check_is_anything(*exact);
    }
    return asked;
}

int session_ask_non_finite(struct session *session, struct set *set, const struct call *call,
                           const struct results *results, struct err *err)
{
    enum { FIRST = 2 * OUTPUTS_MAX, SECOND = 3 * OUTPUTS_MAX, THIRD = 4 * OUTPUTS_MAX };
    void *up[OUTPUTS_MAX], *scaled[OUTPUTS_MAX], *down[OUTPUTS_MAX], *without_nan[OUTPUTS_MAX];
    bool propagates = session->problem->non_finite == NON_FINITE_PROPAGATE;
    bool linear[OUTPUTS_MAX] = {false}, products = sums_products(session);
    size_t asked = 0;
    if (compute_with(session, set, call, STAND_IN_UP, FIRST, up, err) != 0 ||
        compute_with(session, set, call, STAND_IN_SCALED, SECOND, scaled, err) != 0)
        return -1;
    find_linear(session, set, up, scaled, linear);
    if (compute_with(session, set, call, STAND_IN_DOWN, SECOND, down, err) != 0 ||
        compute_with(session, set, call, STAND_IN_FOR_NAN, THIRD, without_nan, err) != 0)
        return -1;
    for (size_t i = 0; i < session->problem->output_count; i++) {
        const struct asking asking = {.tensor = &session->problem->outputs[i],
                                      .count = set->shape->layout.outputs[i].elements,
                                      .exact = set->exact[i],
                                      .honest = results->honest[i],
                                      .up = (const double *)up[i],
                                      .down = (const double *)down[i],
                                      .without_nan = (const double *)without_nan[i],
                                      .spreads = (linear[i] || products) && !propagates};
        asked += ask(&asking);
    }
    set->unfit = set->unfit || asked == 0;
    return 0;
}
