/* Both ends: the child that opens the library, and the worker that reads what it prints. */
#include "eval/webgpu/probe.h"

#include "base/file.h"
#include "base/value.h"
#include "eval/backend/ceilings.h"
#include "eval/webgpu/device.h"
#include "eval/webgpu/library.h"
#include "eval/webgpu/roofline.h"
#include "process/spawn.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { PROBE_MS = 60000, ANSWER_MOST = 1 << 16, SOURCE_MOST = 2 << 20 };
enum { NVIDIA = 0x10de };         /* among PCI's vendors */
enum { LLVMPIPE_ROUNDS = 65535 }; /* after which it ends a loop and goes on behind it */

/* ---- the child ---- */

static void put_words(struct json *json, const char *key, struct wgpu_text text)
{
    json_key(json, key);
    json_text_n(json, text.data != NULL ? text.data : "", text.data != NULL ? text.length : 0);
}

static void put_adapter(const struct device *device, struct json *json)
{
    static const char *const kinds[] = {"unknown", "discrete", "integrated", "software", "unknown"};
    const struct wgpu_limits *limits = &device->limits;
    uint32_t type = device->info.type <= 4 ? device->info.type : 0;
    put_words(json, "gpu", device->info.device);
    put_words(json, "driver", device->info.description);
    json_put_text(json, "kind", kinds[type]);
    json_put_text(json, "api",
                  device->info.backend == WGPU_BACKEND_VULKAN  ? "Vulkan"
                  : device->info.backend == WGPU_BACKEND_METAL ? "Metal"
                                                               : "D3D12");
    json_put_int(json, "vendor", device->info.vendor_id);
    json_put_real(json, "timestamp_ns", device->tick_ns);
    json_put_bool(json, "shader_f16", device->f16);
    json_put_bool(json, "subgroups", device->subgroups);
    json_put_int(json, "wgpu_native", device->wgpu.version() >> 24);
    json_put_object(json, "facts");
    json_put_int(json, "max_workgroups", limits->workgroups);
    json_put_int(json, "max_invocations", limits->invocations);
    json_put_int(json, "workgroup_bytes", limits->workgroup_bytes);
    json_put_int(json, "binding_bytes", (int64_t)limits->storage_bytes);
    json_put_int(json, "software", device->software);
    json_put_int(json, "nvidia", device->info.vendor_id == NVIDIA);
    const struct wgpu_text *name = &device->info.device;
    if (name->length >= 8 && memcmp(name->data, "llvmpipe", 8) == 0)
        json_put_int(json, "loop_rounds", LLVMPIPE_ROUNDS);
    json_object_end(json);
}

/* "0,2,3" */
static void stay_on_cores(const char *text)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    while (*text != '\0') {
        char *stop;
        CPU_SET(strtoul(text, &stop, 10), &cores);
        text = *stop == ',' ? stop + 1 : "";
    }
    (void)sched_setaffinity(0, sizeof cores, &cores);
}

/* Null where they were not measured. */
static void put_ceilings(const struct roofline *roofline, struct json *json)
{
    const double rates[] = {roofline->copy_bytes_per_s, roofline->read_bytes_per_s,
                            roofline->flops_per_s};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        json_put_positive(json, ceiling_names[i], rates[i]);
}

/* `cores`: where the ceilings are measured, too; or NULL. */
static int probe(int index, const char *library, const char *cores)
{
    static struct device device;
    struct roofline roofline = {0};
    struct err err = {0};
    if (cores != NULL)
        stay_on_cores(cores);
    wgpu_handle adapters[ADAPTERS_MOST];
    JSON_LOCAL(json, text, ANSWER_MOST);
    json_object(&json);
    int status = wgpu_open(&device.wgpu, library, &err);
    if (status == 0)
        json_put_int(&json, "count", (int64_t)wgpu_adapters(&device.wgpu, adapters));
    if (status == 0 && (status = wgpu_device_open(&device, index, &err)) == 0)
        put_adapter(&device, &json);
    if (status == 0 && (cores == NULL || (status = webgpu_roofline(&device, &roofline, &err)) == 0))
        put_ceilings(&roofline, &json);
    if (status != 0)
        json_put_text(&json, "error", err.message);
    json_object_end(&json);
    printf("%s\n", buf_text(&text));
    return fflush(stdout) == 0 ? 0 : 1;
}

/* What the compiler says of a source, on stderr. Pipelines wait for their constants. */
static int compile_here(int index, const char *library, const char *path)
{
    static struct device device;
    struct err err = {0};
    BUF_LOCAL(text, SOURCE_MOST);
    if (file_read(path, &text, &err) != 0 || wgpu_open(&device.wgpu, library, &err) != 0 ||
        wgpu_device_open(&device, index, &err) != 0) {
        fprintf(stderr, "webgpu: %s\n", err.message);
        return 1;
    }
    wgpu_bound_memory(&device, 0);
    wgpu_watch(&device);
    (void)wgpu_module(&device, buf_text(&text), text.length);
    bool well = wgpu_went_well(&device);
    if (!well)
        fprintf(stderr, "%s\n", device.said);
    return well ? 0 : 1;
}

