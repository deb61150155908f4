/* eval/lane/lanes: what whoever has lanes does for each: its share of the cores and devices, and to
 * open it again. */
#include "eval/lane/lane.h"

#include "base/buf.h"
#include "base/log.h"
#include "base/quota.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { CORES_MAX = 1024 };

static size_t add_cores(const char *text, int *cores, size_t count)
{
    while (*text) {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (end == text)
            break;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        for (long core = first; core <= last && count < CORES_MAX; core++)
            cores[count++] = (int)core;
        text = *end == ',' ? end + 1 : end;
    }
    return count;
}

static size_t own_cores(const char *text, int *cores)
{
    cpu_set_t set;
    size_t count = 0;
    if (text)
        return add_cores(text, cores, 0);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 0;
    for (size_t core = 0; core < CPU_SETSIZE && count < CORES_MAX; core++)
        if (CPU_ISSET(core, &set))
            cores[count++] = (int)core;
    struct quota quota;
    quota_read(&quota);
    size_t most = quota.cpus >= 1 ? (size_t)quota.cpus : 1;
    return quota.cpus > 0 && most < count ? most : count;
}

/* Each lane its own share of the cores; behind a launcher, whatever is there. */
static int share_cores(struct arena *arena, const struct lane_spec *spec, struct lane_share *shares,
                       size_t lanes, struct err *err)
{
    int cores[CORES_MAX];
    size_t count = own_cores(spec->cores, cores);
    for (size_t i = 0; i < lanes; i++)
        shares[i].cores = spec->cores;
    if (lanes == 1 || spec->launcher)
        return 0;
    if (count < lanes)
        return err_set(err, ERR_USAGE, "%zu lanes need as many cores; there are %zu", lanes, count);
    for (size_t i = 0; i < lanes; i++) {
        BUF_LOCAL(text, 1 << 14);
        for (size_t at = i * count / lanes; at < (i + 1) * count / lanes; at++)
            buf_addf(&text, "%s%d", text.length ? "," : "", cores[at]);
        shares[i].cores = arena_strdup(arena, buf_text(&text));
    }
    return 0;
}

int lane_shares(struct arena *arena, const struct lane_spec *spec, size_t lanes,
                struct lane_share shares[LANES_MAX], size_t *count, struct err *err)
{
    const char *devices[LANES_MAX];
    char *rest = arena_strdup(arena, spec->device ? spec->device : ""), *word;
    size_t named = 0;
    while ((word = strsep(&rest, ",")) && named < LANES_MAX)
        if (*word)
            devices[named++] = word;
    *count = named > lanes ? named : lanes;
    if (*count > LANES_MAX)
        return err_set(err, ERR_USAGE, "at most %d lanes", LANES_MAX);
    for (size_t i = 0; i < *count; i++)
        shares[i] = (struct lane_share){.device = named > 0 ? devices[i % named] : NULL};
    return share_cores(arena, spec, shares, *count, err);
}

bool lane_open_again(struct lane *lane, struct lane_request *open, struct task *owner)
{
    if (!open->done || open->err.code != ERR_CHILD || ++open->deaths > WORKER_DEATHS_MAX)
        return false;
    log_event(LOG_WARN, "lane.again", open->id != NULL ? open->id : "", "%s", open->err.message);
    arena_free(open->arena);
    lane_submit(lane, open, owner);
    return true;
}
