/* Which lines of the source the warps are at, and what they wait for there: instructions sampled by
 * the hardware over some launches of the plan, each as the cubin's own line table has it. It was
 * compiled with that table when it was timed, so that this is the code that was. */
#include "base/clock.h"
#include "eval/cuda/profile/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PCS_MOST = 4096, LINES_MOST = 512, LOOKED_UP_MOST = 1024, LOOK_UP_MS = 150 };
enum { SAMPLES_ABOUT = 40000, PERIOD_LEAST = 7, PERIOD_MOST = 24, LAUNCHES = 4 };
static const double long_ns = 1e6;      /* such a launch is enough by itself */
static const double cycles_of_ns = 1.7; /* about: it chooses a power of two */

struct line {
    struct wire_hot_line told;
    uint32_t of_offset; /* samples of told.offset */
    uint32_t stalls[STALLS_MOST];
};

struct sampling {
    struct profiling *profiling;
    const struct counters *counters;
    size_t pc_count, line_count;
    uint64_t samples;
    struct counters_pc pcs[PCS_MOST];
    struct line lines[LINES_MOST];
};

static void take(void *context, const struct counters_pc *pc)
{
    struct sampling *sampling = (struct sampling *)context;
    sampling->samples += pc->samples;
    if (sampling->pc_count < PCS_MOST)
        sampling->pcs[sampling->pc_count++] = *pc;
}

/* Of the plan's launches the first of this entry; launch_count: it is none of them. */
static uint32_t launch_of(const struct plan *plan, const char *function)
{
    uint32_t at = 0;
    while (at < plan->launch_count && strcmp(plan->launches[at].entry, function) != 0)
        at++;
    return at;
}

static struct line *line_of(struct sampling *sampling, const struct wire_hot_line *which)
{
    for (size_t i = 0; i < sampling->line_count; i++) {
        struct line *line = &sampling->lines[i];
        if (line->told.line == which->line && line->told.launch == which->launch &&
            strcmp(line->told.file, which->file) == 0)
            return line;
    }
    if (sampling->line_count == LINES_MOST)
        return NULL;
    struct line *line = &sampling->lines[sampling->line_count++];
    *line = (struct line){.told = *which};
    return line;
}

static void add(struct sampling *sampling, const struct counters_pc *pc)
{
    const struct gpu_runner *runner = sampling->profiling->runner;
    const struct plan *plan = &runner->control->plan;
    struct wire_hot_line which = {.launch = launch_of(plan, pc->function), .offset = pc->offset};
    if (which.launch == plan->launch_count)
        return;
    uint64_t at = plan->launches[which.launch].image_at;
    which.line = counters_line(sampling->counters, (const char *)runner->image + at,
                               runner->image_bytes - at, pc->function, pc->offset, which.file);
    struct line *line = line_of(sampling, &which);
    if (line == NULL)
        return;
    line->told.samples += pc->samples;
    for (size_t i = 0; i < STALLS_MOST; i++)
        line->stalls[i] += pc->stalls[i];
    if (pc->samples > line->of_offset) {
        line->of_offset = pc->samples;
        line->told.offset = pc->offset;
    }
}

/* "selected": it did go on. */
static void name_stall(const struct counters_stalls *stalls, struct line *line)
{
    for (size_t i = 0; i < stalls->count; i++)
        if (line->stalls[i] > line->told.stall_samples &&
            strcmp(stalls->name[i], "selected") != 0) {
            line->told.stall_samples = line->stalls[i];
            snprintf(line->told.stall, sizeof line->told.stall, "%s", stalls->name[i]);
        }
}

static int most_first(const void *left, const void *right)
{
    uint32_t a = ((const struct counters_pc *)left)->samples;
    uint32_t b = ((const struct counters_pc *)right)->samples;
    return (a < b) - (a > b);
}

