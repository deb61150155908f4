/* eval/sets/expect: what a set's outputs are, and how far from that is still right. */
#include "base/clock.h"
#include "base/mem.h"
#include "eval/data/timeline.h"
#include "eval/sets/non_finite.h"
#include "eval/sets/session.h"
#include "eval/sets/wide.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* From this size on the bounds of a distribution are derived once a session: over millions of
 * elements the largest error of an honest computation is the same for every drawing, well within
 * the bound's factor, and deriving it anew would cost more than all the rest of a set. */
static const size_t large_elements = (size_t)1 << 18;

static bool is_large(const struct session *session, const struct set *set)
{
    return set->shape == &session->shapes[0] && set->shape->elements >= large_elements &&
           set->distribution < DRAW_RANDOM_COUNT;
}

bool set_bounds_known(const struct session *session, const struct set *set)
{
    return is_large(session, set) && !session->problem->tolerance_fixed &&
           !session->problem->normwise && (session->known_bounds >> set->distribution & 1) != 0;
}

bool problem_has_floats(const struct problem *problem)
{
    bool floating = false;
    for (size_t i = 0; i < problem->output_count; i++)
        floating = floating || dtype_is_float(problem->outputs[i].dtype);
    return floating;
}

void results_place(struct session *session, const struct layout *layout, struct results *results)
{
    for (size_t i = 0; i < session->problem->output_count; i++) {
        results->honest[i] = session_scratch(session, 2 * i, layout->outputs[i].bytes);
        results->lower[i] = session_scratch(session, 2 * i + 1, layout->outputs[i].bytes);
    }
}

bool set_is_shared(const struct session *session, const struct set *set)
{
    return wide_believed(session) && set->shape == &session->shapes[0] &&
           session->problem->reference_kind == REFERENCE_PYTHON;
}

/* Nobody asks again for what a session knows from now on: a final measurement does not pay for it.
 */
static void spend_once(struct session *session, uint64_t since_ns)
{
    session->costs.once_ms += (double)(clock_now_ns() - since_ns) / 1e6;
}

/* By the kernel; false: not, or not any more. What was asked of the definition is taken either way.
 */
static bool compute_beside(struct session *session, struct set *set, const struct call *call,
                           void **exact, struct results *results, struct err *err)
{
    const struct layout *layout = &set->shape->layout;
    bool lower = problem_has_floats(session->problem) && !session->problem->tolerance_fixed;
    results_place(session, layout, results);
    if (reference_send(session->reference, layout, call, PRECISION_SPEC, err) != 0)
        return false;
    bool done = wide_compute(session, set, PRECISION_EXACT, exact);
    uint64_t begun = clock_now_ns();
    results->has_lower =
        done && lower && wide_compute(session, set, PRECISION_LOWER, results->lower);
    results->has_honest = reference_take(session->reference, layout, results->honest, err) == 0;
    if (is_large(session, set) && session_is_large(session))
        spend_once(session, begun);
    return done && results->has_honest;
}

/* CPU time of the definition's process so far; -1: not known. */
static int64_t cpu_ns(const struct session *session)
{
    const struct subject *subject = reference_subject(session->reference);
    return subject != NULL && subject->pid > 0 ? clock_cpu_ns(subject->pid) : -1;
}

static int compute_exact(struct session *session, struct set *set, struct call *call,
                         struct results *results, struct err *err)
{
    const struct layout *layout = &set->shape->layout;
    const struct problem *problem = session->problem;
    void *exact[OUTPUTS_MAX];
    uint64_t begun = timeline_begin(), started = clock_now_ns();
    int64_t spent = cpu_ns(session);
    set_place(session, set, call);
    for (size_t i = 0; i < problem->output_count; i++) {
        if (set->exact[i] == NULL)
            set->exact[i] =
                (double *)parallel_alloc((layout->outputs[i].elements + 1) * sizeof(double));
        exact[i] = set->exact[i];
    }
    struct err ignored = {0};
    bool beside = set_is_shared(session, set) && !set_bounds_known(session, set) &&
                  set->distribution != DRAW_FEW && /* which is asked another question in between */
                  !set_is_spoiled(set);            /* a kernel may lose a NaN */
    bool done = beside ? compute_beside(session, set, call, exact, results, &ignored)
                       : !set_is_spoiled(set) && wide_compute(session, set, PRECISION_EXACT, exact);
    int status = 0;
    if (!done)
        status = reference_compute(session->reference, layout, call, PRECISION_EXACT, exact, err);
    timeline_end("set.exact", begun);
    if (!done && set->shape == &session->shapes[0]) {
        session->exact_ns = (double)(clock_now_ns() - started);
        session->exact_cores = (double)(cpu_ns(session) - spent) / session->exact_ns;
    }
    return status;
}

