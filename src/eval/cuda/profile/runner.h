/* eval/cuda/profile/runner: a runner's answer to WIRE_PROFILE, WIRE_RECORDS and WIRE_SAMPLES.
 * Runner process only. */
#pragma once

#include "eval/cuda/counters/counters.h"
#include "eval/cuda/run/runner.h"

/* CUPTI, once; what it lacks the profiles will say. */
void profile_open(struct gpu_runner *runner);

/* The plan of control->call, with the image that was loaded; fills report->profile or, of a plan
 * that was profiled before, report->hot. A fault of the
 * candidate's is report->status, as with a call. */
void profile_run(struct gpu_runner *runner);

/* ---- inside src/eval/cuda/profile of the runner ---- */

struct profiling {
    struct gpu_runner *runner;
    struct wire_profile *told;
    const struct call *call;
    cu_pointer pointers[CALL_POINTERS_MAX];
    struct fault fault;
};

int profiling_upload(struct profiling *profiling) MUST_USE; /* inputs; then as clear */
int profiling_clear(struct profiling *profiling) MUST_USE;  /* outputs and workspaces: zeros */
int profiling_broken(struct profiling *profiling, cu_result result) MUST_USE; /* 0 of 0 */

int profiling_empty_caches(struct profiling *profiling) MUST_USE; /* as before a timed launch */

/* report->hot. -1 with profiling->fault; what is CUPTI's doing is report->hot.why. */
int profile_sample(struct profiling *profiling, struct counters *counters) MUST_USE;
/* told->records. -1 with profiling->fault; what is CUPTI's doing is told->records.why. */
int profile_record_launches(struct profiling *profiling, struct counters *counters) MUST_USE;
