/* eval/cuda/counters: hardware counters of the launches between two calls, by CUPTI's range
 * profiler: every kernel a range of its own, the whole plan launched again for each pass by whoever
 * holds it, with memory as it was. In a runner that is kept for profiles. Where counters cannot be
 * had, CUPTI's records of activity tell at least when each kernel began and ended.
 *
 *   open -> begin -> (start -> launches -> stop) until all -> end -> begin ... -> close
 *
 * Between end and begin nothing of the profiler is active on the device. */
#pragma once

#include "eval/cuda/counters/cupti.h"
#include "eval/cuda/counters/table.h"

#include <stdbool.h>

enum { COUNTERS_KERNELS_MOST = 16 }; /* in one pass: a plan's launches, and what memsets add */
enum { STALLS_MOST = 64, STALL_NAME_MOST = 32, LINE_FILE_MOST = 48 };

struct counters_stalls { /* why a sampled warp did not go on: "long_scoreboard"; "": not to count */
    size_t count;
    uint32_t reason[STALLS_MOST]; /* CUPTI's number */
    char name[STALLS_MOST][STALL_NAME_MOST];
};

struct counters {
    struct cupti cupti;
    void *context, *host, *profiler; /* profiler: while between begin and end */
    size_t count;                    /* of counters that this chip has */
    const char *names[COUNTER_COUNT];
    enum counter numbers[COUNTER_COUNT];
    uint8_t *config, *data;
    size_t config_bytes, data_bytes, passes;
    struct counters_stalls stalls; /* known while instructions are sampled */
};

/* `device`: of the driver's; needs the context to be current. ERR_ENVIRONMENT: no libcupti at all.
 * ERR_UNSUPPORTED: records alone (counters_record()), and why: too old, or not permitted. */
int counters_open(int device, void *context, struct counters *counters, struct err *err) MUST_USE;

int counters_begin(struct counters *counters, struct err *err) MUST_USE;
int counters_start(struct counters *counters, struct err *err) MUST_USE;
int counters_stop(struct counters *counters, bool *all, struct err *err) MUST_USE;
/* values[i][counter] of the i-th kernel of a pass; NAN: not known. *kernels: how many there were.
 */
int counters_end(struct counters *counters, double values[][COUNTER_COUNT], size_t most,
                 size_t *kernels, struct err *err) MUST_USE;
void counters_abandon(struct counters *counters); /* after an error: nothing stays active */

/* Durations of the kernels that run between the two calls. */
int counters_record_begin(struct counters *counters, struct err *err) MUST_USE;
int counters_record_end(struct counters *counters, double *times_ns, size_t most, size_t *kernels,
                        struct err *err) MUST_USE;

struct counters_span { /* kernels between start and stop, and memsets that a graph launched */
    uint32_t kernels, memsets, untimed; /* untimed: of these, without times */
    double span_ns, busy_ns;            /* first start to last end; sum of the durations */
};

/* begin -> (start -> launches -> stop) ... -> end. A graph's nodes have records of their own only
 * where it is instantiated after begin. Before start and stop the stream was waited for. */
int counters_span_begin(struct counters *counters, struct err *err) MUST_USE;
int counters_span_start(struct counters *counters, struct err *err) MUST_USE;
int counters_span_stop(struct counters *counters, struct counters_span *span,
                       struct err *err) MUST_USE;
void counters_span_end(struct counters *counters);

/* Instructions: begin -> launches -> end, with a module that is loaded after begin and stays until
 * end; never between counters_begin() and counters_end(). A sample every 2^period cycles on each
 * multiprocessor. ERR_UNSUPPORTED, in words; then nothing stays active. */
struct counters_pc {
    const char *function; /* CUPTI's own, for the life of the process */
    uint64_t offset;
    uint32_t samples, stalls[STALLS_MOST]; /* in the order of counters->stalls */
};
int counters_samples_begin(struct counters *counters, uint32_t period, struct err *err) MUST_USE;
int counters_samples_end(struct counters *counters,
                         void (*take)(void *context, const struct counters_pc *pc), void *context,
                         struct err *err) MUST_USE;
void counters_samples_abandon(struct counters *counters); /* after a launch that failed */
/* What CUPTI said of all of them, for people. */
enum { SAMPLES_TOLD_MOST = 120 };
void counters_samples_told(char text[SAMPLES_TOLD_MOST]);
/* The line of the source of an instruction, and its file without folders, by the cubin's own table,
 * which its author could write; 0: not known. */
uint32_t counters_line(const struct counters *counters, const void *image, size_t bytes,
                       const char *function, uint64_t offset, char file[LINE_FILE_MOST]);