/* In a child of its own: brackets that are nested deeply enough end whoever reads them. */
static int compile(int index, const char *library, const char *path)
{
    pid_t child = spawn_fork();
    if (child == 0)
        _exit(compile_here(index, library, path));
    if (child < 0)
        return 1;
    siginfo_t end = spawn_reap(child);
    if (end.si_code == CLD_EXITED)
        return end.si_status;
    if (end.si_status == SIGKILL) /* which nobody's source does */
        raise(SIGKILL);
    fprintf(stderr, "the compiler ended by SIG%s\n", sigabbrev_np(end.si_status));
    return 1;
}

int webgpu_probe_main(int argc, char **argv)
{
    int index = argc >= 2 ? (int)strtol(argv[1], NULL, 10) : 0, status = 2;
    if ((argc == 3 || argc == 4) && strcmp(argv[0], "probe") == 0)
        status = probe(index, argv[2], argv[3]);
    else if (argc == 4 && strcmp(argv[0], "compile") == 0)
        status = compile(index, argv[2], argv[3]);
    fflush(NULL);
    _exit(status); /* a driver's threads need no goodbye */
}

/* ---- the worker ---- */

int webgpu_ask(int index, const char *cores, struct arena *arena, struct value **answer,
               struct err *err)
{
    char number[16];
    const char *env[WEBGPU_ENV_MOST], *library = webgpu_library_find(arena);
    BUF_LOCAL(text, ANSWER_MOST);
    if (library == NULL)
        return err_set(err, ERR_ENVIRONMENT, "%s", WEBGPU_NO_LIBRARY);
    snprintf(number, sizeof number, "%d", index);
    const char *const argv[] = {
        file_program_path(), "runner", "webgpu", "probe", number, library, cores, NULL};
    const struct spawn_spec spec = {
        .argv = argv, .name = "libwgpu_native", .env = webgpu_environment(env), .folder = "/"};
    if (spawn_run(&spec, PROBE_MS, 0, &text, NULL, err) != 0)
        return -1;
    if (value_parse_json(arena, "probe", buf_text(&text), text.length, answer, err) != 0)
        return err_set(err, ERR_ENVIRONMENT, "the probe of adapter %d died", index);
    return 0;
}

int webgpu_count(struct arena *arena, int *count, struct err *err)
{
    struct value *answer = NULL;
    if (webgpu_ask(0, NULL, arena, &answer, err) != 0)
        return -1;
    *count = (int)value_int(answer, "count", 0);
    return *count > 0 ? 0
                      : err_set(err, ERR_ENVIRONMENT, "%s",
                                value_text(answer, "error", "no adapter here"));
}

static const char *describe(const struct value *answer, const struct lane_facts *lane,
                            struct arena *arena)
{
    JSON_LOCAL(json, text, ANSWER_MOST);
    json_object(&json);
    json_put_text(&json, "backend", "webgpu");
    json_put_int(&json, "gpu_index", lane->gpu_index);
    json_put_members(&json, answer);
    json_put_int(&json, "cores_used", (int64_t)lane->core_count);
    json_object_end(&json);
    return arena_strdup(arena, buf_text(&text));
}

static const char *describe_versions(const struct value *answer, struct arena *arena)
{
    struct utsname system;
    JSON_LOCAL(json, text, 4096);
    json_object(&json);
    json_put_text(&json, "driver", value_text(answer, "driver", "unknown"));
    json_put_int(&json, "wgpu_native", value_int(answer, "wgpu_native", 0));
    if (uname(&system) == 0)
        json_put_text(&json, "kernel", system.release);
    json_object_end(&json);
    return arena_strdup(arena, buf_text(&text));
}

static const char *words_of(const int *cores, size_t count, struct arena *arena)
{
    const char *words = "";
    for (size_t i = 0; i < count; i++)
        words = arena_printf(arena, "%s%s%d", words, i > 0 ? "," : "", cores[i]);
    return words;
}

int webgpu_probe(const int *cores, size_t core_count, bool roofline, struct arena *arena,
                 struct lane_facts *lane, struct err *err)
{
    struct value *answer = NULL;
    if (lane_begin(lane, true, cores, core_count, err) != 0 ||
        webgpu_ask(lane->gpu_index, roofline ? words_of(cores, core_count, arena) : NULL, arena,
                   &answer, err) != 0 ||
        lane_take_facts(lane, answer, "no adapter", err) != 0)
        return -1;
    if (value_int(value_get(answer, "facts"), "software", 0) == 0 &&
        file_is_dir("/sys/bus/pci/devices"))
        lane->lock_path = "/sys/bus/pci/devices"; /* of all adapters: which is where is not said */
    lane->identity = arena_printf(arena, "webgpu %d %s, %s, cores %s", lane->gpu_index,
                                  value_text(answer, "gpu", ""), value_text(answer, "driver", ""),
                                  words_of(cores, core_count, arena));
    for (size_t i = 0; i < CEILINGS; i++)
        *ceiling_of(lane, i) = value_real(answer, ceiling_names[i], 0.0);
    if (!roofline)
        ceilings_recall(lane);
    lane->device = describe(answer, lane, arena);
    lane->versions = describe_versions(answer, arena);
    return 0;
}
