/* Calls under all of the tools at once. Each goes through them at its own pace, as soon as it is
 * warm, and ends behind the last one; a run is of one call, or of all together:
 *
 *   asleep -> starting -> loaded -> ready ... run -> ready ... run -> quitting -> over
 *                                    |                  (held: it stays where it is, and goes on
 *                                    +-> failed          with the same calls asked for again)
 *
 * What one of them finds, or dies of, the others are still asked for, and nothing behind it. */
#include "base/clock.h"
#include "base/mem.h"
#include "eval/cuda/sanitize/tools.h"
#include "eval/data/timeline.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* A kernel under one of them is some ten to a hundred times slower; a softmax of 2 MB in clusters
 * of eight blocks of 1,024 threads took racecheck 27 s (H200). Calls that ran at the same time are
 * asked again, one after the other: what one of them takes too long for then is held against the
 * kernel.
 */
enum {
    SLOWER = 50,
    TOGETHER_MS = 30000,
    ONE_MS = 120000,
    READY_MS = 30000,
    START_MS = 60000,
    QUIT_MS = 20000,
    FINDINGS = 4
};
enum { STEP_MS = 10, SAID_MOST = 1 << 18, FIRST_MOST = 400 };
#define MS_NS UINT64_C(1000000)

static const char *const timeline_names[TOOLS] = {[TOOL_MEMCHECK] = "sanitize.memcheck",
                                                  [TOOL_RACECHECK] = "sanitize.racecheck",
                                                  [TOOL_INITCHECK] = "sanitize.initcheck",
                                                  [TOOL_SYNCCHECK] = "sanitize.synccheck"};

static atomic_int held; /* enum sanitizer_hold */

void sanitizer_hold(enum sanitizer_hold hold)
{
    atomic_store(&held, hold);
}

struct asked {
    const struct lane_facts *lane;
    const struct program *program;
    const char *artifact;
    const struct call *calls;
    size_t count, most; /* most: by then something was found, and nobody is asked any further */
    bool together;      /* they run at the same time */
    uint64_t begun_ns;
};

/* ---- getting ready ---- */

static bool spoke(const struct gpu_host *host)
{
    struct pollfd said[2] = {{.fd = host->base.done, .events = POLLIN},
                             {.fd = host->base.pidfd, .events = POLLIN}};
    return host->base.reaped || poll(said, 2, 0) > 0;
}

/* Before anything of the candidate's runs: a tool that does not take our mark has said so with the
 * first line. */
static void learn_mark(struct supervisor *tool)
{
    host_errors(&tool->host->base, &tool->said);
    if (strstr(buf_text(&tool->said), tool->mark) == NULL &&
        strstr(buf_text(&tool->said), SANITIZER_MARK) != NULL)
        strcpy(tool->mark, SANITIZER_MARK);
}

/* Contexts that are made at the same time wait for each other: the slowest first. */
static bool may_wake(void)
{
    const struct supervisor *slowest = &tools.each[TOOL_RACECHECK];
    return slowest->loaded || slowest->over || slowest->host == NULL;
}

/* 1: not yet. */
static int load(int which, const struct asked *asked, struct err *err)
{
    struct supervisor *tool = &tools.each[which];
    struct gpu_host *host = tool->host;
    if (!tool->woken && !may_wake())
        return 1;
    if (!tool->woken && tool_wake(tool, err) != 0)
        return -1;
    if (!host->base.warm && !spoke(host) && clock_now_ns() - asked->begun_ns < START_MS * MS_NS)
        return 1;
    if (gpu_host_wait_warm(host, err) != 0) {
        err->code = ERR_UNSUPPORTED;
        return err_wrap(err, "compute-sanitizer (%s) does not run here", sanitizer_tools[which]);
    }
    learn_mark(tool);
    tool->loaded = true;
    return gpu_host_load(host, asked->program, asked->artifact, err);
}

/* ---- one call ---- */

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

