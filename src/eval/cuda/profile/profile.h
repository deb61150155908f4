/* eval/cuda/profile: what a CUDA kernel does, for people and prompts: hardware counters where they
 * may be read, else CUPTI's records, else what ptxas said; resources, occupancy and its limit,
 * place under the device's roofs. Measuring thread. */
#pragma once

#include "eval/backend/backend.h"
#include "eval/cuda/compile/compile.h"
#include "eval/cuda/profile/occupancy.h"
#include "eval/cuda/run/plan.h"
#include "eval/cuda/run/profile_wire.h"

/* eval/backend/backend.h's profile: `subject` is a gpu_host, from which plan and regions are taken;
 * it is called only where two clocks disagree. What cannot be known is null, and "profile.why" says
 * why. ERR_PROTOCOL, with all of the members written: clocks_check(). */
int cuda_profile(const struct lane_facts *lane, const struct problem *problem,
                 const struct names *dims, const char *artifact, const char *remarks_log,
                 double time_ns, struct subject *subject, const struct call *call,
                 struct json *json, struct err *err);

/* A runner kept for this alone (host.c) launches the plan once for each pass. It is idle
 * between profiles, with nothing of CUPTI's active on the device. ERR_CHILD: a fault. */
struct gpu_host;
int profile_collect(const struct lane_facts *lane, const struct gpu_host *like,
                    const char *artifact, const struct call *call, double time_ns,
                    struct wire_profile *profile, struct err *err) MUST_USE;
/* The same plan, by two clocks once more; right after profile_collect(). */
int profile_record_again(const struct call *call, double time_ns, struct wire_records *records,
                         struct err *err) MUST_USE;
/* The same plan, its instructions sampled; last, since what goes wrong ends the runner. */
void profile_sample_lines(const struct call *call, double time_ns, struct wire_hot *hot);
/* It begins to get warm; and waits until it is. */
void profile_warm(const struct lane_facts *lane, const struct region *region);
void profile_settle(void);
void profile_discard(void); /* ends it, where there is one */

/* ---- what two clocks say of the same launches, and of the timed ones (clocks.c) ---- */

enum clocks {
    CLOCKS_AGREE,        /* or there are no records */
    CLOCKS_EVENTS_SHORT, /* events tell of less than the kernels between them took */
    CLOCKS_TIMED_SHORT   /* the runner that is timed is much faster than this one */
};
struct clocks_told { /* medians over the launches */
    double event_ns, span_ns, busy_ns;
};
enum clocks clocks_compare(const struct wire_records *records, double timed_ns);
struct clocks_told clocks_told(const struct wire_records *records); /* launches > 0 */

/* Compares, and where they disagree times and records once more on the same bytes: `host` is
 * called. ERR_PROTOCOL with the numbers where that is no better; records are the last ones. */
int clocks_check(struct gpu_host *host, const struct call *call, double time_ns,
                 struct wire_records *records, struct err *err) MUST_USE;

/* ---- numbers (put.c); pure ---- */

struct profiled { /* all borrowed; report may be NULL */
    const struct names *facts;
    const struct plan *plan;
    const struct cuda_report *report;
    const struct wire_profile *profile;
};

/* Members of an open JSON object: "profile" (source, why, passes, ms), "kernels" (one for each
 * launch), "hot_kernel" (the one that takes longest, again), "kernels_ns", "dram_bytes". */
void profile_put(const struct profiled *profiled, struct json *json);

/* What the calculator is asked of a launch; `resources` NULL: the compiler said nothing. */
struct occupancy_ask profile_ask(const struct plan_launch *launch,
                                 const struct cuda_resources *resources);
void profile_put_extent(struct json *json, const char *key, const uint32_t extent[3]);

/* "time": the lines with most samples, of an entry each, with what warps wait for there; or why
 * nobody knows (lines.c). `hot` is as profile_sample_lines() bounded it. */
void profile_put_lines(const struct wire_hot *hot, const struct plan *plan,
                       const struct candidate *candidate, struct json *json);
