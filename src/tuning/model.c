#include "tuning/model.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEARN_FROM = 128, SWEEPS = 6 };
static const double STEP = 3, HAND_LEAST = 0.003, HAND_MOST = 10, NOISE_LEAST = 0.001,
                    NOISE_MOST = 0.5;
static const double HAND_USUAL = 0.3, HAND_SPREAD = 3; /* prior: normal in its logarithm */
static const double NOISE_USUAL = 0.01;
static const double FALL = 0.5; /* of likeness, by the usual distance of two values */

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Distances of logarithms, or, where a value has none, of values; over their median. */
void model_values(struct model *model, size_t parameter, const int64_t *values, size_t levels)
{
    double where[TUNING_LEVELS], *apart = mem_array(levels * levels + 1, sizeof *apart);
    size_t count = 0;
    bool positive = true;
    for (size_t i = 0; i < levels; i++)
        positive = positive && values[i] > 0;
    for (size_t i = 0; i < levels; i++)
        where[i] = positive ? log((double)values[i]) : (double)values[i];
    for (size_t i = 0; i < levels; i++)
        for (size_t k = 0; k < i; k++)
            apart[count++] = fabs(where[i] - where[k]);
    qsort(apart, count, sizeof *apart, by_size);
    double usual = count > 0 ? apart[count / 2] : 1;
    for (size_t i = 0; i < levels; i++)
        for (size_t k = 0; k < levels; k++)
            model->alike[parameter][i][k] = exp(-FALL * fabs(where[i] - where[k]) / usual);
    model->levels[parameter] = levels;
    mem_free(apart);
}

/* Covariance of two points, to the variance of one. */
static double covariance(const struct model *model, const struct model_fit *fit, const uint8_t *a,
                         const uint8_t *b)
{
    double product = 1;
    for (size_t j = 0; j < model->parameters; j++)
        product *= 1 + fit->hand[j] * model->alike[j][a[j]][b[j]];
    return (product - 1) * fit->scale;
}

static void scale(const struct model *model, struct model_fit *fit)
{
    double most = 1;
    for (size_t j = 0; j < model->parameters; j++)
        most *= 1 + fit->hand[j];
    fit->scale = most > 1 ? 1 / (most - 1) : 0;
}

/* ---- one system of equations ---- */

struct system {
    size_t count, row[MODEL_ROWS];
    double factor[MODEL_ROWS][MODEL_ROWS]; /* Cholesky's, below the diagonal and on it */
};

static void factorize(struct system *system, const struct model *model, struct model_fit *fit)
{
    double(*l)[MODEL_ROWS] = system->factor;
    scale(model, fit);
    for (size_t i = 0; i < system->count; i++) {
        size_t row = system->row[i];
        for (size_t k = 0; k <= i; k++) {
            double sum = covariance(model, fit, model->at[row], model->at[system->row[k]]);
            sum += i == k ? fit->noise / model->say[row] : 0;
            for (size_t m = 0; m < k; m++)
                sum -= l[i][m] * l[k][m];
            l[i][k] = i == k ? sqrt(fmax(sum, 1e-12)) : sum / l[k][k];
        }
    }
}

static void forward(const struct system *system, double *x)
{
    for (size_t i = 0; i < system->count; i++) {
        for (size_t k = 0; k < i; k++)
            x[i] -= system->factor[i][k] * x[k];
        x[i] /= system->factor[i][i];
    }
}

static void backward(const struct system *system, double *x)
{
    for (size_t i = system->count; i-- > 0;) {
        for (size_t k = i + 1; k < system->count; k++)
            x[i] -= system->factor[k][i] * x[k];
        x[i] /= system->factor[i][i];
    }
}

/* `left`: what y is beyond its mean, whitened; `ones`: room. Returns the mean, by least squares. */
static double whiten(const struct system *system, const struct model *model, double *left,
                     double *ones)
{
    double both = 0, square = 0;
    for (size_t i = 0; i < system->count; i++)
        left[i] = model->y[system->row[i]], ones[i] = 1;
    forward(system, left);
    forward(system, ones);
    for (size_t i = 0; i < system->count; i++)
        both += left[i] * ones[i], square += ones[i] * ones[i];
    for (size_t i = 0; i < system->count; i++)
        left[i] -= both / square * ones[i];
    return both / square;
}

