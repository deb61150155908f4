/* Which parameter mattered: tuning.h says how. */
#include "tuning/model.h"

#include "base/mem.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FOLDS = 5,
    RESAMPLES = 100,
    EXCHANGES = 4,   /* values that each point gets in turn */
    FEWEST = 8,      /* points below which nothing is said */
    SEED = 20050201, /* the same table, the same answer */
    SHARES = TUNING_PARAMETERS + MODEL_GROUPS
};
static const double EXPLAINED_LEAST = 0.5; /* of points left out; below, shares are guesses */
static const double ERROR_USUAL = 0.02;    /* of log time: what a model of times misses anyway */
static const double PAIR_LEAST = 0.01;
static const double NO_VARIANCE = 1e-12; /* times that differ by a millionth do not */

struct work {
    const struct tuning_table *table;
    size_t levels[TUNING_PARAMETERS];
    int64_t values[TUNING_PARAMETERS][TUNING_LEVELS];
    struct model_rows rows, space;
    double y[MODEL_ROWS], say[MODEL_ROWS], weight[MODEL_ROWS]; /* say: of each point, 0 to 1 */
    double share[RESAMPLES][SHARES];                           /* of parameters, then of groups */
    struct model *model;
};

/* ---- tables as positions ---- */

static size_t position(struct work *work, size_t parameter, int64_t value)
{
    size_t i = 0;
    while (i < work->levels[parameter] && work->values[parameter][i] != value)
        i++;
    if (i == work->levels[parameter] && i < TUNING_LEVELS)
        work->values[parameter][work->levels[parameter]++] = value;
    return i < TUNING_LEVELS ? i : TUNING_LEVELS - 1;
}

static void read_rows(struct work *work, const int64_t *points, size_t count,
                      struct model_rows *rows)
{
    size_t parameters = work->table->parameters;
    rows->count = count < MODEL_ROWS ? count : MODEL_ROWS;
    for (size_t i = 0; i < rows->count; i++) {
        const int64_t *point = points + i * count / rows->count * parameters;
        for (size_t j = 0; j < parameters; j++)
            rows->at[i][j] = (uint8_t)position(work, j, point[j]);
    }
}

static void read_table(struct work *work)
{
    const struct tuning_table *table = work->table;
    read_rows(work, table->points, table->count, &work->rows);
    if (table->space)
        read_rows(work, table->space, table->space_count, &work->space);
    else
        work->space = work->rows;
    for (size_t i = 0; i < work->rows.count; i++) {
        size_t from = i * table->count / work->rows.count;
        double error = table->error ? table->error[from] / ERROR_USUAL : 0;
        work->y[i] = log(table->time_ns[from]);
        work->say[i] = 1 / (1 + error * error);
    }
}

/* ---- the model's own variances ---- */

/* `say` NULL: all alike. */
static double variance_of(const double *y, const double *say, size_t count)
{
    double mean = 0, sum = 0, all = 0;
    for (size_t i = 0; i < count; i++) {
        mean += y[i] * (say ? say[i] : 1);
        all += say ? say[i] : 1;
    }
    mean /= all;
    for (size_t i = 0; i < count; i++)
        sum += (y[i] - mean) * (y[i] - mean) * (say ? say[i] : 1);
    return sum / all;
}

/* Mean square of what points that were left out were predicted wrong by. */
static double miss(struct work *work, const uint8_t *fold)
{
    double sum = 0, all = 0;
    for (unsigned out = 0; out < FOLDS; out++) {
        for (size_t i = 0; i < work->rows.count; i++)
            work->weight[i] = fold[i] != out ? work->say[i] : 0;
        model_fit(work->model, &work->rows, work->y, work->weight);
        for (size_t i = 0; i < work->rows.count; i++) {
            double wrong = work->y[i] - model_predict(work->model, work->rows.at[i]);
            sum += fold[i] == out ? wrong * wrong * work->say[i] : 0;
            all += fold[i] == out ? work->say[i] : 0;
        }
    }
    return sum / all;
}

