/* What a kernel does, for people and prompts: where it stands under the roofs of this machine, what
 * its hot loop is made of, where the time goes, what the compiler could not vectorize and why, what
 * the counters say. What is not known is null, never 0. */
#include "eval/cpu/profile.h"

#include "eval/cpu/private.h"

#include <math.h>

static void put_number(struct json *json, const char *key, double number)
{
    json_key(json, key);
    if (isfinite(number) && number > 0)
        json_real(json, number);
    else
        json_null(json);
}

/* The two roofs: bytes over bandwidth, and operations over the FMA rate; the longer time limits. */
static void put_roofline(const struct lane_facts *lane, const struct problem *problem,
                         const struct names *dims, double time_ns, struct json *json)
{
    double flops = 0, bytes = 0, seconds = time_ns / 1e9;
    struct err ignored;
    if (problem_work(problem, dims, &flops, &bytes, &ignored) != 0)
        return;
    /* Most bytes are read where a kernel reduces, and as many written where it copies. */
    double bandwidth = lane->copy_bytes_per_s > lane->read_bytes_per_s ? lane->copy_bytes_per_s
                                                                       : lane->read_bytes_per_s;
    double memory_s = bandwidth > 0 ? bytes / bandwidth : 0;
    double compute_s = lane->flops_per_s > 0 ? flops / lane->flops_per_s : 0;
    json_put_object(json, "roofline");
    put_number(json, "flops", flops);
    put_number(json, "bytes", bytes);
    put_number(json, "intensity_flops_per_byte", bytes > 0 ? flops / bytes : 0);
    put_number(json, "gflops_per_s", flops / seconds / 1e9);
    put_number(json, "gbytes_per_s", bytes / seconds / 1e9);
    put_number(json, "share_of_memory_roof", memory_s / seconds);
    put_number(json, "share_of_compute_roof", compute_s / seconds);
    json_key(json, "limit");
    json_text(json, memory_s <= 0 && compute_s <= 0 ? NULL
                    : memory_s >= compute_s         ? "memory"
                                                    : "compute");
    put_number(json, "share_of_limit", (memory_s > compute_s ? memory_s : compute_s) / seconds);
    if (lane->under_load)
        json_put_bool(json, "under_load", true);
    json_object_end(json);
}

int cpu_profile(const struct lane_facts *lane, const struct problem *problem,
                const struct names *dims, const char *artifact, const char *remarks_log,
                double time_ns, struct subject *subject, const struct call *call, struct json *json,
                struct err *err)
{
    struct samples samples;
    (void)err; /* what one part cannot find out is no reason to lose the others */
    put_roofline(lane, problem, dims, time_ns, json);
    counters_put(subject, call, json);
    samples_take(subject, artifact, call, &samples);
    mix_put(artifact, &samples, json);
    samples_free(&samples);
    remarks_put(remarks_log, json);
    return 0;
}
