/* eval/sets/memory: how much of the machine checking takes. Sets of the timed shape are kept whole,
 * five and more of them, and the definition computes each in float64: some sixteen times inputs and
 * outputs. Where that is more than there is, each is a view (view.h): its inputs are drawn for one
 * call at a time, and the definition computes samples of it. That takes three times inputs and
 * outputs, a call of the definition in its own types among it, besides the processes themselves. */
#include "eval/sets/memory.h"
#include "base/quota.h"
#include "eval/problem/torch.h"
#include "eval/sets/session.h"
#include "eval/sets/view.h"

#include <string.h>

enum { WIDE = 8, CHILD_COPIES = 3, CASES = 11, SLICED_TIMES = 3, INITIAL_COPIES = 6 };
static const double most_of_machine = 0.8;

static double machine(const struct session *session)
{
    uint64_t bytes = session->options.machine_bytes;
    return (double)(bytes > 0 ? bytes : quota_memory());
}

/* What the child holds at once when it computes in float64: inputs and outputs twice over, and as
 * much again for what lies between; and what the evaluator keeps of the smallest pool. */
static double whole_bytes(const struct session *session)
{
    const struct problem *problem = session->problem;
    const struct layout *layout = &session->shapes[0].layout;
    double wide = 0.0, kept = 0.0;
    /* Without a dim that varies, every case is as large as the problem. */
    double sets = problem->dim_count > 0 ? POOL_LEAST : POOL_LEAST + CASES;
    for (size_t i = 0; i < problem->input_count; i++) {
        wide += (double)layout->inputs[i].elements * WIDE;
        kept += (double)layout->inputs[i].bytes;
    }
    for (size_t i = 0; i < problem->output_count; i++) {
        wide += (double)layout->outputs[i].elements * WIDE;
        kept += (double)layout->outputs[i].elements * WIDE + (double)layout->outputs[i].bytes;
    }
    return wide * CHILD_COPIES + kept * sets;
}

/* A module's parameters are in its own memory, too: as they are, as they were, and as float64. */
static double sliced_bytes(const struct session *session)
{
    const struct problem *problem = session->problem;
    const struct layout *layout = &session->shapes[0].layout;
    double bytes = 0.0, initial = 0.0;
    for (size_t i = 0; i < problem->input_count; i++) {
        bytes += (double)layout->inputs[i].bytes;
        if (problem->torch != NULL && problem->torch->inputs[i].initial)
            initial += (double)layout->inputs[i].bytes;
    }
    for (size_t i = 0; i < problem->output_count; i++)
        bytes += (double)layout->outputs[i].bytes;
    return bytes * SLICED_TIMES + initial * INITIAL_COPIES;
}

/* With a size that would do: what grows with the first dimension is nearly all of it. A machine
 * that swaps, or kills, would be the worse answer. */
static int too_large(const struct session *session, double needed, struct err *err)
{
    const struct problem *problem = session->problem;
    const struct names *main = &problem->shapes[0];
    double there = machine(session);
    int64_t fits = 1, rows = main->count > 0 ? main->number[0] : 0;
    while ((double)(fits * 2) * needed <= (double)rows * there / 16)
        fits *= 2;
    if (rows <= fits) /* no dim is known to vary */
        return err_set(
            err, ERR_LIMIT,
            "checking it takes about %.0f GiB of memory, this machine has %.0f: make the "
            "file's own numbers smaller",
            needed / 0x1p30, there / 0x1p30);
    if (problem->torch == NULL)
        return err_set(err, ERR_LIMIT,
                       "checking it takes about %.0f GiB of memory at %s=%lld, this machine has "
                       "%.0f: make the first shape smaller",
                       needed / 0x1p30, main->name[0], (long long)rows, there / 0x1p30);
    const char *slash = strrchr(problem->reference_file, '/'); /* without a size behind it */
    return err_set(err, ERR_LIMIT,
                   "checking it takes about %.0f GiB of memory at %s=%lld, this machine has %.0f: "
                   "name a smaller size, %s@%s=%lld",
                   needed / 0x1p30, main->name[0], (long long)rows, there / 0x1p30,
                   slash ? slash + 1 : problem->reference_file, main->name[0], (long long)fits);
}

/* A spec's problem that cannot be sliced is tried whole, as long as its tensors fit (region.c). */
int session_plan_memory(struct session *session, struct err *err)
{
    double there = machine(session), whole = whole_bytes(session);
    session->slots = SLOTS;
    if (there <= 0.0 || whole <= there * most_of_machine)
        return 0;
    if (problem_may_be_sliced(session->problem) == 0)
        return session->problem->torch != NULL ? too_large(session, whole, err) : 0;
    if (sliced_bytes(session) > there * most_of_machine)
        return too_large(session, sliced_bytes(session), err);
    session->sliced = session->scarce = true;
    session->slots = 1;
    session->wide_over = true; /* its kernel computes whole sets */
    return 0;
}

/* --- views in the place of whole sets --- */

static bool open_view(struct session *session, struct set *set, const struct set *like)
{
    return like != NULL && like->shape == set->shape ? view_open_like(session, set, like)
                                                     : view_open(session, set, VIEW_SAMPLED, false);
}

/* There is room for whole sets where only the time was short. A spec's is tried whole, as long as
 * its tensors have half of the machine, as region.c asks. */
static int give_up(struct session *session, struct err *err)
{
    const struct layout *layout = &session->shapes[0].layout;
    double region = SLOTS * (double)layout->inputs_bytes + (double)layout->outputs_bytes;
    if (session->scarce && (session->problem->torch != NULL || region > machine(session) / 2.0))
        return too_large(session, whole_bytes(session), err);
    for (size_t i = 0; i < session->pool_count; i++)
        view_close(&session->pool[i]);
    for (size_t i = 0; i < session->case_count; i++)
        view_close(&session->cases[i]);
    session->sliced = session->scarce = false;
    return 0;
}

/* What a null solution gives on one set is set against another, so that small problems of the pool
 * are of one shape. */
int session_open_slices(struct session *session, struct err *err)
{
    bool open = true;
    if (!session->sliced)
        return 0;
    session_find_slices(session);
    for (size_t i = 0; i < session->pool_count && open; i++)
        open = open_view(session, &session->pool[i], i > 0 ? &session->pool[0] : NULL);
    for (size_t i = 0; i < session->case_count && open; i++)
        if (shape_is_sliced(session, session->cases[i].shape))
            open = open_view(session, &session->cases[i], NULL);
    return open ? 0 : give_up(session, err);
}
