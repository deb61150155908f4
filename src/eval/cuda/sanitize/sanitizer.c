#include "eval/cuda/sanitize/sanitizer.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "eval/cuda/run/host.h"
#include "eval/data/timeline.h"
#include "process/toolchain.h"

#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kernel under one of them is some ten to a hundred times slower. */
enum { SLOWER = 50, MOST_MS = 30000, QUIT_MS = 20000, FINDINGS = 4, SAID_MOST = 1 << 18 };

static const char *const timeline_names[TOOLS] = {[TOOL_MEMCHECK] = "sanitize.memcheck",
                                                  [TOOL_RACECHECK] = "sanitize.racecheck",
                                                  [TOOL_INITCHECK] = "sanitize.initcheck",
                                                  [TOOL_SYNCCHECK] = "sanitize.synccheck"};

static struct running {
    struct gpu_host *hosts[TOOLS]; /* NULL: not running; all or none before quit() */
    struct buf said[TOOLS];
    char marks[TOOLS]
              [40]; /* drawn anew each time: what a candidate prints is not taken for theirs */
    const char *artifact; /* owned; NULL: they have met no candidate */
    const struct region *region;
} running; /* one thread's at a time */

static atomic_bool cancelled;

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

static void listen(int tool)
{
    if (running.hosts[tool] == NULL)
        return;
    host_errors(&running.hosts[tool]->base, &running.said[tool]);
    sanitizer_keep_marked(running.marks[tool], &running.said[tool]);
}

/* Before anything of the candidate's runs: a tool that does not take our mark has said so with the
 * first line. */
static void learn_mark(int tool)
{
    struct buf *said = &running.said[tool];
    host_errors(&running.hosts[tool]->base, said);
    if (strstr(buf_text(said), running.marks[tool]) == NULL &&
        strstr(buf_text(said), SANITIZER_MARK) != NULL)
        strcpy(running.marks[tool], SANITIZER_MARK);
}

static void discard(void)
{
    for (int i = 0; i < TOOLS; i++) /* all at once, for a context takes its time to end */
        if (running.hosts[i] != NULL && !running.hosts[i]->base.reaped)
            (void)kill(-running.hosts[i]->base.subject.pid, SIGKILL);
    for (int i = 0; i < TOOLS; i++) {
        gpu_host_close(running.hosts[i]);
        running.hosts[i] = NULL;
        buf_free(&running.said[i]);
    }
    mem_free((void *)(uintptr_t)running.artifact);
    running.artifact = NULL;
}

/* Not waited for. */
static int spawn_all(const struct lane_facts *lane, const struct region *region, struct err *err)
{
    struct arena *arena = arena_new();
    const char *path = sanitizer_find(arena);
    int status = 0;
    discard();
    if (path == NULL)
        status = err_set(err, ERR_UNSUPPORTED, "compute-sanitizer is not installed");
    for (int i = 0; i < TOOLS && status == 0; i++) {
        const char *const prefix[] = {path,
                                      "--tool",
                                      sanitizer_tools[i],
                                      "--prefix",
                                      running.marks[i],
                                      "--show-backtrace",
                                      "no",
                                      "--print-limit",
                                      "16",
                                      i == TOOL_MEMCHECK ? "--report-api-errors" : NULL,
                                      "no",
                                      NULL};
        snprintf(running.marks[i], sizeof running.marks[i],
                 "==%016llx==", (unsigned long long)random_seed());
        buf_init(&running.said[i], SAID_MOST);
        status = gpu_host_start(lane, region, prefix, false, &running.hosts[i], err);
        if (status == 0)
            running.hosts[i]->cancelled = &cancelled;
    }
    running.region = region;
    if (status != 0)
        discard();
    arena_free(arena);
    return status;
}

/* All of them started, for this region, and none has met a candidate yet. */
static bool are_spare(const struct lane_facts *lane, const struct region *region)
{
    for (int i = 0; i < TOOLS; i++)
        if (running.hosts[i] == NULL || running.hosts[i]->base.reaped ||
            !gpu_host_fits(running.hosts[i], lane, region))
            return false;
    return running.artifact == NULL;
}

void sanitizer_warm(const struct lane_facts *lane, const struct region *region)
{
    struct err ignored;
    if (running.artifact == NULL && !are_spare(lane, region))
        (void)!spawn_all(lane, region, &ignored); /* the first call will say why */
}

