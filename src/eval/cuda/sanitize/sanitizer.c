#include "eval/cuda/sanitize/sanitizer.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "eval/cuda/sanitize/tools.h"
#include "process/toolchain.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAID_MOST = 1 << 18 };

struct tools tools;

const char *sanitizer_find(struct arena *arena)
{
    const char *given = getenv("TWAGENT_COMPUTE_SANITIZER"), *home = getenv("CUDA_HOME");
    if (given != NULL)
        return *given != '\0' && file_exists(given) ? given : NULL;
    const char *path = tool_find("compute-sanitizer");
    if (path != NULL)
        return path;
    path = home != NULL ? arena_printf(arena, "%s/bin/compute-sanitizer", home) : NULL;
    if (path != NULL && file_exists(path))
        return path;
    glob_t found;
    path = NULL;
    if (glob("/usr/local/cuda*/bin/compute-sanitizer", 0, NULL, &found) == 0 && found.gl_pathc > 0)
        path = arena_strdup(arena, found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    return path;
}

/* ---- starting and ending ---- */

void tool_listen(struct supervisor *tool)
{
    if (tool->host == NULL)
        return;
    host_errors(&tool->host->base, &tool->said);
    sanitizer_keep_marked(tool->mark, &tool->said);
}

static void forget(struct supervisor *tool)
{
    gpu_host_close(tool->host);
    buf_free(&tool->said);
    mem_free(tool->places);
    *tool = (struct supervisor){0};
}

void tools_discard(void)
{
    for (int i = 0; i < TOOLS; i++) { /* all at once, for a context takes its time to end */
        const struct gpu_host *host = tools.each[i].host;
        if (host != NULL && !host->base.reaped)
            (void)kill(-host->base.subject.pid, SIGKILL);
    }
    for (int i = 0; i < TOOLS; i++)
        forget(&tools.each[i]);
    mem_free((void *)(uintptr_t)tools.artifact);
    tools.artifact = NULL;
}

int tool_wake(struct supervisor *tool, struct err *err)
{
    tool->woken = true;
    return host_go(&tool->host->base, err);
}

static int start_one(enum sanitizer_tool which, const char *path, const struct lane_facts *lane,
                     const struct region *region, struct err *err)
{
    struct supervisor *tool = &tools.each[which];
    const char *const prefix[] = {path,
                                  "--tool",
                                  sanitizer_tools[which],
                                  "--prefix",
                                  tool->mark,
                                  "--show-backtrace",
                                  "no",
                                  "--print-limit",
                                  "16",
                                  which == TOOL_MEMCHECK ? "--report-api-errors" : NULL,
                                  "no",
                                  NULL};
    forget(tool);
    snprintf(tool->mark, sizeof tool->mark, "==%016llx==", (unsigned long long)random_seed());
    buf_init(&tool->said, SAID_MOST);
    if (gpu_host_start(lane, region, prefix, false, &tool->host, err) != 0)
        return -1;
    /* It takes for unwritten what a launch has read of an earlier one's, where launches of other
     * streams run meanwhile (2025.3.1): docs/gpu.md. */
    tool->host->control->in_turn = which == TOOL_INITCHECK;
    return which == TOOL_RACECHECK ? tool_wake(tool, err) : 0;
}

/* Started for this region and alive; it has met no candidate where none of them has. */
static bool is_spare(const struct supervisor *tool, const struct lane_facts *lane,
                     const struct region *region)
{
    return tool->host != NULL && !tool->host->base.reaped &&
           gpu_host_fits(tool->host, lane, region);
}

/* The slowest first, and woken at once: what it waits for is on everybody's way. */
static const enum sanitizer_tool by_time[TOOLS] = {TOOL_RACECHECK, TOOL_MEMCHECK, TOOL_INITCHECK,
                                                   TOOL_SYNCCHECK};

static int start_first(int count, const struct lane_facts *lane, const struct region *region,
                       struct err *err)
{
    ARENA_LOCAL(arena);
    const char *path = sanitizer_find(arena);
    int status = 0;
    if (path == NULL)
        status = err_set(err, ERR_UNSUPPORTED, "compute-sanitizer is not installed");
    for (int i = 0; i < count && status == 0; i++)
        if (!is_spare(&tools.each[by_time[i]], lane, region))
            status = start_one(by_time[i], path, lane, region, err);
    tools.region = region;
    if (status != 0)
        tools_discard();
    return status;
}

int tools_spare(const struct lane_facts *lane, const struct region *region, struct err *err)
{
    if (tools.artifact != NULL)
        tools_discard();
    return start_first(TOOLS, lane, region, err);
}

void sanitizer_warm(const struct lane_facts *lane, const struct region *region, bool all)
{
    struct err ignored;
    if (tools.artifact == NULL) /* the first call will say why */
        (void)!start_first(all ? TOOLS : 1, lane, region, &ignored);
}

void sanitizer_settle(void)
{
    struct err ignored;
    for (int i = 0; i < TOOLS; i++)
        if (tools.each[i].woken && tools.each[i].host != NULL &&
            gpu_host_wait_warm(tools.each[i].host, &ignored) != 0)
            forget(&tools.each[i]);
}
