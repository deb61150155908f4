/* eval/cuda/run/profile_wire: what a runner tells of a profiled plan; part of its report page. */
#ifndef EVAL_CUDA_RUN_PROFILE_WIRE_H
#define EVAL_CUDA_RUN_PROFILE_WIRE_H

#include "eval/cuda/counters/table.h"

#include <stdint.h>

enum { PROFILE_KERNELS_MOST = 16, PROFILE_WHY_MOST = 240 };

enum profile_source {
    PROFILE_RESOURCES, /* neither counters nor records */
    PROFILE_RECORDS,   /* when each kernel began and ended */
    PROFILE_COUNTERS
};

/* The captured plan, launched as a timed call launches it, by two clocks: events around each launch
 * and CUPTI's records of what ran in it (counters.h). */
enum { RECORDED_MOST = 5 };

struct wire_records {
    uint32_t launches;          /* 0: none, and why */
    uint32_t fault;             /* a launch failed: the runner is of no more use */
    uint32_t kernels, memsets;  /* of the last launch */
    char why[PROFILE_WHY_MOST]; /* there are none */
    double event_ns[RECORDED_MOST], span_ns[RECORDED_MOST], busy_ns[RECORDED_MOST];
};

struct wire_profile {
    uint32_t source;
    uint32_t kernels, passes;   /* kernels: of one pass, what memsets add included */
    char why[PROFILE_WHY_MOST]; /* it is no more than this source; "" for counters */
    double open_ms, spent_ms;   /* opening CUPTI, once; this profile without that */
    double values[PROFILE_KERNELS_MOST][COUNTER_COUNT]; /* NAN: not known; records: time alone */
    struct wire_records records;
};

#endif
