/* Replays a recorded table: how many evaluations until 95 % of the table's best is reached, in a
 * random order and by the proposer; median over seeds.
 *
 *   replay TABLE.csv [SEEDS] [IN_FLIGHT] [NOISE] [--trace]
 *
 * The proposer is told each time with a seeded error of NOISE (a ratio, normal), as a machine would
 * tell it; what counts as reached is the table's own time. It exits with 1 where the proposer's
 * median is more than a quarter of the random order's.
 * A line: start,NAME=VALUE,...,time_ns (or "fail"). Points that are not in the table do not exist.
 */
#include "agents/proposer/proposer.h"
#include "base/clock.h"
#include "base/mem.h"

#include "../../tests/unit/normal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_MAX = 1 << 17, STARTS_MAX = 32 };

struct row {
    int start;
    struct names tune;
    double time_ns; /* 0: failed */
};

struct start {
    char name[64];
    struct tune_parameter parameters[TUNE_MAX];
    struct proposer_space space;
    const struct table *table;
    int number;
};

struct table {
    struct row *rows;
    size_t count;
    struct start starts[STARTS_MAX];
    int start_count;
    double best;
    uint32_t *index; /* open addressing over (start, tune) */
};

static uint64_t key_of(int start, const struct names *tune)
{
    uint64_t key = (uint64_t)start + 1;
    for (size_t i = 0; i < tune->count; i++) {
        key = (key ^ (uint64_t)tune->number[i]) * 0x9E3779B97F4A7C15u;
        key ^= key >> 29;
    }
    return key;
}

static struct row *find(const struct table *table, int start, const struct names *tune)
{
    for (uint64_t at = key_of(start, tune);; at++) {
        uint32_t slot = table->index[at % (2 * ROWS_MAX)];
        if (slot == 0)
            return NULL;
        struct row *row = &table->rows[slot - 1];
        if (row->start == start &&
            memcmp(row->tune.number, tune->number, tune->count * sizeof *tune->number) == 0)
            return row;
    }
}

static bool in_table(void *context, const struct names *tune)
{
    const struct start *start = context;
    return find(start->table, start->number, tune) != NULL;
}

static int start_of(struct table *table, const char *name)
{
    for (int i = 0; i < table->start_count; i++)
        if (strcmp(table->starts[i].name, name) == 0)
            return i;
    struct start *start = &table->starts[table->start_count];
    snprintf(start->name, sizeof start->name, "%s", name);
    start->number = table->start_count;
    start->table = table;
    return table->start_count++;
}

static const char *note(struct start *start, const char *name, int64_t value)
{
    struct tune_parameter *parameter = NULL;
    for (size_t i = 0; i < start->space.parameter_count; i++)
        if (strcmp(start->parameters[i].name, name) == 0)
            parameter = &start->parameters[i];
    if (parameter == NULL) {
        parameter = &start->parameters[start->space.parameter_count++];
        parameter->name = mem_strdup(name);
    }
    for (size_t i = 0; i < parameter->count; i++)
        if (parameter->values[i] == value)
            return parameter->name;
    parameter->values[parameter->count++] = value;
    return parameter->name;
}

static void read_line(struct table *table, char *line)
{
    struct row *row = &table->rows[table->count++];
    char *rest = line;
    row->start = start_of(table, strsep(&rest, ","));
    struct start *start = &table->starts[row->start];
    for (char *field; (field = strsep(&rest, ",\n")) != NULL && *field != '\0';) {
        char *equals = strchr(field, '=');
        if (equals == NULL) {
            row->time_ns = strcmp(field, "fail") == 0 ? 0 : atof(field);
            continue;
        }
        *equals = '\0';
        int64_t value = atoll(equals + 1);
        row->tune.name[row->tune.count] = note(start, field, value);
        row->tune.number[row->tune.count++] = value;
    }
    if (row->time_ns > 0 && (table->best == 0 || row->time_ns < table->best))
        table->best = row->time_ns;
    uint64_t at = key_of(row->start, &row->tune);
    while (table->index[at % (2 * ROWS_MAX)] != 0)
        at++;
    table->index[at % (2 * ROWS_MAX)] = (uint32_t)table->count;
}

/* Lists in the order of the source's front matter decide the first look: a line
 * "# start NAME V V V; NAME V V" gives it, else values stand in the order of the table. */
static void read_order(struct table *table, char *line)
{
    char *rest = line + 8;
    struct start *start = &table->starts[start_of(table, strsep(&rest, " \n"))];
    for (char *list; (list = strsep(&rest, ";\n")) != NULL;) {
        char *words = list + strspn(list, " "), *word;
        char *name = strsep(&words, " ");
        while (words != NULL && *name != '\0' && (word = strsep(&words, " ")) != NULL)
            if (*word != '\0')
                (void)note(start, name, atoll(word));
    }
}

