/* Shapes of which every dim is at least as large as the main one's: what a kernel does where two
 * dims are large at once shows there alone. */
#include "eval/problem/private.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

/* Cheap enough whatever the main shape is. */
static const double small_elements = 0x1p20, small_flops = 0x1p28;

/* Where kernels change their ways: a number just over one of these is worth more than others. */
static const int64_t thresholds[] = {16,   32,   64,   128,   256,   512,   640,   1024,
                                     2048, 4096, 8192, 16384, 32768, 65536, 131072};

bool large_is_fixed(const struct dim_spec *dim)
{
    return dim->derived || (dim->hidden_high != 0 && dim->hidden_low == dim->hidden_high);
}

int64_t large_most(const struct problem *problem, size_t index, uint64_t batches)
{
    enum { BATCH_MORE = 8 };
    int64_t number = problem->shapes[0].number[index], most = problem_beyond_most(problem, index);
    if (!large_is_fixed(&problem->dims[index]) && most <= number && (batches >> index & 1) != 0)
        most = number + BATCH_MORE;
    return most > number ? most : number;
}

/* What follows from others is a dim as well: a larger stride makes an output smaller. */
static bool is_large(const struct problem *problem, uint64_t divisors, const struct names *dims)
{
    for (size_t i = 0; i < dims->count; i++)
        if ((divisors >> i & 1) == 0 && dims->number[i] < problem->shapes[0].number[i])
            return false;
    return true;
}

/* Not a multiple of 16, and odd where `step` is 1. */
static int64_t beside_multiples(int64_t number, int64_t step, int64_t most)
{
    if (step > 1)
        number = (number + step - 1) / step * step;
    else if (number % 2 == 0)
        number++;
    return number < most ? number : most;
}

/* Next to the main number, a little more each time it is asked. */
static int64_t just_beyond(struct random *random, int64_t number)
{
    int64_t room = number / 64 + 4;
    return number + 1 + (int64_t)random_below(random, (uint64_t)(room < 40 ? room : 40));
}

/* Just over the threshold that is `steps` above the number; the number itself: there is none. */
static int64_t over_threshold(struct random *random, int64_t number, size_t steps)
{
    enum { COUNT = sizeof thresholds / sizeof thresholds[0], JUST = 12 };
    size_t i = 0;
    while (i < COUNT && thresholds[i] <= number)
        i++;
    i += steps;
    return i < COUNT ? thresholds[i] + 1 + (int64_t)random_below(random, JUST) : number;
}

bool large_affordable(const struct problem *problem, const struct names *dims, double times)
{
    const struct names *main_dims = &problem->shapes[0];
    double flops, bytes, main_flops;
    if (problem_work(problem, dims, &flops, &bytes, NULL) != 0 ||
        problem_work(problem, main_dims, &main_flops, &bytes, NULL) != 0)
        return false;
    return problem_elements(problem, dims) <=
               fmax(times * problem_elements(problem, main_dims), small_elements) &&
           flops <= fmax(times * main_flops, small_flops);
}

bool large_make(const struct problem *problem, const int64_t *numbers, struct names *dims)
{
    struct names given = {0};
    for (size_t i = 0; i < problem->dim_count; i++)
        if (!problem->dims[i].derived &&
            names_set(&given, problem->dims[i].name, numbers[i], NULL) != 0)
            return false;
    return problem_dims(problem, &given, dims, NULL) == 0;
}

/* --- divisors --- */

/* The least that the spec takes where all others are the main shape's. */
static bool lower(const struct problem *problem, size_t index, struct names *dims)
{
    enum { TRIES = 64 };
    const struct dim_spec *dim = &problem->dims[index];
    int64_t numbers[DIMS_MAX], low = dim->hidden_low > 0 ? dim->hidden_low : 1;
    memcpy(numbers, problem->shapes[0].number, sizeof numbers);
    for (int64_t n = low; n < problem->shapes[0].number[index] && n < low + TRIES; n++) {
        numbers[index] = n;
        if (large_make(problem, numbers, dims))
            return true;
    }
    return false;
}

static bool shrinks(const struct problem *problem, const struct names *dims)
{
    for (size_t i = 0; i < problem->input_count + problem->output_count; i++) {
        const struct tensor_spec *tensor = i < problem->input_count
                                               ? &problem->inputs[i]
                                               : &problem->outputs[i - problem->input_count];
        int64_t extents[RANK_MAX];
        size_t elements, main_elements;
        if (tensor_extents(tensor, dims, extents, &elements, NULL) != 0 ||
            tensor_extents(tensor, &problem->shapes[0], extents, &main_elements, NULL) != 0 ||
            elements < main_elements)
            return true;
    }
    return false;
}

uint64_t problem_divisors(const struct problem *problem)
{
    uint64_t divisors = 0;
    struct names dims;
    for (size_t i = 0; i < problem->dim_count; i++)
        if (!large_is_fixed(&problem->dims[i]) && lower(problem, i, &dims) &&
            !shrinks(problem, &dims))
            divisors |= UINT64_C(1) << i;
    return divisors;
}

/* --- drawing --- */

