#include "agents/proposer/surrogate.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

/* theta: logarithm of the signal's deviation, of the noise's deviation, logit of the additive
 * share, logit of what carries over between starts, then one logarithm of length for each
 * dimension. */
enum { SIGNAL, NOISE, SHARE, CARRY, LENGTHS, THETA_MAX = LENGTHS + SURROGATE_DIMS_MAX };

static const double prior_mean[LENGTHS + 1] = {-0.9, -3.3, 1.0, 2.0, 0.4};
static const double prior_sd[LENGTHS + 1] = {0.6, 0.4, 1.0, 1.0, 0.7};

struct dimension {
    const char *name;
    size_t count;
    int64_t values[TUNE_VALUES_MAX];
    double coordinate[TUNE_VALUES_MAX];
};

struct tune_axis { /* one parameter of one space */
    uint8_t dimension;
    uint8_t value[TUNE_VALUES_MAX]; /* of a position, in the dimension's values */
};

struct space {
    size_t count;
    struct tune_axis axes[TUNE_MAX];
};

struct surrogate {
    size_t dims, space_count, count;
    struct dimension dimensions[SURROGATE_DIMS_MAX];
    struct space spaces[SURROGATE_SPACES_MAX];
    double theta[THETA_MAX];
    double mean, mean_sd;
    double share, carry, signal; /* of theta, as the kernel uses them */
    struct tune_point points[SURROGATE_POINTS_MAX];
    double y[SURROGATE_POINTS_MAX];
    double factor[SURROGATE_POINTS_MAX][SURROGATE_POINTS_MAX]; /* lower Cholesky factor */
    double alpha[SURROGATE_POINTS_MAX];
    float matern[SURROGATE_DIMS_MAX][TUNE_VALUES_MAX][TUNE_VALUES_MAX];
    float square[SURROGATE_DIMS_MAX][TUNE_VALUES_MAX][TUNE_VALUES_MAX]; /* (distance / length)^2 */
};

struct surrogate *surrogate_new(void)
{
    struct surrogate *surrogate = MEM_NEW(struct surrogate);
    for (size_t i = 0; i < THETA_MAX; i++)
        surrogate->theta[i] = prior_mean[i < LENGTHS ? i : LENGTHS];
    return surrogate;
}

void surrogate_free(struct surrogate *surrogate)
{
    mem_free(surrogate);
}

/* ---- spaces ---- */

static void place_coordinates(struct dimension *dimension)
{
    int64_t least = dimension->values[0], most = least;
    for (size_t i = 1; i < dimension->count; i++) {
        least = dimension->values[i] < least ? dimension->values[i] : least;
        most = dimension->values[i] > most ? dimension->values[i] : most;
    }
    bool logarithmic = least > 0 && most / least >= 4;
    double low = logarithmic ? log((double)least) : (double)least;
    double high = logarithmic ? log((double)most) : (double)most;
    for (size_t i = 0; i < dimension->count; i++) {
        double value = (double)dimension->values[i];
        if (logarithmic)
            value = log(value);
        dimension->coordinate[i] = high > low ? (value - low) / (high - low) : 0;
    }
}

/* The dimension of that name that still has room for the values; a new one otherwise. */
static struct dimension *dimension_for(struct surrogate *surrogate,
                                       const struct tune_parameter *parameter)
{
    for (size_t i = 0; i < surrogate->dims; i++) {
        struct dimension *known = &surrogate->dimensions[i];
        if (strcmp(known->name, parameter->name) == 0 &&
            known->count + parameter->count <= TUNE_VALUES_MAX)
            return known;
    }
    if (surrogate->dims == SURROGATE_DIMS_MAX)
        return NULL;
    struct dimension *added = &surrogate->dimensions[surrogate->dims++];
    *added = (struct dimension){.name = parameter->name};
    return added;
}

int surrogate_add(struct surrogate *surrogate, const struct tune_parameter *parameters,
                  size_t count)
{
    if (surrogate->space_count == SURROGATE_SPACES_MAX)
        return -1;
    struct space *space = &surrogate->spaces[surrogate->space_count];
    *space = (struct space){.count = count};
    for (size_t j = 0; j < count; j++) {
        struct dimension *dimension = dimension_for(surrogate, &parameters[j]);
        if (dimension == NULL)
            return -1;
        space->axes[j].dimension = (uint8_t)(dimension - surrogate->dimensions);
        for (size_t i = 0; i < parameters[j].count; i++) {
            size_t v = 0;
            while (v < dimension->count && dimension->values[v] != parameters[j].values[i])
                v++;
            if (v == dimension->count)
                dimension->values[dimension->count++] = parameters[j].values[i];
            space->axes[j].value[i] = (uint8_t)v;
        }
        place_coordinates(dimension);
    }
    return (int)surrogate->space_count++;
}

