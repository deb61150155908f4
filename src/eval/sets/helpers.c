#include "eval/sets/helpers.h"
#include "eval/sets/wide.h"

#include "base/clock.h"
#include "base/mem.h"
#include "eval/data/timeline.h"

#include <string.h>

enum { HELPERS_MOST = 4, LEAST_CORES = 8, COPIES = 6 };
static const double slow_ns = 0.5e9; /* one set's exact results by the one process */

struct helper {
    struct region region;
    struct reference *reference;
    struct set *set; /* that it works on; NULL: none, or it failed */
    bool sent;       /* it was asked for what is taken next; else the kernel in float64 is */
    void *honest[OUTPUTS_MAX];
};

struct helpers {
    size_t count;
    struct helper each[HELPERS_MOST];
};

/* --- opening and closing --- */

/* What a process holds in the worst case that is usual: inputs, and float64 of everything and of
 * what lies between. */
static size_t affordable(const struct session *session)
{
    const struct shape *shape = &session->shapes[0];
    double each = (double)shape->elements * sizeof(double) * COPIES;
    double share = (double)mem_available() / 4.0;
    size_t count = share / each < HELPERS_MOST ? (size_t)(share / each) : HELPERS_MOST;
    return session->lane->core_count >= LEAST_CORES ? count : 0;
}

static void open_helpers(struct session *session)
{
    struct helpers *helpers = MEM_NEW(struct helpers);
    const struct layout *layout = &session->shapes[0].layout;
    size_t most = affordable(session);
    struct err ignored;
    session->helpers = helpers;
    while (helpers->count < most) {
        struct helper *helper = &helpers->each[helpers->count];
        if (region_open(layout->inputs_bytes, PAGE_BYTES, &helper->region, &ignored) != 0)
            return;
        helper->reference =
            reference_again(session->reference, &helper->region, session->lane->core_count / most);
        if (helper->reference == NULL) {
            region_close(&helper->region);
            return;
        }
        helpers->count++;
    }
}

void helpers_close(struct session *session)
{
    struct helpers *helpers = session->helpers;
    for (size_t i = 0; helpers != NULL && i < helpers->count; i++) {
        struct helper *helper = &helpers->each[i];
        reference_close(helper->reference);
        region_close(&helper->region);
        for (size_t k = 0; k < OUTPUTS_MAX; k++)
            mem_free(helper->honest[k]);
    }
    mem_free(helpers);
    session->helpers = NULL;
}

/* --- one round: a set for each helper --- */

static void send(struct session *session, struct helper *helper, enum reference_precision precision)
{
    const struct layout *layout = &helper->set->shape->layout;
    struct call call;
    struct err ignored;
    call_make(layout, 0, 0, &call);
    if (precision == PRECISION_EXACT)
        for (size_t i = 0; i < session->problem->input_count; i++)
            parallel_copy(helper->region.inputs + layout->inputs[i].offset, helper->set->inputs[i],
                          layout->inputs[i].bytes);
    helper->sent = precision == PRECISION_SPEC || !wide_believed(session);
    if (helper->sent && reference_send(helper->reference, layout, &call, precision, &ignored) != 0)
        helper->set = NULL;
}

static void take_exact(struct session *session, struct helper *helper)
{
    const struct layout *layout = &helper->set->shape->layout;
    void *exact[OUTPUTS_MAX];
    struct err ignored;
    for (size_t i = 0; i < session->problem->output_count; i++) {
        if (helper->set->exact[i] == NULL)
            helper->set->exact[i] =
                (double *)parallel_alloc((layout->outputs[i].elements + 1) * sizeof(double));
        exact[i] = helper->set->exact[i];
    }
    bool taken = helper->sent ? reference_take(helper->reference, layout, exact, &ignored) == 0
                              : wide_compute(session, helper->set, PRECISION_EXACT, exact);
    if (!taken)
        helper->set = NULL;
}

static void take_honest(struct session *session, struct helper *helper)
{
    const struct layout *layout = &helper->set->shape->layout;
    struct err ignored;
    for (size_t i = 0; i < session->problem->output_count; i++)
        if (helper->honest[i] == NULL)
            helper->honest[i] = parallel_alloc(layout->outputs[i].bytes + 1);
    if (reference_take(helper->reference, layout, helper->honest, &ignored) != 0)
        helper->set = NULL;
}