struct drawing {
    const struct problem *problem;
    struct random random;
    uint64_t batches, divisors;
    double times;
    bool equal; /* all sizes by the same factor */
    int64_t step, numbers[DIMS_MAX];
    struct names *dims; /* of these numbers */
};

static bool try_number(struct drawing *drawing, size_t index, int64_t wanted)
{
    int64_t kept = drawing->numbers[index];
    int64_t most = large_most(drawing->problem, index, drawing->batches);
    struct names tried;
    if (most <= kept || wanted <= kept)
        return false;
    drawing->numbers[index] = beside_multiples(wanted, drawing->step, most);
    if (large_make(drawing->problem, drawing->numbers, &tried) &&
        is_large(drawing->problem, drawing->divisors, &tried) &&
        large_affordable(drawing->problem, &tried, drawing->times)) {
        *drawing->dims = tried;
        return true;
    }
    drawing->numbers[index] = kept;
    return false;
}

/* One dim after another, from any on, is taken over a threshold, as far as all of it is affordable;
 * then one is made long and the others stay short. */
static void stretch(struct drawing *drawing)
{
    enum { STEPS_MOST = 6 };
    const struct problem *problem = drawing->problem;
    struct random *random = &drawing->random;
    size_t count = problem->dim_count, first = (size_t)random_below(random, count);
    for (size_t k = 0; k < count; k++) {
        size_t i = (first + k) % count, steps = 0;
        if (random_below(random, 2) == 0)
            steps = (size_t)random_below(random, STEPS_MOST);
        while (!try_number(drawing, i, over_threshold(random, problem->shapes[0].number[i], steps)))
            if (steps-- == 0)
                break;
    }
    for (size_t k = 0; k < count; k++) {
        size_t i = (first + k) % count;
        int64_t quarter = drawing->numbers[i] / 4;
        if (try_number(drawing, i,
                       drawing->numbers[i] + quarter +
                           (int64_t)random_below(random, (uint64_t)quarter + 1)))
            return;
    }
}

static double elements_of(const struct tensor_spec *tensor, const struct names *dims)
{
    int64_t extents[RANK_MAX];
    size_t elements = 0;
    return tensor_extents(tensor, dims, extents, &elements, NULL) == 0 ? (double)elements : 0.0;
}

/* One of its dims after another, by a quarter, until the tensor has more elements than 16 bits
 * count. */
static void fill_tensor(struct drawing *drawing, const struct tensor_spec *tensor)
{
    enum { TRIES = 48 };
    static const double least = 0x1p16;
    const struct problem *problem = drawing->problem;
    for (int i = 0; i < TRIES && elements_of(tensor, drawing->dims) <= least; i++) {
        size_t index = (size_t)random_below(&drawing->random, problem->dim_count);
        struct names before = *drawing->dims;
        int64_t number = drawing->numbers[index];
        bool kind = number < KIND_MOST || problem->dims[index].derived;
        if (kind || !try_number(drawing, index, number + number / 4 + 1))
            continue;
        if (elements_of(tensor, drawing->dims) <= elements_of(tensor, &before)) {
            *drawing->dims = before;
            drawing->numbers[index] = number;
        }
    }
}

/* Dims that are all large need not make a large tensor: each that has several of them is one. */
static void fill(struct drawing *drawing)
{
    const struct problem *problem = drawing->problem;
    for (size_t i = 0; i < problem->output_count; i++)
        if (problem->outputs[i].rank > 1)
            fill_tensor(drawing, &problem->outputs[i]);
    for (size_t i = 0; i < problem->input_count; i++)
        if (problem->inputs[i].rank > 1)
            fill_tensor(drawing, &problem->inputs[i]);
}

/* The number of the largest that may grow is every such one's, where that is affordable. */
static void equalize(struct drawing *drawing)
{
    const struct problem *problem = drawing->problem;
    size_t count = problem->dim_count, first = (size_t)random_below(&drawing->random, count);
    int64_t largest = 0;
    for (size_t i = 0; i < count; i++)
        if (drawing->numbers[i] > problem->shapes[0].number[i] && drawing->numbers[i] > largest)
            largest = drawing->numbers[i];
    for (size_t k = 0; k < count; k++) {
        size_t i = (first + k) % count;
        if (drawing->numbers[i] >= KIND_MOST && !problem->dims[i].derived)
            (void)try_number(drawing, i, largest);
    }
}

/* All sizes by the same factor, the largest that is affordable: what is checked up to one shape is
 * checked up to every combination of numbers below it. */
static void spread(struct drawing *drawing)
{
    enum { TRIES = 24 };
    static const double factor_most = 2.0, step = 0.94;
    const struct problem *problem = drawing->problem;
    int64_t kept[DIMS_MAX];
    struct names tried;
    double factor = factor_most * (1.0 - (double)random_below(&drawing->random, 64) / 1024.0);
    memcpy(kept, drawing->numbers, sizeof kept);
    for (int try = 0; try < TRIES && factor > 1.0; try++, factor *= step) {
        for (size_t i = 0; i < problem->dim_count; i++) {
            int64_t most = large_most(problem, i, drawing->batches);
            if (kept[i] >= KIND_MOST && most > kept[i])
                drawing->numbers[i] =
                    beside_multiples((int64_t)(factor * (double)kept[i]), drawing->step, most);
        }
        if (large_make(problem, drawing->numbers, &tried) &&
            is_large(problem, drawing->divisors, &tried) &&
            large_affordable(problem, &tried, drawing->times)) {
            *drawing->dims = tried;
            return;
        }
    }
    memcpy(drawing->numbers, kept, sizeof kept);
}

