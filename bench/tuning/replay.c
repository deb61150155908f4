/* How soon the impact of parameters is known: the order of costs from a part of a recorded table
 * (by chance, evenly as an exhaustive tune begins, as the proposer would have measured it) beside
 * the order that the times of all of it have, for which no model is asked, and beside that of the
 * table which an exhaustive tune prints of all of it. Parameters of one value are left out.
 *
 *   replay TABLE.csv [PART] [SEEDS] [NOISE] [drawn]
 *
 * PART: of a start's points (default 0.2). A line for each start and way: Spearman's rank
 * correlation, its mean, median and fifth percentile over the seeds (20), and how many of the
 * table's costs lie in the intervals that the part gave. NOISE: standard deviation of log time from
 * one measuring of a point to the next; then also the order of all points beside itself, measured
 * again. "drawn": in place of the recorded times, those of a function drawn for each seed from the
 * very model that the impact is told by, without noise: what is to be expected of so few points
 * where the model is right. Exit 1 where a mean beside the times is not over 0.9. A line of the
 * table: start,NAME=VALUE,...,time_ns (or "fail"). */
#include "drawn.h"

#include "agents/proposer/proposer.h"
#include "base/mem.h"
#include "tuning/tuning.h"

#include "../../tests/unit/normal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 1 << 16, SEEDS_MAX = 1000, IN_FLIGHT = 3, DRAWN = 3 /* as in a tune */ };

enum way { CHANCE, EVEN, PROPOSER, WAYS };
static const char *const ways[] = {"by chance", "evenly", "by the proposer"};

struct start {
    char name[64];
    size_t parameters, count, kernels; /* kernels first */
    char names[TUNE_MAX][32];
    const char *name_list[TUNE_MAX];
    struct tune_parameter lists[TUNE_MAX]; /* in the order of the table */
    int64_t *points;
    double *time_ns; /* 0: no kernel */
};

static bool add_value(struct tune_parameter *list, int64_t value)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->values[i] == value)
            return true;
    if (list->count == TUNE_VALUES_MAX)
        return false;
    list->values[list->count++] = value;
    return true;
}

/* "# start packed.c MR 8 6; NRV 2 1": the lists in their author's order. */
static void read_head(char *line, struct start *start)
{
    char *rest = strchr(line, ' ') + 1, *word;
    snprintf(start->name, sizeof start->name, "%s", strsep(&rest, " "));
    for (char *list; (list = strsep(&rest, ";\n"));) {
        struct tune_parameter *parameter = &start->lists[start->parameters];
        while (*list == ' ')
            list++;
        if (!*list || start->parameters == TUNE_MAX)
            continue;
        snprintf(start->names[start->parameters], 32, "%s", strsep(&list, " "));
        parameter->name = start->names[start->parameters];
        start->name_list[start->parameters++] = parameter->name;
        while ((word = strsep(&list, " ")))
            if (!add_value(parameter, atoll(word)))
                exit(2);
    }
}

static void read_row(char *line, struct start *start)
{
    char *field;
    size_t parameter = 0;
    if (start->count == ROWS_MAX)
        exit(2);
    while ((field = strsep(&line, ",\n")) && parameter < start->parameters)
        start->points[start->count * start->parameters + parameter++] =
            atoll(strchr(field, '=') + 1);
    start->time_ns[start->count++] = atof(field ? field : "0");
}

static size_t read_starts(const char *path, struct start *starts, size_t most)
{
    char line[4096];
    size_t count = 0;
    FILE *in = fopen(path, "r");
    if (!in)
        exit((perror(path), 2));
    while (fgets(line, sizeof line, in)) {
        if (strncmp(line, "# start ", 8) == 0 && count < most) {
            struct start *start = &starts[count++];
            read_head(line + 2, start);
            start->points = mem_array((size_t)ROWS_MAX * start->parameters, sizeof(int64_t));
            start->time_ns = mem_array(ROWS_MAX, sizeof(double));
        }
        for (size_t i = 0; *line != '#' && i < count; i++) {
            size_t length = strlen(starts[i].name);
            if (strncmp(line, starts[i].name, length) == 0 && line[length] == ',') {
                read_row(line + length + 1, &starts[i]);
                break;
            }
        }
    }
    fclose(in);
    return count;
}

static size_t row_of(const struct start *start, const int64_t *point)
{
    for (size_t i = 0; i < start->count; i++)
        if (memcmp(start->points + i * start->parameters, point,
                   start->parameters * sizeof(int64_t)) == 0)
            return i;
    return start->count;
}