/* What of them a believed kernel gives, while the definition computes the other one. */
static void share_others(struct session *session, const struct set *set, const struct call *call,
                         struct results *results)
{
    const struct layout *layout = &set->shape->layout;
    struct err ignored = {0};
    if (reference_send(session->reference, layout, call, PRECISION_SPEC, &ignored) != 0)
        return;
    results->has_lower = wide_compute(session, set, PRECISION_LOWER, results->lower);
    results->has_honest =
        reference_take(session->reference, layout, results->honest, &ignored) == 0;
}

static int compute_others(struct session *session, const struct set *set, const struct call *call,
                          struct results *results, struct err *err)
{
    const struct layout *layout = &set->shape->layout;
    results_place(session, layout, results);
    if (!results->has_honest && !results->has_lower && set_is_shared(session, set) &&
        problem_has_floats(session->problem) && !session->problem->tolerance_fixed)
        share_others(session, set, call, results);
    if (!results->has_honest && reference_compute(session->reference, layout, call, PRECISION_SPEC,
                                                  results->honest, err) != 0)
        return -1;
    if (results->has_lower || !problem_has_floats(session->problem) ||
        session->problem->tolerance_fixed)
        return 0;
    struct err none = {0};
    if (wide_compute(session, set, PRECISION_LOWER, results->lower) ||
        reference_compute(session->reference, layout, call, PRECISION_LOWER, results->lower,
                          &none) == 0)
        results->has_lower = true;
    else if (none.code != ERR_UNSUPPORTED)
        return err_set(err, none.code, "%s", none.message);
    return 0;
}

struct fitting {
    const struct tensor_spec *output;
    const double *exact;
    const void *honest;
    bool unfit[PARALLEL_PARTS];
    size_t finite[PARALLEL_PARTS];
};

static void fit_part(void *context, size_t part, size_t from, size_t to)
{
    enum { CHUNK = 1024 };
    struct fitting *fitting = (struct fitting *)context;
    enum dtype dtype = fitting->output->dtype;
    const unsigned char *honest = (const unsigned char *)fitting->honest;
    double most = dtype_is_float(dtype) ? dtype_max(dtype) * 0.999 : INFINITY;
    double numbers[CHUNK];
    size_t finite = 0, unfit = 0;
    for (size_t at = from; at < to && unfit == 0; at += CHUNK) {
        size_t length = to - at < CHUNK ? to - at : CHUNK;
        dtype_to_double(dtype, honest + at * dtype_bytes(dtype), length, numbers);
        for (size_t i = 0; i < length; i++) {
            bool in_range = fabs(fitting->exact[at + i]) <= most;
            finite += in_range;
            unfit += in_range && !isfinite(numbers[i]);
        }
    }
    fitting->unfit[part] = unfit > 0;
    fitting->finite[part] = finite;
}

/* Inputs on which the definition in the spec's own precision leaves its range, or that leave
 * nothing finite to compare, say nothing about a kernel. */
static bool is_fit(const struct tensor_spec *output, size_t count, const double *exact,
                   const void *honest)
{
    struct fitting fitting = {.output = output, .exact = exact, .honest = honest};
    size_t parts = parallel_for(count, 1, count, fit_part, &fitting), finite = 0;
    for (size_t i = 0; i < parts; i++) {
        if (fitting.unfit[i])
            return false;
        finite += fitting.finite[i];
    }
    return finite > 0;
}

/* Numbers that all lie close together make terms that are nearly equal. */
static bool all_narrow(const struct problem *problem)
{
    bool narrow = false;
    for (size_t i = 0; i < problem->input_count; i++) {
        const struct tensor_spec *input = &problem->inputs[i];
        double size = fmax(fabs(input->low), fabs(input->high));
        if (!dtype_is_float(input->dtype))
            continue;
        narrow = input->low <= input->high && input->high - input->low < size / 64.0;
        if (!narrow)
            return false;
    }
    return narrow;
}

/* Huge numbers lie at the ends of their range then: all alike but for their signs. */
static bool has_range(const struct problem *problem)
{
    bool found = false;
    for (size_t i = 0; i < problem->input_count; i++)
        found = found || problem->inputs[i].low < problem->inputs[i].high;
    return found;
}

/* The bound takes rounding errors for independent, so that they grow with the square root of a
 * sum's length. Where many terms are equal they are not. Such inputs are there to find other faults
 * than precision; and so are a file's own, of which nothing is known. Of heavy-tailed numbers
 * one may outweigh all others, unless a sum's terms have either sign, as an additive one's. */
