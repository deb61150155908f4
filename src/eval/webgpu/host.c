#include "eval/webgpu/host.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "eval/webgpu/library.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOAD_MS = 60000, STARTS_MOST = 3 };

/* ---- its start ---- */

static void fill_control(struct webgpu_control *control, const struct lane_facts *lane,
                         const struct region *region, const char *library)
{
    control->parent = getpid();
    control->adapter = lane->gpu_index;
    control->inputs_bytes = region->inputs_bytes;
    control->outputs_bytes = region->outputs_bytes;
    control->core_count = (uint32_t)lane->core_count;
    for (size_t i = 0; i < lane->core_count && i < WIRE_CORES_MAX; i++)
        control->cores[i] = lane->cores[i];
    strcpy(control->library, library);
}

/* NULL with *err. */
static struct webgpu_host *start(const struct lane_facts *lane, const struct region *region,
                                 struct err *err)
{
    static const struct host_kind kind;
    ARENA_LOCAL(arena);
    const char *env[WEBGPU_ENV_MOST], *library = webgpu_library_find(arena);
    if (library == NULL || strlen(library) >= WIRE_PATH_MAX) {
        err_set(err, ERR_ENVIRONMENT, "%s", WEBGPU_NO_LIBRARY);
        return NULL;
    }
    struct webgpu_host *host = MEM_NEW(struct webgpu_host);
    const char *const argv[] = {file_program_path(), "runner", "webgpu", NULL};
    const struct spawn_spec program = {.argv = argv, .env = webgpu_environment(env), .folder = "/"};
    snprintf(host->base.name, sizeof host->base.name, "adapter %d", lane->gpu_index);
    host->facts = &lane->facts;
    int status = host_begin(&host->base, &kind, sizeof *host->control, sizeof *host->report, err);
    host->control = host->base.control_page.at;
    host->report = host->base.report_page.at;
    if (status == 0) {
        fill_control(host->control, lane, region, library);
        status = host_start(&host->base, region, &program, false, err);
    }
    if (status == 0)
        return host;
    webgpu_host_close(host);
    return NULL;
}

void webgpu_host_close(struct webgpu_host *host)
{
    host_close(host != NULL ? &host->base : NULL);
}

/* ---- spares: a device takes a fifth of a second ---- */

static struct host *spares[1]; /* measuring thread alone */

static bool fits(const struct host *host, const struct lane_facts *lane,
                 const struct region *region)
{
    return host_fits(host, region) &&
           ((const struct webgpu_host *)host)->control->adapter == lane->gpu_index;
}

void webgpu_host_warm(const struct lane_facts *lane, const struct region *region)
{
    struct err ignored;
    struct webgpu_host *started;
    if (spares[0] != NULL && spares[0]->warm && !fits(spares[0], lane, region))
        host_discard(spares, 1);
    if (spares[0] == NULL && (started = start(lane, region, &ignored)) != NULL)
        spares[0] = &started->base; /* else the next open says why */
}

/* NULL with *err. */
static struct webgpu_host *warm_one(const struct lane_facts *lane, const struct region *region,
                                    struct err *err)
{
    struct webgpu_host *found = NULL;
    if (spares[0] != NULL && fits(spares[0], lane, region)) {
        found = (struct webgpu_host *)spares[0];
        spares[0] = NULL;
    }
    for (int tries = 0; tries < STARTS_MOST; tries++) {
        if (found == NULL && (found = start(lane, region, err)) == NULL)
            return NULL;
        if (host_wait_warm(&found->base, err) == 0)
            return found;
        webgpu_host_close(found);
        found = NULL;
    }
    return NULL;
}

/* ---- what it is asked ---- */

static int ask(struct webgpu_host *host, uint32_t command, uint64_t timeout_ms, struct err *err)
{
    unsigned said;
    host->control->command = command;
    if (host_go(&host->base, err) != 0 ||
        host_await(&host->base, 1, clock_now_ns() + timeout_ms * UINT64_C(1000000), &said, err) !=
            0)
        return -1;
    return host_judge(&host->base, host->report->status, host->report->reason,
                      sizeof host->report->reason, err);
}

int webgpu_host_open(const struct lane_facts *lane, const struct region *region,
                     const char *artifact, const struct program *program, bool fresh,
                     struct webgpu_host **out, struct err *err)
{
    if (strlen(artifact) >= WIRE_PATH_MAX)
        return err_set(err, ERR_LIMIT, "the artifact's path is too long");
    struct webgpu_host *host = warm_one(lane, region, err);
    if (host == NULL)
        return -1;
    if (!fresh) /* else what is timed next would wait for it */
        webgpu_host_warm(lane, region);
    host->facts = &lane->facts;
    host->program = *program;
    strcpy(host->control->artifact, artifact);
    int status = plan_program(program, &host->control->plan, err);
    if (status == 0 && (status = ask(host, WIRE_LOAD, LOAD_MS, err)) != 0)
        (void)err_wrap(err, "while it was loaded");
    else if (status != 0)
        err->code = ERR_CHILD;
    if (status != 0)
        webgpu_host_close(host);
    else
        *out = host;
    return status;
}

/* What lies around the passes: memory written twice and read once, over whatever bus. */
static uint64_t around_ms(const struct call *call)
{
    return 1000 + 4 * (call->inputs_bytes + call->outputs_bytes) / 200000;
}

int webgpu_host_call(struct webgpu_host *host, const struct call *call, uint64_t *elapsed_ns,
                     struct err *err)
{
    if (host->base.reaped)
        return err_set(err, ERR_CHILD, "the runner has ended");
    if (plan_call(&host->program, host->facts, call, &host->control->plan, err) != 0)
        return -1;
    if (call->timed)
        host_settle(spares, 1);
    call_copy(call, &host->control->call);
    uint64_t start_ns = clock_now_ns();
    if (ask(host, WIRE_CALL, 2 * call->timeout_ms + around_ms(call), err) != 0) {
        if (err->code == ERR_TIMEOUT)
            return err_set(err, ERR_TIMEOUT, "%s did not end within %.3g s",
                           host->report->running != 0 ? "the passes" : "the call",
                           (double)call->timeout_ms / 1e3);
        return -1;
    }
    double wall_ns = (double)(clock_now_ns() - start_ns);
    double event_ns = host->report->event_ns, around_ns = host->report->wall_ns;
    if (!(event_ns >= 0.0 && event_ns <= around_ns && around_ns <= wall_ns)) {
        host_end(&host->base);
        return err_set(err, ERR_PROTOCOL,
                       "the device tells of %.3f ms, which took %.3f ms by the clock",
                       event_ns / 1e6, around_ns / 1e6);
    }
    *elapsed_ns = event_ns > 1.0 ? (uint64_t)event_ns : 1;
    host->base.subject.waited_ns = host->report->waited_ns;
    return 0;
}
