/* Both ends of a probe: the child that asks the driver, and the worker that reads what it says. The
 * worker itself never opens libcuda. */
#include "eval/cuda/probe/probe.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/value.h"
#include "eval/backend/ceilings.h"
#include "eval/cuda/compile/compile.h"
#include "eval/cuda/counters/counters.h"
#include "eval/cuda/driver/device.h"
#include "eval/cuda/driver/nvml.h"
#include "eval/cuda/driver/spawn.h"
#include "eval/cuda/probe/roofline.h"
#include "process/spawn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum { PROBE_MS = 60000, ANSWER_MOST = 1 << 16 };

static const char *const rates[UNITS] = {"flops_per_s", "tf32_flops_per_s", "bf16_flops_per_s",
                                         "fp16_flops_per_s"};

/* --- the child --- */

static void put_device(const struct device *device, struct json *json)
{
    const struct {
        const char *name;
        int64_t number;
    } facts[] = {{"compute_capability", device->major * 10 + device->minor},
                 {"sm_count", device->sm_count},
                 {"warp_size", device->warp_size},
                 {"l2_bytes", device->l2_bytes},
                 {"shared_bytes_optin", device->shared_bytes_optin},
                 {"sm_shared_bytes", device->shared_bytes_per_sm},
                 {"max_threads_per_sm", device->max_threads_per_sm},
                 {"registers_per_sm", device->registers_per_sm}};
    json_put_text(json, "gpu", device->name);
    json_put_text(json, "pci", device->pci);
    json_put_int(json, "memory_bytes", (int64_t)device->memory_bytes);
    json_put_int(json, "driver_cuda", device->driver_version);
    json_put_object(json, "facts");
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        json_put_int(json, facts[i].name, facts[i].number);
    json_object_end(json);
}

static int put_roofline(const struct driver *driver, const struct device *device, struct json *json,
                        struct err *err)
{
    struct roofline roofline;
    cu_context context;
    if (driver->context_retain(&context, device->handle) != 0 || driver->context_use(context) != 0)
        return err_set(err, ERR_ENVIRONMENT, "%s: no context", device->name);
    if (roofline_measure_gpu(driver, device, &roofline, err) != 0)
        return -1;
    json_put_real(json, "copy_bytes_per_s", roofline.copy_bytes_per_s);
    json_put_real(json, "read_bytes_per_s", roofline.read_bytes_per_s);
    for (int i = 0; i < UNITS; i++)
        json_put_real(json, rates[i], roofline.flops_per_s[i]);
    return 0;
}

/* By trying: permission shows where a profiler is enabled, not before. */
static int put_counters(const struct driver *driver, const struct device *device, struct json *json,
                        struct err *err)
{
    static struct counters counters;
    cu_context context;
    uint32_t version = 0;
    if (driver->context_retain(&context, device->handle) != 0 || driver->context_use(context) != 0)
        return err_set(err, ERR_ENVIRONMENT, "%s: no context", device->name);
    if (counters_open(device->handle, context, &counters, err) != 0 ||
        counters_begin(&counters, err) != 0)
        return -1;
    counters_abandon(&counters);
    (void)counters.cupti.version(&version);
    json_put_int(json, "cupti", version);
    json_put_int(json, "counters", (int64_t)counters.count);
    json_put_int(json, "counter_passes", (int64_t)counters.passes);
    return 0;
}

int device_probe_main(int argc, char **argv)
{
    struct driver driver;
    struct device device;
    struct err err = {0};
    int count = 0;
    const char *more = argc >= 2 ? argv[1] : "";
    JSON_LOCAL(json, text, ANSWER_MOST);
    json_object(&json);
    int status = driver_open(&driver, &err);
    if (status == 0)
        status =
            device_open(&driver, argc >= 1 ? (int)strtol(argv[0], NULL, 10) : 0, &device, &err);
    if (status == 0) {
        put_device(&device, &json);
        nvml_put(device.pci, &json);
        if (strcmp(more, "roofline") == 0)
            status = put_roofline(&driver, &device, &json, &err);
        else if (strcmp(more, "counters") == 0)
            status = put_counters(&driver, &device, &json, &err);
        else if (strcmp(more, "count") == 0 && driver.device_count(&count) == 0)
            json_put_int(&json, "count", count);
    }
    if (status != 0)
        json_put_text(&json, "error", err.message);
    json_object_end(&json);
    printf("%s\n", buf_text(&text));
    return fflush(stdout) == 0 ? 0 : 1;
}

/* --- the worker --- */

static int ask(int gpu_index, const char *more, struct buf *answer, struct err *err)
{
    char index[16];
    const char *env[CUDA_ENV_MOST];
    snprintf(index, sizeof index, "%d", gpu_index);
    const char *const argv[] = {file_program_path(), "runner", "cuda", "probe", index, more, NULL};
    const struct spawn_spec spec = {
        .argv = argv, .name = "the driver", .env = cuda_environment(env), .folder = "."};
    if (spawn_run(&spec, PROBE_MS, 0, answer, NULL, err) == 0)
        return 0;
    if (err->code != ERR_CHILD)
        return -1;
    *err = (struct err){0}; /* who died has answered nothing, or half: its text says */
    return 0;
}

