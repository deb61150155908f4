/* eval/sets/segments: several distributions in one small problem, along a dim that can be sliced.
 */
#include "base/mem.h"
#include "eval/sets/session.h"
#include "eval/sets/view.h"

#include <string.h>

/* What is drawn in one: of the first input, as long as the others lack the dim. Huge and extreme
 * integers leave no room for others that know nothing of it. */
static bool is_mixed_in(const struct session *session, enum distribution distribution)
{
    const struct problem *problem = session->problem;
    bool whole = true;
    for (size_t i = 0; i < problem->input_count; i++)
        whole = whole && !dtype_is_float(problem->inputs[i].dtype);
    bool large = distribution == DRAW_HUGE || distribution == DRAW_EXTREMES;
    if (distribution == DRAW_NON_FINITE ||
        (distribution == DRAW_FEW && !session_few_applies(session)))
        return false;
    return !(whole && large);
}

/* Along a dim that the first input has. */
int segments_choose(struct session *session, const struct shape *large, size_t segments)
{
    const struct problem *problem = session->problem;
    int found = -1;
    uint64_t ties = 0;
    for (size_t i = 0; i < problem->dim_count; i++)
        if ((session->slices >> i & 1) != 0 && (size_t)large->dims.number[i] >= segments &&
            tensor_has_dim(problem, &problem->inputs[0], (int)i) &&
            random_below(&session->random, ++ties) == 0)
            found = (int)i;
    return found;
}

void segments_list(struct session *session, struct view *view)
{
    view->segment_count = 0;
    view->segments[view->segment_count++].distribution = DRAW_NORMAL; /* others' inputs are its */
    for (int d = 0; d < DISTRIBUTIONS; d++)
        if (d != DRAW_NORMAL && is_mixed_in(session, (enum distribution)d))
            view->segments[view->segment_count++].distribution = (enum distribution)d;
}

static void draw_segment(struct session *session, struct view *view, size_t segment)
{
    const struct problem *problem = session->problem;
    struct set own = {.shape = view->slice, .distribution = view->segments[segment].distribution};
    set_draw(session, &own);
    for (size_t i = 0; i < problem->input_count; i++) {
        const struct tensor_spec *tensor = &problem->inputs[i];
        const struct placed *placed = &view->small.layout.inputs[i];
        size_t bytes = dtype_bytes(tensor->dtype);
        const struct slab slab = {problem, tensor, placed->extents, view->mixed,
                                  view->segment_count};
        if (view->part.inputs[i] == NULL)
            view->part.inputs[i] = (unsigned char *)mem_alloc(placed->bytes + 1);
        if (segment == 0 || tensor_has_dim(problem, tensor, view->mixed))
            slab_put(&slab, segment, bytes, own.inputs[i], view->part.inputs[i]);
    }
    if (segment == 0)
        view->part.seed = own.seed;
    set_free(&own);
}

/* The results of all segments at once; `part` is drawn. */
static int compute_mixed(struct session *session, struct view *view, struct results *results,
                         struct err *err)
{
    struct set *part = &view->part;
    const struct layout *layout = &part->shape->layout;
    void *exact[OUTPUTS_MAX];
    struct call call;
    struct err none = {0};
    set_place(session, part, &call);
    results_place(session, layout, results);
    for (size_t i = 0; i < session->problem->output_count; i++) {
        if (part->exact[i] == NULL)
            part->exact[i] = (double *)mem_array(layout->outputs[i].elements + 1, sizeof(double));
        exact[i] = part->exact[i];
    }
    if (reference_compute(session->reference, layout, &call, PRECISION_EXACT, exact, err) != 0 ||
        reference_compute(session->reference, layout, &call, PRECISION_SPEC, results->honest,
                          err) != 0)
        return -1;
    if (!problem_has_floats(session->problem) || session->problem->tolerance_fixed)
        return 0;
    results->has_lower = reference_compute(session->reference, layout, &call, PRECISION_LOWER,
                                           results->lower, &none) == 0;
    return results->has_lower || none.code == ERR_UNSUPPORTED
               ? 0
               : err_set(err, none.code, "%s", none.message);
}

static void derive_segment(struct session *session, struct view *view,
                           const struct results *results, size_t segment)
{
    const struct problem *problem = session->problem;
    struct set own = {.shape = view->slice, .distribution = view->segments[segment].distribution};
    struct results part = {.has_honest = true, .has_lower = results->has_lower};
    for (size_t i = 0; i < problem->output_count; i++) {
        const struct tensor_spec *tensor = &problem->outputs[i];
        const struct placed *placed = &view->small.layout.outputs[i];
        size_t bytes = dtype_bytes(tensor->dtype), count = view->slice->layout.outputs[i].elements;
        const struct slab slab = {problem, tensor, placed->extents, view->mixed,
                                  view->segment_count};
        own.exact[i] = (double *)mem_array(count + 1, sizeof(double));
        part.honest[i] = mem_alloc(count * bytes + 1);
        part.lower[i] = mem_alloc(count * bytes + 1);
        slab_get(&slab, segment, sizeof(double), view->part.exact[i], own.exact[i]);
        slab_get(&slab, segment, bytes, results->honest[i], part.honest[i]);
        if (results->has_lower)
            slab_get(&slab, segment, bytes, results->lower[i], part.lower[i]);
    }
    set_derive(session, &own, &part);
    view->segments[segment].unfit = own.unfit;
    memcpy(view->segments[segment].bounds, own.bounds, sizeof own.bounds);
    for (size_t i = 0; i < problem->output_count; i++) {
        mem_free(part.honest[i]);
        mem_free(part.lower[i]);
    }
    set_free(&own);
}

int segments_expect(struct session *session, struct view *view, struct err *err)
{
    struct results results = {0};
    for (size_t i = 0; i < view->segment_count && !view->part.drawn; i++)
        draw_segment(session, view, i);
    view->part.drawn = view->part.filled = true;
    int status = compute_mixed(session, view, &results, err);
    for (size_t i = 0; i < view->segment_count && status == 0; i++)
        derive_segment(session, view, &results, i);
    struct subject *subject = reference_subject(session->reference);
    if (subject != NULL && session->drawn_ahead == 0)
        subject->ops->pause(subject);
    view->part.expected = status == 0 || err->code == ERR_USAGE;
    view->part.unfit = status != 0;
    return view->part.expected ? 0 : -1;
}
