/* eval/cuda/counters: hardware counters of the launches between two calls, by CUPTI's range
 * profiler: every kernel a range of its own, the whole plan launched again for each pass by whoever
 * holds it, with memory as it was. In a runner that is kept for profiles. Where counters cannot be
 * had, CUPTI's records of activity tell at least when each kernel began and ended.
 *
 *   open -> begin -> (start -> launches -> stop) until all -> end -> begin ... -> close
 *
 * Between end and begin nothing of the profiler is active on the device. */
#ifndef EVAL_CUDA_COUNTERS_COUNTERS_H
#define EVAL_CUDA_COUNTERS_COUNTERS_H

#include "eval/cuda/counters/cupti.h"
#include "eval/cuda/counters/table.h"

#include <stdbool.h>

enum { COUNTERS_KERNELS_MOST = 16 }; /* in one pass: a plan's launches, and what memsets add */

struct counters {
    struct cupti cupti;
    void *context, *host, *profiler; /* profiler: while between begin and end */
    size_t count;                    /* of counters that this chip has */
    const char *names[COUNTER_COUNT];
    enum counter numbers[COUNTER_COUNT];
    uint8_t *config, *data;
    size_t config_bytes, data_bytes, passes;
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

#endif