/* Chooses them; returns the share of the variance that they predict. */
static double choose_variances(struct work *work, struct random *random)
{
    static const double alone[] = {0.5, 2, 10}, together[] = {0.02, 0.1, 0.5};
    uint8_t fold[MODEL_ROWS];
    double least = INFINITY, all = variance_of(work->y, work->say, work->rows.count);
    double best_alone = alone[0], best_together = together[0];
    for (size_t i = 0; i < work->rows.count; i++) { /* equal folds, in a random order */
        size_t other = (size_t)random_below(random, i + 1);
        fold[i] = fold[other];
        fold[other] = (uint8_t)(i % FOLDS);
    }
    for (size_t a = 0; a < 3; a++)
        for (size_t t = 0; t < 3; t++) {
            work->model->alone = alone[a];
            work->model->together = together[t];
            double now = miss(work, fold);
            if (now < least)
                least = now, best_alone = alone[a], best_together = together[t];
        }
    work->model->alone = best_alone;
    work->model->together = best_together;
    return all > NO_VARIANCE ? 1 - least / all : 0;
}

/* ---- shares ---- */

static double exchange_share(const struct work *work, size_t parameter, struct random *random)
{
    const struct model_rows *space = &work->space;
    double sum = 0;
    for (size_t i = 0; i < space->count; i++) {
        uint8_t at[TUNING_PARAMETERS];
        memcpy(at, space->at[i], sizeof at);
        double now = model_part(work->model, at, parameter);
        for (int k = 0; k < EXCHANGES; k++) {
            at[parameter] = space->at[random_below(random, space->count)][parameter];
            double change = model_part(work->model, at, parameter) - now;
            sum += change * change / EXCHANGES;
        }
    }
    return sum / (2 * (double)space->count);
}

static double group_variance(const struct work *work, const struct model_group *group, double *y)
{
    for (size_t i = 0; i < work->space.count; i++)
        y[i] = model_effect(group, work->model, work->space.at[i]);
    return variance_of(y, NULL, work->space.count);
}

