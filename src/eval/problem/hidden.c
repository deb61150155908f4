/* Shapes that no spec lists: hidden ones, drawn, and those beyond the main one. */
#include "eval/problem/private.h"

#include "base/random.h"

#include <math.h>

/* A hidden shape must not cost more than this, whatever the spec's own sizes are: the reference
 * computes it in float64, one evaluation after another. */
static const double hidden_elements_most = 0x1p20;
static const double hidden_flops_most = 0x1p29;

struct bounds {
    int64_t low, high;
};

/* Without bounds of the spec's own: what its shapes have, and from 1. */
static struct bounds bounds_of(const struct problem *problem, size_t index)
{
    const struct dim_spec *dim = &problem->dims[index];
    struct bounds bounds = {dim->hidden_low, dim->hidden_high};
    if (bounds.low != 0 || bounds.high != 0)
        return bounds;
    bounds.low = 1;
    for (size_t i = 0; i < problem->shape_count; i++) {
        int64_t number = problem->shapes[i].number[index];
        bounds.low = number < bounds.low ? number : bounds.low;
        bounds.high = number > bounds.high ? number : bounds.high;
    }
    return bounds;
}

/* Half uniform, half by the number of digits, so that small sizes come too; odd three times in
 * four, where there is room: multiples of a tile are what is not looked for. */
static int64_t draw_dim(struct random *random, struct bounds bounds)
{
    uint64_t span = (uint64_t)(bounds.high - bounds.low) + 1;
    int64_t number = bounds.low + (int64_t)random_below(random, span);
    if (random_below(random, 2) == 0) {
        unsigned shift = (unsigned)random_below(random, 64 - (unsigned)__builtin_clzll(span));
        number = bounds.low + (number - bounds.low) / (INT64_C(1) << shift);
    }
    if (number % 2 == 0 && number < bounds.high && random_below(random, 2) == 0)
        number++;
    return number;
}

double problem_elements(const struct problem *problem, const struct names *dims)
{
    int64_t extents[RANK_MAX];
    size_t elements;
    double sum = 0.0;
    for (size_t i = 0; i < problem->input_count + problem->output_count; i++) {
        const struct tensor_spec *tensor = i < problem->input_count
                                               ? &problem->inputs[i]
                                               : &problem->outputs[i - problem->input_count];
        if (tensor_extents(tensor, dims, extents, &elements, NULL) == 0)
            sum += (double)elements;
    }
    return sum;
}

static bool is_affordable(const struct problem *problem, const struct names *dims)
{
    double flops, bytes;
    return problem_elements(problem, dims) <= hidden_elements_most &&
           problem_work(problem, dims, &flops, &bytes, NULL) == 0 && flops <= hidden_flops_most;
}

int problem_draw_dims(const struct problem *problem, uint64_t seed, struct names *dims,
                      struct err *err)
{
    enum { TRIES = 2000, TRIES_A_SIZE = 40 };
    struct bounds bounds[DIMS_MAX];
    struct random random;
    struct names smallest = {0};
    double smallest_elements = 0.0;
    random_init(&random, seed);
    for (size_t i = 0; i < problem->dim_count; i++)
        bounds[i] = bounds_of(problem, i);
    for (int try = 1; try <= TRIES; try++) {
        struct names given = {0}, drawn;
        for (size_t i = 0; i < problem->dim_count; i++)
            if (!problem->dims[i].derived &&
                names_set(&given, problem->dims[i].name, draw_dim(&random, bounds[i]), err) != 0)
                return -1;
        if (problem_dims(problem, &given, &drawn, NULL) == 0) {
            if (is_affordable(problem, &drawn)) {
                *dims = drawn;
                return 0;
            }
            double elements = problem_elements(problem, &drawn);
            if (smallest_elements == 0.0 || elements < smallest_elements) {
                smallest = drawn;
                smallest_elements = elements;
            }
        }
        for (size_t i = 0; try % TRIES_A_SIZE == 0 && i < problem->dim_count; i++)
            if (try < TRIES / 2) /* smaller, as long as that may be what is missing */
                bounds[i].high -= (bounds[i].high - bounds[i].low) / 4;
            else
                bounds[i] = bounds_of(problem, i);
    }
    if (smallest_elements == 0.0)
        return err_set(err, ERR_USAGE,
                       "%s:1: expected dims that a hidden shape can be drawn from; `where` and the "
                       "shapes leave none in %d tries",
                       problem->file, TRIES);
    *dims = smallest;
    return 0;
}

