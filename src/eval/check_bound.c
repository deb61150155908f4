/* What error an honest computation may make: check.h has the formula. */
#include "eval/check_scale.h"
#include "eval/parallel.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

enum {
    SAFETY = 8, /* allowed over expected error */
    SEEN = 4,   /* a lower precision's error over the honest one's, from which on it is seen */
    FLOOR_SHARE = 64, /* of the lower precision's error, where there are too few elements */
    CHUNK = 1024
};

struct errors {
    double largest;  /* of |d| / S */
    double relative; /* L2 of d over L2 of exact */
    double rms;      /* of d */
    double unscaled; /* largest |d| where all of exact is 0 */
    size_t unsound;
};

struct sums { /* over a part */
    struct errors errors;
    double difference, squares;
    size_t finite;
};

struct measuring {
    const struct groups *groups;
    enum dtype dtype;
    const void *array;
    double floor;
    struct sums parts[PARALLEL_PARTS];
};

static vector larger(vector a, vector b)
{
    vector_mask a_is = a > b;
    return (vector)((a_is & (vector_mask)a) | (~a_is & (vector_mask)b));
}

/* False, and nothing is added, where a number is not finite, or the exact one out of range. */
static bool measure_fast(const double *exact, const double *got, size_t count, double rms,
                         double floor, double most, struct sums *sums)
{
    const vector_mask magnitude = {INT64_MAX, INT64_MAX};
    const vector all_rms = {rms, rms}, all_floor = {floor, floor};
    vector difference = {0.0, 0.0}, squares = {0.0, 0.0}, relative = {0.0, 0.0}, size = {0.0, 0.0};
    for (size_t i = 0; i < count; i += 2) {
        vector e, g;
        memcpy(&e, exact + i, sizeof e);
        memcpy(&g, got + i, sizeof g);
        vector d = (vector)((vector_mask)(g - e) & magnitude);
        vector large = (vector)((vector_mask)e & magnitude);
        difference += d * d;
        squares += e * e;
        size = larger(large, size);
        relative = larger((d - all_floor) / larger(large, all_rms), relative);
    }
    double added[2] = {difference[0] + difference[1], squares[0] + squares[1]};
    if (!isfinite(added[0] + added[1]) || !(scale_largest(size[0], size[1]) <= most))
        return false;
    sums->difference += added[0];
    sums->squares += added[1];
    sums->errors.largest =
        scale_largest(sums->errors.largest, scale_largest(relative[0], relative[1]));
    sums->finite += count;
    return true;
}

static void measure_element(const struct judge *judge, double exact, double got, double rms,
                            double floor, struct sums *sums)
{
    struct errors *errors = &sums->errors;
    if (!judge_is_finite(judge, exact))
        return;
    if (!isfinite(got)) {
        errors->unsound += fabs(exact) < judge->dtype_most * 0.999;
        return;
    }
    double d = fabs(got - exact);
    double scale = scale_largest(fabs(exact), rms);
    if (scale == 0.0)
        errors->unscaled = scale_largest(errors->unscaled, d);
    else if (d > floor)
        errors->largest = scale_largest(errors->largest, (d - floor) / scale);
    sums->difference += d * d;
    sums->squares += exact * exact;
    sums->finite++;
}

/* `from` is the beginning of a group. */
static void measure_part(void *context, size_t part, size_t from, size_t to)
{
    struct measuring *measuring = (struct measuring *)context;
    struct groups own = *measuring->groups, *groups = &own;
    enum dtype dtype = measuring->dtype;
    const unsigned char *array = (const unsigned char *)measuring->array;
    const struct judge judge = {.dtype_most = dtype_max(dtype)};
    struct sums sums = {.finite = 0};
    double buffer[CHUNK];
    for (size_t first = from; first < to; first += groups->group) {
        double rms = groups_rms(groups, first);
        size_t end = first + groups->group < to ? first + groups->group : to;
        for (size_t at = first; at < end; at += CHUNK) {
            size_t length = end - at < CHUNK ? end - at : CHUNK, careful = length / 2 * 2;
            dtype_to_double(dtype, array + at * dtype_bytes(dtype), length, buffer);
            if (!(rms > 0.0) || !measure_fast(groups->exact + at, buffer, careful, rms,
                                              measuring->floor, judge.dtype_most, &sums))
                careful = 0;
            for (size_t i = careful; i < length; i++)
                measure_element(&judge, groups->exact[at + i], buffer[i], rms, measuring->floor,
                                &sums);
        }
    }
    measuring->parts[part] = sums;
}

/* Of `array` against the exact values, elements aside that are meant not to be finite. */
static void measure_errors(const struct groups *groups, enum dtype dtype, const void *array,
                           double floor, struct errors *errors)
{
    struct measuring measuring = {.groups = groups, .dtype = dtype, .array = array, .floor = floor};
    double difference = 0.0, squares = 0.0;
    size_t finite = 0;
    size_t parts =
        parallel_for(groups->count, groups->group, groups->count, measure_part, &measuring);
    *errors = (struct errors){0};
    for (size_t i = 0; i < parts; i++) {
        const struct errors *part = &measuring.parts[i].errors;
        errors->largest = scale_largest(errors->largest, part->largest);
        errors->unscaled = scale_largest(errors->unscaled, part->unscaled);
        errors->unsound += part->unsound;
        difference += measuring.parts[i].difference;
        squares += measuring.parts[i].squares;
        finite += measuring.parts[i].finite;
    }
    if (finite > 0)
        errors->rms = sqrt(difference / (double)finite);
    if (squares > 0.0 && isfinite(squares) && isfinite(difference))
        errors->relative = sqrt(difference) / sqrt(squares);
}

