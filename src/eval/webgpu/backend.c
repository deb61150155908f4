/* The WebGPU backend's table, and the operations that are a few lines each. */
#include "base/file.h"
#include "base/mem.h"
#include "eval/backend/lines.h"
#include "eval/cpu/cpu.h"
#include "eval/cuda/driver/torch.h"
#include "eval/webgpu/host.h"
#include "eval/webgpu/library.h"
#include "eval/webgpu/private.h"
#include "eval/webgpu/probe.h"
#include "eval/webgpu/source.h"
#include "eval/webgpu/target.h"
#include "eval/webgpu/webgpu.h"
#include "process/clean.h"

enum { COMPILE_MS = 60000, OUTPUT_MOST = 64 << 10, SOURCE_MOST = 2 << 20, SAID_MOST = 3000 };

/* ---- build ---- */

static int source_of(const struct candidate *candidate, const struct baseline_spec *baseline,
                     struct buf *text, struct err *err)
{
    if (baseline != NULL)
        return file_read(baseline->file, text, err);
    wgsl_compiled(candidate, false, text);
    return 0;
}

static int build(struct arena *arena, const struct lane_facts *lane, const struct problem *problem,
                 const struct candidate *candidate, const struct names *tune,
                 const struct baseline_spec *baseline, enum build_flavour flavour,
                 const char *folder, struct build *build, struct err *err)
{
    const char *library = webgpu_library_find(arena);
    const char *path = arena_printf(arena, "%s/kernel.wgsl", folder);
    BUF_LOCAL(text, SOURCE_MOST);
    (void)problem, (void)tune;
    if (flavour == BUILD_PORTABLE)
        return err_set(err, ERR_UNSUPPORTED, "a WGSL kernel has no portable build");
    if (library == NULL)
        return err_set(err, ERR_ENVIRONMENT, "%s", WEBGPU_NO_LIBRARY);
    if (source_of(candidate, baseline, &text, err) != 0 ||
        file_write(path, buf_text(&text), text.length, err) != 0)
        return -1;
    const char **argv = arena_array(arena, 8, sizeof(char *));
    const char **env = arena_array(arena, WEBGPU_ENV_MOST, sizeof(char *));
    argv[0] = file_program_path();
    argv[1] = "runner";
    argv[2] = "webgpu";
    argv[3] = "compile";
    argv[4] = arena_printf(arena, "%d", lane->gpu_index);
    argv[5] = library;
    argv[6] = path;
    *build = (struct build){.artifact = path,
                            .spec = {.argv = argv,
                                     .env = webgpu_environment(env),
                                     .folder = arena_strdup(arena, folder),
                                     .timeout_ms = COMPILE_MS,
                                     .output_max = OUTPUT_MOST}};
    return 0;
}

/* Naga's words, which quote the source alone. */
static void diagnostics(const struct candidate *candidate, const char *text, size_t length,
                        struct buf *out)
{
    size_t begun = out->length;
    const char *at = text;
    struct line line;
    (void)candidate;
    while (out->length - begun < SAID_MOST && line_next(&at, text + length, &line))
        if (line.length > 0)
            clean_line(out, line.text, line.length);
}

/* ---- the subject ---- */

static int call(struct subject *subject, const struct call *call, uint64_t *elapsed_ns,
                struct err *err)
{
    return webgpu_host_call((struct webgpu_host *)subject, call, elapsed_ns, err);
}

static void close_subject(struct subject *subject)
{
    webgpu_host_close((struct webgpu_host *)subject);
}

static int open(const struct lane_facts *lane, const struct region *region, const char *artifact,
                const struct program *program, bool fresh, struct subject **subject,
                struct err *err)
{
    static const struct subject_ops ops = {call, host_rest, host_rest, close_subject};
    struct webgpu_host *host;
    if (webgpu_host_open(lane, region, artifact, program, fresh, &host, err) != 0)
        return -1;
    *subject = host_on_device(&host->base, &ops);
    return 0;
}

/* There are no counters of a kind that all drivers have: where it stands under the roofs. */
static int profile(const struct lane_facts *lane, const struct problem *problem,
                   const struct names *dims, const char *artifact, const char *remarks_log,
                   double time_ns, struct subject *subject, const struct call *call,
                   struct json *json, struct err *err)
{
    (void)artifact, (void)remarks_log, (void)subject, (void)call, (void)err;
    lane_put_roofline(lane, problem, dims, time_ns, json);
    return 0;
}

const struct backend backend_webgpu = {
    .target = &target_webgpu,
    .probe = webgpu_probe,
    .build = build,
    .diagnostics = diagnostics,
    .open = open,
    .warm = webgpu_host_warm,
    .alignment = 256,
    .profile = profile,
    .device = true,
    .renews = true,
    .torch = &torch_cuda_or_cpu,
    .reference = &backend_cpu,
    .emitter = &emitter_webgpu,
    .runner = webgpu_runner_main,
    .count = webgpu_count,
    .describe = webgpu_describe,
    .findings = webgpu_findings,
};
