/* eval/measure/low_bits_keep: what calls have left that a win will be asked about. */
#include "base/mem.h"
#include "eval/measure/low_bits.h"
#include "eval/sets/session.h"

static bool is_asked(const struct bench *bench)
{
    bool candidate = bench->request != NULL && !bench->follows; /* which its rival does */
    return candidate && bench->request->effort != EFFORT_SEARCH &&
           session_low_bits_apply(bench->session);
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
    kept->set = set;
    kept->seed = set->seed;
    for (size_t i = 0; i < layout->output_count; i++) {
        const struct placed *placed = &layout->outputs[i];
        if (session->problem->outputs[i].dtype != DTYPE_FLOAT32)
            continue;
        if (kept->outputs[i] == NULL)
            kept->outputs[i] = (float *)parallel_alloc(placed->bytes + 1);
        parallel_copy(kept->outputs[i], bench->outputs + placed->offset, placed->bytes);
    }
}

void low_bits_free(struct bench *bench)
{
    for (size_t k = 0; bench->low_bits != NULL && k < LOW_BITS_KEPT; k++)
        for (size_t i = 0; i < OUTPUTS_MAX; i++)
            mem_free(bench->low_bits->kept[k].outputs[i]);
    mem_free(bench->low_bits);
    bench->low_bits = NULL;
}