/* The lower precision's results are looked at and let go, one set after the other. */
static void take_lower(struct session *session, struct helper *helper)
{
    const struct layout *layout = &helper->set->shape->layout;
    struct results results = {.has_lower = true};
    struct err ignored;
    for (size_t i = 0; i < session->problem->output_count; i++) {
        results.honest[i] = helper->honest[i];
        results.lower[i] = session_scratch(session, i, layout->outputs[i].bytes);
    }
    bool taken = helper->sent
                     ? reference_take(helper->reference, layout, results.lower, &ignored) == 0
                     : wide_compute(session, helper->set, PRECISION_LOWER, results.lower);
    if (!taken)
        helper->set = NULL;
    else
        set_derive(session, helper->set, &results);
}

static void rest(struct helpers *helpers)
{
    for (size_t i = 0; i < helpers->count; i++) {
        struct subject *subject = reference_subject(helpers->each[i].reference);
        subject->ops->pause(subject); /* nothing of ours runs beside what is timed */
    }
}

static void send_exact(struct session *session, struct helper *helper)
{
    send(session, helper, PRECISION_EXACT);
}

static void send_spec(struct session *session, struct helper *helper)
{
    send(session, helper, PRECISION_SPEC);
}

static void send_lower(struct session *session, struct helper *helper)
{
    send(session, helper, PRECISION_LOWER);
}

static void end_known(struct session *session, struct helper *helper)
{
    if (!set_bounds_known(session, helper->set))
        return;
    set_known(session, helper->set);
    helper->set = NULL;
}

/* No two sets of one distribution, so that each has its bounds known or derived here. All are sent
 * before the first is waited for. */
static void run_round(struct session *session)
{
    static void (*const steps[])(struct session * session, struct helper * helper) = {
        send_exact, take_exact, end_known, send_spec, take_honest, send_lower, take_lower};
    struct helpers *helpers = session->helpers;
    for (size_t step = 0; step < sizeof steps / sizeof steps[0]; step++)
        for (size_t i = 0; i < helpers->count; i++)
            if (helpers->each[i].set != NULL)
                steps[step](session, &helpers->each[i]);
    rest(helpers);
}

/* --- which sets --- */

static size_t give_sets(struct session *session)
{
    struct helpers *helpers = session->helpers;
    unsigned given = 0;
    size_t count = 0;
    for (size_t i = 0; i < helpers->count; i++)
        helpers->each[i].set = NULL;
    for (size_t i = 0; i < session->pool_count && count < helpers->count; i++) {
        struct set *set = &session->pool[i];
        if (set->expected || (given >> set->distribution & 1) != 0)
            continue;
        if (!set->drawn)
            set_draw(session, set);
        set->unfit = false;
        given |= 1U << set->distribution;
        helpers->each[count++].set = set;
    }
    return count;
}

/* What is on most cores by itself, as a matrix product is, is slower beside others. */
static bool worth_it(const struct session *session)
{
    size_t lacking = 0;
    if (session->sliced || session->exact_cores > (double)session->lane->core_count / 2.0)
        return false;
    for (size_t i = 0; i < session->pool_count; i++)
        lacking += !session->pool[i].expected;
    bool floating = false;
    for (size_t i = 0; i < session->problem->output_count; i++)
        floating = floating || dtype_is_float(session->problem->outputs[i].dtype);
    return lacking >= 2 && session->exact_ns > slow_ns && floating &&
           !session->problem->tolerance_fixed && session->backend->device &&
           session->problem->reference_kind == REFERENCE_PYTHON;
}

void session_expect_pool(struct session *session)
{
    uint64_t begun = timeline_begin();
    if (!worth_it(session) || session->problem->normwise) /* whose bounds need one more result */
        return;
    uint64_t started = clock_now_ns();
    double spent_ms = session->costs.spent_ms;
    session_open_wide(session);
    if (session->helpers == NULL)
        open_helpers(session);
    /* Each round ends some, or there is nothing to be had from it. */
    for (size_t rounds = 0; rounds < POOL_MOST && session->helpers->count > 1; rounds++) {
        if (atomic_load(&session->cancelled))
            break;
        size_t given = give_sets(session), left = 0;
        if (given < 2)
            break;
        run_round(session);
        for (size_t i = 0; i < session->pool_count; i++)
            left += !session->pool[i].expected;
        if (left == 0)
            break;
    }
    double ms = (double)(clock_now_ns() - started) / 1e6;
    session->costs.spent_ms = spent_ms + ms;
    if (session_is_large(session) && wide_believed(session)) /* their bounds are known now */
        session->costs.once_ms += ms;
    timeline_end("set.pool", begun);
}
