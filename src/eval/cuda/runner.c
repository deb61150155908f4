/* The disposable process: made ready before there is a candidate, thrown away after one fault. */
#include "eval/cuda/run/runner.h"

#include "base/buf.h"
#include "base/file.h"
#include "eval/cuda/compile/cubin.h"
#include "eval/cuda/cuda.h"
#include "eval/cuda/driver/nvml.h"
#include "eval/cuda/probe/probe.h"
#include "eval/cuda/profile/runner.h"
#include "eval/cuda/run/tensors.h"
#include "eval/cuda/sanitize/runner.h"
#include "eval/runner/inside.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { IMAGE_MOST = 64 << 20 };

static void map_memory(struct gpu_runner *runner)
{
    runner->control = map_shared(WIRE_CONTROL, sizeof *runner->control, PROT_READ, 0);
    const struct gpu_control *control = runner->control;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 ||
        (control->supervised == 0 && getppid() != control->parent))
        _exit(RUNNER_EXIT);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (control->supervised == 0) /* its supervisor has some of its own in here */
        close_range(WIRE_FIRST_OTHER, ~0u, 0);
    runner->report = map_shared(WIRE_REPORT, sizeof *runner->report, PROT_READ | PROT_WRITE, 0);
    runner->inputs = map_shared(WIRE_INPUTS, control->inputs_bytes, PROT_READ, 0);
    runner->outputs = map_shared(WIRE_OUTPUTS, control->outputs_bytes, PROT_READ | PROT_WRITE, 0);
}

static void expect(const struct gpu_runner *runner, const char *what, cu_result result)
{
    if (result != 0)
        give_up("%s: %s", what, driver_error(&runner->driver, result));
}

/* Without registration copies go through the driver's own staging: slower, and right all the same.
 */
static void register_regions(struct gpu_runner *runner)
{
    const struct driver *driver = &runner->driver;
    const struct gpu_control *control = runner->control;
    runner->report->pinned =
        driver->host_register(runner->inputs, control->inputs_bytes, CU_REGISTER_READ_ONLY) == 0 &&
        driver->host_register(runner->outputs, control->outputs_bytes, 0) == 0;
}

static void make_ready(struct gpu_runner *runner)
{
    const struct driver *driver = &runner->driver;
    const struct gpu_control *control = runner->control;
    struct err err = {0};
    if (driver_open(&runner->driver, &err) != 0 ||
        device_open(driver, control->gpu_index, &runner->device, &err) != 0)
        give_up("%s", err.message);
    expect(runner, "context", driver->context_retain(&runner->context, runner->device.handle));
    expect(runner, "context", driver->context_use(runner->context));
    expect(runner, "stream", driver->stream_create(&runner->stream, 0));
    expect(runner, "event", driver->event_create(&runner->first, 0));
    expect(runner, "event", driver->event_create(&runner->begin, 0));
    expect(runner, "event", driver->event_create(&runner->end, 0));
    runner->inputs_bytes = service_mapped(control->inputs_bytes + TENSORS_SLACK);
    runner->outputs_bytes = service_mapped(control->outputs_bytes + TENSORS_SLACK);
    runner->sweep_bytes = service_mapped(2 * (size_t)runner->device.l2_bytes + (1 << 20));
    const struct {
        cu_pointer *pointer;
        size_t bytes;
    } buffers[] = {{&runner->device_inputs, runner->inputs_bytes},
                   {&runner->device_outputs, runner->outputs_bytes},
                   {&runner->sweep, runner->sweep_bytes}};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        cu_result result = driver->allocate(buffers[i].pointer, buffers[i].bytes);
        if (result != 0)
            give_up("%zu MiB of the GPU's memory: %s", buffers[i].bytes >> 20,
                    driver_error(driver, result));
    }
    const struct device *device = &runner->device;
    if (service_open(driver, device->sm_count, &runner->service, &err) != 0 ||
        scrub_open(driver, device->sm_count, device->shared_bytes_optin, device->max_threads_per_sm,
                   runner->service.sum + sizeof(uint64_t), &runner->scrub, &err) != 0)
        give_up("%s", err.message);
    register_regions(runner);
    (void)nvml_watch(runner->device.pci);
}

static bool may_load(struct gpu_runner *runner, uint64_t at, uint64_t bytes)
{
    struct cubin cubin;
    struct err err = {0};
    bool usable = cubin_loadable((const char *)runner->image + at, bytes, &cubin, &err) == 0;
    runner->variables = runner->variables || cubin.variables;
    runner->report->keeps = runner->variables;
    if (!usable)
        runner_tell(runner, REPORT_REFUSED, err.message);
    return usable;
}

static bool try_load(struct gpu_runner *runner, uint64_t at)
{
    cu_module module;
    cu_result result = runner->driver.module_load(&module, (const char *)runner->image + at);
    if (result == 0)
        result = runner->driver.module_unload(module);
    if (result == 0)
        return true;
    char reason[WIRE_REASON_MAX];
    snprintf(reason, sizeof reason, "the cubin cannot be loaded: %s",
             driver_error(&runner->driver, result));
    runner_tell(runner, result == CU_OUT_OF_MEMORY ? REPORT_FAULT : REPORT_REFUSED, reason);
    return false;
}

static void load(struct gpu_runner *runner)
{
    struct err err = {0};
    BUF_LOCAL(image, IMAGE_MOST);
    runner->report->status = REPORT_FINE;
    if (file_read(runner->control->artifact, &image, &err) != 0) {
        runner_tell(runner, REPORT_BROKEN, err.message);
        return;
    }
    runner_forget(runner);
    free(runner->image);
    runner->image = malloc(image.length + 1);
    if (runner->image == NULL)
        give_up("out of memory");
    memcpy(runner->image, buf_text(&image), image.length + 1);
    runner->image_bytes = image.length;
    runner->variables = false;
    if (runner->control->image_count == 0) {
        (void)(may_load(runner, 0, image.length) && try_load(runner, 0));
        return;
    }
    for (uint32_t i = 0; i < runner->control->image_count; i++) {
        uint64_t at = runner->control->images[i].at, bytes = runner->control->images[i].bytes;
        if (at > image.length || bytes > image.length - at) {
            runner_tell(runner, REPORT_BROKEN, "the artifact is shorter than its report says");
            return;
        }
        if (!may_load(runner, at, bytes) || !try_load(runner, at))
            return;
    }
}

int cuda_runner_main(int argc, char **argv)
{
    static struct gpu_runner runner; /* zeroed, and too large for a stack */
    if (argc >= 1 && strcmp(argv[0], "probe") == 0)
        return device_probe_main(argc - 1, argv + 1);
    map_memory(&runner);
    if (runner.control->supervised != 0)
        return sanitizer_runner(&runner);
    make_ready(&runner);
    if (runner.control->profiles != 0)
        profile_open(&runner);
    say_done();
    for (;;) {
        wait_go();
        if (runner.control->command == WIRE_LOAD)
            load(&runner);
        else if (runner.control->command == WIRE_PROFILE ||
                 runner.control->command == WIRE_RECORDS || runner.control->command == WIRE_SAMPLES)
            profile_run(&runner);
        else
            runner_call(&runner);
        say_done();
    }
}