static double precision_epsilon(const char *precision)
{
    enum dtype dtype;
    if (precision == NULL)
        return 0.0;
    if (strcmp(precision, "tf32") == 0)
        return 0x1p-10;
    return dtype_parse(precision, &dtype) ? dtype_epsilon(dtype) : 0.0;
}

/* One flushed subnormal for each term; a 16-bit number is flushed once, when it is stored. */
static double flush_floor(enum dtype dtype, size_t reduction)
{
    double terms = reduction > 1 ? (double)reduction : 1.0;
    switch (dtype) {
    case DTYPE_FLOAT64:
        return DBL_MIN * terms;
    case DTYPE_FLOAT16:
        return 0x1p-24;
    default:
        return (double)FLT_MIN * terms;
    }
}

/* At most half of what the lower precision makes, where that stands out; where it does not, it
 * cannot be told from an honest one by these inputs. */
static double below_lower(double allowed, double lower)
{
    return lower * SAFETY >= SEEN * allowed && lower / 2.0 < allowed ? lower / 2.0 : allowed;
}

struct rounding { /* of an output that is stored, and of the sums before that */
    double stored, computed;
    bool lower_allowed; /* the next lower precision is what the spec allows */
};

static struct rounding rounding_of(const struct problem *problem, enum dtype dtype)
{
    struct rounding rounding = {.stored = dtype_epsilon(dtype),
                                .computed =
                                    dtype == DTYPE_FLOAT64 ? DBL_EPSILON : (double)FLT_EPSILON};
    double allowed = precision_epsilon(problem->precision);
    if (allowed <= rounding.stored)
        return rounding;
    rounding.stored = allowed;
    rounding.lower_allowed = strcmp(problem->precision, "tf32") != 0; /* its sums are float32's */
    if (rounding.lower_allowed)
        rounding.computed = allowed;
    return rounding;
}

static void bound_least_of(const struct rounding *rounding, size_t reduction, double element,
                           double norm, struct bound *bound)
{
    double terms = sqrt((double)(reduction > 1 ? reduction : 1));
    element = scale_largest(element, rounding->computed * terms / 2.0);
    norm = scale_largest(norm, rounding->computed * terms / 4.0);
    bound->element = SAFETY * scale_largest(element, rounding->stored);
    bound->norm = SAFETY * scale_largest(norm, rounding->stored / 2.0);
}

void bound_usual(const struct problem *problem, const struct tensor_spec *output, size_t reduction,
                 struct bound *bound)
{
    const struct rounding rounding = rounding_of(problem, output->dtype);
    *bound = (struct bound){.normwise = problem->normwise};
    bound_least_of(&rounding, reduction, 0.0, 0.0, bound);
}

void bound_derive(const struct problem *problem, const struct tensor_spec *output, size_t count,
                  size_t row, size_t reduction, const double *exact, const void *honest,
                  const void *lower, struct bound *bound)
{
    enum dtype dtype = output->dtype;
    struct groups groups;
    struct errors mine, less = {0};
    *bound = (struct bound){.normwise = problem->normwise};
    if (!dtype_is_float(dtype)) {
        bound->exact_equality = true;
        return;
    }
    if (problem->tolerance_fixed) {
        bound->fixed = true;
        bound->rtol = problem->rtol;
        bound->atol = problem->atol;
        return;
    }
    const struct rounding rounding = rounding_of(problem, dtype);
    double stored = rounding.stored, computed = rounding.computed;
    if (rounding.lower_allowed)
        lower = NULL;
    bound->floor = flush_floor(dtype, reduction);
    bound->zero = sqrt(stored);
    groups_init(&groups, exact, count, row, problem->normwise);
    measure_errors(&groups, dtype, honest, bound->floor, &mine);
    if (lower != NULL)
        measure_errors(&groups, dtype, lower, bound->floor, &less);
    bound->unsound = mine.unsound;
    bound->zero = scale_largest(bound->zero, SAFETY * mine.unscaled);
    bound_least_of(&rounding, reduction, mine.largest, mine.relative, bound);
    if (count < SCALE_LEAST) {
        /* A handful may all have come out near zero, and have no scale to show for it; then the
         * lower precision's error, which does not cancel, says what small is. */
        bound->floor = scale_largest(bound->floor, less.rms / FLOOR_SHARE);
        bound->norm = scale_largest(bound->norm, bound->element);
    } else {
        bound->element = below_lower(bound->element, less.largest);
        bound->norm = below_lower(bound->norm, less.relative);
        /* A running sum of equal terms rounds the same way each time: its error grows with their
         * number, not with its root. It is honest as long as a lower precision is seen. */
        double running = computed / 2.0 * (double)reduction;
        bound->element = scale_largest(bound->element, fmin(running, less.largest / 2.0));
        bound->norm = scale_largest(bound->norm, fmin(running, less.relative / 2.0));
    }
}
