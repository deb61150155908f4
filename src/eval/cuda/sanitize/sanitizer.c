#include "eval/cuda/sanitize/sanitizer.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "eval/cuda/run/host.h"
#include "eval/data/timeline.h"
#include "process/toolchain.h"

#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A kernel under one of them is some ten to a hundred times slower. */
enum { SLOWER = 50, MOST_MS = 30000, QUIT_MS = 20000, FINDINGS = 4, SAID_MOST = 1 << 18 };
enum { PLACE_MS = 10000, STEP_MS = 5 };

/* racecheck looks at every access to shared memory on the host and takes many times as long as the
 * others: two of them have the calls between them. */
enum { RACERS = 2, HOSTS = TOOLS + RACERS - 1 };
static const enum sanitizer_tool tool_of[HOSTS] = {TOOL_MEMCHECK, TOOL_RACECHECK, TOOL_INITCHECK,
                                                   TOOL_SYNCCHECK, TOOL_RACECHECK};

static const char *const timeline_names[TOOLS] = {[TOOL_MEMCHECK] = "sanitize.memcheck",
                                                  [TOOL_RACECHECK] = "sanitize.racecheck",
                                                  [TOOL_INITCHECK] = "sanitize.initcheck",
                                                  [TOOL_SYNCCHECK] = "sanitize.synccheck"};

static struct running {
    struct gpu_host *hosts[HOSTS]; /* NULL: not running; all or none before quit() */
    struct buf said[HOSTS];
    char marks[HOSTS]
              [40]; /* drawn anew each time: what a candidate prints is not taken for theirs */
    uint64_t begun_ns[HOSTS], deadline_ns[HOSTS]; /* of the call that runs; 0: none does */
    bool answered[HOSTS];                         /* a call is over, and nobody has judged it yet */
    struct err why[HOSTS];                        /* ... which was no answer */
    bool dismissed;                               /* no more calls: who has none is told to end */
    const char *artifact;                         /* owned; NULL: they have met no candidate */
    const struct region *region;
} running;

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

static void listen(int i)
{
    if (running.hosts[i] == NULL)
        return;
    host_errors(&running.hosts[i]->base, &running.said[i]);
    sanitizer_keep_marked(running.marks[i], &running.said[i]);
}

/* Before anything of the candidate's runs: a tool that does not take our mark has said so with the
 * first line. */
static void learn_mark(int i)
{
    struct buf *said = &running.said[i];
    host_errors(&running.hosts[i]->base, said);
    if (strstr(buf_text(said), running.marks[i]) == NULL &&
        strstr(buf_text(said), SANITIZER_MARK) != NULL)
        strcpy(running.marks[i], SANITIZER_MARK);
}