static void read_table(struct table *table, const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    table->rows = mem_array(ROWS_MAX, sizeof *table->rows);
    table->index = mem_array(2 * ROWS_MAX, sizeof *table->index);
    char line[4096];
    while (fgets(line, sizeof line, file) != NULL && table->count < ROWS_MAX) {
        if (strncmp(line, "# start ", 8) == 0)
            read_order(table, line);
        else if (*line != '#' && *line != '\n')
            read_line(table, line);
    }
    fclose(file);
    for (int i = 0; i < table->start_count; i++) {
        struct start *start = &table->starts[i];
        start->space.name = start->name;
        start->space.parameters = start->parameters;
        start->space.valid = in_table;
        start->space.context = start;
    }
}

static size_t random_order(const struct table *table, double target, uint64_t seed)
{
    struct random random;
    random_init(&random, seed);
    uint32_t *order = mem_array(table->count, sizeof *order);
    for (size_t i = 0; i < table->count; i++)
        order[i] = (uint32_t)i;
    size_t used = 0;
    while (used < table->count) {
        size_t pick = used + (size_t)random_below(&random, table->count - used);
        uint32_t swap = order[pick];
        order[pick] = order[used];
        order[used++] = swap;
        double time_ns = table->rows[swap].time_ns;
        if (time_ns > 0 && time_ns <= target)
            break;
    }
    mem_free(order);
    return used;
}

static size_t proposed_order(struct table *table, double target, uint64_t seed, size_t in_flight,
                             double noise, bool trace)
{
    struct random random;
    random_init(&random, seed);
    struct proposer *proposer = proposer_new(seed);
    for (int i = 0; i < table->start_count; i++)
        (void)proposer_add(proposer, &table->starts[i].space);
    struct proposal *queue = mem_array(in_flight, sizeof *queue);
    size_t queued = 0, used = 0;
    bool reached = false;
    while (!reached) {
        while (queued < in_flight && proposer_next(proposer, &queue[queued]))
            queued++;
        if (queued == 0)
            break;
        const struct row *row = find(table, (int)queue[0].start, &queue[0].tune);
        used++;
        if (trace)
            printf("  %3zu %-10s kind %d %.3f of best, expected %.3f\n", used,
                   table->starts[row->start].name, (int)queue[0].kind, row->time_ns / table->best,
                   queue[0].expected_ns / table->best);
        reached = row->time_ns > 0 && row->time_ns <= target;
        double error = exp(noise * random_normal(&random));
        proposer_tell(proposer, queue[0].start, &queue[0].tune, row->time_ns * error);
        memmove(queue, queue + 1, --queued * sizeof *queue);
    }
    mem_free(queue);
    proposer_free(proposer);
    return used;
}

static int ascending(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? -1 : x > y;
}

static double median(size_t *counts, size_t count)
{
    qsort(counts, count, sizeof *counts, ascending);
    return ((double)counts[(count - 1) / 2] + (double)counts[count / 2]) / 2;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s TABLE.csv [SEEDS] [IN_FLIGHT] [NOISE] [--trace]\n", argv[0]);
        return 2;
    }
    static struct table table;
    read_table(&table, argv[1]);
    size_t seeds = argc > 2 ? (size_t)atoi(argv[2]) : 20;
    size_t in_flight = argc > 3 ? (size_t)atoi(argv[3]) : 3;
    double noise = argc > 4 ? atof(argv[4]) : 0.01;
    bool trace = argc > 5;
    double target = table.best / 0.95;
    size_t *random = mem_array(seeds * 50, sizeof *random), *ours = mem_array(seeds, sizeof *ours);
    for (size_t i = 0; i < seeds * 50; i++)
        random[i] = random_order(&table, target, i + 1);
    uint64_t began = clock_now_ns();
    size_t evaluations = 0;
    for (size_t i = 0; i < seeds; i++) {
        ours[i] = proposed_order(&table, target, i + 1, in_flight, noise, trace);
        evaluations += ours[i];
    }
    double ms = (double)(clock_now_ns() - began) / 1e6;
    printf("%s: %zu points in %d starts, best %.0f ns; %zu in flight\n", argv[1], table.count,
           table.start_count, table.best, in_flight);
    double median_random = median(random, seeds * 50), median_ours = median(ours, seeds);
    printf("random order: median %.1f over %zu seeds; proposer: median %.1f, worst %zu over %zu "
           "seeds; ratio %.3f; %.2f ms a proposal\n",
           median_random, seeds * 50, median_ours, ours[seeds - 1], seeds,
           median_ours / median_random, ms / (double)evaluations);
    return median_ours * 4 <= median_random ? 0 : 1;
}