static struct sum sum_of(const struct session *session, const struct set *set)
{
    const struct problem *problem = session->problem;
    struct sum sum = {.terms = set->shape->reduction,
                      .cut = session->backend->cuts_sums,
                      .outweighed =
                          (set->distribution == DRAW_HEAVY || set->distribution == DRAW_WIDE) &&
                          session->additive != 1,
                      .products = set->shape->products};
    sum.alike = distribution_is_alike(set->distribution) || all_narrow(problem) ||
                (set->distribution == DRAW_GIVEN && problem->torch != NULL) ||
                (set->distribution == DRAW_HUGE && has_range(problem));
    if (set->distribution == DRAW_FEW && session->additive == 1)
        sum = (struct sum){.terms = problem->strict ? FEW_TERMS_STRICT : FEW_TERMS};
    return sum;
}

/* A problem's fitness asks for it, and the results are gone with the next set. */
static void judge_lower(const struct session *session, struct set *set,
                        const struct results *results)
{
    set->lower = LOWER_PASSED;
    for (size_t i = 0; i < session->problem->output_count && set->lower == LOWER_PASSED; i++) {
        const struct placed *placed = &set->shape->layout.outputs[i];
        struct mismatch mismatch;
        check_compare(&session->problem->outputs[i], placed->extents, placed->elements,
                      &set->bounds[i], set->exact[i], results->lower[i], &mismatch);
        set->lower = mismatch.passed ? LOWER_PASSED : LOWER_REFUSED;
    }
}

static bool is_listed(const struct session *session, const struct shape *shape)
{
    return shape >= session->shapes && shape < session->shapes + session->shape_count;
}

/* A tolerance of which the definition itself needs more than a quarter in the spec's own precision
 * is no question on these inputs: another honest kernel, which sums in another order, errs as much.
 */
static bool stands_beside(const struct tensor_spec *output, const struct placed *placed,
                          const double *exact, const void *honest, struct bound *bound)
{
    static const double most = 0.25;
    struct mismatch mismatch;
    check_compare(output, placed->extents, placed->elements, bound, exact, honest, &mismatch);
    bound->honest = mismatch_ratio(&mismatch);
    return !mismatch.passed || bound->honest > most;
}

void set_derive(struct session *session, struct set *set, const struct results *results)
{
    set->expected = true;
    const struct problem *problem = session->problem;
    const struct sum sum = sum_of(session, set);
    for (size_t i = 0; i < problem->output_count; i++) {
        const struct tensor_spec *output = &problem->outputs[i];
        const struct placed *placed = &set->shape->layout.outputs[i];
        bool fit = set_is_spoiled(set) ||
                   is_fit(output, placed->elements, set->exact[i], results->honest[i]);
        if (!fit) {
            set->unfit = true;
            return;
        }
        bound_derive(problem, output, placed->elements, tensor_row(output, placed), &sum,
                     set->exact[i], results->honest[i],
                     results->has_lower ? results->lower[i] : NULL, &set->bounds[i]);
        if (set->bounds[i].fixed &&
            stands_beside(output, placed, set->exact[i], results->honest[i], &set->bounds[i])) {
            set->unfit = set->beside = true;
            if (is_listed(session, set->shape)) /* the spec has no tolerance for larger ones */
                session->beside |= 1U << set->distribution;
        }
    }
    bool asked = set->shape == &session->shapes[0] || !is_large(session, set);
    if (results->has_lower && asked && session->refreshed == 0)
        judge_lower(session, set, results);
    if (!is_large(session, set))
        return;
    session->known_bounds |= 1U << set->distribution;
    memcpy(session->bounds[set->distribution], set->bounds, sizeof set->bounds);
}

void set_known(const struct session *session, struct set *set)
{
    memcpy(set->bounds, session->bounds[set->distribution], sizeof set->bounds);
    set->expected = true;
}

/* What a definition says of a shape that the spec does not promise is no error of the spec's. */
static int give_up(const struct session *session, struct set *set, struct err *err)
{
    if (!set->optional || err->code != ERR_USAGE || atomic_load(&session->cancelled))
        return -1;
    set->unfit = set->expected = true;
    return 0;
}

/* An algorithm that is stable by norms alone errs by the inputs' norms, wherever the output is
 * small: with heavy tails that is more than the output's own norm. */
static int widen_by_norms(struct session *session, struct set *set, struct err *err)
{
    enum { SAFETY = 8 };
    double errors[OUTPUTS_MAX];
    if (!session->problem->normwise || session->problem->tolerance_fixed || set->unfit)
        return 0;
    if (session_norm_errors(session, set, errors, err) != 0)
        return -1;
    for (size_t i = 0; i < session->problem->output_count; i++) {
        enum dtype dtype = session->problem->outputs[i].dtype;
        double epsilon = dtype == DTYPE_FLOAT64 ? DBL_EPSILON : (double)FLT_EPSILON;
        if (dtype_is_float(dtype))
            set->bounds[i].floor += SAFETY * epsilon * errors[i];
    }
    return 0;
}