bool sanitizer_ready(void)
{
    for (int i = 0; i < TOOLS; i++) {
        const struct gpu_host *host = running.hosts[i];
        if (host == NULL)
            return false;
        struct pollfd said[2] = {{.fd = host->base.done, .events = POLLIN},
                                 {.fd = host->base.pidfd, .events = POLLIN}};
        if (!host->base.warm && !host->base.reaped && poll(said, 2, 0) == 0)
            return false;
    }
    return true;
}

bool sanitizer_holds(const char *artifact)
{
    for (int i = 0; i < TOOLS; i++)
        if (running.hosts[i] == NULL || running.hosts[i]->base.reaped)
            return false;
    return running.artifact != NULL && strcmp(running.artifact, artifact) == 0;
}

void sanitizer_cancel(bool on)
{
    atomic_store(&cancelled, on);
}

void sanitizer_settle(void)
{
    struct err ignored;
    for (int i = 0; i < TOOLS; i++)
        if (running.hosts[i] != NULL && gpu_host_wait_warm(running.hosts[i], &ignored) != 0) {
            discard();
            return;
        }
}

static int start(const struct lane_facts *lane, const struct region *region, const char *artifact,
                 const struct program *program, struct err *err)
{
    int status = are_spare(lane, region) ? 0 : spawn_all(lane, region, err);
    for (int i = 0; i < TOOLS && status == 0; i++)
        if (gpu_host_wait_warm(running.hosts[i], err) != 0) {
            err->code = ERR_UNSUPPORTED;
            status = err_wrap(err, "compute-sanitizer (%s) does not run here", sanitizer_tools[i]);
        }
    for (int i = 0; i < TOOLS && status == 0; i++) {
        learn_mark(i);
        status = gpu_host_load(running.hosts[i], program, artifact, err);
    }
    if (status != 0)
        discard();
    else
        running.artifact = mem_strdup(artifact);
    return status;
}

/* ---- one call under all of them ---- */

static int sizes(const struct program *program, const struct call *call,
                 struct wire_sanitize *sanitize, struct err *err)
{
    const struct problem *problem = program->problem;
    struct layout layout;
    struct names dims = {0};
    for (uint32_t i = 0; i < call->dim_count && i < problem->dim_count; i++)
        if (names_set(&dims, problem->dims[i].name, call->dims[i], err) != 0)
            return -1;
    if (layout_make(problem, &dims, program->candidate, program->tune, 0, &layout, err) != 0)
        return -1;
    size_t at = 0;
    for (size_t i = 0; i < layout.input_count; i++)
        sanitize->bytes[at++] = layout.inputs[i].bytes;
    for (size_t i = 0; i < layout.output_count; i++)
        sanitize->bytes[at++] = layout.outputs[i].bytes;
    for (size_t i = 0; i < layout.workspace_count; i++)
        sanitize->bytes[at++] = layout.workspaces[i].bytes;
    return 0;
}

static int tell(struct gpu_host *host, const struct lane_facts *lane, const struct program *program,
                const struct call *call, struct err *err)
{
    host->facts = &lane->facts;
    host->control->command = WIRE_SANITIZE;
    call_copy(call, &host->control->call);
    if (gpu_host_plan(host, call, &host->control->plan, err) != 0 ||
        sizes(program, call, &host->control->sanitize, err) != 0)
        return -1;
    return host_go(&host->base, err);
}

/* What has been said so far, by all of them: findings, as one error. */
static int findings(struct buf *report, struct err *err)
{
    char which[80] = "";
    for (int i = 0; i < TOOLS; i++) {
        struct sanitizer_words words;
        sanitizer_read((enum sanitizer_tool)i, running.marks[i], buf_text(&running.said[i]),
                       running.said[i].length, FINDINGS, &words, report);
        if (words.errors == 0)
            continue;
        strcat(which, which[0] != '\0' ? ", " : "");
        strcat(which, sanitizer_tools[i]);
    }
    if (which[0] == '\0')
        return 0;
    return err_set(err, ERR_CHILD, "compute-sanitizer (%s) found a defect", which);
}

/* True while it runs, having been told to end. */
static bool is_quitting(const struct gpu_host *host, int wait_ms)
{
    struct pollfd ended = {.fd = host->base.pidfd, .events = POLLIN};
    return !host->base.reaped && poll(&ended, 1, wait_ms) == 0;
}

/* Each ends by itself where it can, all at once, for that takes a context its time; then all that
 * they say is there. */