/* ---- the kernel ---- */

static double matern52(double r)
{
    double z = 2.23606797749979 * r;
    return (1 + z + z * z / 3) * exp(-z);
}

/* Values come from short lists, so that nearly all of the kernel is looked up. */
static void tabulate(struct surrogate *surrogate)
{
    surrogate->share = 1 / (1 + exp(-surrogate->theta[SHARE]));
    surrogate->carry = 1 / (1 + exp(-surrogate->theta[CARRY]));
    surrogate->signal = exp(2 * surrogate->theta[SIGNAL]);
    for (size_t j = 0; j < surrogate->dims; j++) {
        const struct dimension *dimension = &surrogate->dimensions[j];
        double length = exp(surrogate->theta[LENGTHS + j]);
        for (size_t a = 0; a < dimension->count; a++) {
            for (size_t b = 0; b <= a; b++) {
                double d = fabs(dimension->coordinate[a] - dimension->coordinate[b]) / length;
                surrogate->matern[j][a][b] = surrogate->matern[j][b][a] = (float)matern52(d);
                surrogate->square[j][a][b] = surrogate->square[j][b][a] = (float)(d * d);
            }
        }
    }
}

static double kernel_within(const struct surrogate *surrogate, const struct tune_point *a,
                            const struct tune_point *b)
{
    const struct space *space = &surrogate->spaces[a->space];
    double sum = 0, square = 0;
    for (size_t j = 0; j < space->count; j++) {
        const struct tune_axis *axis = &space->axes[j];
        uint8_t va = axis->value[a->at[j]], vb = axis->value[b->at[j]];
        sum += (double)surrogate->matern[axis->dimension][va][vb];
        square += (double)surrogate->square[axis->dimension][va][vb];
    }
    double additive = space->count > 0 ? sum / (double)space->count : 1;
    double joint = square > 0 ? matern52(sqrt(square)) : 1;
    return surrogate->mean_sd * surrogate->mean_sd +
           surrogate->signal * (surrogate->share * additive + (1 - surrogate->share) * joint);
}

static double kernel_across(const struct surrogate *surrogate, const struct tune_point *a,
                            const struct tune_point *b)
{
    const struct space *left = &surrogate->spaces[a->space];
    const struct space *right = &surrogate->spaces[b->space];
    double sum = 0;
    for (size_t i = 0; i < left->count; i++) {
        for (size_t j = 0; j < right->count; j++) {
            if (left->axes[i].dimension != right->axes[j].dimension)
                continue;
            uint8_t va = left->axes[i].value[a->at[i]], vb = right->axes[j].value[b->at[j]];
            sum += (double)surrogate->matern[left->axes[i].dimension][va][vb];
        }
    }
    if (sum <= 0)
        return 0;
    return surrogate->signal * surrogate->share * surrogate->carry * sum /
           sqrt((double)left->count * (double)right->count);
}

static double kernel(const struct surrogate *surrogate, const struct tune_point *a,
                     const struct tune_point *b)
{
    return a->space == b->space ? kernel_within(surrogate, a, b) : kernel_across(surrogate, a, b);
}

/* ---- conditioning ---- */

/* Factors K + noise and solves for alpha; returns the logarithm of the posterior density. */
static double condition(struct surrogate *surrogate)
{
    size_t n = surrogate->count;
    double noise = exp(2 * surrogate->theta[NOISE]) + 1e-8;
    double log_density = 0;
    tabulate(surrogate);
    for (size_t i = 0; i < n; i++) {
        double *row = surrogate->factor[i];
        for (size_t j = 0; j <= i; j++) {
            const double *other = surrogate->factor[j];
            double sum = kernel(surrogate, &surrogate->points[i], &surrogate->points[j]);
            if (i == j)
                sum += noise;
            for (size_t k = 0; k < j; k++)
                sum -= row[k] * other[k];
            row[j] = i == j ? sqrt(sum > 1e-10 ? sum : 1e-10) : sum / other[j];
        }
        log_density -= log(row[i]);
    }
    for (size_t i = 0; i < n; i++) {
        double sum = surrogate->y[i] - surrogate->mean;
        for (size_t k = 0; k < i; k++)
            sum -= surrogate->factor[i][k] * surrogate->alpha[k];
        surrogate->alpha[i] = sum / surrogate->factor[i][i];
        log_density -= 0.5 * surrogate->alpha[i] * surrogate->alpha[i];
    }
    for (size_t i = n; i-- > 0;) {
        double sum = surrogate->alpha[i];
        for (size_t k = i + 1; k < n; k++)
            sum -= surrogate->factor[k][i] * surrogate->alpha[k];
        surrogate->alpha[i] = sum / surrogate->factor[i][i];
    }
    for (size_t i = 0; i < LENGTHS + surrogate->dims; i++) {
        size_t row = i < LENGTHS ? i : LENGTHS;
        double z = (surrogate->theta[i] - prior_mean[row]) / prior_sd[row];
        log_density -= 0.5 * z * z;
    }
    return log_density;
}