static int hottest_first(const void *left, const void *right)
{
    const struct wire_hot_line *a = &((const struct line *)left)->told;
    const struct wire_hot_line *b = &((const struct line *)right)->told;
    return a->samples != b->samples ? (a->samples < b->samples ? 1 : -1)
                                    : (a->line > b->line) - (a->line < b->line);
}

/* What is looked up first is what counts most. */
static void tell(struct sampling *sampling, struct wire_hot *hot)
{
    uint64_t until = clock_now_ns() + LOOK_UP_MS * UINT64_C(1000000);
    qsort(sampling->pcs, sampling->pc_count, sizeof sampling->pcs[0], most_first);
    for (size_t i = 0; i < sampling->pc_count && i < LOOKED_UP_MOST && clock_now_ns() < until; i++)
        add(sampling, &sampling->pcs[i]);
    qsort(sampling->lines, sampling->line_count, sizeof sampling->lines[0], hottest_first);
    hot->samples = sampling->samples;
    for (size_t i = 0; i < sampling->line_count && i < HOT_MOST; i++) {
        name_stall(&sampling->counters->stalls, &sampling->lines[i]);
        hot->lines[hot->count++] = sampling->lines[i].told;
    }
    if (hot->count > 0)
        return;
    char told[SAMPLES_TOLD_MOST];
    counters_samples_told(told);
    snprintf(hot->why, sizeof hot->why, "no instruction of its kernels was sampled (%s)", told);
}

static uint32_t period_for(const struct gpu_runner *runner, double launch_ns, int launches)
{
    double each = launch_ns * cycles_of_ns * launches * runner->device.sm_count / SAMPLES_ABOUT;
    uint32_t period = PERIOD_LEAST;
    while (period < PERIOD_MOST && each > (double)(UINT64_C(2) << period))
        period++;
    return period;
}

/* By a module that was loaded after sampling began and stays until its samples are read, so that
 * CUPTI knows its functions. -1 with profiling->fault; 1: CUPTI's doing. */
static int launch_all(struct sampling *sampling, struct counters *counters, int launches,
                      struct err *err)
{
    struct profiling *profiling = sampling->profiling;
    struct gpu_runner *runner = profiling->runner;
    struct graph graph;
    int status = graph_open(&runner->driver, runner->image, NULL, &runner->control->plan,
                            profiling->pointers, runner->stream, &graph, &profiling->fault);
    for (int i = 0; i < launches && status == 0; i++) {
        status = profiling_empty_caches(profiling);
        if (status == 0)
            status = graph_step(&graph, &profiling->fault);
    }
    if (status != 0)
        counters_samples_abandon(counters);
    else if (counters_samples_end(counters, take, sampling, err) != 0)
        status = 1;
    graph_close(&graph);
    return status;
}

static int sample(struct sampling *sampling, struct counters *counters, struct err *err)
{
    struct profiling *profiling = sampling->profiling;
    struct gpu_runner *runner = profiling->runner;
    const struct wire_records *records = &profiling->told->records;
    double launch_ns = records->launches > 0 ? records->event_ns[0] : long_ns;
    int launches = launch_ns < long_ns ? LAUNCHES : 1;
    if (profiling_upload(profiling) != 0)
        return -1;
    if (counters_samples_begin(counters, period_for(runner, launch_ns, launches), err) != 0)
        return 1;
    return launch_all(sampling, counters, launches, err);
}

int profile_sample(struct profiling *profiling, struct counters *counters)
{
    struct wire_hot *hot = &profiling->runner->report->hot;
    struct sampling *sampling = calloc(1, sizeof *sampling);
    struct err err = {0};
    if (sampling == NULL)
        return profiling_broken(profiling, CU_OUT_OF_MEMORY);
    sampling->profiling = profiling;
    sampling->counters = counters;
    int status = sample(sampling, counters, &err);
    if (status == 0)
        tell(sampling, hot);
    else if (status > 0)
        snprintf(hot->why, sizeof hot->why, "%.*s", (int)sizeof hot->why - 1, err.message);
    free(sampling);
    return status < 0 ? -1 : 0;
}