static int expect_others(struct session *session, struct set *set, const struct call *call,
                         struct results *results, struct err *err)
{
    uint64_t begun = timeline_begin();
    int status = 0;
    if (set->distribution == DRAW_FEW)
        status = session_find_additive(session, set, call, err);
    if (status == 0)
        status = compute_others(session, set, call, results, err);
    if (status == 0 && set_is_spoiled(set))
        status = session_ask_non_finite(session, set, call, results, err);
    timeline_end("set.others", begun);
    begun = timeline_begin();
    if (status == 0)
        set_derive(session, set, results);
    timeline_end("set.derive", begun);
    return status == 0 ? widen_by_norms(session, set, err) : -1;
}

/* Until a kernel is believed the definition computes all. */
static struct set *known_set(struct session *session)
{
    for (size_t i = 0; i < session->pool_count; i++)
        if (session->pool[i].expected && !session->pool[i].unfit)
            return &session->pool[i];
    return NULL;
}

/* No more of it, yet: what else a set is asked for is computed when it is. */
static int know_exact(struct session *session, struct set *set, struct err *err)
{
    struct call call;
    struct results results = {0};
    struct err none = {0};
    if (set->expected)
        return 0;
    if (!set->drawn)
        set_draw(session, set);
    return compute_exact(session, set, &call, &results, &none) == 0
               ? 0
               : set_expect_whole(session, set, err);
}

/* One set of every shape but the main one, and one of the main shape that the definition has
 * computed: whole, and in every element. */
static bool agrees_on_all(struct session *session, const struct set *main_set, struct err *err)
{
    const struct shape *last = NULL;
    for (size_t i = 0; i < session->edge_case; i++) {
        struct set *set = &session->cases[i];
        if (set->shape == last)
            continue;
        last = set->shape;
        if (know_exact(session, set, err) != 0 || !wide_agrees(session, set, err))
            return false;
    }
    return wide_agrees(session, main_set, err);
}

/* True: it has been opened now, and sets of other shapes were computed. */
static bool open_wide(struct session *session, const struct set *known)
{
    struct err err = {0};
    uint64_t begun = timeline_begin();
    if (!wide_open(session))
        return false;
    if (agrees_on_all(session, known, &err))
        wide_believe(session);
    else
        wide_give_up(session, err.message);
    timeline_end("wide.open", begun);
    return true;
}

/* As soon as there is a set of the main shape to compare with: what else that one needs is asked of
 * the kernel already. */
static void open_wide_by(struct session *session, const struct set *set, struct call *call)
{
    if (set->shape == &session->shapes[0] && open_wide(session, set))
        set_place(session, set, call); /* others lay there */
}

void session_open_wide(struct session *session)
{
    const struct set *known = known_set(session);
    wide_begin(session);
    if (known != NULL)
        (void)open_wide(session, known);
}

static int expect(struct session *session, struct set *set, struct err *err)
{
    struct call call;
    struct results results = {0};
    session_know_integers(session, set);
    if (!set->drawn)
        set_draw(session, set);
    set->unfit = false;
    uint64_t begun = clock_now_ns();
    bool believed = wide_believed(session);
    int status = compute_exact(session, set, &call, &results, err);
    bool huge = status == 0 && set_is_huge_integers(session, set);
    bool whole = status == 0 && set_is_whole_integers(session, set);
    int takes = huge    ? session_takes_huge(session, set, &call, err)
                : whole ? session_takes_whole(session, set, &call, err)
                        : 1;
    status = takes < 0 ? -1 : status;
    if (status == 0)
        open_wide_by(session, set, &call);
    if (!believed && wide_believed(session)) /* the definition's exact results were these */
        spend_once(session, begun);
    begun = clock_now_ns();
    if (status == 0 && set_bounds_known(session, set))
        set_known(session, set);
    else if (status == 0)
        status = expect_others(session, set, &call, &results, err);
    if (is_large(session, set) && session_is_large(session))
        spend_once(session, begun);
    set->expected = status == 0;
    set->unfit = set->unfit || takes == 0;
    if (status != 0)
        status = give_up(session, set, err);
    struct subject *subject = reference_subject(session->reference);
    if (subject != NULL && session->drawn_ahead == 0)
        subject->ops->pause(subject); /* its threads may spin on for a while */
    return status;
}

int set_expect_whole(struct session *session, struct set *set, struct err *err)
{
    uint64_t started = clock_now_ns();
    double spent_ms = session->costs.spent_ms;
    if (set->expected)
        return 0;
    if (set->shape == &session->shapes[0])
        session_open_wide(session); /* first: it computes sets of other shapes in the same region */
    int status = expect(session, set, err);
    if (status == 0 && set->shape == &session->shapes[0])
        wide_begin(session);
    session->costs.spent_ms = spent_ms + (double)(clock_now_ns() - started) / 1e6;
    return status;
}
