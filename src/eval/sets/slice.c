/* eval/sets/slice: which dims of a definition can be sliced: picking some of their indices in every
 * tensor that has them commutes with it, as rows of a softmax do, or both sides of a product. Asked
 * of the definition itself, at a small shape: what it gives for picked inputs must be what was
 * picked of its results. */
#include "base/mem.h"
#include "eval/sets/session.h"

#include <math.h>
#include <string.h>

enum { PROBE_LEAST = 4, PROBE_MORE = 5 };

/* --- by the spec alone --- */

struct mention {
    const struct problem *problem;
    const char *name;
    bool found;
};

static void look_for(void *context, const char *name)
{
    struct mention *mention = (struct mention *)context;
    const struct problem *problem = mention->problem;
    mention->found = mention->found || strcmp(name, mention->name) == 0;
    for (size_t i = 0; i < problem->dim_count && !mention->found; i++)
        if (problem->dims[i].derived && strcmp(problem->dims[i].name, name) == 0)
            expr_names(problem->dims[i].value, look_for, context);
}

/* How many axes are the dim, by itself; -1: one follows from it in another way. */
static int axes_of(const struct problem *problem, const struct tensor_spec *tensor, size_t dim)
{
    int count = 0;
    for (size_t axis = 0; axis < tensor->rank; axis++) {
        struct mention mention = {problem, problem->dims[dim].name, false};
        if (axis_dim(problem, tensor, axis) == (int)dim) {
            count++;
            continue;
        }
        expr_names(tensor->shape[axis], look_for, &mention);
        if (mention.found)
            return -1;
    }
    return count;
}

static bool may_be_sliced(const struct problem *problem, size_t dim)
{
    if (problem->dims[dim].derived)
        return false;
    for (size_t i = 0; i < problem->input_count; i++) {
        int axes = axes_of(problem, &problem->inputs[i], dim);
        if (axes < 0 || axes > 1)
            return false;
    }
    for (size_t i = 0; i < problem->output_count; i++)
        if (axes_of(problem, &problem->outputs[i], dim) != 1)
            return false;
    return true;
}

uint64_t problem_may_be_sliced(const struct problem *problem)
{
    uint64_t dims = 0;
    for (size_t i = 0; i < problem->dim_count; i++)
        if (may_be_sliced(problem, i))
            dims |= UINT64_C(1) << i;
    return dims;
}

/* --- by the definition --- */

static bool make_shape(struct session *session, const int64_t *numbers, struct shape *shape)
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

/* The smallest there is, with several indices of each dim that may be sliced. */
static bool choose_probe(struct session *session, uint64_t asked, int64_t *numbers,
                         struct shape *shape)
{
    const struct problem *problem = session->problem;
    const struct shape *least = &session->shapes[0];
    for (size_t i = 1; i < session->shape_count + HIDDEN_SHAPES; i++)
        if (session->shapes[i].elements < least->elements)
            least = &session->shapes[i];
    memcpy(numbers, least->dims.number, DIMS_MAX * sizeof *numbers);
    for (size_t i = 0; i < problem->dim_count; i++) {
        int64_t kept = numbers[i];
        if ((asked >> i & 1) == 0 || kept >= PROBE_LEAST)
            continue;
        numbers[i] = PROBE_LEAST + (int64_t)random_below(&session->random, PROBE_MORE);
        if (!make_shape(session, numbers, shape))
            numbers[i] = kept;
    }
    return make_shape(session, numbers, shape);
}

static bool same(const double *a, const double *b, size_t count)
{
    static const double rounding = 1e-10;
    double most = 0.0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(a[i]))
            most = fmax(most, fabs(a[i]));
    for (size_t i = 0; i < count; i++)
        if (a[i] != b[i] && !(isnan(a[i]) && isnan(b[i])) &&
            !(fabs(a[i] - b[i]) <= rounding * most))
            return false;
    return true;
}

