/* Starting a CUDA runner, and the spares: one is kept warm, since a context takes a third of a
 * second, and a runner whose candidate left it whole goes back among them. */
#include "eval/cuda/run/host.h"

#include "base/file.h"
#include "base/mem.h"
#include "eval/cuda/driver/spawn.h"
#include "eval/data/timeline.h"

#include <stdio.h>
#include <unistd.h>

enum { SPARES = 4, ARGUMENTS_MOST = 24, STARTS_MOST = 3 };

static void free_own(struct host *base)
{
    struct gpu_host *host = (struct gpu_host *)base;
    arena_free(host->arena);
}

int gpu_host_start(const struct lane_facts *lane, const struct region *region,
                   const char *const *prefix, bool profiles, struct gpu_host **out, struct err *err)
{
    static const struct host_kind kind = {.free = free_own};
    struct gpu_host *host = MEM_NEW(struct gpu_host);
    const char *argv[ARGUMENTS_MOST + 4], *env[CUDA_ENV_MOST];
    size_t count = 0;
    for (; prefix != NULL && prefix[count] != NULL && count < ARGUMENTS_MOST; count++)
        argv[count] = prefix[count];
    argv[count++] = file_program_path();
    argv[count++] = "runner";
    argv[count++] = "cuda";
    argv[count] = NULL;
    const struct spawn_spec program = {.argv = argv, .env = cuda_environment(env), .folder = "."};
    snprintf(host->base.name, sizeof host->base.name, "GPU %d", lane->gpu_index);
    host->facts = &lane->facts;
    int result = host_begin(&host->base, &kind, sizeof *host->control, sizeof *host->report, err);
    host->control = host->base.control_page.at;
    host->report = host->base.report_page.at;
    if (result == 0) {
        host->control->parent = getpid();
        host->control->supervised = prefix != NULL;
        host->control->profiles = profiles;
        host->control->timeline = timeline_on();
        host->control->gpu_index = lane->gpu_index;
        host->control->inputs_bytes = region->inputs_bytes;
        host->control->outputs_bytes = region->outputs_bytes;
        result = host_start(&host->base, region, &program, prefix != NULL, err);
    }
    if (result != 0)
        gpu_host_close(host);
    else
        *out = host;
    return result;
}

void gpu_host_close(struct gpu_host *host)
{
    host_close(host != NULL ? &host->base : NULL);
}

/* ---- spares ---- */

static struct host *spares[SPARES]; /* measuring thread alone */

bool gpu_host_fits(const struct gpu_host *host, const struct lane_facts *lane,
                   const struct region *region)
{
    return host_fits(&host->base, region) && host->control->gpu_index == lane->gpu_index;
}

void gpu_host_discard(void)
{
    host_discard(spares, SPARES);
}

void gpu_host_settle(void)
{
    host_settle(spares, SPARES);
}

/* The one that was given back last: two that are closed and opened again in the same order change
 * places. */
static struct gpu_host *take_spare(const struct lane_facts *lane, const struct region *region,
                                   bool used)
{
    int last = -1;
    for (int i = 0; i < SPARES; i++) {
        const struct gpu_host *found = (const struct gpu_host *)spares[i];
        if (found != NULL && gpu_host_fits(found, lane, region) && found->used == used &&
            (last < 0 || found->given_back > ((const struct gpu_host *)spares[last])->given_back))
            last = i;
    }
    struct gpu_host *taken = last < 0 ? NULL : (struct gpu_host *)spares[last];
    if (taken != NULL)
        spares[last] = NULL;
    return taken;
}

void gpu_host_begin(const struct lane_facts *lane, const struct region *region)
{
    struct err ignored;
    struct gpu_host *started;
    int place = -1;
    for (int i = 0; i < SPARES; i++) {
        const struct gpu_host *spare = (const struct gpu_host *)spares[i];
        if (spare == NULL)
            place = i;
        else if (!spare->used && gpu_host_fits(spare, lane, region))
            return;
    }
    if (place >= 0 && gpu_host_start(lane, region, NULL, false, &started, &ignored) == 0)
        spares[place] = &started->base; /* else the next open says why */
}

/* Those of other regions hold memory for nothing. */
void gpu_host_warm(const struct lane_facts *lane, const struct region *region)
{
    for (int i = 0; i < SPARES; i++) { /* but one that was just begun */
        const struct gpu_host *spare = (const struct gpu_host *)spares[i];
        if (spare != NULL && spare->base.warm && !gpu_host_fits(spare, lane, region))
            host_discard(&spares[i], 1);
    }
    gpu_host_begin(lane, region);
}

void gpu_host_give_back(struct gpu_host *host)
{
    for (int i = 0; i < SPARES && host != NULL && !host->base.reaped && !host->base.spoilt; i++)
        if (spares[i] == NULL) {
            static unsigned given_back;
            host->given_back = ++given_back;
            spares[i] = &host->base;
            return;
        }
    gpu_host_close(host);
}

static int warm_one(const struct lane_facts *lane, const struct region *region, bool fresh,
                    struct gpu_host **host, struct err *err)
{
    struct gpu_host *found = fresh ? NULL : take_spare(lane, region, true);
    if (found == NULL)
        found = take_spare(lane, region, false);
    for (int tries = 0; tries < STARTS_MOST; tries++) {
        if (found == NULL && gpu_host_start(lane, region, NULL, false, &found, err) != 0)
            return -1;
        if (gpu_host_wait_warm(found, err) == 0) {
            *host = found;
            return 0;
        }
        gpu_host_close(found); /* killed before it held anything of a candidate's, or no GPU */
        found = NULL;
    }
    return -1;
}

int gpu_host_open(const struct lane_facts *lane, const struct region *region, const char *artifact,
                  const struct program *program, bool fresh, struct gpu_host **out, struct err *err)
{
    struct gpu_host *host = NULL;
    if (warm_one(lane, region, fresh, &host, err) != 0)
        return -1;
    if (!fresh) /* else what is timed next would wait for it */
        gpu_host_warm(lane, region);
    host->facts = &lane->facts;
    if (gpu_host_load(host, program, artifact, err) != 0) {
        gpu_host_close(host);
        return -1;
    }
    *out = host;
    return 0;
}