/* Of the fitted model. The exchanges are the same each time, so that they add no noise. */
static void shares_of(struct work *work, double shares[SHARES])
{
    double y[MODEL_ROWS];
    struct random random;
    random_init(&random, SEED);
    for (size_t i = 0; i < work->space.count; i++)
        y[i] = model_predict(work->model, work->space.at[i]);
    double all = variance_of(y, NULL, work->space.count);
    for (size_t j = 0; j < work->table->parameters; j++)
        shares[j] = all > 0 ? exchange_share(work, j, &random) / all : 0;
    for (size_t g = 0; g < work->model->group_count; g++)
        shares[TUNING_PARAMETERS + g] =
            all > 0 ? group_variance(work, &work->model->groups[g], y) / all : 0;
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static struct tuning_share interval_of(const struct work *work, size_t which, double share)
{
    double drawn[RESAMPLES];
    for (size_t r = 0; r < RESAMPLES; r++)
        drawn[r] = work->share[r][which];
    qsort(drawn, RESAMPLES, sizeof *drawn, by_size);
    double low = drawn[RESAMPLES * 25 / 1000], high = drawn[RESAMPLES * 975 / 1000];
    return (struct tuning_share){share, fmin(low, share), fmax(high, share)};
}

static void resample(struct work *work, struct random *random)
{
    for (size_t r = 0; r < RESAMPLES; r++) {
        memset(work->weight, 0, sizeof work->weight);
        for (size_t i = 0; i < work->rows.count; i++) {
            size_t drawn = (size_t)random_below(random, work->rows.count);
            work->weight[drawn] += work->say[drawn];
        }
        model_fit(work->model, &work->rows, work->y, work->weight);
        shares_of(work, work->share[r]);
    }
}

/* ---- what is told ---- */

/* The value with the least expected time, and what the worst one costs. */
static void best_value(const struct work *work, size_t parameter, struct tuning_effect *effect)
{
    double least = INFINITY, most = -INFINITY;
    bool seen[TUNING_LEVELS] = {false};
    for (size_t i = 0; i < work->rows.count; i++)
        seen[work->rows.at[i][parameter]] = true;
    for (size_t level = 0; level < work->levels[parameter]; level++) {
        double sum = 0;
        for (size_t i = 0; i < work->space.count; i++) {
            uint8_t at[TUNING_PARAMETERS];
            memcpy(at, work->space.at[i], sizeof at);
            at[parameter] = (uint8_t)level;
            sum += model_part(work->model, at, parameter);
        }
        effect->levels += seen[level];
        if (!seen[level])
            continue;
        if (sum < least)
            effect->best = work->values[parameter][level];
        least = fmin(least, sum);
        most = fmax(most, sum);
    }
    effect->cost = exp((most - least) / (double)work->space.count);
}

static int by_share(const void *left, const void *right)
{
    const struct tuning_effect *a = left, *b = right;
    return a->share.share > b->share.share ? -1 : a->share.share < b->share.share;
}

static int pair_by_share(const void *left, const void *right)
{
    const struct tuning_pair *a = left, *b = right;
    return a->share.share > b->share.share ? -1 : a->share.share < b->share.share;
}

static void tell_pairs(const struct work *work, const double *shares, struct tuning_impact *impact)
{
    struct tuning_pair all[MODEL_GROUPS];
    size_t count = 0;
    for (size_t g = 0; g < work->model->group_count; g++) {
        const struct model_group *group = &work->model->groups[g];
        struct tuning_share share =
            interval_of(work, TUNING_PARAMETERS + g, shares[TUNING_PARAMETERS + g]);
        if (group->a != group->b && work->levels[group->a] > 1 && work->levels[group->b] > 1 &&
            share.low >= PAIR_LEAST)
            all[count++] = (struct tuning_pair){work->table->names[group->a],
                                                work->table->names[group->b], share};
    }
    qsort(all, count, sizeof *all, pair_by_share);
    impact->pair_count = count < TUNING_PAIRS ? count : TUNING_PAIRS;
    memcpy(impact->pairs, all, impact->pair_count * sizeof *all);
}

static void measure(struct work *work, struct tuning_impact *impact)
{
    struct random random;
    double shares[SHARES] = {0};
    random_init(&random, SEED);
    impact->explained = choose_variances(work, &random);
    resample(work, &random);
    memcpy(work->weight, work->say, sizeof work->weight);
    model_fit(work->model, &work->rows, work->y, work->weight);
    shares_of(work, shares);
    impact->count = work->table->parameters;
    for (size_t j = 0; j < impact->count; j++) {
        struct tuning_effect *effect = &impact->effects[j];
        effect->name = work->table->names[j];
        effect->share = interval_of(work, j, shares[j]);
        best_value(work, j, effect);
    }
    tell_pairs(work, shares, impact);
    qsort(impact->effects, impact->count, sizeof *impact->effects, by_share);
    impact->differ = sqrt(variance_of(work->y, NULL, work->rows.count));
    if (work->table->error)
        impact->noise = stats_median(work->table->error, work->table->count);
    if (impact->explained < EXPLAINED_LEAST)
        impact->why = 2 * impact->noise > impact->differ
                          ? "too noisy to say; a larger --time-budget helps"
                          : "too few points to say: those left out are not predicted";
}

void tuning_impact(const struct tuning_table *table, struct tuning_impact *impact)
{
    *impact = (struct tuning_impact){.points = table->count};
    if (table->parameters == 0)
        impact->why = "no parameters to tune";
    else if (table->count < FEWEST || table->count < 2 * table->parameters)
        impact->why = "too few kernels to say which parameter mattered";
    if (impact->why)
        return;
    struct work *work = MEM_NEW(struct work);
    work->table = table;
    read_table(work);
    work->model = model_new(table->parameters, work->levels);
    measure(work, impact);
    model_free(work->model);
    mem_free(work);
}

/* ---- agreement ---- */

/* Places from 1, equal ones the mean of theirs. */
static double place_of(const struct tuning_impact *impact, const char *name)
{
    double share = NAN, above = 0, equal = 0;
    for (size_t i = 0; i < impact->count; i++)
        if (strcmp(impact->effects[i].name, name) == 0)
            share = impact->effects[i].share.share;
    for (size_t i = 0; i < impact->count; i++) {
        above += impact->effects[i].share.share > share;
        equal += impact->effects[i].share.share == share;
    }
    return above + (equal + 1) / 2;
}

double tuning_agreement(const struct tuning_impact *a, const struct tuning_impact *b)
{
    double middle = ((double)a->count + 1) / 2, both = 0, of_a = 0, of_b = 0;
    if (a->count < 2 || a->count != b->count)
        return NAN;
    for (size_t i = 0; i < a->count; i++) {
        const char *name = a->effects[i].name;
        double in_a = place_of(a, name) - middle, in_b = place_of(b, name) - middle;
        both += in_a * in_b;
        of_a += in_a * in_a;
        of_b += in_b * in_b;
    }
    return both / sqrt(of_a * of_b);
}