/* 1: it commutes with these dims picked; 0; -1 with *err. `base` is drawn and has its results. */
static int commutes(struct session *session, const struct set *base, uint64_t dims, struct err *err)
{
    const struct problem *problem = session->problem;
    struct shape *picked = MEM_NEW(struct shape);
    struct maps maps = {0};
    int64_t numbers[DIMS_MAX] = {0};
    struct call call;
    void *results[OUTPUTS_MAX];
    memcpy(numbers, base->shape->dims.number, sizeof numbers);
    for (size_t i = 0; i < problem->dim_count; i++) {
        if ((dims >> i & 1) == 0)
            continue;
        maps.from[i] = numbers[i];
        numbers[i] = PROBE_LEAST - 1 + (int64_t)random_below(&session->random, 2 * PROBE_MORE);
        maps.of[i] = (uint32_t *)mem_array((size_t)numbers[i], sizeof(uint32_t));
        for (int64_t k = 0; k < numbers[i]; k++)
            maps.of[i][k] = (uint32_t)random_below(&session->random, (uint64_t)maps.from[i]);
    }
    int status = make_shape(session, numbers, picked) ? 1 : 0;
    for (size_t i = 0; i < problem->input_count && status == 1; i++)
        maps_gather(problem, &problem->inputs[i], &maps, picked->layout.inputs[i].extents,
                    dtype_bytes(problem->inputs[i].dtype), base->inputs[i],
                    session->region.inputs + picked->layout.inputs[i].offset);
    for (size_t i = 0; i < problem->output_count && status == 1; i++)
        results[i] =
            session_scratch(session, i, (picked->layout.outputs[i].elements + 1) * sizeof(double));
    call_make(&picked->layout, 0, 0, &call);
    if (status == 1 && reference_compute(session->reference, &picked->layout, &call,
                                         PRECISION_EXACT, results, err) != 0)
        status = err->code == ERR_USAGE ? 0 : -1; /* one that raises there is not */
    for (size_t i = 0; i < problem->output_count && status == 1; i++) {
        const struct placed *placed = &picked->layout.outputs[i];
        double *expected = (double *)session_scratch(session, OUTPUTS_MAX + i,
                                                     (placed->elements + 1) * sizeof(double));
        maps_gather(problem, &problem->outputs[i], &maps, placed->extents, sizeof(double),
                    base->exact[i], expected);
        status = same(expected, (const double *)results[i], placed->elements);
    }
    maps_free(&maps);
    mem_free(picked);
    return status;
}

/* Draws `base` and computes what it gives; false: not, with *err. */
static bool open_base(struct session *session, struct set *base, struct err *err)
{
    struct call call;
    void *exact[OUTPUTS_MAX];
    set_draw(session, base);
    set_place(session, base, &call);
    for (size_t i = 0; i < session->problem->output_count; i++) {
        if (base->exact[i] == NULL)
            base->exact[i] =
                (double *)mem_array(base->shape->layout.outputs[i].elements + 1, sizeof(double));
        exact[i] = base->exact[i];
    }
    return reference_compute(session->reference, &base->shape->layout, &call, PRECISION_EXACT,
                             exact, err) == 0;
}

/* One dim after another; then all of them at once, on other inputs. */
static uint64_t ask(struct session *session, uint64_t asked, const struct shape *shape,
                    struct err *err)
{
    struct set base = {.shape = shape, .distribution = DRAW_NORMAL};
    uint64_t dims = 0;
    int status = open_base(session, &base, err) ? 1 : -1;
    for (size_t i = 0; i < session->problem->dim_count && status >= 0; i++) {
        if ((asked >> i & 1) == 0)
            continue;
        status = commutes(session, &base, UINT64_C(1) << i, err);
        if (status == 1)
            dims |= UINT64_C(1) << i;
    }
    set_redraw(&base);
    base.distribution = DRAW_HEAVY;
    if (status >= 0 && dims != 0 &&
        (!open_base(session, &base, err) || commutes(session, &base, dims, err) != 1))
        dims = 0;
    set_free(&base);
    return status >= 0 ? dims : 0;
}

void session_find_slices(struct session *session)
{
    uint64_t asked = problem_may_be_sliced(session->problem);
    struct shape *shape = MEM_NEW(struct shape);
    int64_t numbers[DIMS_MAX] = {0};
    struct err err = {0};
    if (!session->slices_known && asked != 0 && choose_probe(session, asked, numbers, shape))
        session->slices = ask(session, asked, shape, &err);
    struct subject *subject = reference_subject(session->reference);
    if (!session->slices_known && subject != NULL && session->drawn_ahead == 0)
        subject->ops->pause(subject);
    session->slices_known = true;
    mem_free(shape);
}
