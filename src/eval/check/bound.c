/* What error an honest computation may make: check.h has the formula. */
#include "eval/check/scale.h"
#include "eval/data/parallel.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    SAFETY = 8, /* allowed over expected error */
    STRICT = 3, /* the same of the relative L2 where a spec says strict; it varies little */
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
static double flush_floor(enum dtype dtype, double terms)
{
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

struct epsilons {
    double stored, computed; /* of the output's type, or what the spec allows; of the sums */
    bool lower_allowed;      /* the next lower precision is what the spec allows */
};

static struct epsilons epsilons_of(const struct problem *problem, enum dtype dtype)
{
    struct epsilons epsilons = {.stored = dtype_epsilon(dtype)};
    double allowed = precision_epsilon(problem->precision);
    epsilons.computed = dtype == DTYPE_FLOAT64 ? DBL_EPSILON : (double)FLT_EPSILON;
    if (allowed > epsilons.stored) {
        epsilons.stored = allowed;
        if (strcmp(problem->precision, "tf32") != 0) { /* whose sums are float32's */
            epsilons.lower_allowed = true;
            epsilons.computed = allowed;
        }
    }
    return epsilons;
}

/* Whoever computes nothing that is rounded, on numbers drawn at random, has no error in any order.
 * Where there are products it may be by chance: attention to a single key. */
static bool is_exact(const struct errors *mine, const struct sum *sum)
{
    return sum->products == 1 && !sum->alike && !(mine->largest > 0.0) && !(mine->relative > 0.0);
}

/* What a row's sum errs by goes to all of the row alike, as a factor near one: a running sum of
 * 16,384 terms needs a quarter of what this leaves (unit/eval/test_check_precision). */
static double norm_share(const struct sum *sum, double terms, bool strict)
{
    enum { FEW_PRODUCTS = 16 };
    bool row = !sum->alike && sum->products > 0 && terms > FEW_PRODUCTS * (double)sum->products;
    return !row ? 4.0 : strict ? 8.0 : 16.0;
}

/* One term that outweighs the rest takes in what is added behind it with an error of half a unit at
 * most each time, always the same way. A running sum over heavy-tailed rows was seen to need half
 * of this up to 1,024 terms, and no more above. */
static double outweighed_share(const struct epsilons *epsilons, const struct sum *sum, double terms)
{
    enum { TERMS_MOST = 1024 };
    return sum->outweighed ? epsilons->computed / 4.0 * fmin(terms, TERMS_MOST) : 0.0;
}

/* Some inputs make whatever is rounded grow, often in a single row: large scores of a softmax that
 * are nearly equal, numbers far from zero less their mean. There the honest computation may happen
 * to err by next to nothing and say little of what another one does. The lower precision's error,
 * which grows as much, says it too. */
static double amplified_share(const struct epsilons *epsilons, const struct sum *sum, double less)
{
    enum { ROUNDINGS = 16 }; /* each as much as rounding the inputs to the spec's precision */
    double lower = epsilons->computed < (double)FLT_EPSILON ? (double)FLT_EPSILON : 0x1p-10;
    return sum->outweighed || sum->alike ? ROUNDINGS * epsilons->computed / lower * less : 0.0;
}

/* What is between may be rounded to the stored type, too: the weights of an attention, which matrix
 * units take in 16 bits. Where large terms cancel an element errs by that more than by its own
 * rounding, as much as where the inputs are known no better. */
static double between_share(const struct epsilons *epsilons, const struct sum *sum, double less)
{
    double lower = epsilons->stored > 0x1p-10 ? 0x1p-3 : 0x1p-7; /* bfloat16's, float16's, tf32's */
    bool short_type = epsilons->stored > epsilons->computed;
    return sum->outweighed && short_type ? epsilons->stored / lower * less : 0.0;
}

/* A running sum leaves an eighth of eps sqrt(terms), factors of 21 bits 1.2 eps, a matrix unit that
 * cuts off each single addition up to 0.25 eps for each, as few do (bench/soak/low_bits.py). */
static double most_rest(const struct errors *mine, const struct epsilons *epsilons, double growth,
                        double cut)
{
    double rest = scale_largest(growth / 2.0, 2.0 * mine->relative);
    return scale_largest(rest, epsilons->computed * scale_largest(3.0, cut / 4.0));
}

/* `mine`: the honest computation's errors; `less`: the lower precision's, 0 where there is none. */
static void bound_ratios(const struct errors *mine, const struct errors *less,
                         const struct epsilons *epsilons, const struct sum *sum, bool strict,
                         struct bound *bound)
{
    double terms = sum->terms > 1 ? (double)sum->terms : 1.0;
    double cut = sum->products > 0 ? fmin(terms, (double)sum->products) : terms;
    double growth = epsilons->computed * (sum->alike ? terms : sqrt(terms));
    bound->rest = most_rest(mine, epsilons, growth, sum->cut && !strict ? cut : 0.0);
    if (is_exact(mine, sum)) {
        bound->element = bound->norm = epsilons->stored;
        return;
    }
    double element = scale_largest(mine->largest, growth / 2.0);
    double norm = scale_largest(mine->relative, growth / norm_share(sum, terms, strict));
    bound->element = SAFETY * scale_largest(element, epsilons->stored);
    bound->norm = (strict ? STRICT : SAFETY) * scale_largest(norm, epsilons->stored / 2.0);
    bound->element = below_lower(bound->element, less->largest);
    bound->norm = below_lower(bound->norm, less->relative);
    /* A sum that is cut off errs the same way each time, and one of equal terms may, whose error a
     * step behind it may make larger still, as a difference of two means does. Either is honest as
     * long as a lower precision is seen. */
    double running = sum->alike ? terms * terms : sum->cut && !strict ? cut : 0.0;
    running *= epsilons->computed / 2.0;
    double outweighed = outweighed_share(epsilons, sum, terms);
    bound->element =
        scale_largest(bound->element, fmax(outweighed, fmin(running, less->largest / 2.0)));
    bound->norm = scale_largest(bound->norm, fmax(outweighed, fmin(running, less->relative / 2.0)));
    bound->element = scale_largest(bound->element, amplified_share(epsilons, sum, less->largest));
    bound->element = scale_largest(bound->element, between_share(epsilons, sum, less->largest));
    bound->norm = scale_largest(bound->norm, amplified_share(epsilons, sum, less->relative));
}

void bound_usual(const struct problem *problem, const struct tensor_spec *output, size_t reduction,
                 struct bound *bound)
{
    const struct epsilons epsilons = epsilons_of(problem, output->dtype);
    const struct errors none = {0};
    *bound = (struct bound){.normwise = problem->normwise};
    bound_ratios(&none, &none, &epsilons, &(const struct sum){.terms = reduction}, problem->strict,
                 bound);
}

static bool take_simple(const struct problem *problem, enum dtype dtype, struct bound *bound)
{
    *bound = (struct bound){.normwise = problem->normwise};
    if (!dtype_is_float(dtype)) {
        bound->exact_equality = true;
    } else if (problem->tolerance_fixed) {
        bound->fixed = true;
        bound->rtol = problem->rtol;
        bound->atol = problem->atol;
    }
    return bound->exact_equality || bound->fixed;
}

void bound_derive(const struct problem *problem, const struct tensor_spec *output, size_t count,
                  size_t row, const struct sum *sum, const double *exact, const void *honest,
                  const void *lower, struct bound *bound)
{
    struct groups groups;
    struct errors mine, less = {0};
    if (take_simple(problem, output->dtype, bound))
        return;
    struct epsilons epsilons = epsilons_of(problem, output->dtype);
    bound->floor = flush_floor(output->dtype, sum->terms > 1 ? (double)sum->terms : 1.0);
    groups_init(&groups, exact, count, row, problem->normwise);
    measure_errors(&groups, output->dtype, honest, bound->floor, &mine);
    if (lower != NULL && !epsilons.lower_allowed)
        measure_errors(&groups, output->dtype, lower, bound->floor, &less);
    bound->unsound = mine.unsound;
    bound->zero = scale_largest(sqrt(epsilons.stored), SAFETY * mine.unscaled);
    if (count < SCALE_LEAST) {
        /* A handful may all have come out near zero, and have no scale to show for it; then the
         * lower precision's error, which does not cancel, says what small is. */
        const struct errors none = {0};
        bound_ratios(&mine, &none, &epsilons, sum, false, bound);
        bound->floor = scale_largest(bound->floor, less.rms / FLOOR_SHARE);
        bound->norm = scale_largest(bound->norm, bound->element);
    } else {
        bound_ratios(&mine, &less, &epsilons, sum, problem->strict, bound);
    }
    bound->honest = scale_largest(mine.largest / bound->element, mine.relative / bound->norm);
}
