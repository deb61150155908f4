#include "eval/check/response.h"

#include "base/mem.h"
#include "eval/check/scale.h"

#include <math.h>
#include <stdlib.h>

/* As many as make an element of its own of no weight: sum(d^2)^2 / sum(d^4). */
static const double elements_least = 256.0;

struct outputs {
    const double *exact, *changed;
    const float *got;
    size_t count, rank;
    const int64_t *extents;
    const double *part;      /* what some terms add; NULL: not asked */
    double of_d, of_x, of_e; /* how much of each goes with that, and is taken off */
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
    if (outputs->part == NULL)
        return true;
    double part = outputs->part[i] / scale;
    element->d -= outputs->of_d * part;
    element->x -= outputs->of_x * part;
    element->e -= outputs->of_e * part;
    return isfinite(part);
}

/* What is cut off is a part of its term on the average, and so errs by as much of what those terms
 * add: no noise of the slope's, though it would count as such. */
static void take_part_off(struct outputs *outputs, struct groups *groups)
{
    double pp = 0.0, pd = 0.0, px = 0.0, pe = 0.0, rms = 0.0;
    for (size_t i = 0; i < outputs->count; i++) {
        struct element at;
        if (i % groups->group == 0)
            rms = groups_rms(groups, i);
        if (!load(outputs, i, rms, &at))
            continue;
        double part = outputs->part[i] / scale_largest(fabs(outputs->exact[i]), rms);
        pp += part * part;
        pd += part * at.d;
        px += part * at.x;
        pe += part * at.e;
    }
    if (!(pp > 0.0))
        return;
    outputs->of_d = pd / pp;
    outputs->of_x = px / pp;
    outputs->of_e = pe / pp;
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
    response_of_part(output, extents, count, exact, changed, NULL, got, response);
}

