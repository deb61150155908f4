/* eval/cuda/run/profile_wire: what a runner tells of a profiled plan; part of its report page. */
#pragma once

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

/* Where the warps' time goes, by line of the source, most first; the answer to WIRE_SAMPLES. */
enum { HOT_MOST = 8, HOT_FILE_MOST = 48, HOT_STALL_MOST = 32 };

struct wire_hot_line {
    uint32_t line, launch; /* launch: of the plan, the first of that entry */
    uint32_t samples;
    uint32_t stall_samples;     /* of these, with this reason: */
    uint64_t offset;            /* of the instruction with the most of them in its function */
    char stall[HOT_STALL_MOST]; /* "long_scoreboard"; "": none has */
    char file[HOT_FILE_MOST];   /* as the line table says; without folders */
};

struct wire_hot {
    uint64_t samples; /* of the plan's kernels */
    uint32_t count;   /* 0: nothing is known, and why */
    char why[PROFILE_WHY_MOST];
    double ms;
    struct wire_hot_line lines[HOT_MOST];
};

struct wire_profile {
    uint32_t source;
    uint32_t kernels, passes;   /* kernels: of one pass, what memsets add included */
    char why[PROFILE_WHY_MOST]; /* it is no more than this source; "" for counters */
    double open_ms, spent_ms;   /* opening CUPTI, once; this profile without that */
    double values[PROFILE_KERNELS_MOST][COUNTER_COUNT]; /* NAN: not known; records: time alone */
    struct wire_records records;
};