static void discard(void)
{
    for (int i = 0; i < HOSTS; i++) /* all at once, for a context takes its time to end */
        if (running.hosts[i] != NULL && !running.hosts[i]->base.reaped)
            kill(-running.hosts[i]->base.subject.pid, SIGKILL);
    for (int i = 0; i < HOSTS; i++) {
        gpu_host_close(running.hosts[i]);
        buf_free(&running.said[i]);
    }
    mem_free((void *)(uintptr_t)running.artifact);
    running = (struct running){.artifact = NULL};
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
    for (int i = 0; i < HOSTS && status == 0; i++) {
        const char *const prefix[] = {path,
                                      "--tool",
                                      sanitizer_tools[tool_of[i]],
                                      "--prefix",
                                      running.marks[i],
                                      "--show-backtrace",
                                      "no",
                                      "--print-limit",
                                      "16",
                                      tool_of[i] == TOOL_MEMCHECK ? "--report-api-errors" : NULL,
                                      "no",
                                      NULL};
        snprintf(running.marks[i], sizeof running.marks[i],
                 "==%016llx==", (unsigned long long)random_seed());
        buf_init(&running.said[i], SAID_MOST);
        status = gpu_host_start(lane, region, prefix, false, &running.hosts[i], err);
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
    for (int i = 0; i < HOSTS; i++)
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

static int start(const struct lane_facts *lane, const struct region *region, const char *artifact,
                 struct err *err)
{
    int status = are_spare(lane, region) ? 0 : spawn_all(lane, region, err);
    for (int i = 0; i < HOSTS && status == 0; i++)
        if (gpu_host_wait_warm(running.hosts[i], err) != 0) {
            err->code = ERR_UNSUPPORTED;
            status = err_wrap(err, "compute-sanitizer (%s) does not run here",
                              sanitizer_tools[tool_of[i]]);
        }
    for (int i = 0; i < HOSTS && status == 0; i++) {
        learn_mark(i);
        status = gpu_host_load(running.hosts[i], artifact, err);
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
    host->program = *program;
    host->control->command = WIRE_PLACE;
    call_copy(call, &host->control->call);
    if (plan_make(program, &lane->facts, call, &host->control->plan, err) != 0 ||
        sizes(program, call, &host->control->sanitize, err) != 0)
        return -1;
    return host_go(&host->base, err);
}

/* What has been said so far, by all of them: findings, as one error. */
static int findings(struct buf *report, struct err *err)
{
    char which[80] = "";
    for (int i = 0; i < HOSTS; i++) {
        struct sanitizer_words words;
        const char *name = sanitizer_tools[tool_of[i]];
        sanitizer_read(tool_of[i], running.marks[i], buf_text(&running.said[i]),
                       running.said[i].length, FINDINGS, &words, report);
        if (words.errors == 0 || strstr(which, name) != NULL)
            continue;
        strcat(which, which[0] != '\0' ? ", " : "");
        strcat(which, name);
    }
    if (which[0] == '\0')
        return 0;
    return err_set(err, ERR_CHILD, "compute-sanitizer (%s) found a defect", which);
}

/* ---- what they do meanwhile ---- */

static bool has_answered(const struct gpu_host *host)
{
    struct pollfd fds[2] = {{.fd = host->base.done, .events = POLLIN},
                            {.fd = host->base.pidfd, .events = POLLIN}};
    return host->base.reaped || poll(fds, 2, 0) > 0;
}

/* It ends by itself, for its last line is wanted. */
static void tell_to_end(struct gpu_host *host)
{
    struct err ignored;
    host->control->command = WIRE_QUIT;
    if (!host->base.reaped && host_go(&host->base, &ignored) != 0)
        host_end(&host->base);
}

/* True while a call runs. What is said is read, for a pipe is soon full; a call is ended at its
 * deadline. */
static bool look(int i)
{
    struct gpu_host *host = running.hosts[i];
    listen(i);
    if (running.deadline_ns[i] == 0)
        return false;
    bool answered = has_answered(host);
    if (!answered && clock_now_ns() < running.deadline_ns[i])
        return true;
    if (!answered) {
        host_end(&host->base);
        err_set(&running.why[i], ERR_TIMEOUT, "no answer in time");
    } else if (gpu_host_await(host, PLACE_MS, &running.why[i]) == 0) {
        running.why[i] = (struct err){0};
    }
    timeline_end(timeline_names[tool_of[i]], running.begun_ns[i]); /* several run at once */
    running.deadline_ns[i] = 0;
    running.answered[i] = true;
    listen(i);
    if (running.dismissed)
        tell_to_end(host);
    return false;
}

static void rest(void)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL);
}

/* ---- their end ---- */

static bool is_ending(int i)
{
    struct gpu_host *host = running.hosts[i];
    struct pollfd ended = {.fd = host->base.pidfd, .events = POLLIN};
    return look(i) || (!host->base.reaped && poll(&ended, 1, 0) == 0);
}

static void dismiss(void)
{
    for (int i = 0; i < HOSTS && !running.dismissed; i++)
        if (running.hosts[i] != NULL && running.deadline_ns[i] == 0)
            tell_to_end(running.hosts[i]);
    running.dismissed = true;
}

/* All at once, for that takes a context its time. */
static void await_ends(void)
{
    bool ending = true;
    for (int waited = 0; ending && waited < QUIT_MS; waited += STEP_MS) {
        ending = false;
        for (int i = 0; i < HOSTS; i++)
            ending = (running.hosts[i] != NULL && is_ending(i)) || ending;
        if (ending)
            rest();
    }
}

/* Then all that they say is there. */
static void quit_all(void)
{
    dismiss();
    await_ends();
    for (int i = 0; i < HOSTS; i++) {
        listen(i);
        gpu_host_close(running.hosts[i]);
        running.hosts[i] = NULL;
    }
}

/* A runner that died or faulted under a tool: what the tool says of it counts first. */
static int ended_badly(int i, enum err_code code, const char *reason, struct buf *report,
                       struct err *err)
{
    char why[WIRE_REASON_MAX];
    snprintf(why, sizeof why, "%s", reason);
    quit_all();
    if (findings(report, err) == 0)
        err_set(err, code, "under compute-sanitizer (%s): %s", sanitizer_tools[tool_of[i]], why);
    discard();
    return -1;
}

/* ---- one call under all of them ---- */

static int judge(int i, struct buf *report, struct err *err)
{
    const struct gpu_report *said = running.hosts[i]->report;
    if (said->status == REPORT_FINE)
        return 0;
    if (said->status == REPORT_FAULT || said->status == REPORT_REFUSED)
        return ended_badly(i, ERR_CHILD, (const char *)said->reason, report, err);
    err_set(err, ERR_UNSUPPORTED, "compute-sanitizer (%s): %.*s", sanitizer_tools[tool_of[i]],
            WIRE_REASON_MAX - 1, said->reason);
    discard();
    return -1;
}

/* Waits for the call that it has; 0 where there is none. */
static int take_answer(int i, struct buf *report, struct err *err)
{
    while (look(i))
        rest();
    if (!running.answered[i])
        return 0;
    running.answered[i] = false;
    const struct err *why = &running.why[i];
    if (why->code == ERR_NONE)
        return judge(i, report, err);
    return ended_badly(i, why->code == ERR_TIMEOUT ? ERR_TIMEOUT : ERR_CHILD, why->message, report,
                       err);
}

/* Of racecheck's the first that is free. */
static int choose_racer(void)
{
    for (;; rest())
        for (int i = 0; i < HOSTS; i++)
            if (tool_of[i] == TOOL_RACECHECK && !look(i))
                return i;
}

static int place(int i, struct buf *report, struct err *err)
{
    if (gpu_host_await(running.hosts[i], PLACE_MS, err) != 0)
        return ended_badly(i, err->code == ERR_TIMEOUT ? ERR_TIMEOUT : ERR_CHILD, err->message,
                           report, err);
    return judge(i, report, err);
}

static int go(int i, uint64_t timeout_ms, struct err *err)
{
    running.begun_ns[i] = clock_now_ns();
    running.deadline_ns[i] = running.begun_ns[i] + timeout_ms * UINT64_C(1000000);
    running.hosts[i]->control->command = WIRE_SANITIZE;
    return host_go(&running.hosts[i]->base, err);
}

int cuda_sanitize(const struct lane_facts *lane, const struct region *region, const char *artifact,
                  const struct program *program, const struct call *call, struct buf *report,
                  struct err *err)
{
    bool same = running.artifact != NULL && running.region == region && !running.dismissed &&
                strcmp(running.artifact, artifact) == 0;
    uint64_t timeout_ms = call->timeout_ms * SLOWER;
    timeout_ms = timeout_ms > MOST_MS ? MOST_MS : timeout_ms;
    uint64_t begun = timeline_begin();
    if (!same && start(lane, region, artifact, err) != 0)
        return -1;
    timeline_end("sanitize.start", begun);
    int racer = choose_racer();
    bool asked[HOSTS];
    for (int i = 0; i < HOSTS; i++) {
        asked[i] = tool_of[i] != TOOL_RACECHECK || i == racer;
        if (asked[i] && take_answer(i, report, err) != 0)
            return -1;
    }
    int status = 0;
    for (int i = 0; i < HOSTS && status == 0; i++)
        status = asked[i] ? tell(running.hosts[i], lane, program, call, err) : 0;
    if (status != 0) {
        discard();
        return -1;
    }
    for (int i = 0; i < HOSTS; i++)
        if (asked[i] && place(i, report, err) != 0)
            return -1;
    for (int i = 0; i < HOSTS && status == 0; i++)
        status = asked[i] ? go(i, timeout_ms, err) : 0;
    if (status == 0 && findings(report, err) == 0)
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
    for (int i = 0; i < HOSTS; i++)
        if (take_answer(i, report, err) != 0)
            return -1;
    quit_all();
    timeline_end("sanitize.end", begun);
    for (int i = 0; i < HOSTS && status == 0; i++) {
        struct sanitizer_words words;
        struct buf ignored;
        buf_init(&ignored, SAID_MOST);
        sanitizer_read(tool_of[i], running.marks[i], buf_text(&running.said[i]),
                       running.said[i].length, 0, &words, &ignored);
        buf_free(&ignored);
        if (words.errors == 0 && (words.broken || !words.ended))
            status = err_set(err, ERR_UNSUPPORTED, "compute-sanitizer (%s) did not come to an end",
                             sanitizer_tools[tool_of[i]]);
    }
    if (findings(report, err) != 0)
        status = -1;
    discard();
    return status;
}

/* ---- beside the checks ---- */

/* What is not there any more says so with the next call. */
static bool takes(void)
{
    bool racer = false, others = true;
    for (int i = 0; i < HOSTS; i++) {
        if (running.hosts[i] == NULL)
            return true;
        bool warm = running.hosts[i]->base.warm || has_answered(running.hosts[i]);
        bool idle = running.dismissed ? !is_ending(i) : warm && !look(i);
        if (tool_of[i] == TOOL_RACECHECK && !running.dismissed)
            racer = racer || idle;
        else
            others = others && idle;
    }
    return others && (racer || running.dismissed);
}

void sanitizer_settle(void)
{
    struct err ignored;
    if (running.dismissed)
        await_ends();
    for (int i = 0; i < HOSTS && !running.dismissed; i++) {
        while (running.hosts[i] != NULL && look(i))
            rest();
        if (running.hosts[i] != NULL && running.artifact == NULL &&
            gpu_host_wait_warm(running.hosts[i], &ignored) != 0)
            discard();
    }
}

static void dismiss_busy(void)
{
    if (running.artifact != NULL)
        dismiss();
}

static void drop(void)
{
    if (running.artifact != NULL)
        discard();
}

const struct sanitizer_ahead sanitizer_ahead = {takes, sanitizer_settle, dismiss_busy, drop};
