/* eval/sets/shapes: at which shapes kernels are checked, besides the spec's own: hidden
 * ones; a small one whose sums are as long as the main shape's; and what is larger than any listed
 * one. */
#include "eval/sets/session.h"

enum { REDRAWS_MOST = 4 };

int shape_make(struct session *session, const struct names *dims, struct shape *shape,
               struct err *err)
{
    shape->dims = *dims;
    if (layout_make(session->problem, dims, NULL, NULL, 0, &shape->layout, err) != 0)
        return -1;
    shape->elements = 0;
    for (size_t i = 0; i < shape->layout.input_count; i++)
        shape->elements += shape->layout.inputs[i].elements;
    for (size_t i = 0; i < shape->layout.output_count; i++)
        shape->elements += shape->layout.outputs[i].elements;
    shape->reduction = problem_reduction(session->problem, dims);
    shape->products = problem_products(session->problem, dims);
    return 0;
}

size_t shape_bytes(const struct shape *shape)
{
    size_t bytes = 0;
    for (size_t i = 0; i < shape->layout.input_count; i++)
        bytes += shape->layout.inputs[i].bytes;
    for (size_t i = 0; i < shape->layout.output_count; i++)
        bytes += shape->layout.outputs[i].elements * sizeof(double);
    return bytes;
}

size_t tensor_row(const struct tensor_spec *tensor, const struct placed *placed)
{
    return tensor->rank > 0 ? (size_t)placed->extents[tensor->rank - 1] : 1;
}

bool session_is_large(const struct session *session)
{
    static const size_t large_set = (size_t)64 << 20;
    return shape_bytes(&session->shapes[0]) > large_set;
}

int shape_shows(const struct session *session, const struct shape *shape)
{
    enum { ENOUGH = 256, EACH_WAY = 8, OF_A_ROW = 5 };
    size_t elements = shape->layout.outputs[0].elements;
    size_t row = tensor_row(&session->problem->outputs[0], &shape->layout.outputs[0]);
    size_t main_terms = session->shapes[0].reduction;
    size_t terms = main_terms < EACH_WAY ? main_terms : EACH_WAY;
    if (elements < ENOUGH)
        return 0;
    if (row < EACH_WAY || elements / row < EACH_WAY)
        return 1;
    return 2 + (shape->reduction >= terms) + (row <= OF_A_ROW * (elements / row));
}

const struct shape *session_small_shape(const struct session *session)
{
    const struct shape *best = &session->shapes[1];
    for (size_t i = 2; i < session->shape_count + HIDDEN_SHAPES; i++) {
        const struct shape *shape = &session->shapes[i];
        int more = shape_shows(session, shape) - shape_shows(session, best);
        bool small = shape_shows(session, shape) > 0;
        if (more > 0 || (more == 0 && (shape->elements < best->elements) == small))
            best = shape;
    }
    return best;
}

/* Before the region is made for them all; and again, no larger than that. */
bool shape_fits(const struct session *session, const struct shape *shape)
{
    return session->slot_bytes == 0 ||
           (shape->layout.inputs_bytes + PAGE_BYTES <= session->slot_bytes &&
            shape->layout.outputs_bytes + PAGE_BYTES <= session->region.outputs_bytes);
}

int session_draw_hidden(struct session *session, size_t index, struct err *err)
{
    for (int i = 0; i < REDRAWS_MOST; i++) {
        struct names dims;
        struct shape shape;
        if (problem_draw_dims(session->problem, random_seed(), &dims, err) != 0 ||
            shape_make(session, &dims, &shape, err) != 0)
            return -1;
        if (shape_fits(session, &shape)) {
            session->shapes[session->shape_count + index] = shape;
            return 0;
        }
    }
    return 0; /* the one that there is stays: its numbers are others */
}

/* --- sums as long as the main shape's --- */

enum { SHAPE_ENOUGH = 1 << 16, OUTPUTS_LEAST = 256 };