/* ---- hands and noise ---- */

/* Minus the logarithm of how likely the points are, its scale and mean integrated out, with the
 * prior of the hands. */
static double unlikely(struct system *system, const struct model *model, struct model_fit *fit)
{
    double left[MODEL_ROWS], ones[MODEL_ROWS], sum = 0, square = 0, mean = 0, prior = 0;
    factorize(system, model, fit);
    (void)whiten(system, model, left, ones);
    for (size_t i = 0; i < system->count; i++) {
        sum += log(system->factor[i][i]);
        square += left[i] * left[i];
        mean += ones[i] * ones[i];
    }
    for (size_t j = 0; j < model->parameters; j++)
        if (model->levels[j] > 1)
            prior += pow(log(fit->hand[j] / HAND_USUAL) / HAND_SPREAD, 2) / 2;
    double count = (double)system->count;
    return count / 2 * log(fmax(square / count, 1e-30)) + sum + log(mean) / 2 + prior;
}

/* One number of the fit a step up or down, where that is better. */
static void choose(double *number, double low, double high, double *least, struct system *system,
                   const struct model *model, struct model_fit *fit)
{
    double own = *number, best = own;
    for (int up = 0; up < 2; up++) {
        *number = up ? own * STEP : own / STEP;
        double now = *number < low || *number > high ? INFINITY : unlikely(system, model, fit);
        if (now < *least - 1e-6)
            *least = now, best = *number;
    }
    *number = best;
}

/* The points of a fit, or `most` of them, evenly. */
static void take_rows(struct system *system, const struct model *model, size_t fold, size_t most)
{
    system->count = 0;
    for (size_t i = 0; i < model->count; i++)
        if (model->fold[i] != fold)
            system->row[system->count++] = i;
    if (system->count <= most)
        return;
    for (size_t i = 0; i < most; i++)
        system->row[i] = system->row[i * system->count / most];
    system->count = most;
}

/* By one number after the other, from those that the fit has. */
static void learn(const struct model *model, struct system *system, struct model_fit *fit)
{
    double least = unlikely(system, model, fit);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double before = least;
        for (size_t j = 0; j < model->parameters; j++)
            if (model->levels[j] > 1)
                choose(&fit->hand[j], HAND_LEAST, HAND_MOST, &least, system, model, fit);
        choose(&fit->noise, NOISE_LEAST, NOISE_MOST, &least, system, model, fit);
        if (least == before)
            break;
    }
}

/* ---- */

static void fit_one(struct model *model, struct system *system, size_t fold)
{
    double left[MODEL_ROWS], ones[MODEL_ROWS];
    struct model_fit *fit = &model->fits[fold];
    take_rows(system, model, fold, LEARN_FROM);
    learn(model, system, fit);
    take_rows(system, model, fold, MODEL_ROWS);
    factorize(system, model, fit);
    fit->mean = whiten(system, model, left, ones);
    backward(system, left);
    memset(fit->effect, 0, sizeof fit->effect);
    for (size_t i = 0; i < system->count; i++)
        fit->effect[system->row[i]] = left[i];
}

void model_fit(struct model *model)
{
    struct system *system = MEM_NEW(struct system);
    struct model_fit *all = &model->fits[MODEL_FOLDS];
    for (size_t j = 0; j < model->parameters; j++)
        all->hand[j] = model->levels[j] > 1 ? HAND_USUAL : 0;
    all->noise = NOISE_USUAL;
    fit_one(model, system, MODEL_FOLDS);
    for (size_t fold = 0; fold < MODEL_FOLDS; fold++) {
        model->fits[fold] = *all;
        fit_one(model, system, fold);
    }
    mem_free(system);
}

void model_predict(const struct model *model, const uint8_t *at, double expected[MODEL_FITS])
{
    for (size_t k = 0; k < MODEL_FITS; k++) {
        const struct model_fit *fit = &model->fits[k];
        expected[k] = fit->mean;
        for (size_t i = 0; i < model->count; i++)
            expected[k] += covariance(model, fit, at, model->at[i]) * fit->effect[i];
    }
}