static int go(struct supervisor *tool, uint32_t command, uint64_t timeout_ms, struct err *err)
{
    tool->host->control->command = command;
    tool->busy = true;
    tool->running = command == WIRE_RUN;
    tool->begun_ns = clock_now_ns();
    tool->deadline_ns = tool->begun_ns + timeout_ms * MS_NS;
    return host_go(&tool->host->base, err);
}

static int make_ready(struct supervisor *tool, const struct asked *asked, struct err *err)
{
    struct gpu_host *host = tool->host;
    const struct call *call = &asked->calls[tool->next];
    host->facts = &asked->lane->facts; /* and the program: of this request, which may go on */
    host->program = *asked->program;
    call_copy(call, &host->control->call);
    if (gpu_host_plan(host, call, &host->control->plan, err) != 0 ||
        sizes(asked->program, call, &host->control->sanitize, err) != 0)
        return -1;
    return go(tool, WIRE_READY, READY_MS, err);
}

static int run(struct supervisor *tool, const struct asked *asked, struct err *err)
{
    uint64_t timeout_ms = asked->calls[tool->ran].timeout_ms * SLOWER; /* all have the same */
    uint64_t most_ms = asked->together ? TOGETHER_MS : ONE_MS;
    return go(tool, WIRE_RUN, timeout_ms > most_ms ? most_ms : timeout_ms, err);
}

static bool has_found(int which)
{
    struct supervisor *tool = &tools.each[which];
    struct sanitizer_words words;
    BUF_LOCAL(ignored, SAID_MOST);
    sanitizer_read((enum sanitizer_tool)which, tool->mark, buf_text(&tool->said), tool->said.length,
                   0, &words, &ignored);
    return words.errors > 0;
}

/* Of a runner that has answered. A launch that the device ended is a kernel's fault; what could not
 * be loaded, or had no memory, could be without the tool. */
static void look_at_report(int which)
{
    struct supervisor *tool = &tools.each[which];
    const struct gpu_report *report = tool->host->report;
    uint32_t status = report->status;
    char reason[WIRE_REASON_MAX];
    snprintf(reason, sizeof reason, "%.*s", WIRE_REASON_MAX - 1, report->reason);
    if (status == REPORT_FAULT)
        (void)!err_set(&tool->failed, ERR_CHILD, "%s", reason);
    else if (status != REPORT_FINE)
        (void)!err_set(&tool->failed, ERR_UNSUPPORTED, "compute-sanitizer (%s): %s",
                       sanitizer_tools[which], reason);
}

/* False: it is still busy. */
static bool take_answer(int which, struct asked *asked)
{
    struct supervisor *tool = &tools.each[which];
    if (!spoke(tool->host) && clock_now_ns() < tool->deadline_ns)
        return false;
    struct err err = {0};
    tool_listen(tool); /* the last words of one that has ended would be in the error alone */
    if (gpu_host_await(tool->host, 0, &err) == 0)
        look_at_report(which);
    else if (err.code == ERR_TIMEOUT)
        tool->failed = err;
    else /* no kernel reaches its process */
        (void)!err_set(&tool->failed, ERR_UNSUPPORTED, "compute-sanitizer (%s): %s",
                       sanitizer_tools[which], err.message);
    tool_listen(tool);
    tool->busy = false;
    if (tool->running) {
        tool->ran = tool->next;
        timeline_put(timeline_names[which], tool->begun_ns, clock_now_ns() - tool->begun_ns);
    } else {
        place_keep(tool, tool->next++);
    }
    if ((tool->failed.code != ERR_NONE || has_found(which)) && tool->next < asked->most)
        asked->most = tool->next;
    return true;
}

/* ---- its end ---- */

static void quit(struct supervisor *tool)
{
    struct err ignored;
    tool->quitting = true;
    tool->begun_ns = clock_now_ns();
    tool->deadline_ns = tool->begun_ns + QUIT_MS * MS_NS;
    tool->host->control->command = WIRE_QUIT;
    if (!tool->host->base.reaped && host_go(&tool->host->base, &ignored) != 0)
        host_end(&tool->host->base);
}