/* With half of one dim, where that leaves sums as long and outputs enough; the largest such. */
static bool halve(struct session *session, struct shape *shape)
{
    const struct problem *problem = session->problem;
    struct shape best = *shape;
    for (size_t i = 0; i < problem->dim_count; i++) {
        const struct dim_spec *dim = &problem->dims[i];
        struct names given = {0}, dims;
        struct shape half;
        int64_t number = shape->dims.number[i] / 2 | 1;
        if (dim->derived || number >= shape->dims.number[i] || number < dim->hidden_low)
            continue;
        for (size_t k = 0; k < problem->dim_count; k++)
            if (!problem->dims[k].derived &&
                names_set(&given, problem->dims[k].name, k == i ? number : shape->dims.number[k],
                          NULL) != 0)
                return false;
        if (problem_dims(problem, &given, &dims, NULL) == 0 &&
            shape_make(session, &dims, &half, NULL) == 0 && half.reduction >= shape->reduction &&
            half.layout.outputs[0].elements >= OUTPUTS_LEAST && half.elements < best.elements)
            best = half;
    }
    bool smaller = best.elements < shape->elements;
    *shape = best;
    return smaller;
}

void session_make_long(struct session *session)
{
    struct shape *shape = &session->shapes[session->shape_total];
    *shape = session->shapes[0];
    while (shape->elements > SHAPE_ENOUGH && halve(session, shape))
        continue;
    session->long_shape = shape;
    if (shape->elements == session->shapes[0].elements)
        session->long_shape = &session->shapes[0];
    else
        session->shape_total++;
}

/* --- sums that are shorter than a vector --- */

enum { SHORT_LEAST = 4, SHORT_MOST = 15, REST_LEAST = 5, REST_MOST = 7, OUTPUTS_ENOUGH = 1024 };

/* Of 5 to 7 terms every vector leaves some, and the fewer there are, the more one that is lost is
 * of their sum. More outputs, up to as many as show what happens in few rows. */
static size_t short_worth(const struct session *session, const struct shape *shape)
{
    size_t outputs = shape->layout.outputs[0].elements;
    size_t terms = problem_reduction(session->problem, &shape->dims);
    size_t best = terms >= REST_LEAST && terms <= REST_MOST ? OUTPUTS_ENOUGH : 0;
    if (terms < SHORT_LEAST || terms > SHORT_MOST)
        return 0;
    return best + (outputs < OUTPUTS_ENOUGH ? outputs : OUTPUTS_ENOUGH);
}

static void take_better(const struct session *session, const struct shape *shape,
                        struct shape *best)
{
    if (best->elements == 0 ? short_worth(session, shape) > 0
                            : short_worth(session, shape) > short_worth(session, best))
        *best = *shape;
}

/* Its sums are nothing but what a loop over vectors leaves. */
void session_draw_short(struct session *session)
{
    enum { TRIES_LEAST = 256, TRIES = 1024 };
    struct shape best = {0}, shape;
    const bool first = session->short_shape == NULL;
    if (problem_reduction(session->problem, &session->shapes[0].dims) <= SHORT_MOST)
        return;
    for (size_t i = 1; i < session->shape_count; i++)
        take_better(session, &session->shapes[i], &best);
    for (int i = 0; i < TRIES; i++) {
        struct names dims;
        if (i >= TRIES_LEAST && best.elements > 0 && short_worth(session, &best) > OUTPUTS_ENOUGH)
            break;
        if (problem_draw_dims(session->problem, random_seed(), &dims, NULL) == 0 &&
            shape_make(session, &dims, &shape, NULL) == 0 && shape_fits(session, &shape))
            take_better(session, &shape, &best);
    }
    if (best.elements == 0 || (first && session->beyond_count > 0))
        return;
    if (first)
        session->short_shape = &session->shapes[session->shape_total++];
    *session->short_shape = best;
}

/* --- beyond the main shape --- */

void session_draw_beyond(struct session *session)
{
    uint64_t wanted = problem_sizes_beyond(session->problem);
    size_t count = session->beyond_count, most = count > 0 ? count : BEYOND_SHAPES;
    if (count == 0)
        session->beyond_shape = session->shape_total;
    for (size_t i = 0; i < most && wanted != 0; i++) {
        struct names dims;
        struct shape shape;
        if (!problem_draw_beyond(session->problem, random_seed(), &wanted, &dims) ||
            shape_make(session, &dims, &shape, NULL) != 0)
            break;
        if (!shape_fits(session, &shape))
            continue;
        session->shapes[session->beyond_shape + i] = shape;
        if (count == 0)
            session->shape_total = session->beyond_shape + ++session->beyond_count;
    }
}
