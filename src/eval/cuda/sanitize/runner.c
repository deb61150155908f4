/* Every tensor is an allocation of its own, of exactly its size, so that memcheck sees the first
 * byte beyond it; only inputs are written before the launch, so that initcheck sees what a kernel
 * takes for granted. No output comes back: what is looked for is in the supervisor's report. */
#include "eval/cuda/sanitize/runner.h"

#include "base/buf.h"
#include "base/file.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { IMAGE_MOST = 64 << 20, READY_MOST = 64 };

static int make_ready(struct gpu_runner *runner, struct err *err)
{
    const struct driver *driver = &runner->driver;
    if (driver_open(&runner->driver, err) != 0 ||
        device_open(driver, runner->control->gpu_index, &runner->device, err) != 0)
        return -1;
    cu_result result = driver->context_retain(&runner->context, runner->device.handle);
    if (result == 0)
        result = driver->context_use(runner->context);
    if (result == 0)
        result = driver->stream_create(&runner->stream, 0);
    if (result == 0)
        return 0;
    return err_set(err, ERR_ENVIRONMENT, "context: %s", driver_error(driver, result));
}

/* The supervisor is between us and the worker, so that the worker's death is looked for. */
static bool wait_go(int worker)
{
    struct pollfd fds[2] = {{.fd = WIRE_GO, .events = POLLIN}, {.fd = worker, .events = POLLIN}};
    uint64_t count;
    for (;;) {
        if (poll(fds, worker >= 0 ? 2 : 1, -1) < 0 && errno != EINTR)
            return false;
        if (fds[1].revents != 0)
            return false;
        if (fds[0].revents != 0 && read(WIRE_GO, &count, sizeof count) == (ssize_t)sizeof count)
            return true;
    }
}

static bool say_done(void)
{
    const uint64_t one = 1;
    return write(WIRE_DONE, &one, sizeof one) == (ssize_t)sizeof one;
}

static void load(struct gpu_runner *runner)
{
    struct buf image;
    struct err err = {0};
    buf_init(&image, IMAGE_MOST);
    runner->report->status = REPORT_FINE;
    free(runner->image);
    runner->image = NULL;
    if (file_read(runner->control->artifact, &image, &err) != 0)
        runner_tell(runner, REPORT_BROKEN, err.message);
    else
        runner->image = malloc(image.length + 1);
    if (runner->image != NULL)
        memcpy(runner->image, buf_text(&image), image.length + 1);
    buf_free(&image);
}

/* ---- calls that are ready ---- */

static struct ready {
    struct call call;
    struct plan plan;
    struct graph graph;
    cu_pointer pointers[CALL_POINTERS_MAX];
    uint32_t pointer_count;
    cu_stream stream; /* kept for the next call in this place */
} * ready[READY_MOST];
static size_t ready_count;

static cu_result allocate(struct gpu_runner *runner, struct ready *one)
{
    const struct driver *driver = &runner->driver;
    cu_result result = one->stream == NULL ? driver->stream_create(&one->stream, 0) : 0;
    for (uint32_t i = 0; result == 0 && i < one->pointer_count; i++) {
        uint64_t bytes = runner->control->sanitize.bytes[i];
        result = driver->allocate(&one->pointers[i], bytes > 0 ? bytes : 1);
        if (result == 0 && i < one->call.input_count && bytes > 0)
            result = driver->upload(one->pointers[i], runner->inputs + one->call.offsets[i], bytes,
                                    one->stream);
    }
    return result == 0 ? driver->stream_wait(one->stream) : result;
}

/* A tool has memory of its own, and so may its neighbours. */
static void tell_fault(struct gpu_runner *runner, const struct fault *fault)
{
    runner_tell(runner, fault->memory ? REPORT_BROKEN : fault->status, fault->reason);
}

/* Scratch is the compiler's: initcheck does not see how a tensor map comes to lie there. */
static void make_call_ready(struct gpu_runner *runner)
{
    const struct driver *driver = &runner->driver;
    struct fault fault = {0};
    runner->report->status = REPORT_FINE;
    if (ready_count < READY_MOST && ready[ready_count] == NULL)
        ready[ready_count] = calloc(1, sizeof *ready[0]);
    if (ready_count == READY_MOST || ready[ready_count] == NULL || runner->image == NULL) {
        runner_tell(runner, REPORT_BROKEN, "no room for the call, or nothing is loaded");
        return;
    }
    struct ready *one = ready[ready_count++];
    _Static_assert(sizeof runner->report->tensors == sizeof one->pointers, "the same tensors");
    one->call = runner->control->call;
    one->plan = runner->control->plan;
    uint32_t count = one->call.input_count + one->call.output_count + one->call.workspace_count;
    one->pointer_count = count < CALL_POINTERS_MAX ? count : CALL_POINTERS_MAX;
    cu_result result = allocate(runner, one);
    memcpy(runner->report->tensors, one->pointers, sizeof one->pointers);
    if (result == 0 && graph_open(driver, runner->image, NULL, &one->plan, one->pointers,
                                  one->stream, &one->graph, &fault) != 0)
        tell_fault(runner, &fault);
    else if (result == 0)
        result = graph_clear(&one->graph);
    if (result == 0)
        result = driver->stream_wait(one->stream);
    if (result != 0)
        runner_tell(runner, REPORT_BROKEN, driver_error(driver, result));
}

/* Each in a stream of its own: of a tool that follows every thread of a block the blocks of several
 * calls take hardly longer than those of one. In turn: also its launches are waited for. */
static void run_all(struct gpu_runner *runner)
{
    const struct driver *driver = &runner->driver;
    struct fault fault = {0};
    bool alone = ready_count == 1 || runner->control->in_turn != 0;
    int status = 0;
    for (size_t i = 0; i < ready_count && status == 0; i++)
        status =
            alone ? graph_step(&ready[i]->graph, &fault) : graph_queue(&ready[i]->graph, &fault);
    for (size_t i = 0; i < ready_count && status == 0; i++) {
        cu_result result = driver->stream_wait(ready[i]->stream);
        if (result != 0)
            status = graph_fault(&ready[i]->graph, result, NULL, &fault);
    }
    runner->report->status = REPORT_FINE;
    if (status != 0)
        tell_fault(runner, &fault);
    while (ready_count > 0) {
        struct ready *one = ready[--ready_count];
        graph_close(&one->graph);
        for (uint32_t i = 0; i < one->pointer_count; i++)
            if (one->pointers[i] != 0)
                (void)driver->release(one->pointers[i]);
        memset(one->pointers, 0, sizeof one->pointers);
    }
}

int sanitizer_runner(struct gpu_runner *runner)
{
    struct err err = {0};
    int worker = (int)syscall(SYS_pidfd_open, runner->control->parent, 0);
    /* Contexts that are made at the same time wait for each other: each when it is told to. */
    if (!wait_go(worker) || runner->control->command == WIRE_QUIT)
        return RUNNER_EXIT;
    if (make_ready(runner, &err) != 0) {
        fprintf(stderr, "%s\n", err.message);
        return RUNNER_EXIT;
    }
    while (say_done() && wait_go(worker)) {
        if (runner->control->command == WIRE_QUIT)
            return 0;
        if (runner->control->command == WIRE_LOAD)
            load(runner);
        else if (runner->control->command == WIRE_READY)
            make_call_ready(runner);
        else
            run_all(runner);
    }
    return RUNNER_EXIT;
}