/* It ends by itself where it can: then all that it says is there. */
static bool has_ended(struct supervisor *tool)
{
    const struct host *host = &tool->host->base;
    struct pollfd end = {.fd = host->pidfd, .events = POLLIN};
    bool runs = !host->reaped && poll(&end, 1, 0) == 0;
    tool_listen(tool);
    if (runs && clock_now_ns() < tool->deadline_ns)
        return false;
    timeline_put("sanitize.end", tool->begun_ns, clock_now_ns() - tool->begun_ns);
    tool_listen(tool);
    gpu_host_close(tool->host);
    tool->host = NULL;
    tool->over = true;
    return true;
}

/* ---- all of them ---- */

/* 1: something of it is still to be waited for. */
static int step(int which, struct asked *asked, struct err *err)
{
    struct supervisor *tool = &tools.each[which];
    if (tool->over || tool->failed.code != ERR_NONE)
        return 0;
    if (tool->quitting)
        return has_ended(tool) ? 0 : 1;
    if (tool->busy && !take_answer(which, asked))
        return 1;
    if (tool->failed.code != ERR_NONE)
        return 0;
    if (tool->ran == asked->count) {
        quit(tool);
        return 1;
    }
    if (tool->ran >= asked->most || atomic_load(&held) == HOLD_ALL)
        return 0;
    int status = tool->loaded ? 0 : load(which, asked, err);
    if (status != 0)
        return status;
    bool all = tool->next >= asked->most || (!asked->together && tool->next > tool->ran);
    if (all && atomic_load(&held) == HOLD_RUNS)
        return 1;
    return (all ? run(tool, asked, err) : make_ready(tool, asked, err)) == 0 ? 1 : -1;
}

static void wait_for_any(void)
{
    struct pollfd fds[2 * TOOLS];
    nfds_t count = 0;
    for (int i = 0; i < TOOLS; i++) {
        const struct supervisor *tool = &tools.each[i];
        if (tool->host == NULL || tool->failed.code != ERR_NONE || tool->host->base.reaped)
            continue;
        fds[count++] = (struct pollfd){.fd = tool->host->base.done, .events = POLLIN};
        fds[count++] = (struct pollfd){.fd = tool->host->base.pidfd, .events = POLLIN};
    }
    (void)poll(fds, count, STEP_MS);
}

static int give_up(struct err *err)
{
    tools_discard();
    return err_set(err, ERR_CANCELLED, "cancelled");
}

/* Each as far as it gets. */
static int work(struct asked *asked, struct err *err)
{
    for (bool waits = true; waits;) {
        waits = false;
        if (atomic_load(&held) == HOLD_CANCEL)
            return give_up(err);
        for (int i = 0; i < TOOLS; i++) {
            int status = step(i, asked, err);
            if (status < 0) {
                tools_discard();
                return -1;
            }
            waits = waits || status > 0;
        }
        if (waits)
            wait_for_any();
    }
    return 0;
}

/* "Uninitialized __global__ memory read of size 4 bytes, at join+0x150 in k.cu:49, ... in parts at
 * M=7, N=61", of the line that was added to a report behind `from`. */
static void tell_first(const struct asked *asked, const struct supervisor *tool, uint64_t address,
                       const char *from, struct buf *first)
{
    const char *text = strstr(from, ": ");
    if (first->length > 0 || text == NULL)
        return;
    buf_add(first, text, strcspn(text, "\n"));
    place_tell(tool, asked->program, asked->calls, address, first);
}

