/* The effects that minimize the square of what they leave plus each effect's square over its
 * variance, by conjugate gradients (Golub and Van Loan, "Matrix Computations", 11.3) on
 *
 *   (W^-1 + K) u = y - mean,   K(x, x') = alone x [equal values] + together x [equal pairs]
 *
 * K is never built: a product with it is a sum over each cell and back. */
#include "tuning/model.h"

#include "base/mem.h"

#include <string.h>

enum { STEPS = 60 };
static const double TOLERANCE = 1e-10; /* of the squared residual, to its beginning */

struct model *model_new(size_t parameters, const size_t *levels)
{
    struct model *model = MEM_NEW(struct model);
    model->parameters = parameters;
    model->alone = 1;
    model->together = 0.1;
    memcpy(model->levels, levels, parameters * sizeof *levels);
    for (size_t a = 0; a < parameters; a++)
        for (size_t b = a; b < parameters; b++) {
            struct model_group *group = &model->groups[model->group_count++];
            *group = (struct model_group){
                .a = a, .b = b, .cells = a == b ? levels[a] : levels[a] * levels[b]};
            group->effect = mem_array(group->cells, sizeof *group->effect);
        }
    return model;
}

void model_free(struct model *model)
{
    for (size_t g = 0; g < model->group_count; g++)
        mem_free(model->groups[g].effect);
    mem_free(model);
}

static size_t cell_of(const struct model *model, const struct model_group *group, const uint8_t *at)
{
    return group->a == group->b ? at[group->a]
                                : at[group->a] * model->levels[group->b] + at[group->b];
}

double model_effect(const struct model_group *group, const struct model *model, const uint8_t *at)
{
    return group->effect[cell_of(model, group, at)];
}

static void effects_of(struct model *model, const struct model_rows *rows, const double *u)
{
    for (size_t g = 0; g < model->group_count; g++) {
        struct model_group *group = &model->groups[g];
        double variance = group->a == group->b ? model->alone : model->together;
        memset(group->effect, 0, group->cells * sizeof *group->effect);
        for (size_t i = 0; i < rows->count; i++)
            group->effect[cell_of(model, group, rows->at[i])] += variance * u[i];
    }
}

/* out = (W^-1 + K) u at the rows that count, 0 at others. */
static void multiply(struct model *model, const struct model_rows *rows, const double *weight,
                     const double *u, double *out)
{
    effects_of(model, rows, u);
    for (size_t i = 0; i < rows->count; i++) {
        out[i] = 0;
        if (weight[i] <= 0)
            continue;
        out[i] = u[i] / weight[i];
        for (size_t g = 0; g < model->group_count; g++)
            out[i] += model_effect(&model->groups[g], model, rows->at[i]);
    }
}

static double dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

void model_fit(struct model *model, const struct model_rows *rows, const double *y,
               const double *weight)
{
    size_t count = rows->count;
    double *memory = mem_array(4 * count + 1, sizeof *memory), total = 0;
    double *u = memory, *left = u + count, *along = left + count, *product = along + count;
    model->mean = 0;
    for (size_t i = 0; i < count; i++) {
        model->mean += weight[i] * y[i];
        total += weight[i];
    }
    model->mean /= total;
    for (size_t i = 0; i < count; i++)
        u[i] = 0, left[i] = along[i] = weight[i] > 0 ? y[i] - model->mean : 0;
    double square = dot(left, left, count), least = TOLERANCE * square;
    for (int step = 0; step < STEPS && square > least; step++) {
        multiply(model, rows, weight, along, product);
        double far = square / dot(along, product, count), before = square;
        for (size_t i = 0; i < count; i++) {
            u[i] += far * along[i];
            left[i] -= far * product[i];
        }
        square = dot(left, left, count);
        for (size_t i = 0; i < count; i++)
            along[i] = left[i] + square / before * along[i];
    }
    effects_of(model, rows, u);
    mem_free(memory);
}

double model_predict(const struct model *model, const uint8_t *at)
{
    double sum = model->mean;
    for (size_t g = 0; g < model->group_count; g++)
        sum += model_effect(&model->groups[g], model, at);
    return sum;
}

double model_part(const struct model *model, const uint8_t *at, size_t parameter)
{
    double sum = 0;
    for (size_t g = 0; g < model->group_count; g++)
        if (model->groups[g].a == parameter || model->groups[g].b == parameter)
            sum += model_effect(&model->groups[g], model, at);
    return sum;
}