/* The least that leaves room for larger numbers of the others. Sums of many times as many terms are
 * another question: an honest kernel's may err by more than those at the timed shape. */
static int64_t least_affordable(const struct drawing *drawing, size_t index)
{
    enum { TRIES = 64, TERMS_MORE = 4 };
    static const double room = 0.8;
    const struct names *main_dims = &drawing->problem->shapes[0];
    int64_t numbers[DIMS_MAX], number = main_dims->number[index];
    int64_t low = drawing->problem->dims[index].hidden_low;
    low = low > 0 ? low : 1;
    size_t terms = problem_reduction(drawing->problem, main_dims);
    memcpy(numbers, main_dims->number, sizeof numbers);
    for (int64_t n = low; n < number && n < low + TRIES; n++) {
        struct names dims;
        numbers[index] = n;
        if (large_make(drawing->problem, numbers, &dims) &&
            problem_reduction(drawing->problem, &dims) <= TERMS_MORE * terms &&
            large_affordable(drawing->problem, &dims, room * drawing->times))
            return n;
    }
    return number;
}

/* Fewer groups make each larger, and a smaller stride an output: where all grow alike the least,
 * since that is what a kernel has not met beside large numbers; else now and then one between. */
static int64_t draw_divisor(struct drawing *drawing, size_t index, int64_t number)
{
    enum { SELDOM = 4 };
    int64_t least = least_affordable(drawing, index);
    if (drawing->equal || least >= number)
        return least;
    if (random_below(&drawing->random, SELDOM) > 0)
        return number;
    return least + (int64_t)random_below(&drawing->random, (uint64_t)(number - least));
}

/* Whether what follows from others grows with the dim, as an output with its padding, or shrinks.
 */
static int leads(const struct drawing *drawing, size_t index, int64_t most)
{
    const struct problem *problem = drawing->problem;
    const struct names *main_dims = &problem->shapes[0];
    int64_t numbers[DIMS_MAX];
    struct names dims;
    int grows = 0;
    memcpy(numbers, main_dims->number, sizeof numbers);
    numbers[index] = most;
    if (!large_make(problem, numbers, &dims))
        return 0;
    for (size_t i = 0; i < problem->dim_count && grows >= 0; i++)
        if (problem->dims[i].derived && dims.number[i] != main_dims->number[i])
            grows = dims.number[i] < main_dims->number[i] ? -1 : 1;
    return grows;
}

/* Next to the main numbers, or those. False: none is larger. With `lowers` divisors are smaller,
 * and what follows from kinds is as large as they make it: it may grow where no size does. */
static bool begin(struct drawing *drawing, bool may_stay, bool lowers)
{
    const struct problem *problem = drawing->problem;
    bool larger = false;
    for (size_t i = 0; i < problem->dim_count; i++) {
        int64_t number = problem->shapes[0].number[i];
        int64_t most = large_most(problem, i, drawing->batches);
        bool kind = (may_stay || number < KIND_MOST) && random_below(&drawing->random, 2) == 0;
        bool asked = lowers && drawing->equal && number < KIND_MOST && most > number;
        int led = asked ? leads(drawing, i, most) : 0;
        drawing->numbers[i] = number;
        if (lowers && (drawing->divisors >> i & 1) != 0)
            drawing->numbers[i] = draw_divisor(drawing, i, number);
        else if (led != 0)
            drawing->numbers[i] = led > 0 ? most : number;
        else if (most > number && !kind)
            drawing->numbers[i] =
                beside_multiples(just_beyond(&drawing->random, number), drawing->step, most);
        larger = larger || drawing->numbers[i] > number;
    }
    return larger && large_make(problem, drawing->numbers, drawing->dims) &&
           is_large(problem, drawing->divisors, drawing->dims) &&
           large_affordable(problem, drawing->dims, drawing->times);
}

bool problem_draw_large(const struct problem *problem, uint64_t seed, uint64_t batches,
                        double times, bool equal, struct names *dims)
{
    enum { TRIES = 64, STEPS = 8 };
    struct drawing drawing = {.problem = problem,
                              .batches = batches,
                              .divisors = problem_divisors(problem),
                              .times = times,
                              .equal = equal,
                              .dims = dims};
    random_init(&drawing.random, seed);
    for (int try = 0; try < TRIES; try++) {
        /* A spec may demand multiples: the least that does. Groups divide channels. */
        drawing.step = INT64_C(1) << (try * STEPS / TRIES);
        if (!begin(&drawing, try >= TRIES / 4, try < TRIES / 2))
            continue;
        if (equal) {
            equalize(&drawing);
            spread(&drawing);
        } else {
            fill(&drawing);
            stretch(&drawing);
        }
        return true;
    }
    return false;
}
