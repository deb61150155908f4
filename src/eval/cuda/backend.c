/* The CUDA backend's table, and the operations that are a few lines each. */
#include "eval/cpu/cpu.h"
#include "eval/cuda/compile.h"
#include "eval/cuda/cuda.h"
#include "eval/cuda/device.h"
#include "eval/cuda/host.h"

#include <string.h>

static const char *const languages[] = {"cuda", NULL};

static int build(struct arena *arena, const struct lane_facts *lane, const struct problem *problem,
                 const struct candidate *candidate, const struct names *tune,
                 const struct baseline_spec *baseline, enum build_flavour flavour,
                 const char *folder, struct build *build, struct err *err)
{
    return cuda_build(arena, device_arch(arena, lane), problem, candidate, tune, baseline, flavour,
                      folder, build, err);
}

/* ---- the subject ---- */

static int call(struct subject *subject, const struct call *call, uint64_t *elapsed_ns,
                struct err *err)
{
    return gpu_host_call((struct gpu_host *)subject, call, elapsed_ns, err);
}

/* Between calls a runner waits in a read, and nothing of a candidate's runs on the device. */
static void rest(struct subject *subject)
{
    (void)subject;
}

static void close_subject(struct subject *subject)
{
    gpu_host_give_back((struct gpu_host *)subject);
}

/* Each call loads the module anew and restores all of its memory (runner_call.c). */
static bool renew(struct subject *subject)
{
    const struct gpu_host *host = (const struct gpu_host *)subject;
    return !host->reaped && !host->spoilt;
}

static int open_program(const struct lane_facts *lane, const struct region *region,
                        const char *artifact, const struct program *program,
                        struct subject **subject, struct err *err)
{
    static const struct subject_ops ops = {call, rest, rest, close_subject};
    struct gpu_host *host;
    if (gpu_host_open(lane, region, artifact, program, &host, err) != 0)
        return -1;
    host->subject.ops = &ops;
    host->subject.name = "runner";
    host->subject.device_clock = true;
    host->subject.renew = renew;
    *subject = &host->subject;
    return 0;
}

static int open_plain(const struct lane_facts *lane, const struct region *region,
                      const char *artifact, const char *const *env, struct subject **subject,
                      struct err *err)
{
    (void)lane, (void)region, (void)artifact, (void)env, (void)subject;
    return err_set(err, ERR_UNSUPPORTED, "a CUDA source has a launch plan");
}

/* ---- after the verdict ---- */

static int sanitize(const struct lane_facts *lane, const struct region *region,
                    const char *artifact, const struct call *call_, struct buf *report,
                    struct err *err)
{
    (void)lane, (void)region, (void)artifact, (void)call_, (void)report;
    return err_set(err, ERR_UNSUPPORTED, "compute-sanitizer is not part of this yet");
}

static void put_resources(const struct cuda_report *report, struct json *json)
{
    json_key(json, "resources");
    json_array(json);
    for (size_t i = 0; i < report->entry_count; i++) {
        const struct cuda_resources *entry = &report->entries[i];
        json_object(json);
        json_put_text(json, "entry", entry->entry);
        json_put_int(json, "registers", entry->registers);
        json_put_int(json, "spill_store_bytes", entry->spill_store_bytes);
        json_put_int(json, "spill_load_bytes", entry->spill_load_bytes);
        json_put_int(json, "stack_bytes", entry->stack_bytes);
        json_put_int(json, "shared_bytes", entry->shared_bytes);
        json_object_end(json);
    }
    json_array_end(json);
}

/* Place under the roofs, from counted work and the measured time alone. */
static void put_roofline(const struct lane_facts *lane, const struct problem *problem,
                         const struct names *dims, double time_ns, struct json *json)
{
    double flops = 0.0, bytes = 0.0, seconds = time_ns / 1e9;
    if (!(time_ns > 0.0) || problem_work(problem, dims, &flops, &bytes, NULL) != 0)
        return;
    double bandwidth = lane->copy_bytes_per_s > lane->read_bytes_per_s ? lane->copy_bytes_per_s
                                                                       : lane->read_bytes_per_s;
    double rate = lane_operations_rate(lane, problem);
    double memory_s = bandwidth > 0.0 ? bytes / bandwidth : 0.0;
    double compute_s = rate > 0.0 ? flops / rate : 0.0;
    json_key(json, "roofline");
    json_object(json);
    json_put_real(json, "flops", flops);
    json_put_real(json, "bytes", bytes);
    json_put_real(json, "gflops_per_s", flops / seconds / 1e9);
    json_put_real(json, "gbytes_per_s", bytes / seconds / 1e9);
    json_put_real(json, "share_of_memory_roof", memory_s / seconds);
    json_put_real(json, "share_of_compute_roof", compute_s / seconds);
    json_put_text(json, "limit",
                  memory_s <= 0.0 && compute_s <= 0.0 ? NULL
                  : memory_s >= compute_s             ? "memory"
                                                      : "compute");
    json_put_real(json, "share_of_limit", (memory_s > compute_s ? memory_s : compute_s) / seconds);
    json_object_end(json);
}

static int profile(const struct lane_facts *lane, const struct problem *problem,
                   const struct names *dims, const char *artifact, const char *remarks_log,
                   double time_ns, struct subject *subject, const struct call *call_,
                   struct json *json, struct err *err)
{
    struct cuda_report report;
    struct err ignored;
    (void)artifact, (void)subject, (void)call_, (void)err;
    struct arena *arena = arena_new();
    if (remarks_log != NULL && cuda_report_read(arena, remarks_log, &report, &ignored) == 0)
        put_resources(&report, json);
    put_roofline(lane, problem, dims, time_ns, json);
    arena_free(arena);
    return 0;
}

const struct backend backend_cuda = {
    .name = "cuda",
    .languages = languages,
    .probe = cuda_probe,
    .build = build,
    .diagnostics = cuda_diagnostics,
    .open = open_plain,
    .open_program = open_program,
    .sanitize = sanitize,
    .profile = profile,
    .alignment = 256,
    .reference = &backend_cpu,
};
