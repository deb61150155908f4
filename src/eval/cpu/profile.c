/* What a kernel does, for people and prompts: where it stands under the roofs of this machine, what
 * its hot loop is made of, where the time goes, what the compiler could not vectorize and why, what
 * the counters say. What is not known is null, never 0. */
#include "eval/cpu/profile.h"

#include "eval/cpu/private.h"

int cpu_profile(const struct lane_facts *lane, const struct problem *problem,
                const struct names *dims, const char *artifact, const char *remarks_log,
                double time_ns, struct subject *subject, const struct call *call, struct json *json,
                struct err *err)
{
    struct samples samples;
    (void)err; /* what one part cannot find out is no reason to lose the others */
    lane_put_roofline(lane, problem, dims, time_ns, json);
    counters_put(subject, call, json);
    samples_take(subject, artifact, call, &samples);
    mix_put(artifact, &samples, json);
    samples_free(&samples);
    remarks_put(remarks_log, json);
    return 0;
}