void response_of_part(const struct tensor_spec *output, const int64_t *extents, size_t count,
                      const double *exact, const double *changed, const double *part,
                      const float *got, struct response *response)
{
    struct outputs outputs = {.exact = exact,
                              .changed = changed,
                              .got = got,
                              .count = count,
                              .rank = output->rank,
                              .extents = extents,
                              .part = part};
    size_t row = output->rank > 0 ? (size_t)extents[output->rank - 1] : 1;
    struct groups groups;
    struct fit fit = {0};
    groups_init(&groups, exact, count, row, false);
    if (part != NULL)
        take_part_off(&outputs, &groups);
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

/* --- blocks --- */

/* Sums over a block of d and r, both without what e explains. What a block errs by as a whole, as
 * sums of positive terms that are cut off do, is left out. */
struct part {
    double rd, dd, rr, r, d, count;
};

static void part_add(struct part *to, const struct part *more)
{
    to->rd += more->rd;
    to->dd += more->dd;
    to->rr += more->rr;
    to->r += more->r;
    to->d += more->d;
    to->count += more->count;
}

static double part_slope(const struct part *part)
{
    return part->count > 0.0 ? part->rd - part->r * part->d / part->count : 0.0;
}

static double part_weight(const struct part *part)
{
    return part->count > 0.0 ? part->dd - part->d * part->d / part->count : 0.0;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of noise that is normal, by how far half of the blocks lie from 0. */
static double deviation(const struct part *parts, size_t count, double *numbers)
{
    static const double of_median = 1.4826;
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (part_weight(&parts[i]) > 0.0)
            numbers[known++] = fabs(part_slope(&parts[i])) / sqrt(part_weight(&parts[i]));
    qsort(numbers, known, sizeof *numbers, by_size);
    return known > 0 ? of_median * numbers[known / 2] : INFINITY;
}

static void see_parts(const struct part *parts, size_t count, size_t rows, size_t columns,
                      struct blocks *blocks)
{
    enum { COUNT_LEAST = 8, ELEMENTS_LEAST = 64, REST_LEAST = 1024 };
    static const double families = 1e6;
    if (count < COUNT_LEAST)
        return;
    double *numbers = (double *)mem_array(count, sizeof *numbers);
    double sigma = deviation(parts, count, numbers);
    double chance = sqrt(2.0 * log((double)count * families)) * sigma;
    for (size_t i = 0; i < count; i++) {
        const struct part *part = &parts[i];
        double slope = part_slope(part), weight = part_weight(part);
        if (part->count < ELEMENTS_LEAST || !(weight > 0.0))
            continue;
        double off = fabs(slope) / weight - chance / sqrt(weight);
        if (off > blocks->off) {
            blocks->off = off;
            blocks->rows = rows;
            blocks->columns = columns;
        }
        double left = part->rr - part->r * part->r / part->count - slope * slope / weight;
        if (part->count >= REST_LEAST)
            blocks->rest = scale_largest(blocks->rest, sqrt(fmax(0.0, left) / part->count));
    }
    mem_free(numbers);
}

/* Rows, columns and the smallest tiles, all at once. */
struct cut {
    size_t rows, columns, down, across; /* down, across: how many tiles */
    struct part *row, *column, *tile;
};

enum { TILE = 16, TILE_MOST = 128 };

static void cut_add(struct cut *cut, size_t i, const struct part *one)
{
    size_t row = i / cut->columns, column = i % cut->columns;
    part_add(&cut->row[row], one);
    part_add(&cut->column[column], one);
    part_add(&cut->tile[row / TILE * cut->across + column / TILE], one);
}

static void cut_elements(const struct outputs *outputs, const struct fit *fit,
                         struct groups *groups, struct cut *cut)
{
    double rms = 0.0;
    for (size_t i = 0; i < outputs->count; i++) {
        struct element at;
        if (i % groups->group == 0)
            rms = groups_rms(groups, i);
        if (!load(outputs, i, rms, &at))
            continue;
        double d = at.d - at.x * fit->dx / fit->xx, r = at.e - fit->scale * at.x;
        const struct part one = {r * d, d * d, r * r, r, d, 1.0};
        cut_add(cut, i, &one);
    }
}

/* Two by two tiles become one, in place. */
static void cut_coarser(struct cut *cut)
{
    size_t down = (cut->down + 1) / 2, across = (cut->across + 1) / 2;
    struct part *coarse = (struct part *)mem_array(down * across, sizeof *coarse);
    for (size_t i = 0; i < cut->down * cut->across; i++)
        part_add(&coarse[i / cut->across / 2 * across + i % cut->across / 2], &cut->tile[i]);
    mem_free(cut->tile);
    cut->tile = coarse;
    cut->down = down;
    cut->across = across;
}

/* Of positive factors most of what an input's change does is alike in a row or in a column, and so
 * is what a sum errs by: then blocks differ by more than chance. */
static bool is_alike(const struct part *parts, size_t count)
{
    static const double most = 0.1;
    double d = 0.0, dd = 0.0, r = 0.0, rr = 0.0, each = 0.0;
    for (size_t i = 0; i < count; i++) {
        if (!(parts[i].count > 0.0))
            continue;
        d += parts[i].d * parts[i].d / parts[i].count;
        r += parts[i].r * parts[i].r / parts[i].count;
        dd += parts[i].dd;
        rr += parts[i].rr;
        each += parts[i].count;
    }
    double by_chance = 2.0 * (double)count / each;
    return d > (most + by_chance) * dd || r > (most + by_chance) * rr;
}

static void see_all(struct cut *cut, struct blocks *blocks)
{
    if (is_alike(cut->row, cut->rows) || is_alike(cut->column, cut->columns))
        return;
    see_parts(cut->row, cut->rows, 1, cut->columns, blocks);
    see_parts(cut->column, cut->columns, cut->rows, 1, blocks);
    for (size_t size = TILE; size <= TILE_MOST; size *= 2) {
        see_parts(cut->tile, cut->down * cut->across, size, size, blocks);
        cut_coarser(cut);
    }
}

void response_blocks(const struct tensor_spec *output, const int64_t *extents, size_t count,
                     const double *exact, const double *changed, const float *got,
                     struct blocks *blocks)
{
    const struct outputs outputs = {.exact = exact,
                                    .changed = changed,
                                    .got = got,
                                    .count = count,
                                    .rank = output->rank,
                                    .extents = extents};
    size_t row = output->rank > 0 ? (size_t)extents[output->rank - 1] : 1;
    struct groups groups;
    struct fit fit = {0};
    *blocks = (struct blocks){0};
    groups_init(&groups, exact, count, row, false);
    add_up(&outputs, &groups, &fit);
    if (count == 0 || !solve(&fit))
        return;
    struct cut cut = {.rows = count / row, .columns = row};
    cut.down = (cut.rows + TILE - 1) / TILE;
    cut.across = (cut.columns + TILE - 1) / TILE;
    cut.row = (struct part *)mem_array(cut.rows, sizeof *cut.row);
    cut.column = (struct part *)mem_array(cut.columns, sizeof *cut.column);
    cut.tile = (struct part *)mem_array(cut.down * cut.across, sizeof *cut.tile);
    cut_elements(&outputs, &fit, &groups, &cut);
    see_all(&cut, blocks);
    mem_free(cut.row);
    mem_free(cut.column);
    mem_free(cut.tile);
}
