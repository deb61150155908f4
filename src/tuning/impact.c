/* Which parameter mattered: tuning.h says how. */
#include "tuning/model.h"

#include "base/mem.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROBES = 4096,     /* points whose expected time is asked for, about */
    BASES_LEAST = 128, /* however many parameters there are */
    FEWEST = 8,        /* points below which nothing is said */
    TRIES = 8,         /* for a rectangle of valid points */
    SEED = 20050201,   /* the same table, the same answer */
    PAIRS = TUNING_PARAMETERS * (TUNING_PARAMETERS - 1) / 2,
    COSTS = TUNING_PARAMETERS + PAIRS,
    NONE = -1
};
static const double EXPLAINED_LEAST = 0.5; /* of points left out; below, costs are guesses */
static const double ERROR_USUAL = 0.02;    /* of log time: what a model of times misses anyway */
static const double PAIR_LEAST = 1.01;
static const double NO_VARIANCE = 1e-12; /* times that differ by a millionth do not */
static const double STUDENT_95 = 2.262;  /* of as many folds as there are */

/* A valid point, and three more: with a's value of `other`, with b's, with both. */
struct rectangle {
    int32_t corner[4];
};

struct work {
    const struct tuning_table *table;
    size_t levels[TUNING_PARAMETERS], first[TUNING_PARAMETERS]; /* first: place in a base's lines */
    int64_t values[TUNING_PARAMETERS][TUNING_LEVELS];
    struct model model;
    size_t width, bases, probes, room;
    model_point *base, *probe;
    int32_t *line; /* probe of a base with one value exchanged: bases x width; NONE: not valid */
    struct rectangle *rectangle;    /* bases x pairs */
    double (*expected)[MODEL_FITS]; /* of each probe */
    double cost[MODEL_FITS][COSTS]; /* in logarithms: of parameters, then of pairs */
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

static void read_point(struct work *work, const int64_t *point, uint8_t *at)
{
    for (size_t j = 0; j < work->table->parameters; j++)
        at[j] = (uint8_t)position(work, j, point[j]);
}

static void read_rows(struct work *work, struct random *random)
{
    const struct tuning_table *table = work->table;
    struct model *model = &work->model;
    model->parameters = table->parameters;
    model->count = table->count < MODEL_ROWS ? table->count : MODEL_ROWS;
    for (size_t i = 0; i < model->count; i++) {
        size_t from = i * table->count / model->count, other = (size_t)random_below(random, i + 1);
        double error = table->error ? table->error[from] / ERROR_USUAL : 0;
        read_point(work, table->points + from * table->parameters, model->at[i]);
        model->y[i] = log(table->time_ns[from]);
        model->say[i] = 1 / (1 + error * error);
        model->fold[i] = model->fold[other]; /* equal folds, in a random order */
        model->fold[other] = (uint8_t)(i % MODEL_FOLDS);
    }
}

/* As many points of the space as the probes allow. */
static void read_bases(struct work *work)
{
    const struct tuning_table *table = work->table;
    const int64_t *points = table->space ? table->space : table->points;
    size_t all = table->space ? table->space_count : table->count, width = table->parameters;
    for (size_t i = 0; i < all; i++) { /* every value has its place first */
        model_point at;
        read_point(work, points + i * width, at);
    }
    for (size_t j = 0; j < width; j++) {
        work->first[j] = work->width;
        work->width += work->levels[j];
    }
    work->bases = PROBES / (1 + work->width + width * (width - 1) / 2);
    work->bases = work->bases < BASES_LEAST ? BASES_LEAST : work->bases;
    work->bases = work->bases < all ? work->bases : all;
    work->base = mem_array(work->bases, sizeof *work->base);
    for (size_t i = 0; i < work->bases; i++)
        read_point(work, points + i * all / work->bases * width, work->base[i]);
}

/* ---- what is asked of the model ---- */

static int32_t add_probe(struct work *work, const uint8_t *at)
{
    MEM_MORE(work->probe, work->probes, work->room);
    memcpy(work->probe[work->probes], at, sizeof(model_point));
    return (int32_t)work->probes++;
}

static bool is_valid(const struct work *work, const uint8_t *at)
{
    int64_t point[TUNING_PARAMETERS];
    for (size_t j = 0; j < work->table->parameters; j++)
        point[j] = work->values[j][at[j]];
    return !work->table->valid || work->table->valid(work->table->context, point);
}

static void add_lines(struct work *work, size_t i)
{
    int32_t own = add_probe(work, work->base[i]);
    for (size_t j = 0; j < work->table->parameters; j++)
        for (size_t level = 0; level < work->levels[j]; level++) {
            int32_t *probe = &work->line[i * work->width + work->first[j] + level];
            model_point at;
            memcpy(at, work->base[i], sizeof at);
            at[j] = (uint8_t)level;
            *probe = level == work->base[i][j] ? own
                     : is_valid(work, at)      ? add_probe(work, at)
                                               : NONE;
        }
}

static int32_t on_line(const struct work *work, size_t i, size_t j, size_t level)
{
    return work->line[i * work->width + work->first[j] + level];
}

/* A rectangle from base i with other values of a and b by chance; corner[3] NONE: none was found.
 */
static struct rectangle rectangle_at(struct work *work, size_t i, size_t a, size_t b,
                                     struct random *random)
{
    struct rectangle found = {.corner = {on_line(work, i, a, work->base[i][a]), NONE, NONE, NONE}};
    if (work->levels[a] < 2 || work->levels[b] < 2)
        return found;
    for (int k = 0; k < TRIES && found.corner[3] == NONE; k++) {
        model_point at;
        memcpy(at, work->base[i], sizeof at);
        at[a] =
            (uint8_t)((at[a] + 1 + random_below(random, work->levels[a] - 1)) % work->levels[a]);
        at[b] =
            (uint8_t)((at[b] + 1 + random_below(random, work->levels[b] - 1)) % work->levels[b]);
        found.corner[1] = on_line(work, i, a, at[a]);
        found.corner[2] = on_line(work, i, b, at[b]);
        if (found.corner[1] != NONE && found.corner[2] != NONE && is_valid(work, at))
            found.corner[3] = add_probe(work, at);
    }
    return found;
}

static void ask(struct work *work, struct random *random)
{
    size_t parameters = work->table->parameters;
    work->line = mem_array(work->bases * work->width, sizeof *work->line);
    work->rectangle = mem_array(work->bases * PAIRS, sizeof *work->rectangle);
    for (size_t i = 0; i < work->bases; i++) {
        struct rectangle *rectangle = work->rectangle + i * PAIRS;
        add_lines(work, i);
        for (size_t a = 0; a < parameters; a++)
            for (size_t b = a + 1; b < parameters; b++)
                *rectangle++ = rectangle_at(work, i, a, b, random);
    }
    work->expected = mem_array(work->probes, sizeof *work->expected);
    for (size_t i = 0; i < work->probes; i++)
        model_predict(&work->model, work->probe[i], work->expected[i]);
}

/* ---- costs ---- */

struct sums {
    double count, sum, square;
};

static void sums_add(struct sums *sums, double number)
{
    sums->count++;
    sums->sum += number;
    sums->square += number * number;
}

static double sums_variance(const struct sums *sums)
{
    double mean = sums->sum / sums->count;
    return fmax(0, sums->square / sums->count - mean * mean);
}

/* Worst over best of a parameter's valid values at a base, in logarithms. */
static double line_cost(const struct work *work, size_t i, size_t j, size_t fit)
{
    double least = INFINITY, most = -INFINITY;
    for (size_t level = 0; level < work->levels[j]; level++) {
        int32_t probe = on_line(work, i, j, level);
        if (probe == NONE)
            continue;
        least = fmin(least, work->expected[probe][fit]);
        most = fmax(most, work->expected[probe][fit]);
    }
    return most - least;
}

static double rectangle_cost(const struct work *work, size_t i, size_t pair, size_t fit)
{
    const int32_t *corner = work->rectangle[i * PAIRS + pair].corner;
    if (corner[3] == NONE)
        return 0;
    return fabs(work->expected[corner[0]][fit] - work->expected[corner[1]][fit] -
                work->expected[corner[2]][fit] + work->expected[corner[3]][fit]);
}

static void costs_of(struct work *work, size_t fit)
{
    double *costs = work->cost[fit];
    size_t parameters = work->table->parameters;
    for (size_t i = 0; i < work->bases; i++)
        for (size_t a = 0, pair = 0; a < parameters; a++) {
            costs[a] += line_cost(work, i, a, fit) / (double)work->bases;
            for (size_t b = a + 1; b < parameters; b++, pair++)
                costs[TUNING_PARAMETERS + pair] +=
                    rectangle_cost(work, i, pair, fit) / (double)work->bases;
        }
}

/* By the jackknife over the folds. */
static struct tuning_cost interval_of(const struct work *work, size_t which)
{
    double cost = work->cost[MODEL_FOLDS][which];
    struct sums sums = {0};
    for (size_t fold = 0; fold < MODEL_FOLDS; fold++)
        sums_add(&sums, work->cost[fold][which] - cost);
    double far = STUDENT_95 * sqrt((MODEL_FOLDS - 1) * sums_variance(&sums));
    return (struct tuning_cost){exp(cost), exp(fmax(0, cost - far)), exp(cost + far)};
}

/* The share of the variance of the points of each fold that the fit without them predicts. */
static void read_fits(struct work *work, struct tuning_impact *impact)
{
    const struct model *model = &work->model;
    double mean = 0, say = 0, all = 0, missed = 0, square = 0;
    for (size_t i = 0; i < model->count; i++) {
        mean += model->y[i] * model->say[i];
        say += model->say[i];
    }
    mean /= say;
    for (size_t i = 0; i < model->count; i++) {
        double expected[MODEL_FITS];
        model_predict(model, model->at[i], expected);
        missed += pow(model->y[i] - expected[model->fold[i]], 2) * model->say[i];
        all += pow(model->y[i] - mean, 2) * model->say[i];
    }
    for (size_t i = 0; i < work->table->count; i++)
        square += pow(log(work->table->time_ns[i]) - mean, 2);
    impact->explained = all > NO_VARIANCE * say ? 1 - missed / all : 0;
    impact->differ = sqrt(square / (double)work->table->count);
}

/* ---- what is told ---- */

/* The value with the least expected time over the space, each beside the others that are valid in
 * its place. */
static void best_value(const struct work *work, size_t parameter, struct tuning_effect *effect)
{
    double least = INFINITY;
    bool seen[TUNING_LEVELS] = {false};
    struct sums of[TUNING_LEVELS] = {{0}};
    for (size_t i = 0; i < work->model.count; i++)
        seen[work->model.at[i][parameter]] = true;
    for (size_t i = 0; i < work->bases; i++) {
        struct sums line = {0};
        for (int round = 0; round < 2; round++)
            for (size_t level = 0; level < work->levels[parameter]; level++) {
                int32_t probe = on_line(work, i, parameter, level);
                if (probe == NONE)
                    continue;
                double expected = work->expected[probe][MODEL_FOLDS];
                sums_add(round ? &of[level] : &line,
                         round ? expected - line.sum / line.count : expected);
            }
    }
    for (size_t level = 0; level < work->levels[parameter]; level++) {
        effect->levels += seen[level];
        if (!seen[level] || of[level].count == 0)
            continue;
        double mean = of[level].sum / of[level].count;
        if (mean < least)
            effect->best = work->values[parameter][level];
        least = fmin(least, mean);
    }
}

static int by_cost(const void *left, const void *right)
{
    const struct tuning_effect *a = left, *b = right;
    return a->cost.cost > b->cost.cost ? -1 : a->cost.cost < b->cost.cost;
}

static int pair_by_cost(const void *left, const void *right)
{
    const struct tuning_pair *a = left, *b = right;
    return a->cost.cost > b->cost.cost ? -1 : a->cost.cost < b->cost.cost;
}

static void tell_pairs(const struct work *work, struct tuning_impact *impact)
{
    struct tuning_pair all[PAIRS];
    size_t count = 0, pair = TUNING_PARAMETERS;
    for (size_t a = 0; a < work->table->parameters; a++)
        for (size_t b = a + 1; b < work->table->parameters; b++, pair++) {
            struct tuning_cost cost = interval_of(work, pair);
            if (cost.low >= PAIR_LEAST)
                all[count++] =
                    (struct tuning_pair){work->table->names[a], work->table->names[b], cost};
        }
    qsort(all, count, sizeof *all, pair_by_cost);
    impact->pair_count = count < TUNING_PAIRS ? count : TUNING_PAIRS;
    memcpy(impact->pairs, all, impact->pair_count * sizeof *all);
}

static void measure(struct work *work, struct tuning_impact *impact)
{
    struct random random;
    random_init(&random, SEED);
    read_rows(work, &random);
    read_bases(work);
    for (size_t j = 0; j < work->table->parameters; j++)
        model_values(&work->model, j, work->values[j], work->levels[j]);
    model_fit(&work->model);
    ask(work, &random);
    read_fits(work, impact);
    for (size_t fit = 0; fit < MODEL_FITS; fit++)
        costs_of(work, fit);
    impact->count = work->table->parameters;
    for (size_t j = 0; j < impact->count; j++) {
        struct tuning_effect *effect = &impact->effects[j];
        effect->name = work->table->names[j];
        effect->cost = interval_of(work, j);
        best_value(work, j, effect);
    }
    tell_pairs(work, impact);
    qsort(impact->effects, impact->count, sizeof *impact->effects, by_cost);
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
    measure(work, impact);
    mem_free(work->base);
    mem_free(work->probe);
    mem_free(work->line);
    mem_free(work->rectangle);
    mem_free(work->expected);
    mem_free(work);
}

/* ---- agreement ---- */

/* Places from 1, equal ones the mean of theirs. */
static double place_of(const struct tuning_impact *impact, const char *name)
{
    double cost = NAN, above = 0, equal = 0;
    for (size_t i = 0; i < impact->count; i++)
        if (strcmp(impact->effects[i].name, name) == 0)
            cost = impact->effects[i].cost.cost;
    for (size_t i = 0; i < impact->count; i++) {
        above += impact->effects[i].cost.cost > cost;
        equal += impact->effects[i].cost.cost == cost;
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
