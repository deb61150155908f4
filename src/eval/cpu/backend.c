#include "eval/cpu/compile.h"
#include "eval/cpu/cpu.h"
#include "eval/cpu/private.h"
#include "eval/cpu/target.h"

static int open(const struct lane_facts *lane, const struct region *region, const char *artifact,
                const struct program *program, bool fresh, struct subject **subject,
                struct err *err)
{
    (void)fresh; /* all are */
    return cpu_open(lane, region, artifact, program->env, subject, err);
}

static int sanitize(const struct lane_facts *lane, const struct region *region,
                    const char *artifact, const struct program *program, const struct call *call,
                    struct buf *report, struct err *err)
{
    (void)program;
    return call != NULL ? cpu_sanitize(lane, region, artifact, call, report, err) : 0;
}

const struct backend backend_cpu = {
    .target = &target_cpu,
    .probe = cpu_probe,
    .ready = cpu_ready,
    .build = cpu_build,
    .diagnostics = cpu_diagnostics,
    .open = open,
    .sanitize = sanitize,
    .profile = cpu_profile,
    .cachegrind = cpu_cachegrind,
};
