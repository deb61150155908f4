/* eval/measure/fitness_null: null solutions against the sets of the main shape. */
#include "eval/measure/fitness_null.h"
#include "eval/reference/private.h"
#include "eval/sets/view.h"

#include <string.h>

enum { GLANCE = 1 << 14 };
static const double clear_ratio = 4.0; /* of an element's error to what is allowed */

static void fill(enum dtype dtype, size_t count, double number, void *out)
{
    size_t filled = dtype_bytes(dtype), bytes = count * filled;
    if (count > 0)
        dtype_store(dtype, out, 0, number);
    for (; filled < bytes; filled *= 2)
        memcpy((unsigned char *)out + filled, out,
               filled < bytes - filled ? filled : bytes - filled);
}

struct attempt { /* one output of one set, and where the null solution puts its answer */
    const struct session *session;
    const struct set *set;
    size_t index, output; /* of the set in the pool */
    const struct tensor_spec *tensor;
    size_t count, total; /* elements that it is asked for, and that the output has */
    void *out;
};

static bool all_zeros(struct attempt *attempt)
{
    fill(attempt->tensor->dtype, attempt->count, 0.0, attempt->out);
    return true;
}

static bool all_ones(struct attempt *attempt)
{
    fill(attempt->tensor->dtype, attempt->count, 1.0, attempt->out);
    return true;
}

static bool all_mean(struct attempt *attempt)
{
    double sum = 0.0;
    for (size_t i = 0; i < attempt->count; i++)
        sum += attempt->set->exact[attempt->output][i];
    fill(attempt->tensor->dtype, attempt->count, sum / (double)attempt->count, attempt->out);
    return attempt->total > 1; /* the mean of one element is right */
}

/* The first input of the same size, element for element; where that is the answer, as for a copy,
 * it is no null solution. */
static bool copy_of_input(struct attempt *attempt)
{
    const struct problem *problem = attempt->session->problem;
    for (size_t i = 0; i < problem->input_count; i++) {
        if (attempt->set->shape->layout.inputs[i].elements != attempt->total)
            continue;
        bool same = true;
        for (size_t k = 0; k < attempt->count; k++) {
            double number = dtype_load(problem->inputs[i].dtype, attempt->set->inputs[i], k);
            dtype_store(attempt->tensor->dtype, attempt->out, k, number);
            same = same && number == attempt->set->exact[attempt->output][k];
        }
        return !same;
    }
    return false;
}

static bool stale_output(struct attempt *attempt)
{
    const struct session *session = attempt->session;
    const struct set *other = set_computed(&session->pool[(attempt->index + 1) % FITNESS_SETS]);
    if (!other->expected)
        return false;
    dtype_from_double(attempt->tensor->dtype, other->exact[attempt->output], attempt->count,
                      attempt->out);
    return true;
}

static const struct {
    const char *name;
    bool (*make)(struct attempt *attempt);
} null_solutions[] = {
    {"zeros", all_zeros},
    {"ones", all_ones},
    {"mean", all_mean},
    {"copy of an input", copy_of_input},
    {"stale output", stale_output},
};

size_t null_count(void)
{
    return sizeof null_solutions / sizeof null_solutions[0];
}

/* What is wrong in its first rows by far is wrong; only what is not is looked at whole. A bound
 * that asks for the tensor's own scale is not known from a part of it. */
static bool refused_at_a_glance(struct attempt *attempt, size_t which)
{
    const struct placed *placed = &attempt->set->shape->layout.outputs[attempt->output];
    const struct bound *bound = &attempt->set->bounds[attempt->output];
    struct mismatch mismatch;
    int64_t extents[RANK_MAX];
    if (attempt->tensor->rank < 2 || bound->normwise || placed->elements <= GLANCE)
        return false;
    size_t row = placed->elements / (size_t)placed->extents[0];
    memcpy(extents, placed->extents, sizeof extents);
    extents[0] = row < GLANCE ? (int64_t)(GLANCE / row) : 1;
    attempt->count = (size_t)extents[0] * row;
    bool made = attempt->count < attempt->total && null_solutions[which].make(attempt);
    if (made)
        check_compare(attempt->tensor, extents, attempt->count, bound,
                      attempt->set->exact[attempt->output], attempt->out, &mismatch);
    attempt->count = attempt->total;
    return made && mismatch.bad_count > 0 && mismatch.worst_ratio >= clear_ratio;
}

void null_try(struct session *session, size_t which, size_t output, struct null_result *result)
{
    *result = (struct null_result){.name = null_solutions[which].name};
    for (size_t i = 0; i < session->pool_count && result->tried < FITNESS_SETS; i++) {
        const struct set *set = set_computed(&session->pool[i]);
        const struct placed *placed = &set->shape->layout.outputs[output];
        struct attempt attempt = {.session = session,
                                  .set = set,
                                  .index = i,
                                  .output = output,
                                  .tensor = &session->problem->outputs[output],
                                  .count = placed->elements,
                                  .total = placed->elements,
                                  .out = session_scratch(session, output, placed->bytes)};
        struct mismatch mismatch = {.passed = false};
        if (set->unfit || !set->expected)
            continue;
        if (!refused_at_a_glance(&attempt, which)) {
            if (!null_solutions[which].make(&attempt))
                continue;
            check_compare(attempt.tensor, placed->extents, placed->elements, &set->bounds[output],
                          set->exact[output], attempt.out, &mismatch);
        }
        result->tried++;
        result->refused += !mismatch.passed;
    }
}

bool null_refused(const struct null_result *result)
{
    return result->refused * 2 >= result->tried;
}

/* The error of a mean over all there is comes to nothing; a kernel has to be right on fewer, too.
 */
static void count_smaller(struct session *session, struct null_result *result)
{
    enum { MOST = 8 };
    struct err ignored;
    result->elsewhere = true;
    for (size_t i = 0, looked = 0; i < session->edge_case && looked < MOST; i++) {
        struct set *set = &session->cases[i];
        if (set->shape->elements >= session->shapes[0].elements || set->optional)
            continue;
        looked++;
        if (set_expect(session, set, &ignored) != 0 || set->unfit)
            continue;
        result->tried += set->lower != LOWER_UNKNOWN;
        result->refused += set->lower == LOWER_REFUSED;
    }
}

bool null_lower(struct session *session, struct null_result *result, const char **why)
{
    const struct problem *problem = session->problem;
    *result = (struct null_result){.name = "lower precision"};
    *why = NULL;
    if (!dtype_is_float(problem_precise(problem)->dtype) || problem->tolerance_fixed)
        return false; /* the user's own tolerance is the user's own decision */
    bool tf32 = problem->precision != NULL && strcmp(problem->precision, "tf32") == 0;
    if (reference_bits(problem, PRECISION_SPEC) >= 0 && !tf32) { /* tf32's bound sees bfloat16 */
        *why = "the spec allows it";
        return false;
    }
    for (size_t i = 0; i < FITNESS_SETS; i++) {
        const struct set *set = set_computed(&session->pool[i]);
        result->tried += set->lower != LOWER_UNKNOWN;
        result->refused += set->lower == LOWER_REFUSED;
    }
    if (result->tried > 0 && result->refused == 0)
        count_smaller(session, result);
    if (result->tried == 0)
        *why =
            problem->reference_kind == REFERENCE_C
                ? "not tried: the reference has one precision (a C file that writes REAL for its "
                  "floating type has two)"
                : "not tried: the reference has no results of it";
    return result->tried > 0;
}
