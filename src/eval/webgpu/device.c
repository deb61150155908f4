#include "eval/webgpu/device.h"

#include "base/file.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { VERSION_LEAST = 29 << 24 };

struct wgpu_text wgpu_text(const char *text)
{
    return (struct wgpu_text){text, strlen(text)};
}

int wgpu_open(struct wgpu *wgpu, const char *path, struct err *err)
{
    wgpu->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (wgpu->library == NULL)
        return err_set(err, ERR_ENVIRONMENT, "%s", dlerror());
#define OPEN(member, symbol, result, arguments)                                                    \
    if ((*(void **)&wgpu->member = dlsym(wgpu->library, #symbol)) == NULL)                         \
        return err_set(err, ERR_ENVIRONMENT, "%s has no " #symbol, path);
    WGPU_FUNCTIONS(OPEN)
#undef OPEN
    uint32_t version = wgpu->version();
    if (version < VERSION_LEAST)
        return err_set(err, ERR_ENVIRONMENT, "%s is version %u; %d is the first that is known",
                       path, version >> 24, VERSION_LEAST >> 24);
    return 0;
}

size_t wgpu_adapters(const struct wgpu *wgpu, wgpu_handle adapters[ADAPTERS_MOST])
{
    struct wgpu_enumerate_options options = {.backends = WGPU_INSTANCE_VULKAN |
                                                         WGPU_INSTANCE_METAL | WGPU_INSTANCE_D3D12};
    wgpu_handle instance = wgpu->create_instance(NULL);
    size_t count = instance != NULL ? wgpu->enumerate(instance, &options, NULL) : 0;
    return count > 0 && count <= ADAPTERS_MOST ? wgpu->enumerate(instance, &options, adapters) : 0;
}

/* ---- what goes wrong ---- */

static void note(struct device *device, int error, struct wgpu_text text)
{
    if (device->error != 0 || error == WGPU_ERROR_NONE)
        return;
    size_t length = text.length < sizeof device->said ? text.length : sizeof device->said - 1;
    device->error = error;
    if (length > 0)
        memcpy(device->said, text.data, length);
    device->said[length] = '\0';
}

static void on_error(const wgpu_handle *handle, uint32_t type, struct wgpu_text text, void *context,
                     void *more)
{
    (void)handle, (void)more;
    note((struct device *)context, (int)type, text);
}

static void on_lost(const wgpu_handle *handle, uint32_t reason, struct wgpu_text text,
                    void *context, void *more)
{
    struct device *device = (struct device *)context;
    (void)handle, (void)reason, (void)more;
    device->lost = true;
    note(device, WGPU_ERROR_MEMORY + 1, text);
}

struct popped {
    struct device *device;
    bool done;
};

static void on_popped(uint32_t status, uint32_t type, struct wgpu_text text, void *context,
                      void *more)
{
    struct popped *popped = (struct popped *)context;
    (void)more;
    popped->done = true;
    if (status == WGPU_SUCCESS)
        note(popped->device, (int)type, text);
}

static const uint32_t filters[] = {WGPU_FILTER_MEMORY, WGPU_FILTER_VALIDATION};
enum { FILTERS = sizeof filters / sizeof filters[0] };

void wgpu_watch(struct device *device)
{
    device->error = 0;
    device->said[0] = '\0';
    for (size_t i = 0; i < FILTERS; i++)
        device->wgpu.push_errors(device->handle, filters[i]);
}

bool wgpu_went_well(struct device *device)
{
    for (size_t i = 0; i < FILTERS; i++) {
        struct popped popped = {.device = device};
        (void)device->wgpu.pop_errors(device->handle,
                                      (struct wgpu_callback){.mode = WGPU_SPONTANEOUS,
                                                             .function = (void (*)(void))on_popped,
                                                             .context = &popped});
        while (!popped.done)
            (void)device->wgpu.poll(device->handle, 0, NULL);
    }
    return device->error == 0 && !device->lost;
}

/* ---- the device ---- */

struct requested {
    wgpu_handle handle;
    bool done;
    char said[200];
};

static void on_device(uint32_t status, wgpu_handle handle, struct wgpu_text text, void *context,
                      void *more)
{
    struct requested *requested = (struct requested *)context;
    (void)more;
    requested->done = true;
    if (status == WGPU_SUCCESS)
        requested->handle = handle;
    else
        snprintf(requested->said, sizeof requested->said, "%.*s",
                 (int)(text.length < 190 ? text.length : 190), text.data);
}

static int request(struct device *device, struct err *err)
{
    const struct wgpu *wgpu = &device->wgpu;
    uint32_t features[3];
    size_t count = 0;
    features[count++] = WGPU_FEATURE_TIMESTAMPS;
    if (device->f16)
        features[count++] = WGPU_FEATURE_F16;
    if (device->subgroups)
        features[count++] = WGPU_FEATURE_SUBGROUPS;
    struct wgpu_device_descriptor descriptor = {
        .feature_count = count, .features = features, .limits = &device->limits};
    descriptor.lost = (struct wgpu_callback){
        .mode = WGPU_SPONTANEOUS, .function = (void (*)(void))on_lost, .context = device};
    descriptor.uncaptured.function = (void (*)(void))on_error;
    descriptor.uncaptured.context = device;
    struct requested requested = {0};
    (void)wgpu->request_device(device->adapter, &descriptor,
                               (struct wgpu_callback){.mode = WGPU_SPONTANEOUS,
                                                      .function = (void (*)(void))on_device,
                                                      .context = &requested});
    if (!requested.done || requested.handle == NULL)
        return err_set(err, ERR_ENVIRONMENT, "no device: %s", requested.said);
    device->handle = requested.handle;
    device->queue = wgpu->queue(device->handle);
    device->tick_ns = (double)wgpu->timestamp_ns(device->queue);
    return 0;
}

int wgpu_device_open(struct device *device, int index, struct err *err)
{
    const struct wgpu *wgpu = &device->wgpu;
    wgpu_handle adapters[ADAPTERS_MOST];
    size_t count = wgpu_adapters(wgpu, adapters);
    if (index < 0 || (size_t)index >= count)
        return err_set(err, ERR_ENVIRONMENT, "no adapter %d: Vulkan shows %zu", index, count);
    device->adapter = adapters[index];
    if (wgpu->adapter_info(device->adapter, &device->info) != WGPU_SUCCESS ||
        wgpu->adapter_limits(device->adapter, &device->limits) != WGPU_SUCCESS)
        return err_set(err, ERR_ENVIRONMENT, "adapter %d tells nothing of itself", index);
    if (wgpu->adapter_has(device->adapter, WGPU_FEATURE_TIMESTAMPS) == 0)
        return err_set(err, ERR_ENVIRONMENT, "adapter %d has no timestamps", index);
    device->software = device->info.type == WGPU_ADAPTER_CPU;
    device->f16 = wgpu->adapter_has(device->adapter, WGPU_FEATURE_F16) != 0;
    device->subgroups = wgpu->adapter_has(device->adapter, WGPU_FEATURE_SUBGROUPS) != 0;
    device->limits.next = NULL;
    return request(device, err);
}

/* A sanitizer has terabytes, which are addresses alone. */
static uint64_t data_bytes(void)
{
    BUF_LOCAL(text, 4096);
    const char *at = file_read("/proc/self/statm", &text, NULL) == 0 ? buf_text(&text) : "";
    for (int i = 0; i < 5; i++)
        at += strcspn(at, " ") + (strchr(at, ' ') != NULL);
    return strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

void wgpu_bound_memory(const struct device *device, uint64_t tensor_bytes)
{
    const uint64_t driver_bytes = UINT64_C(2) << 30;
    uint64_t bytes = data_bytes() + driver_bytes + tensor_bytes;
    const struct rlimit most = {bytes, bytes};
    if (device->software)
        (void)setrlimit(RLIMIT_DATA, &most);
}

/* ---- what is asked of it ---- */

wgpu_handle wgpu_buffer(const struct device *device, uint64_t usage, uint64_t bytes)
{
    const struct wgpu_buffer_descriptor descriptor = {.usage = usage, .size = bytes};
    return device->wgpu.create_buffer(device->handle, &descriptor);
}

wgpu_handle wgpu_module(const struct device *device, const char *text, size_t length)
{
    const struct wgpu_wgsl code = {.chain = {.type = WGPU_STYPE_WGSL}, .code = {text, length}};
    const struct wgpu_labelled descriptor = {.next = (struct wgpu_chain *)(uintptr_t)&code};
    return device->wgpu.create_module(device->handle, &descriptor);
}

wgpu_handle wgpu_encoder(const struct device *device)
{
    const struct wgpu_labelled descriptor = {0};
    return device->wgpu.create_encoder(device->handle, &descriptor);
}

void wgpu_submit(const struct device *device, wgpu_handle encoder)
{
    const struct wgpu *wgpu = &device->wgpu;
    const struct wgpu_labelled descriptor = {0};
    wgpu_handle commands = wgpu->finish(encoder, &descriptor);
    wgpu->submit(device->queue, 1, &commands);
    wgpu->commands_free(commands);
    wgpu->encoder_free(encoder);
    (void)wgpu->poll(device->handle, 1, NULL);
}

struct mapping {
    bool done, well;
};

static void on_mapped(uint32_t status, struct wgpu_text text, void *context, void *more)
{
    struct mapping *mapping = (struct mapping *)context;
    (void)text, (void)more;
    mapping->done = true;
    mapping->well = status == WGPU_SUCCESS;
}

const void *wgpu_map(const struct device *device, wgpu_handle buffer, size_t bytes)
{
    const struct wgpu *wgpu = &device->wgpu;
    struct mapping mapping = {0};
    (void)wgpu->map(buffer, WGPU_MAP_READ, 0, bytes,
                    (struct wgpu_callback){.mode = WGPU_SPONTANEOUS,
                                           .function = (void (*)(void))on_mapped,
                                           .context = &mapping});
    while (!mapping.done && !device->lost)
        (void)wgpu->poll(device->handle, 1, NULL);
    return mapping.well ? wgpu->mapped(buffer, 0, bytes) : NULL;
}
