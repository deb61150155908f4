/* eval/sets/set: the memory of a set, and its inputs where a call finds them. */
#include "base/mem.h"
#include "eval/sets/session.h"
#include "eval/sets/view.h"

void view_close(struct set *set)
{
    struct view *view = set->view;
    set->view = NULL;
    if (view == NULL)
        return;
    maps_free(&view->maps);
    set_free(&view->part);
    mem_free(view->slice);
    mem_free(view);
}

void set_redraw(struct set *set)
{
    set->filled = set->drawn = set->expected = set->unfit = set->beside = false;
    set->lower = LOWER_UNKNOWN;
    if (set->view != NULL)
        set_redraw(&set->view->part);
}

void set_free(struct set *set)
{
    view_close(set);
    for (size_t i = 0; i < INPUTS_MAX; i++) {
        mem_free(set->inputs[i]);
        set->inputs[i] = NULL;
    }
    for (size_t i = 0; i < OUTPUTS_MAX; i++) {
        mem_free(set->exact[i]);
        set->exact[i] = NULL;
    }
    set_redraw(set);
}

bool shape_is_sliced(const struct session *session, const struct shape *shape)
{
    static const size_t part = 8;
    return session->sliced && shape_bytes(shape) > shape_bytes(&session->shapes[0]) / part;
}

static void let_go(struct session *session, struct set *set)
{
    if (set->view == NULL || set->view->kind != VIEW_SAMPLED)
        return;
    for (size_t i = 0; i < session->problem->input_count; i++) {
        mem_free(set->inputs[i]);
        set->inputs[i] = NULL;
    }
    set->filled = set->drawn = false;
}

void session_let_go(struct session *session, const struct set *of)
{
    if (!session->scarce)
        return;
    if (of != NULL) {
        let_go(session, (struct set *)(uintptr_t)of);
        return;
    }
    for (size_t i = 0; i < session->pool_count; i++)
        let_go(session, &session->pool[i]);
    for (size_t i = 0; i < session->case_count; i++)
        let_go(session, &session->cases[i]);
    for (size_t i = 0; i < LARGE_SETS; i++)
        let_go(session, &session->large[i]);
}

void set_hand_over(const struct session *session, struct set *from, struct set *to)
{
    const struct layout *old = &from->shape->layout, *new = &to->shape->layout;
    for (size_t i = 0; i < session->problem->input_count; i++)
        if (to->inputs[i] == NULL && old->inputs[i].bytes == new->inputs[i].bytes) {
            to->inputs[i] = from->inputs[i];
            from->inputs[i] = NULL;
        }
    for (size_t i = 0; i < session->problem->output_count; i++)
        if (to->exact[i] == NULL && old->outputs[i].elements == new->outputs[i].elements) {
            to->exact[i] = from->exact[i];
            from->exact[i] = NULL;
        }
    set_free(from);
}

void set_put(const struct session *session, const struct set *set, size_t index, void *to)
{
    const struct problem *problem = session->problem;
    const struct placed *placed = &set->shape->layout.inputs[index];
    if (set->view == NULL || set->view->kind == VIEW_SAMPLED)
        parallel_copy(to, set->inputs[index], placed->bytes);
    else
        maps_gather(problem, &problem->inputs[index], &set->view->maps, placed->extents,
                    dtype_bytes(problem->inputs[index].dtype), set->view->part.inputs[index], to);
}