static void describe(const struct value *answer, struct arena *arena, struct lane_facts *lane)
{
    JSON_LOCAL(json, text, ANSWER_MOST);
    json_object(&json);
    json_put_text(&json, "backend", "cuda");
    json_put_int(&json, "gpu_index", lane->gpu_index);
    json_put_members(&json, answer);
    json_put_int(&json, "cores_used", (int64_t)lane->core_count);
    for (size_t i = 0; i < CEILINGS; i++)
        if (value_get(answer, ceiling_names[i]) == NULL)
            json_put_positive(&json, ceiling_names[i], *ceiling_of(lane, i));
    json_object_end(&json);
    lane->device = arena_strdup(arena, buf_text(&text));
}

static void describe_versions(const struct value *answer, struct arena *arena,
                              struct lane_facts *lane)
{
    struct utsname system;
    struct cuda_compiler compiler;
    struct err err = {0};
    JSON_LOCAL(json, text, 4096);
    json_object(&json);
    int64_t driver = value_int(answer, "driver_cuda", 0);
    json_put_text(&json, "driver", value_text(answer, "driver", "unknown"));
    json_put_text(&json, "driver_cuda",
                  arena_printf(arena, "%d.%d", (int)(driver / 1000), (int)(driver % 1000 / 10)));
    if (cuda_compiler_find(arena, &compiler, &err) == 0)
        json_put_text(&json, "nvrtc",
                      arena_printf(arena, "%d.%d", compiler.version_major, compiler.version_minor));
    if (uname(&system) == 0)
        json_put_text(&json, "kernel", system.release);
    json_object_end(&json);
    lane->versions = arena_strdup(arena, buf_text(&text));
}

static int take_facts(const struct value *answer, struct arena *arena, struct lane_facts *lane,
                      struct err *err)
{
    if (lane_take_facts(lane, answer, "no GPU", err) != 0)
        return -1;
    lane->identity = arena_printf(arena, "cuda %s, %s, driver %s", value_text(answer, "gpu", ""),
                                  value_text(answer, "pci", ""), value_text(answer, "driver", ""));
    for (size_t i = 0; i < CEILINGS; i++)
        *ceiling_of(lane, i) = value_real(answer, ceiling_names[i], 0.0);
    char pci[64];
    snprintf(pci, sizeof pci, "%s", value_text(answer, "pci", ""));
    for (char *at = pci; *at != '\0'; at++)
        *at = *at >= 'A' && *at <= 'F' ? (char)(*at - 'A' + 'a') : *at;
    lane->lock_path = arena_printf(arena, "/sys/bus/pci/devices/%s", pci);
    return 0;
}

static int ask_value(int gpu_index, const char *more, struct arena *arena, struct value **answer,
                     struct err *err)
{
    BUF_LOCAL(text, ANSWER_MOST);
    int status = ask(gpu_index, more, &text, err);
    if (status == 0 &&
        value_parse_json(arena, "probe", buf_text(&text), text.length, answer, err) != 0)
        status = err_set(err, ERR_ENVIRONMENT, "the probe of GPU %d died", gpu_index);
    return status;
}

int cuda_probe_counters(int gpu_index, struct arena *arena, const char **words, struct err *err)
{
    struct value *answer;
    if (ask_value(gpu_index, "counters", arena, &answer, err) != 0)
        return -1;
    const char *error = value_text(answer, "error", NULL);
    if (error != NULL)
        return err_set(err, ERR_UNSUPPORTED, "%s", error);
    *words = arena_printf(
        arena, "%d counters in %d passes, by CUPTI %d", (int)value_int(answer, "counters", 0),
        (int)value_int(answer, "counter_passes", 0), (int)value_int(answer, "cupti", 0));
    return 0;
}

int cuda_count(struct arena *arena, int *count, struct err *err)
{
    struct value *answer;
    if (ask_value(0, "count", arena, &answer, err) != 0)
        return -1;
    *count = (int)value_int(answer, "count", 0);
    if (*count > 0)
        return 0;
    return err_set(err, ERR_ENVIRONMENT, "%s", value_text(answer, "error", "no GPU here"));
}

int cuda_probe(const int *cores, size_t core_count, bool roofline, struct arena *arena,
               struct lane_facts *lane, struct err *err)
{
    struct value *answer;
    if (lane_begin(lane, true, cores, core_count, err) != 0 ||
        ask_value(lane->gpu_index, roofline ? "roofline" : NULL, arena, &answer, err) != 0 ||
        take_facts(answer, arena, lane, err) != 0)
        return -1;
    if (!roofline)
        ceilings_recall(lane);
    describe(answer, arena, lane);
    describe_versions(answer, arena, lane);
    return 0;
}
