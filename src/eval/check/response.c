#include "eval/check/response.h"

#include "base/mem.h"
#include "eval/check/scale.h"

#include <math.h>

/* As many as make an element of its own of no weight: sum(d^2)^2 / sum(d^4). */
static const double elements_least = 256.0;

struct outputs {
    const double *exact, *changed;
    const float *got;
    size_t count, rank;
    const int64_t *extents;
};

struct fit { /* of got - e by `slope` * (e - c) + `scale` * e */
    double dd, xx, dx, de, xe, ee, fourth;
    double slope, scale;
    size_t finite;
};

struct element {
    double d, x, e; /* e - c, e and got - e over the scale */
};

static bool load(const struct outputs *outputs, size_t i, double rms, struct element *element)
{
    double exact = outputs->exact[i], changed = outputs->changed[i], got = (double)outputs->got[i];
    double scale = scale_largest(fabs(exact), rms);
    if (!isfinite(exact) || !isfinite(changed) || !isfinite(got) || !(scale > 0.0))
        return false;
    *element = (struct element){(exact - changed) / scale, exact / scale, (got - exact) / scale};
    return true;
}

static void add_up(const struct outputs *outputs, struct groups *groups, struct fit *fit)
{
    double rms = 0.0;
    for (size_t i = 0; i < outputs->count; i++) {
        struct element at;
        if (i % groups->group == 0)
            rms = groups_rms(groups, i);
        if (!load(outputs, i, rms, &at))
            continue;
        fit->dd += at.d * at.d;
        fit->xx += at.x * at.x;
        fit->dx += at.d * at.x;
        fit->de += at.d * at.e;
        fit->xe += at.x * at.e;
        fit->ee += at.e * at.e;
        fit->fourth += at.d * at.d * at.d * at.d;
        fit->finite++;
    }
}

/* False: e - c is no direction of its own, or hangs on a few elements. */
static bool solve(struct fit *fit)
{
    static const double apart = 1e-6;
    double determinant = fit->dd * fit->xx - fit->dx * fit->dx;
    if (!(determinant > apart * fit->dd * fit->xx) ||
        !(fit->dd * fit->dd >= elements_least * fit->fourth))
        return false;
    fit->slope = (fit->de * fit->xx - fit->xe * fit->dx) / determinant;
    fit->scale = (fit->xe * fit->dd - fit->de * fit->dx) / determinant;
    return true;
}

struct axis { /* sums over all that have the same index along it */
    size_t extent, at;
    double *sums;
};

static size_t open_axes(const struct outputs *outputs, struct axis *axes)
{
    for (size_t a = 0; a < outputs->rank; a++) {
        axes[a] = (struct axis){.extent = (size_t)outputs->extents[a]};
        axes[a].sums = (double *)mem_array(axes[a].extent, sizeof(double));
    }
    return outputs->rank;
}

static void add_and_step(struct axis *axes, size_t rank, double term)
{
    bool over = true;
    for (size_t a = rank; a-- > 0;) {
        axes[a].sums[axes[a].at] += term;
        axes[a].at += over;
        over = axes[a].at == axes[a].extent;
        axes[a].at = over ? 0 : axes[a].at;
    }
}

static double close_axis(struct axis *axis)
{
    double squares = 0.0;
    for (size_t i = 0; i < axis->extent; i++)
        squares += axis->sums[i] * axis->sums[i];
    mem_free(axis->sums);
    return squares;
}

/* What elements err by may be alike along a row, as the error of its sum is, or in a column, and so
 * is what an input's change does. The variance of the slope is taken over elements and over the
 * indices of each axis, and the largest counts. */
static double variance(const struct outputs *outputs, struct groups *groups, const struct fit *fit)
{
    struct axis axes[RANK_MAX];
    size_t rank = open_axes(outputs, axes);
    double rms = 0.0, most = 0.0;
    for (size_t i = 0; i < outputs->count; i++) {
        struct element at;
        if (i % groups->group == 0)
            rms = groups_rms(groups, i);
        double term = 0.0;
        if (load(outputs, i, rms, &at)) {
            double d = at.d - at.x * fit->dx / fit->xx;
            term = (at.e - fit->slope * at.d - fit->scale * at.x) * d;
        }
        most += term * term;
        add_and_step(axes, rank, term);
    }
    for (size_t a = 0; a < rank; a++)
        most = scale_largest(most, close_axis(&axes[a]));
    double free_of_e = fit->dd - fit->dx * fit->dx / fit->xx;
    return most / (free_of_e * free_of_e);
}

void response_measure(const struct tensor_spec *output, const int64_t *extents, size_t count,
                      const double *exact, const double *changed, const float *got,
                      struct response *response)
{
    const struct outputs outputs = {exact, changed, got, count, output->rank, extents};
    size_t row = output->rank > 0 ? (size_t)extents[output->rank - 1] : 1;
    struct groups groups;
    struct fit fit = {0};
    groups_init(&groups, exact, count, row, false);
    add_up(&outputs, &groups, &fit);
    *response = (struct response){.share = 1.0, .error = INFINITY};
    if (fit.finite > 0)
        response->size = fit.dd / (double)fit.finite;
    if (!solve(&fit))
        return;
    double explained = fit.slope * fit.de + fit.scale * fit.xe;
    response->rest = sqrt(fmax(0.0, fit.ee - explained) / (double)fit.finite);
    response->share = 1.0 + fit.slope;
    response->error = sqrt(variance(&outputs, &groups, &fit));
}