static bool has_point(void *context, const int64_t *point)
{
    const struct start *start = context;
    return row_of(start, point) < start->count;
}

/* Without the parameters that have one value. */
static void leave_fixed(const struct start *start, struct tuning_impact *impact)
{
    size_t count = 0;
    for (size_t i = 0; i < impact->count; i++)
        for (size_t j = 0; j < start->parameters; j++)
            if (start->lists[j].count > 1 && strcmp(impact->effects[i].name, start->names[j]) == 0)
                impact->effects[count++] = impact->effects[i];
    impact->count = count;
}

static void measured(struct start *start, const size_t *rows, size_t count,
                     struct tuning_impact *impact)
{
    size_t width = start->parameters, kernels = 0;
    int64_t *points = mem_array(count * width + 1, sizeof *points);
    double *times = mem_array(count + 1, sizeof *times);
    for (size_t i = 0; i < count; i++) {
        if (start->time_ns[rows[i]] <= 0)
            continue;
        memcpy(points + kernels * width, start->points + rows[i] * width, width * sizeof *points);
        times[kernels++] = start->time_ns[rows[i]];
    }
    const struct tuning_table table = {.parameters = width,
                                       .names = start->name_list,
                                       .count = kernels,
                                       .points = points,
                                       .time_ns = times,
                                       .space_count = start->count,
                                       .space = start->points,
                                       .valid = has_point,
                                       .context = start};
    tuning_impact(&table, impact);
    leave_fixed(start, impact);
    mem_free(points);
    mem_free(times);
}

/* ---- what all points say ---- */

/* Number of the row that agrees with row i on all parameters but j, the first of them. */
static size_t line_of(const struct start *start, size_t i, size_t j)
{
    size_t width = start->parameters;
    for (size_t k = 0; k < i; k++) {
        size_t same = 0;
        for (size_t p = 0; p < width; p++)
            same += p == j || start->points[k * width + p] == start->points[i * width + p];
        if (same == width && start->time_ns[k] > 0)
            return k;
    }
    return i;
}

/* The mean over rows of worst less best within their line. */
static double cost_of(const struct start *start, const double *y, const size_t *line)
{
    double *least = mem_array(start->count, sizeof *least), sum = 0;
    double *most = mem_array(start->count, sizeof *most);
    size_t kernels = 0;
    for (size_t i = 0; i < start->count; i++)
        least[i] = INFINITY, most[i] = -INFINITY;
    for (size_t i = 0; i < start->count; i++)
        if (start->time_ns[i] > 0) {
            least[line[i]] = fmin(least[line[i]], y[i]);
            most[line[i]] = fmax(most[line[i]], y[i]);
        }
    for (size_t i = 0; i < start->count; i++)
        if (start->time_ns[i] > 0)
            sum += most[line[i]] - least[line[i]], kernels++;
    mem_free(least);
    mem_free(most);
    return exp(sum / (double)kernels);
}

static size_t *lines_of(const struct start *start)
{
    size_t *lines = mem_array(start->count * start->parameters, sizeof *lines);
    for (size_t j = 0; j < start->parameters; j++)
        for (size_t i = 0; i < start->count; i++)
            lines[j * start->count + i] = line_of(start, i, j);
    return lines;
}

static void exact(const struct start *start, const size_t *lines, double noise, uint64_t seed,
                  struct tuning_impact *impact)
{
    double *y = mem_array(start->count, sizeof *y);
    struct random random;
    random_init(&random, seed);
    for (size_t i = 0; i < start->count; i++)
        y[i] = log(start->time_ns[i]) + (noise > 0 ? noise * random_normal(&random) : 0);
    *impact = (struct tuning_impact){.count = start->parameters, .points = start->count};
    for (size_t j = 0; j < start->parameters; j++) {
        double cost = cost_of(start, y, lines + j * start->count);
        impact->effects[j] =
            (struct tuning_effect){.name = start->name_list[j], .cost = {cost, 0, 0}};
    }
    leave_fixed(start, impact);
    mem_free(y);
}

/* ---- ways to choose a part ---- */

static void by_chance(const struct start *start, uint64_t seed, size_t *rows, size_t wanted)
{
    struct random random;
    size_t *all = mem_array(start->count, sizeof *all);
    random_init(&random, seed);
    for (size_t i = 0; i < start->count; i++)
        all[i] = i;
    for (size_t i = 0; i < wanted; i++) {
        size_t other = i + (size_t)random_below(&random, start->count - i), kept = all[i];
        rows[i] = all[i] = all[other];
        all[other] = kept;
    }
    mem_free(all);
}