/* What has been said, by all of them: findings, as one error. */
static int findings(const struct asked *asked, struct buf *report, struct err *err)
{
    BUF_LOCAL(first, FIRST_MOST);
    char which[80] = "";
    for (int i = 0; i < TOOLS; i++) {
        const struct supervisor *tool = &tools.each[i];
        struct sanitizer_words words;
        size_t before = report->length;
        sanitizer_read((enum sanitizer_tool)i, tool->mark, buf_text(&tool->said), tool->said.length,
                       FINDINGS, &words, report);
        if (words.errors == 0)
            continue;
        strcat(which, which[0] != '\0' ? ", " : "");
        strcat(which, sanitizer_tools[i]);
        tell_first(asked, tool, words.address, buf_text(report) + before, &first);
    }
    if (which[0] == '\0')
        return 0;
    return err_set(err, ERR_CHILD, "compute-sanitizer (%s) found a defect%s", which,
                   buf_text(&first));
}

/* A runner that died or faulted under a tool: what the tools say of it counts first, all of it. */
static int ended_badly(int which, const struct asked *asked, struct buf *report, struct err *err)
{
    bool quitting = true;
    for (int i = 0; i < TOOLS; i++)
        if (tools.each[i].host != NULL)
            quit(&tools.each[i]);
    while (quitting && atomic_load(&held) != HOLD_CANCEL) {
        quitting = false;
        for (int i = 0; i < TOOLS; i++)
            if (tools.each[i].host != NULL && !has_ended(&tools.each[i]))
                quitting = true;
        if (quitting)
            wait_for_any();
    }
    const struct err *failed = &tools.each[which].failed;
    bool found = findings(asked, report, err) != 0;
    if (!found && failed->code == ERR_UNSUPPORTED)
        *err = *failed;
    else if (!found)
        err_set(err, failed->code, "under compute-sanitizer (%s): %s", sanitizer_tools[which],
                failed->message);
    tools_discard();
    return -1;
}

static int judge(const struct asked *asked, struct buf *report, struct err *err)
{
    int bad = -1;
    for (int i = TOOLS - 1; i >= 0; i--)
        if (tools.each[i].failed.code != ERR_NONE &&
            (bad < 0 || tools.each[i].failed.code != ERR_UNSUPPORTED))
            bad = i;
    if (bad >= 0)
        return ended_badly(bad, asked, report, err);
    int status = findings(asked, report, err);
    for (int i = 0; i < TOOLS && status == 0; i++)
        if (!tools.each[i].over)
            return 1;
    for (int i = 0; i < TOOLS && status == 0; i++) {
        struct supervisor *tool = &tools.each[i];
        struct sanitizer_words words;
        BUF_LOCAL(ignored, SAID_MOST);
        sanitizer_read((enum sanitizer_tool)i, tool->mark, buf_text(&tool->said), tool->said.length,
                       0, &words, &ignored);
        if (words.broken || !words.ended)
            status = err_set(
                err, ERR_UNSUPPORTED, "compute-sanitizer (%s) did not come to an end%s%s",
                sanitizer_tools[i], words.complaint[0] != '\0' ? ": " : "", words.complaint);
    }
    tools_discard();
    return status;
}

/* What was held goes on, as long as all of it is still there. */
static bool goes_on(const struct region *region, const char *artifact)
{
    for (int i = 0; i < TOOLS; i++) {
        const struct supervisor *tool = &tools.each[i];
        if (!tool->over && (tool->host == NULL || tool->host->base.reaped))
            return false;
    }
    return tools.artifact != NULL && tools.region == region &&
           strcmp(tools.artifact, artifact) == 0;
}

int cuda_sanitize(const struct lane_facts *lane, const struct region *region, const char *artifact,
                  const struct program *program, const struct call *calls, size_t count,
                  bool together, struct buf *report, struct err *err)
{
    struct asked asked = {.lane = lane,
                          .program = program,
                          .artifact = artifact,
                          .calls = calls,
                          .count = count,
                          .most = count,
                          .together = together,
                          .begun_ns = clock_now_ns()};
    if (count == 0) {
        if (tools.artifact != NULL)
            tools_discard();
        return 0;
    }
    if (!goes_on(region, artifact)) {
        if (tools_spare(lane, region, err) != 0)
            return -1;
        tools.artifact = mem_strdup(artifact);
    }
    if (work(&asked, err) != 0)
        return -1;
    return judge(&asked, report, err);
}
