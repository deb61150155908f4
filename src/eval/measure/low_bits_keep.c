/* eval/measure/low_bits_keep: what calls have left that a win will be asked about. */
#include "base/mem.h"
#include "eval/measure/low_bits.h"
#include "eval/sets/session.h"
#include "eval/sets/view.h"

#include <string.h>

static bool is_asked(const struct bench *bench)
{
    bool candidate = bench->request != NULL && !bench->follows; /* which its rival does */
    return candidate && bench->request->effort != EFFORT_SEARCH &&
           session_low_bits_apply(bench->session);
}

static void *copy_of(const void *from, size_t bytes)
{
    void *copy = mem_alloc(bytes + 1);
    memcpy(copy, from, bytes);
    return copy;
}

static const struct set *keep_part(const struct session *session, const struct set *part,
                                   struct kept *kept)
{
    const struct layout *layout = &part->shape->layout;
    set_free(&kept->own);
    kept->own = *part;
    for (size_t i = 0; i < session->problem->input_count; i++)
        kept->own.inputs[i] = (unsigned char *)copy_of(part->inputs[i], layout->inputs[i].bytes);
    for (size_t i = 0; i < session->problem->output_count; i++)
        kept->own.exact[i] =
            (double *)copy_of(part->exact[i], layout->outputs[i].elements * sizeof(double));
    return &kept->own;
}

/* All of it, or what stands at the samples. */
static void keep_output(const struct bench *bench, const struct set *set, size_t output,
                        const void *got, void *to)
{
    const struct problem *problem = bench->session->problem;
    const struct placed *placed = &set_computed(set)->shape->layout.outputs[output];
    if (set->view == NULL)
        parallel_copy(to, got, placed->bytes);
    else
        maps_gather(problem, &problem->outputs[output], &set->view->maps, placed->extents,
                    dtype_bytes(problem->outputs[output].dtype), got, to);
}

/* One call in four of such a set, at random, after the first. */
void low_bits_keep(struct bench *bench, const struct set *set, const struct layout *layout)
{
    enum { ONE_IN = 4 };
    const struct session *session = bench->session;
    bool normal = set->distribution == DRAW_NORMAL;
    if (!is_asked(bench) || set < session->pool || set >= session->pool + session->pool_count ||
        (!normal && set->distribution != DRAW_UNIFORM))
        return;
    if (bench->low_bits == NULL)
        bench->low_bits = MEM_NEW(struct low_bits);
    struct kept *kept = &bench->low_bits->kept[normal ? 0 : 1];
    if (kept->set != NULL && random_below(&bench->session->random, ONE_IN) != 0)
        return;
    kept->set = set->view != NULL ? keep_part(session, &set->view->part, kept) : set;
    kept->seed = kept->set->seed;
    for (size_t i = 0; i < layout->output_count; i++) {
        size_t bytes = kept->set->shape->layout.outputs[i].bytes;
        if (session->problem->outputs[i].dtype != DTYPE_FLOAT32)
            continue;
        if (kept->outputs[i] == NULL)
            kept->outputs[i] = (float *)parallel_alloc(bytes + 1);
        keep_output(bench, set, i, bench->outputs + layout->outputs[i].offset, kept->outputs[i]);
    }
}

void low_bits_free(struct bench *bench)
{
    for (size_t k = 0; bench->low_bits != NULL && k < LOW_BITS_KEPT; k++) {
        set_free(&bench->low_bits->kept[k].own);
        for (size_t i = 0; i < OUTPUTS_MAX; i++)
            mem_free(bench->low_bits->kept[k].outputs[i]);
    }
    mem_free(bench->low_bits);
    bench->low_bits = NULL;
}
