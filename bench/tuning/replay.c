/* How soon the impact of parameters is known: the order of shares from a part of a recorded table
 * (by chance, and as the proposer would have measured it) beside the order from all of it.
 *
 *   replay TABLE.csv [PART] [SEEDS]
 *
 * PART: of a start's points (default 0.2). A line for each start and way: Spearman's rank
 * correlation, median and least over the seeds. Exit 1 where a median is not over 0.9.
 * A line of the table: start,NAME=VALUE,...,time_ns (or "fail"). */
#include "agents/proposer/proposer.h"
#include "base/mem.h"
#include "base/random.h"
#include "tuning/tuning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 1 << 16, SEEDS_MAX = 100, IN_FLIGHT = 3, DRAWN = 3 /* as in a tune */ };

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

static void measured(const struct start *start, const size_t *rows, size_t count,
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
                                       .space = start->points};
    tuning_impact(&table, impact);
    mem_free(points);
    mem_free(times);
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

static size_t row_of(const struct start *start, const struct names *tune)
{
    for (size_t i = 0; i < start->count; i++)
        if (memcmp(start->points + i * start->parameters, tune->number,
                   start->parameters * sizeof(int64_t)) == 0)
            return i;
    return start->count;
}

static bool in_table(void *context, const struct names *tune)
{
    const struct start *start = context;
    return row_of(start, tune) < start->count;
}

static size_t by_proposer(struct start *start, uint64_t seed, size_t *rows, size_t wanted)
{
    struct proposer *proposer = proposer_new(seed);
    const struct proposer_space space = {.name = start->name,
                                         .parameter_count = start->parameters,
                                         .parameters = start->lists,
                                         .valid = in_table,
                                         .context = start};
    struct proposal proposal[IN_FLIGHT];
    size_t asked = 0, told = 0;
    proposer_draw(proposer, DRAWN);
    if (proposer_add(proposer, &space) < 0)
        exit(2);
    while (told < wanted) {
        for (; asked < told + IN_FLIGHT && asked < wanted; asked++) {
            if (!proposer_next(proposer, &proposal[asked % IN_FLIGHT])) {
                wanted = asked;
                break;
            }
            rows[asked] = row_of(start, &proposal[asked % IN_FLIGHT].tune);
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

static void print_impact(const struct start *start, const struct tuning_impact *impact)
{
    printf("%s, all %zu points, %.0f %% explained:", start->name, impact->points,
           100 * impact->explained);
    for (size_t i = 0; i < impact->count; i++)
        printf(" %s %.3f (%.3f to %.3f)", impact->effects[i].name, impact->effects[i].share.share,
               impact->effects[i].share.low, impact->effects[i].share.high);
    for (size_t i = 0; i < impact->pair_count; i++)
        printf(" %sx%s %.3f", impact->pairs[i].a, impact->pairs[i].b, impact->pairs[i].share.share);
    putchar('\n');
}

static bool compare(struct start *start, const char *way, double part, unsigned seeds)
{
    struct tuning_impact whole, some;
    double agreement[SEEDS_MAX];
    size_t *rows = mem_array(start->count, sizeof *rows), wanted = 0;
    for (size_t i = 0; i < start->count; i++)
        rows[i] = i;
    measured(start, rows, start->count, &whole);
    if (strcmp(way, "random") == 0)
        print_impact(start, &whole);
    for (unsigned seed = 0; seed < seeds; seed++) {
        wanted = (size_t)(part * (double)start->count);
        if (strcmp(way, "random") == 0)
            by_chance(start, seed + 1, rows, wanted);
        else
            wanted = by_proposer(start, seed + 1, rows, wanted);
        measured(start, rows, wanted, &some);
        agreement[seed] = tuning_agreement(&whole, &some);
    }
    mem_free(rows);
    qsort(agreement, seeds, sizeof *agreement, by_size);
    double median = (agreement[(seeds - 1) / 2] + agreement[seeds / 2]) / 2;
    printf("%s, %zu points by %s: rank correlation %.3f, least of %u seeds %.3f\n", start->name,
           wanted, way, median, seeds, agreement[0]);
    fflush(stdout);
    return median > 0.9;
}

int main(int argc, char **argv)
{
    static struct start starts[PROPOSER_STARTS_MAX];
    double part = argc > 2 ? atof(argv[2]) : 0.2;
    unsigned seeds = argc > 3 ? (unsigned)atoi(argv[3]) : 5;
    if (argc < 2 || part <= 0 || part > 1 || seeds < 1 || seeds > SEEDS_MAX)
        return fprintf(stderr, "usage: replay TABLE.csv [PART] [SEEDS]\n"), 2;
    size_t count = read_starts(argv[1], starts, PROPOSER_STARTS_MAX);
    bool all = count > 0;
    for (size_t i = 0; i < count; i++) {
        all = compare(&starts[i], "random", part, seeds) && all;
        all = compare(&starts[i], "proposer", part, seeds) && all;
    }
    return all ? 0 : 1;
}