static bool in_table(void *context, const struct names *tune)
{
    return has_point(context, tune->number);
}

static size_t by_proposer(struct start *start, uint64_t seed, unsigned every, size_t *rows,
                          size_t wanted)
{
    struct proposer *proposer = proposer_new(seed);
    const struct proposer_space space = {.name = start->name,
                                         .parameter_count = start->parameters,
                                         .parameters = start->lists,
                                         .valid = in_table,
                                         .context = start};
    struct proposal proposal[IN_FLIGHT];
    size_t asked = 0, told = 0;
    proposer_draw(proposer, every, true);
    if (proposer_add(proposer, &space) < 0)
        exit(2);
    while (told < wanted) {
        for (; asked < told + IN_FLIGHT && asked < wanted; asked++) {
            if (!proposer_next(proposer, &proposal[asked % IN_FLIGHT])) {
                wanted = asked;
                break;
            }
            rows[asked] = row_of(start, proposal[asked % IN_FLIGHT].tune.number);
        }
        if (told == wanted)
            break;
        proposer_tell(proposer, 0, &proposal[told % IN_FLIGHT].tune, start->time_ns[rows[told]]);
        told++;
    }
    proposer_free(proposer);
    return wanted;
}

/* ---- */

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static double middle_of(const double *ordered, size_t count, double part)
{
    double at = part * (double)(count - 1);
    size_t below = (size_t)at, above = below + 1 < count ? below + 1 : below;
    return ordered[below] + (at - (double)below) * (ordered[above] - ordered[below]);
}

static double print_agreement(double *agreement, size_t count)
{
    double mean = 0;
    qsort(agreement, count, sizeof *agreement, by_size);
    for (size_t i = 0; i < count; i++)
        mean += agreement[i] / (double)count;
    printf("rank correlation %.3f, median %.3f, 5 %% %.3f", mean, middle_of(agreement, count, 0.5),
           middle_of(agreement, count, 0.05));
    return mean;
}

static const struct tuning_effect *effect_of(const struct tuning_impact *impact, const char *name)
{
    size_t i = 0;
    while (strcmp(impact->effects[i].name, name) != 0)
        i++;
    return &impact->effects[i];
}

static void print_whole(struct start *start, const struct tuning_impact *all,
                        const struct tuning_impact *whole)
{
    printf("%s, all %zu points, %.0f %% explained; the times' own costs (the table's):",
           start->name, whole->points, 100 * whole->explained);
    for (size_t i = 0; i < whole->count; i++)
        printf(" %s %.3f (%.3f, %.3f to %.3f)", whole->effects[i].name,
               effect_of(all, whole->effects[i].name)->cost.cost, whole->effects[i].cost.cost,
               whole->effects[i].cost.low, whole->effects[i].cost.high);
    for (size_t i = 0; i < whole->pair_count; i++)
        printf(" %sx%s %.3f (%.3f to %.3f)", whole->pairs[i].a, whole->pairs[i].b,
               whole->pairs[i].cost.cost, whole->pairs[i].cost.low, whole->pairs[i].cost.high);
    printf("; rank correlation %.3f\n", tuning_agreement(all, whole));
}

static void print_again(const struct start *start, const size_t *lines,
                        const struct tuning_impact *all, double noise, unsigned seeds)
{
    double agreement[SEEDS_MAX];
    for (unsigned seed = 0; seed < seeds; seed++) {
        struct tuning_impact again;
        exact(start, lines, noise, seed + 1, &again);
        agreement[seed] = tuning_agreement(all, &again);
    }
    printf("%s, all points measured again: ", start->name);
    (void)print_agreement(agreement, seeds);
    putchar('\n');
}

/* Alike for the same rows in any order. */
static uint64_t set_of(const size_t *rows, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        struct random random;
        random_init(&random, rows[i]);
        sum += random_next(&random);
    }
    return sum;
}

static size_t choose(struct start *start, enum way way, uint64_t seed, size_t *rows, size_t wanted)
{
    if (way != CHANCE)
        return by_proposer(start, seed, way == EVEN ? 1 : DRAWN, rows, wanted);
    by_chance(start, seed, rows, wanted);
    return wanted;
}

