#include "eval/cpu/built.h"
#include "eval/cpu/compile.h"
#include "eval/cpu/cpu.h"
#include "eval/cpu/private.h"
#include "eval/cpu/source.h"
#include "eval/cpu/target.h"

static void empty(const struct problem *problem, struct buf *source)
{
    source_signature(problem, NULL, source);
    buf_add_text(source, "\n{\n}\n");
}

static int open(const struct lane_facts *lane, const struct region *region, const char *artifact,
                const struct program *program, bool fresh, struct subject **subject,
                struct err *err)
{
    (void)fresh; /* all are */
    return cpu_open(lane, region, artifact, program->env, subject, err);
}

static int sanitize(const struct lane_facts *lane, const struct region *region,
                    const char *artifact, const struct program *program, const struct call *calls,
                    size_t count, bool together, struct buf *report, struct err *err)
{
    int status = 0;
    (void)program, (void)together;
    for (size_t i = 0; i < count && status == 0; i++)
        status = cpu_sanitize(lane, region, artifact, &calls[i], report, err);
    return status;
}

static bool tool(const char *name)
{
    bool clang;
    return compile_driver(name, false, &clang) != NULL;
}

static int findings(const struct value *answer, struct buf *out)
{
    const struct value *device = value_get(answer, "device");
    const struct value *versions = value_get(answer, "versions");
    bool gcc = value_get(versions, "gcc") != NULL, clang = value_get(versions, "clang") != NULL;
    if (answer == NULL)
        return 0;
    if (!gcc && !clang)
        buf_add_text(out, "  MISSING  a C compiler: apt-get install gcc g++\n");
    else if (!clang)
        buf_add_text(out, "  note     no clang: candidates that ask for it fail (apt-get install "
                          "clang libomp-dev)\n");
    if (!value_bool(device, "perf_counters", false))
        buf_add_text(out, "  note     no hardware counters here: profiles have compiler remarks,\n"
                          "           instruction mix and roofline only\n");
    if (!value_bool(device, "perf_samples", true))
        buf_add_text(
            out, "  note     perf_event_open is not permitted: where a kernel's time goes by loop\n"
                 "           is not known. Needed: kernel.perf_event_paranoid of 2 or less, a\n"
                 "           container that allows it\n");
    if (!value_bool(device, "ptrace", true))
        buf_add_text(
            out,
            "  note     ptrace is not permitted: threads cannot be held, so that work which\n"
            "           a kernel does not wait for may pass. Needed:\n"
            "           kernel.yama.ptrace_scope of 0 or 1; docker run --cap-add SYS_PTRACE\n");
    return !gcc && !clang;
}

const struct backend backend_cpu = {
    .target = &target_cpu,
    .probe = cpu_probe,
    .ready = cpu_ready,
    .build = cpu_build,
    .empty = empty,
    .diagnostics = cpu_diagnostics,
    .open = open,
    .sanitize = sanitize,
    .profile = cpu_profile,
    .cachegrind = cpu_cachegrind,
    .emitter = &emitter_cpu,
    .runner = cpu_runner_main,
    .compiler = built_main,
    .findings = findings,
    .tool = tool,
};