static void quit_all(void)
{
    enum { STEP_MS = 10 };
    struct err ignored;
    bool quitting = true;
    for (int i = 0; i < TOOLS; i++)
        if (running.hosts[i] != NULL) {
            running.hosts[i]->control->command = WIRE_QUIT;
            if (!running.hosts[i]->base.reaped && host_go(&running.hosts[i]->base, &ignored) != 0)
                host_end(&running.hosts[i]->base);
        }
    for (int waited = 0; quitting && waited < QUIT_MS && !atomic_load(&cancelled);
         waited += STEP_MS) {
        quitting = false;
        for (int i = 0; i < TOOLS; i++) {
            if (running.hosts[i] == NULL)
                continue;
            quitting = is_quitting(running.hosts[i], quitting ? 0 : STEP_MS) || quitting;
            listen(i);
        }
    }
    for (int i = 0; i < TOOLS; i++) {
        listen(i);
        gpu_host_close(running.hosts[i]);
        running.hosts[i] = NULL;
    }
}

static int give_up(struct err *err)
{
    discard();
    return err_set(err, ERR_CANCELLED, "cancelled");
}

/* A runner that died or faulted under a tool: what the tool says of it counts first. */
static int ended_badly(int tool, enum err_code code, const char *reason, struct buf *report,
                       struct err *err)
{
    char why[WIRE_REASON_MAX];
    snprintf(why, sizeof why, "%s", reason);
    quit_all();
    if (findings(report, err) == 0)
        err_set(err, code, "under compute-sanitizer (%s): %s", sanitizer_tools[tool], why);
    discard();
    return -1;
}

int cuda_sanitize(const struct lane_facts *lane, const struct region *region, const char *artifact,
                  const struct program *program, const struct call *call, struct buf *report,
                  struct err *err)
{
    bool same = running.artifact != NULL && running.region == region &&
                strcmp(running.artifact, artifact) == 0;
    uint64_t timeout_ms = call->timeout_ms * SLOWER;
    timeout_ms = timeout_ms > MOST_MS ? MOST_MS : timeout_ms;
    uint64_t begun = timeline_begin();
    if (!same && start(lane, region, artifact, program, err) != 0)
        return -1;
    timeline_end("sanitize.start", begun);
    begun = timeline_begin();
    for (int i = 0; i < TOOLS; i++)
        if (tell(running.hosts[i], lane, program, call, err) != 0) {
            discard();
            return -1;
        }
    for (int i = 0; i < TOOLS; i++) {
        struct gpu_host *host = running.hosts[i];
        bool answered = gpu_host_await(host, timeout_ms, err) == 0;
        if (!answered && err->code == ERR_CANCELLED)
            return give_up(err);
        if (!answered)
            return ended_badly(i, err->code == ERR_TIMEOUT ? ERR_TIMEOUT : ERR_CHILD, err->message,
                               report, err);
        listen(i);
        timeline_end(timeline_names[i], begun); /* all run at once */
        uint32_t status = host->report->status;
        if (status == REPORT_FAULT || status == REPORT_REFUSED)
            return ended_badly(i, ERR_CHILD, (const char *)host->report->reason, report, err);
        if (status != REPORT_FINE) {
            err_set(err, ERR_UNSUPPORTED, "compute-sanitizer (%s): %.*s", sanitizer_tools[i],
                    WIRE_REASON_MAX - 1, host->report->reason);
            discard();
            return -1;
        }
    }
    if (findings(report, err) == 0)
        return 0;
    discard();
    return -1;
}

int cuda_sanitize_end(struct buf *report, struct err *err)
{
    int status = 0;
    uint64_t begun = timeline_begin();
    if (running.artifact == NULL)
        return 0;
    if (!atomic_load(&cancelled))
        quit_all();
    timeline_end("sanitize.end", begun);
    if (atomic_load(&cancelled))
        return give_up(err);
    for (int i = 0; i < TOOLS && status == 0; i++) {
        struct sanitizer_words words;
        struct buf ignored;
        buf_init(&ignored, SAID_MOST);
        sanitizer_read((enum sanitizer_tool)i, running.marks[i], buf_text(&running.said[i]),
                       running.said[i].length, 0, &words, &ignored);
        buf_free(&ignored);
        if (words.errors == 0 && (words.broken || !words.ended))
            status = err_set(err, ERR_UNSUPPORTED, "compute-sanitizer (%s) did not come to an end",
                             sanitizer_tools[i]);
    }
    if (findings(report, err) != 0)
        status = -1;
    discard();
    return status;
}