/* Coordinate ascent with shrinking steps: few dozen factorizations, and no way to run off. */
static void refine_theta(struct surrogate *surrogate)
{
    double best = condition(surrogate);
    static const double steps[] = {0.8, 0.4, 0.2};
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        double step = steps[s];
        for (size_t i = 0; i < LENGTHS + surrogate->dims; i++) {
            double before = surrogate->theta[i];
            for (int sign = -1; sign <= 1; sign += 2) {
                surrogate->theta[i] = before + sign * step;
                double density = condition(surrogate);
                if (density > best) {
                    best = density;
                    break;
                }
                surrogate->theta[i] = before;
            }
        }
    }
}

void surrogate_fit(struct surrogate *surrogate, const struct tune_point *points, const double *y,
                   size_t count, double mean, double mean_sd, bool refine)
{
    surrogate->count = count;
    surrogate->mean = mean;
    surrogate->mean_sd = mean_sd;
    memcpy(surrogate->points, points, count * sizeof *points);
    memcpy(surrogate->y, y, count * sizeof *y);
    if (refine)
        refine_theta(surrogate);
    (void)condition(surrogate);
}

void surrogate_predict(const struct surrogate *surrogate, const struct tune_point *point,
                       double *mean, double *deviation)
{
    double half[SURROGATE_POINTS_MAX];
    double expected = surrogate->mean;
    double variance = kernel(surrogate, point, point);
    for (size_t i = 0; i < surrogate->count; i++) {
        double sum = kernel(surrogate, point, &surrogate->points[i]);
        expected += sum * surrogate->alpha[i];
        for (size_t k = 0; k < i; k++)
            sum -= surrogate->factor[i][k] * half[k];
        half[i] = sum / surrogate->factor[i][i];
        variance -= half[i] * half[i];
    }
    *mean = expected;
    *deviation = sqrt(variance > 0 ? variance : 0);
}

double surrogate_distance(const struct surrogate *surrogate, const struct tune_point *a,
                          const struct tune_point *b)
{
    const struct space *space = &surrogate->spaces[a->space];
    double square = 0;
    for (size_t j = 0; j < space->count; j++) {
        const struct tune_axis *axis = &space->axes[j];
        const struct dimension *dimension = &surrogate->dimensions[axis->dimension];
        double d = dimension->coordinate[axis->value[a->at[j]]] -
                   dimension->coordinate[axis->value[b->at[j]]];
        square += d * d;
    }
    return sqrt(square);
}

int surrogate_steps(const struct tune_point *a, const struct tune_point *b)
{
    int steps = 0;
    for (size_t j = 0; j < TUNE_MAX; j++)
        steps += a->at[j] != b->at[j];
    return steps;
}

double surrogate_bend(double log_time, double best)
{
    double above = log_time - best;
    const double knee = 0.4, slope = 0.4;
    return above <= knee ? above : knee + slope * (above - knee);
}

double surrogate_improvement(double target, double mean, double deviation, double floor)
{
    if (target <= floor)
        return 0;
    double z = (target - mean) / deviation, zf = (floor - mean) / deviation;
    double at = 0.5 * erfc(-z / M_SQRT2), below = 0.5 * erfc(-zf / M_SQRT2);
    double density = exp(-0.5 * z * z) * 0.3989422804014327;
    double density_floor = exp(-0.5 * zf * zf) * 0.3989422804014327;
    double whole = (target - mean) * (at - below) + deviation * (density - density_floor);
    double gain = below > 0 ? whole + below * (target - floor) : whole; /* floor may be -inf */
    return gain > 0 ? gain : 0;
}