static bool compare(struct start *start, const struct tuning_impact *all,
                    const struct tuning_impact *whole, enum way way, double part, unsigned seeds)
{
    double times[SEEDS_MAX], table[SEEDS_MAX], relied = 0;
    size_t *rows = mem_array(start->count, sizeof *rows), wanted = 0, inside = 0, told = 0;
    size_t sets = 0;
    uint64_t set[SEEDS_MAX];
    for (unsigned seed = 0; seed < seeds; seed++) {
        struct tuning_impact some;
        wanted = choose(start, way, seed + 1, rows, (size_t)(part * (double)start->count));
        measured(start, rows, wanted, &some);
        set[sets] = set_of(rows, wanted);
        for (size_t i = 0; i <= sets; i++)
            if (set[i] == set[sets]) {
                sets += i == sets;
                break;
            }
        times[seed] = tuning_agreement(all, &some);
        table[seed] = tuning_agreement(whole, &some);
        relied += !some.why;
        for (size_t i = 0; i < some.count && !some.why; i++) {
            double cost = effect_of(all, some.effects[i].name)->cost.cost;
            inside += cost >= some.effects[i].cost.low && cost <= some.effects[i].cost.high;
            told++;
        }
    }
    mem_free(rows);
    printf("%s, %zu points %s: ", start->name, wanted, ways[way]);
    double mean = print_agreement(times, seeds);
    printf("; beside the table of all: ");
    (void)print_agreement(table, seeds);
    printf("; %zu sets of points, relied on in %.0f %% of %u seeds; costs inside their intervals "
           "%.0f %%\n",
           sets, 100 * relied / seeds, seeds, told > 0 ? 100 * (double)inside / (double)told : 0);
    fflush(stdout);
    return mean > 0.9;
}

static bool compare_drawn(struct start *start, double part, unsigned seeds)
{
    bool good = true;
    if (start->count > DRAWN_MAX)
        return printf("%s: too many points to draw their times\n", start->name), true;
    double *recorded = start->time_ns, agreement[SEEDS_MAX];
    size_t *lines = lines_of(start), *rows = mem_array(start->count, sizeof *rows), wanted = 0;
    start->time_ns = mem_array(start->count, sizeof *start->time_ns);
    for (enum way way = CHANCE; way < WAYS; way++) {
        for (unsigned seed = 0; seed < seeds; seed++) {
            struct tuning_impact all, some;
            drawn_times(start->parameters, start->lists, start->count, start->points, seed + 1,
                        start->time_ns);
            exact(start, lines, 0, 0, &all);
            wanted = choose(start, way, seed + 1, rows, (size_t)(part * (double)start->count));
            measured(start, rows, wanted, &some);
            agreement[seed] = tuning_agreement(&all, &some);
        }
        printf("%s, %zu points %s, drawn functions: ", start->name, wanted, ways[way]);
        good = print_agreement(agreement, seeds) > 0.9 && good;
        printf(" of %u\n", seeds);
        fflush(stdout);
    }
    mem_free(start->time_ns);
    start->time_ns = recorded;
    mem_free(lines);
    mem_free(rows);
    return good;
}

static bool compare_all(struct start *start, double part, unsigned seeds, double noise)
{
    struct tuning_impact all, whole;
    bool good = true;
    size_t *lines = lines_of(start), *rows = mem_array(start->count, sizeof *rows);
    for (size_t i = 0; i < start->count; i++)
        rows[i] = i;
    exact(start, lines, 0, 0, &all);
    measured(start, rows, start->count, &whole);
    print_whole(start, &all, &whole);
    if (noise > 0)
        print_again(start, lines, &all, noise, seeds);
    for (enum way way = CHANCE; way < WAYS; way++)
        good = compare(start, &all, &whole, way, part, seeds) && good;
    mem_free(lines);
    mem_free(rows);
    return good;
}

int main(int argc, char **argv)
{
    static struct start starts[PROPOSER_STARTS_MAX];
    double part = argc > 2 ? atof(argv[2]) : 0.2, noise = argc > 4 ? atof(argv[4]) : 0;
    unsigned seeds = argc > 3 ? (unsigned)atoi(argv[3]) : 20;
    if (argc < 2 || part <= 0 || part > 1 || seeds < 1 || seeds > SEEDS_MAX)
        return fprintf(stderr, "usage: replay TABLE.csv [PART] [SEEDS] [NOISE] [drawn]\n"), 2;
    size_t count = read_starts(argv[1], starts, PROPOSER_STARTS_MAX);
    bool all = count > 0;
    for (size_t i = 0; i < count; i++)
        all = (argc > 5 ? compare_drawn(&starts[i], part, seeds)
                        : compare_all(&starts[i], part, seeds, noise)) &&
              all;
    return all ? 0 : 1;
}
