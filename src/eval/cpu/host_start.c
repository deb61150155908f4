/* Starting a runner: descriptors, environment, process group; and its spares. */
#include "eval/cpu/host.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "eval/cpu/cpu.h"

#include <string.h>
#include <unistd.h>

enum {
    ENV_MAX = 32,
    SPARES = 2,
    STARTS_MOST = 3,
    CONTROL_BYTES = (sizeof(struct control) + 4095) / 4096 * 4096
};
#define GIB ((uint64_t)1 << 30)
#define MIB ((uint64_t)1 << 20)

/* What OpenMP and BLAS libraries read. Passive: a helper thread that spins after its share would
 * hold the core on which this side must wake. */
static size_t environment(const struct lane_facts *lane, const char *const *more,
                          struct arena *arena, const char *env[ENV_MAX])
{
    size_t count = 0;
    BUF_LOCAL(places, 1024);
    for (size_t i = 0; i < lane->core_count; i++)
        buf_addf(&places, "%s{%d}", i > 0 ? "," : "", lane->cores[i]);
    int cores = (int)lane->core_count;
    env[count++] = "LC_ALL=C";
    env[count++] = arena_printf(arena, "OMP_NUM_THREADS=%d", cores);
    env[count++] = arena_printf(arena, "OMP_THREAD_LIMIT=%d", 4 * cores);
    env[count++] = "OMP_DYNAMIC=false";
    env[count++] = "OMP_PROC_BIND=close";
    env[count++] = arena_printf(arena, "OMP_PLACES=%s", buf_text(&places));
    env[count++] = "OMP_WAIT_POLICY=passive";
    env[count++] = arena_printf(arena, "OPENBLAS_NUM_THREADS=%d", cores);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    env[count++] = "ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_abort=0:handle_sigfpe=0:"
                   "handle_sigill=0:detect_leaks=0:allocator_may_return_null=1";
#endif
    for (size_t i = 0; more != NULL && more[i] != NULL && count < ENV_MAX - 1; i++)
        env[count++] = more[i];
    env[count] = NULL;
    return count;
}

static void fill_control(struct cpu_host *host, const struct region *region,
                         const struct lane_facts *lane)
{
    struct control *control = host->control;
    control->parent = getpid();
    control->core_count = (uint32_t)lane->core_count;
    for (size_t i = 0; i < lane->core_count && i < WIRE_CORES_MAX; i++)
        control->cores[i] = lane->cores[i];
    control->inputs_bytes = region->inputs_bytes;
    control->outputs_bytes = region->outputs_bytes;
    control->alias_count = (uint32_t)region->alias_count;
    memcpy(control->aliases, region->aliases, sizeof control->aliases);
    control->alias_end = region_alias_end(region);
    /* malloc() reserves 128 MiB of addresses for each thread's arena. */
    control->memory_bytes = 4 * GIB + 256 * MIB * lane->core_count;
}

static char *join_env(const char *const *env)
{
    BUF_LOCAL(text, 1 << 16);
    for (size_t i = 0; env != NULL && env[i] != NULL; i++)
        buf_addf(&text, "%s\n", env[i]);
    buf_add_text(&text, "");
    return mem_strdup(buf_text(&text));
}

static int start(const struct lane_facts *lane, const struct region *region, const char *const *env,
                 struct cpu_host **out, struct err *err)
{
    struct cpu_host *host = MEM_NEW(struct cpu_host);
    ARENA_LOCAL(arena);
    const char *const argv[] = {file_program_path(), "runner", "cpu", NULL};
    const char *environ_list[ENV_MAX];
    environment(lane, env, arena, environ_list);
    const struct spawn_spec program = {.argv = argv, .env = environ_list};
    host->others_ns = -1;
    host->env = join_env(env);
    strcpy(host->base.name, "runner");
    int result = host_begin(&host->base, &cpu_host_kind, CONTROL_BYTES, 0, err);
    host->control = host->base.control_page.at;
    if (result == 0) {
        fill_control(host, region, lane);
        result = host_start(&host->base, region, &program, false, err);
    }
    if (result != 0)
        host_close(&host->base);
    else
        *out = host;
    return result;
}

/* ---- spares ---- */

static struct host *spares[SPARES]; /* measuring thread alone */

static bool fits(const struct host *spare, const struct region *region, const char *env,
                 const struct lane_facts *lane)
{
    const struct cpu_host *host = (const struct cpu_host *)spare;
    if (!host_fits(spare, region) || strcmp(host->env, env) != 0 ||
        host->control->core_count != lane->core_count)
        return false;
    for (size_t i = 0; i < lane->core_count; i++)
        if (host->control->cores[i] != lane->cores[i])
            return false;
    return true;
}

void cpu_runner_discard_spares(void)
{
    host_discard(spares, SPARES);
}

void cpu_host_settle(void)
{
    host_settle(spares, SPARES);
}

/* A spare for another region holds that one's memory: away with it. */
static void replace_spare(const struct lane_facts *lane, const struct region *region,
                          const char *const *env)
{
    struct err ignored;
    struct cpu_host *spare;
    int place = 0;
    for (int i = 0; i < SPARES; i++) {
        if (spares[i] != NULL && spares[i]->region != region)
            host_discard(&spares[i], 1);
        if (spares[i] == NULL)
            place = i;
    }
    host_discard(&spares[place], 1);
    if (start(lane, region, env, &spare, &ignored) == 0) /* else the next open() says why */
        spares[place] = &spare->base;
}

int cpu_host_take(const struct lane_facts *lane, const struct region *region,
                  const char *const *env, struct cpu_host **host, struct err *err)
{
    MEM_LOCAL char *joined = join_env(env);
    struct cpu_host *found = NULL;
    for (int i = 0; i < SPARES && found == NULL; i++)
        if (spares[i] != NULL && fits(spares[i], region, joined, lane)) {
            found = (struct cpu_host *)spares[i];
            spares[i] = NULL;
        }
    if (found != NULL && host_wait_warm(&found->base, err) != 0) {
        host_close(&found->base); /* somebody killed it: start another */
        found = NULL;
    }
    for (int tries = 0; found == NULL && tries < STARTS_MOST; tries++) {
        if (start(lane, region, env, &found, err) != 0)
            return -1;
        if (host_wait_warm(&found->base, err) != 0) {
            host_close(&found->base); /* killed before it held anything of the candidate's */
            found = NULL;
        }
    }
    if (found == NULL)
        return -1;
    *host = found;
    replace_spare(lane, region, env);
    return 0;
}