void problem_fixed(const struct problem *problem, struct names *fixed)
{
    *fixed = (struct names){0};
    for (size_t i = 0; i < problem->dim_count; i++) {
        const struct dim_spec *dim = &problem->dims[i];
        int64_t number = dim->hidden_low;
        bool same = !dim->derived && number != 0 && dim->hidden_high == number;
        for (size_t k = 0; k < problem->shape_count; k++)
            same = same && problem->shapes[k].number[i] == number;
        if (same)
            (void)!names_set(fixed, dim->name, number, NULL);
    }
}

/* --- beyond the main shape --- */

/* What is smaller is no size but a kind: heads, a window, a stride. */
enum { SIZE_LEAST = 16, SMALL = 24 };

/* Where a spec's own range leads beyond the main shape, it says how far; one that ends before was
 * made for its cost. */
int64_t problem_beyond_most(const struct problem *problem, size_t index)
{
    const struct dim_spec *dim = &problem->dims[index];
    int64_t main_number = problem->shapes[0].number[index];
    bool ranged = dim->hidden_low != 0 || dim->hidden_high != 0;
    if (dim->derived || (ranged && dim->hidden_low == dim->hidden_high))
        return 0;
    if (ranged && dim->hidden_high > main_number)
        return dim->hidden_high;
    return main_number >= SIZE_LEAST ? INT32_MAX : 0;
}

uint64_t problem_sizes_beyond(const struct problem *problem)
{
    uint64_t dims = 0;
    for (size_t i = 0; i < problem->dim_count; i++) {
        int64_t largest = 0;
        for (size_t k = 0; k < problem->shape_count; k++)
            largest =
                problem->shapes[k].number[i] > largest ? problem->shapes[k].number[i] : largest;
        if (problem_beyond_most(problem, i) > largest)
            dims |= UINT64_C(1) << i;
    }
    return dims;
}

static int64_t beyond(const struct problem *problem, size_t index, struct random *random)
{
    int64_t largest = 0, most = problem_beyond_most(problem, index);
    for (size_t k = 0; k < problem->shape_count; k++)
        if (problem->shapes[k].number[index] > largest)
            largest = problem->shapes[k].number[index];
    int64_t room = most - largest, step = largest / 32 + 8;
    return largest + 1 + (int64_t)random_below(random, (uint64_t)(step < room ? step : room));
}

/* One that is small where it can be: what goes beyond must be affordable. */
static int64_t small(const struct problem *problem, size_t index, struct random *random)
{
    const struct dim_spec *dim = &problem->dims[index];
    int64_t main_number = problem->shapes[0].number[index];
    int64_t number = SMALL + (int64_t)random_below(random, SMALL);
    if (main_number < SIZE_LEAST || number > main_number)
        return main_number;
    return number > dim->hidden_low ? number : dim->hidden_low;
}

/* It is drawn once a session, and so may cost more than a hidden one where the main one does. */
static bool is_beyond(const struct problem *problem, const struct names *given, struct names *dims)
{
    static const double elements_most = 0x1p22, flops_most = 0x1p31;
    const struct names *main_dims = &problem->shapes[0];
    double flops, bytes, main_flops, own = problem_elements(problem, main_dims) * 1.5;
    if (problem_dims(problem, given, dims, NULL) != 0)
        return false;
    if (is_affordable(problem, dims))
        return true;
    return problem_work(problem, dims, &flops, &bytes, NULL) == 0 &&
           problem_work(problem, main_dims, &main_flops, &bytes, NULL) == 0 &&
           problem_elements(problem, dims) <= fmin(own, elements_most) &&
           flops <= fmin(main_flops * 1.5, flops_most);
}

bool problem_draw_beyond(const struct problem *problem, uint64_t seed, uint64_t *wanted,
                         struct names *dims)
{
    struct random random;
    struct names given = {0};
    uint64_t reached = 0;
    size_t place[DIMS_MAX] = {0};
    random_init(&random, seed);
    for (size_t i = 0; i < problem->dim_count; i++) {
        if (problem->dims[i].derived)
            continue;
        place[i] = given.count;
        if (names_set(&given, problem->dims[i].name, small(problem, i, &random), NULL) != 0)
            return false;
    }
    for (size_t i = 0; i < problem->dim_count; i++) {
        if ((*wanted >> i & 1) == 0)
            continue;
        int64_t kept = given.number[place[i]];
        given.number[place[i]] = beyond(problem, i, &random);
        if (is_beyond(problem, &given, dims))
            reached |= UINT64_C(1) << i;
        else
            given.number[place[i]] = kept;
    }
    *wanted &= ~reached;
    return reached != 0 && is_beyond(problem, &given, dims);
}
