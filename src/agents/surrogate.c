#include "agents/surrogate.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

/* theta: logarithms of signal deviation, noise deviation, logit of the additive share, then one
 * logarithm of length for each parameter. */
enum { SIGNAL, NOISE, SHARE, LENGTHS, THETA_MAX = LENGTHS + TUNE_MAX };

static const double prior_mean[LENGTHS + 1] = {-0.9, -3.7, 0.0, -0.2};
static const double prior_sd[LENGTHS + 1] = {0.6, 0.4, 1.0, 0.7};

struct surrogate {
    size_t dims, count;
    size_t values[TUNE_MAX];
    double coordinate[TUNE_MAX][TUNE_VALUES_MAX];
    double theta[THETA_MAX];
    double mean, mean_sd;
    struct tune_point points[SURROGATE_POINTS_MAX];
    double y[SURROGATE_POINTS_MAX];
    double factor[SURROGATE_POINTS_MAX][SURROGATE_POINTS_MAX]; /* lower Cholesky factor */
    double alpha[SURROGATE_POINTS_MAX];
    double matern[TUNE_MAX][TUNE_VALUES_MAX][TUNE_VALUES_MAX]; /* per parameter, at theta */
    double square[TUNE_MAX][TUNE_VALUES_MAX][TUNE_VALUES_MAX]; /* (distance / length)^2 */
};

struct surrogate *surrogate_new(const struct tune_parameter *parameters, size_t count)
{
    struct surrogate *surrogate = MEM_NEW(struct surrogate);
    surrogate->dims = count;
    for (size_t j = 0; j < count; j++) {
        const struct tune_parameter *parameter = &parameters[j];
        surrogate->values[j] = parameter->count;
        int64_t least = parameter->values[0], most = least;
        for (size_t i = 1; i < parameter->count; i++) {
            least = parameter->values[i] < least ? parameter->values[i] : least;
            most = parameter->values[i] > most ? parameter->values[i] : most;
        }
        bool logarithmic = least > 0 && most / least >= 4;
        for (size_t i = 0; i < parameter->count; i++) {
            double value = (double)parameter->values[i];
            double low = (double)least, high = (double)most;
            if (logarithmic) {
                value = log(value);
                low = log(low);
                high = log(high);
            }
            surrogate->coordinate[j][i] = high > low ? (value - low) / (high - low) : 0;
        }
    }
    for (size_t i = 0; i < LENGTHS + count; i++)
        surrogate->theta[i] = prior_mean[i < LENGTHS ? i : LENGTHS];
    return surrogate;
}

void surrogate_free(struct surrogate *surrogate)
{
    mem_free(surrogate);
}

static double matern52(double r)
{
    double z = 2.23606797749979 * r;
    return (1 + z + z * z / 3) * exp(-z);
}

/* Values come from short lists, so that nearly all of the kernel is looked up. */
static void tabulate(struct surrogate *surrogate)
{
    for (size_t j = 0; j < surrogate->dims; j++) {
        double length = exp(surrogate->theta[LENGTHS + j]);
        for (size_t a = 0; a < surrogate->values[j]; a++) {
            for (size_t b = 0; b <= a; b++) {
                double d = fabs(surrogate->coordinate[j][a] - surrogate->coordinate[j][b]) / length;
                surrogate->matern[j][a][b] = surrogate->matern[j][b][a] = matern52(d);
                surrogate->square[j][a][b] = surrogate->square[j][b][a] = d * d;
            }
        }
    }
}

static double kernel(const struct surrogate *surrogate, const struct tune_point *a,
                     const struct tune_point *b)
{
    double sum = 0, square = 0;
    for (size_t j = 0; j < surrogate->dims; j++) {
        sum += surrogate->matern[j][a->at[j]][b->at[j]];
        square += surrogate->square[j][a->at[j]][b->at[j]];
    }
    double share = 1 / (1 + exp(-surrogate->theta[SHARE]));
    double additive = surrogate->dims > 0 ? sum / (double)surrogate->dims : 1;
    double signal = exp(2 * surrogate->theta[SIGNAL]);
    return surrogate->mean_sd * surrogate->mean_sd +
           signal * (share * additive + (1 - share) * matern52(sqrt(square)));
}

/* Factors K + noise and solves for alpha; returns the logarithm of the posterior density. */
static double condition(struct surrogate *surrogate)
{
    size_t n = surrogate->count;
    double noise = exp(2 * surrogate->theta[NOISE]) + 1e-10;
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
            row[j] = i == j ? sqrt(sum > 1e-12 ? sum : 1e-12) : sum / other[j];
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
    for (double step = 0.8; step > 0.15; step *= 0.5) {
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
    double square = 0;
    for (size_t j = 0; j < surrogate->dims; j++) {
        double d = surrogate->coordinate[j][a->at[j]] - surrogate->coordinate[j][b->at[j]];
        square += d * d;
    }
    return sqrt(square);
}
