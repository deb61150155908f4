/* The CUDA backend's table, and the operations that are a few lines each. */
#include "eval/cpu/cpu.h"
#include "eval/cuda/compile/compile.h"
#include "eval/cuda/cuda.h"
#include "eval/cuda/driver/device.h"
#include "eval/cuda/driver/torch.h"
#include "eval/cuda/private.h"
#include "eval/cuda/probe/probe.h"
#include "eval/cuda/profile/profile.h"
#include "eval/cuda/run/host.h"
#include "eval/cuda/sanitize/sanitizer.h"
#include "eval/cuda/target.h"
#include "eval/cuda/triton/triton.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int build_triton(struct arena *arena, const struct lane_facts *lane,
                        const struct problem *problem, const struct candidate *candidate,
                        const struct names *tune, enum build_flavour flavour, const char *folder,
                        struct build *build, struct err *err)
{
    const struct program program = {.problem = problem, .candidate = candidate, .tune = tune};
    if (flavour == BUILD_PORTABLE)
        return err_set(err, ERR_UNSUPPORTED, "a Triton kernel has no portable build");
    return triton_build(arena, device_arch(arena, lane), &program, &lane->facts,
                        flavour == BUILD_MAIN, folder, build, err);
}

static int build(struct arena *arena, const struct lane_facts *lane, const struct problem *problem,
                 const struct candidate *candidate, const struct names *tune,
                 const struct baseline_spec *baseline, enum build_flavour flavour,
                 const char *folder, struct build *build, struct err *err)
{
    if (candidate != NULL && candidate->language == &language_triton)
        return build_triton(arena, lane, problem, candidate, tune, flavour, folder, build, err);
    return cuda_build(arena, device_arch(arena, lane), problem, candidate, tune, baseline, flavour,
                      folder, build, err);
}

static bool narrows(const struct candidate *candidate)
{
    return candidate->language == &language_triton;
}

static void diagnostics(const struct candidate *candidate, const char *text, size_t length,
                        struct buf *out)
{
    if (candidate->language == &language_triton)
        triton_diagnostics("candidate.py", text, length, out);
    else
        cuda_diagnostics(candidate, text, length, out);
}

/* ---- the subject ---- */

static int call(struct subject *subject, const struct call *call, uint64_t *elapsed_ns,
                struct err *err)
{
    if (call->timed) { /* with nothing of ours still starting: the host waits for its spares */
        profile_settle();
        sanitizer_settle();
    }
    return gpu_host_call((struct gpu_host *)subject, call, elapsed_ns, err);
}

static void close_subject(struct subject *subject)
{
    gpu_host_give_back((struct gpu_host *)subject);
}

static int open(const struct lane_facts *lane, const struct region *region, const char *artifact,
                const struct program *program, bool fresh, struct subject **subject,
                struct err *err)
{
    static const struct subject_ops ops = {call, host_rest, host_rest, close_subject};
    struct gpu_host *host;
    if (gpu_host_open(lane, region, artifact, program, fresh, &host, err) != 0)
        return -1;
    *subject = host_on_device(&host->base, &ops);
    (*subject)->gives_back = true;
    return 0;
}

static void warm(const struct lane_facts *lane, const struct region *region)
{
    ARENA_LOCAL(arena);
    gpu_host_warm(lane, region);
    cuda_build_warm(device_arch(arena, lane));
}

static void warm_compiler(const struct language *language)
{
    if (language == &language_triton)
        triton_warm();
}

static bool tool(const char *name)
{
    ARENA_LOCAL(arena);
    struct interpreter ignored;
    struct err why;
    return (strcmp(name, "compute-sanitizer") == 0 && sanitizer_find(arena) != NULL) ||
           (strcmp(name, "triton") == 0 && triton_find(&ignored, &why) == 0);
}

static const char *compilers(struct arena *arena, const struct language *language)
{
    return language == &language_triton ? triton_versions(arena) : NULL;
}

/* Behind whatever a call of the device that is being timed beside it has to do. */
static int compiler_main(int argc, char **argv)
{
    enum { BEHIND = 10 };
    (void)!nice(BEHIND);
    if (argc >= 1 && strcmp(argv[0], "--triton") == 0)
        return triton_compile_main(argc - 1, argv + 1);
    if (argc >= 1 && strcmp(argv[0], "--triton-serve") == 0)
        return triton_serve_main(argc - 1, argv + 1);
    return cuda_compile_main(argc, argv);
}

const struct backend backend_cuda = {
    .target = &target_cuda,
    .probe = cuda_probe,
    .build = build,
    .narrows = narrows,
    .compile_only = cuda_compile_only,
    .diagnostics = diagnostics,
    .open = open,
    .warm = warm,
    .warm_compiler = warm_compiler,
    .warm_runner = gpu_host_begin,
    .cuts_sums = true,
    .sanitize = cuda_sanitize,
    .profile = cuda_profile,
    .warm_profile = profile_warm,
    .warm_sanitizer = sanitizer_warm,
    .hold_sanitizer = sanitizer_hold,
    .alignment = 256,
    .device = true,
    .renews = true,
    .lock_folder = "/proc/driver/nvidia", /* of all of them */
    .torch = &torch_cuda,
    .reference = &backend_cpu,
    .emitter = &emitter_cuda,
    .tool = tool,
    .runner = cuda_runner_main,
    .compilers = compilers,
    .compiler = compiler_main,
    .count = cuda_count,
    .describe = cuda_describe,
    .findings = cuda_findings,
};
