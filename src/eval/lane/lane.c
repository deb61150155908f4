/* eval/lane: the worker's life as the agent sees it.
 *
 *   idle -> running -> idle (it ended: what was in flight fails with ERR_CHILD; the next request
 *     |        |             starts another, which first opens again what was open)
 *     +--------+--> closing -> closed
 *
 * A worker that cannot open it again is stopped, and has then ended like any other.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "eval/candidate/candidate.h"
#include "eval/lane/private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { IDLE, RUNNING, CLOSING, CLOSED, STATES };
enum { PATIENCE_MS = 600, KILL_AFTER_MS = 300, OUTPUT_MOST = 32 << 20, SILENCE_MS = 60000 };

/* --- busy time --- */

static void busy_begin(struct lane *lane)
{
    uint64_t now = clock_now_ns();
    if (lane->first_ns == 0)
        lane->first_ns = now;
    if (lane->evaluating++ == 0)
        lane->busy_since_ns = now;
}

static void busy_end(struct lane *lane)
{
    if (--lane->evaluating == 0)
        lane->busy_ns += clock_now_ns() - lane->busy_since_ns;
}

/* One of the evaluations waits for another twagent, or no longer. */
static void note_waiting(struct lane *lane, const struct lane_request *request, bool waited)
{
    if (request->op != LANE_EVALUATE || waited == request->waits)
        return;
    if (request->waits && lane->waiting++ == 0)
        lane->waits_since_ns = clock_now_ns();
    if (waited && --lane->waiting == 0)
        lane->waits_ns += clock_now_ns() - lane->waits_since_ns;
}

static double share_of(const struct lane *lane, uint64_t ns, bool goes_on, uint64_t since_ns)
{
    uint64_t now = clock_now_ns();
    if (lane->first_ns == 0 || now == lane->first_ns)
        return 0.0;
    return (double)(ns + (goes_on ? now - since_ns : 0)) / (double)(now - lane->first_ns);
}

double lane_waits_ratio(const struct lane *lane)
{
    return share_of(lane, lane->waits_ns, lane->waiting > 0, lane->waits_since_ns);
}

double lane_busy_ms(const struct lane *lane)
{
    uint64_t now = clock_now_ns();
    uint64_t busy = lane->busy_ns + (lane->evaluating > 0 ? now - lane->busy_since_ns : 0);
    uint64_t waits = lane->waits_ns + (lane->waiting > 0 ? now - lane->waits_since_ns : 0);
    return busy > waits ? (double)(busy - waits) / 1e6 : 0;
}

double lane_busy_ratio(const struct lane *lane)
{
    double busy = share_of(lane, lane->busy_ns, lane->evaluating > 0, lane->busy_since_ns);
    double waits = lane_waits_ratio(lane);
    return busy > waits ? busy - waits : 0;
}

/* --- requests --- */

static void complete(struct lane *lane, struct submitted *submitted)
{
    struct lane_request *request = submitted->request;
    bool waited = request->waits;
    list_remove(&submitted->link);
    request->waits = false;
    note_waiting(lane, request, waited);
    if (request->op == LANE_EVALUATE)
        busy_end(lane);
    request->active = false;
    request->done = true;
    mem_free(submitted->wire_id);
    mem_free(submitted->line);
    mem_free(submitted);
    task_complete(request->owner);
}

static void fail_all(struct lane *lane, const struct err *err)
{
    list_each_safe (link, &lane->submitted) {
        struct submitted *submitted = container_of(link, struct submitted, link);
        submitted->request->err = *err;
        complete(lane, submitted);
    }
}

static struct submitted *find(struct lane *lane, const char *wire_id)
{
    list_each (link, &lane->submitted) {
        struct submitted *submitted = container_of(link, struct submitted, link);
        if (strcmp(submitted->wire_id, wire_id) == 0)
            return submitted;
    }
    return NULL;
}

static void send_line(struct lane *lane, const char *line)
{
    struct err ignored; /* a worker that is gone is found by its end */
    if (process_write(lane->process, line, strlen(line), &ignored) != 0)
        log_event(LOG_DEBUG, "lane.write", "", "%s", ignored.message);
}

static void send_waiting(struct lane *lane)
{
    list_each (link, &lane->submitted) {
        struct submitted *submitted = container_of(link, struct submitted, link);
        if (submitted->line == NULL)
            continue;
        send_line(lane, submitted->line);
        mem_free(submitted->line);
        submitted->line = NULL;
    }
}

void lane_submit(struct lane *lane, struct lane_request *request, struct task *owner)
{
    assert(!request->active && !lane->task.finished);
    struct submitted *submitted = MEM_NEW(struct submitted);
    char wire_id[80];
    snprintf(wire_id, sizeof wire_id, "%u:%.60s", ++lane->counter,
             request->id != NULL ? request->id : "");
    request->active = true;
    request->done = false;
    request->err = (struct err){0};
    request->arena = NULL;
    request->answer = NULL;
    request->stage = STAGE_PARSE;
    request->waits = false;
    request->owner = owner;
    submitted->request = request;
    submitted->wire_id = mem_strdup(wire_id);
    bool text = request->op != LANE_EVALUATE ||
                candidate_check_text(request->name != NULL ? request->name : "the source",
                                     request->source, request->source_length, &request->err) == 0;
    submitted->line = text ? lane_encode(lane, request, wire_id) : NULL;
    if (list_empty(&lane->submitted) && lane->heard_ms > 0)
        lane->heard_ms = clock_now_ms(); /* until now it had nothing to say */
    list_append(&lane->submitted, &submitted->link);
    task_expect(owner);
    if (request->op == LANE_EVALUATE)
        busy_begin(lane);
    if (text)
        task_wake(&lane->task);
    else
        complete(lane, submitted);
}

void lane_cancel(struct lane *lane, struct lane_request *request)
{
    list_each_safe (link, &lane->submitted) {
        struct submitted *submitted = container_of(link, struct submitted, link);
        if (submitted->request != request)
            continue;
        if (submitted->line == NULL && lane->process != NULL) {
            JSON_LOCAL(json, line, 256);
            json_object(&json);
            json_put_text(&json, "op", "cancel");
            json_put_text(&json, "id", submitted->wire_id);
            json_object_end(&json);
            buf_add_char(&line, '\n');
            send_line(lane, buf_text(&line));
        }
        err_set(&request->err, ERR_CANCELLED, "cancelled");
        complete(lane, submitted);
        return;
    }
}

/* --- records --- */

/* Its reference or a compiler died on the way, say: what stands behind it would be told that no
 * problem is open. */
static void take_reopened(struct lane *lane, const struct value *record)
{
    if (strcmp(value_text(record, "event", ""), "error") != 0)
        return;
    log_event(LOG_WARN, "lane.reopen", "", "%s", value_text(record, "message", ""));
    lane->lost = true;
    process_stop(lane->process);
}

/* The worker could not read a line, and so cannot say whose it was: nobody would be answered. */
static void take_unnamed(struct lane *lane, const struct value *record)
{
    struct err err;
    err_set(&err, ERR_PROTOCOL, "the worker could not read a request: %s",
            value_text(record, "message", "it gave no reason"));
    log_event(LOG_WARN, "lane.record", "", "%s", err.message);
    fail_all(lane, &err);
}

static void take_record(struct lane *lane, const char *line)
{
    struct arena *arena = arena_new();
    struct value *record;
    struct err err = {0};
    if (value_parse_json(arena, "worker", line, strlen(line), &record, &err) != 0) {
        log_event(LOG_WARN, "lane.record", "", "%s", err.message);
        arena_free(arena);
        return;
    }
    if (strcmp(value_text(record, "id", ""), "reopen") == 0)
        take_reopened(lane, record);
    if (value_text(record, "id", NULL) == NULL &&
        strcmp(value_text(record, "event", ""), "error") == 0)
        take_unnamed(lane, record);
    struct submitted *submitted = find(lane, value_text(record, "id", ""));
    bool waited = submitted != NULL && submitted->request->waits;
    bool ended = submitted != NULL && lane_decode(submitted->request, arena, record);
    if (submitted != NULL && !ended)
        note_waiting(lane, submitted->request, waited);
    if (!ended) {
        arena_free(arena); /* a stage, or of a request that was cancelled */
        return;
    }
    if (submitted->request->op == LANE_OPEN && submitted->request->err.code == ERR_NONE) {
        mem_free(lane->reopen);
        lane->reopen = lane_encode_reopen(lane, submitted->request);
        snprintf(lane->host, sizeof lane->host, "%s", value_text(record, "host", ""));
    }
    complete(lane, submitted);
}

static void take_records(struct lane *lane)
{
    for (const char *line = process_line(lane->process); line != NULL;
         line = process_line(lane->process))
        if (!lane->lost) {
            lane->heard_ms = clock_now_ms();
            lane->pinged_ms = 0;
            take_record(lane, line);
        }
}

/* A connection can stand still and a node be gone without a word. While a job waits for its node
 * there is nobody yet to be silent. */
static void watch_silence(struct lane *lane)
{
    bool owes = lane->elsewhere && lane->heard_ms > 0 && !list_empty(&lane->submitted);
    uint64_t since_ms = lane->pinged_ms > 0 ? lane->pinged_ms : lane->heard_ms;
    uint64_t silent_ms = clock_now_ms() - since_ms;
    if (!owes || lane->lost) {
        timer_stop(&lane->watch);
        return;
    }
    if (silent_ms >= lane->silence_ms && lane->pinged_ms > 0) {
        log_event(LOG_WARN, "lane.silent", "", "the worker on %s no longer answers",
                  *lane->host != '\0' ? lane->host : "another machine");
        lane->lost = true;
        process_stop(lane->process);
        return;
    }
    if (silent_ms >= lane->silence_ms) {
        send_line(lane, "{\"op\":\"ping\",\"id\":\"ping\"}\n");
        lane->pinged_ms = clock_now_ms();
        silent_ms = 0;
    }
    if (!lane->watch.armed)
        timer_start(lane->loop, &lane->watch, &lane->task, lane->silence_ms - silent_ms);
}

/* --- the worker --- */

static void start_worker(struct lane *lane)
{
    struct err err = {0};
    const struct process_spec spec = {.argv = lane->argv,
                                      .env = lane->env,
                                      .lines = true,
                                      .kill_after_ms = KILL_AFTER_MS,
                                      .output_max = OUTPUT_MOST};
    lane->process = process_start(lane->loop, &lane->task, &spec, &err);
    if (lane->process == NULL) {
        fail_all(lane, &err);
        return;
    }
    task_move(&lane->task, RUNNING);
    lane->input_closed = lane->lost = false;
    lane->heard_ms = lane->pinged_ms = 0;
    const struct submitted *first =
        list_empty(&lane->submitted)
            ? NULL
            : container_of(lane->submitted.head.next, struct submitted, link);
    if (lane->reopen != NULL && (first == NULL || first->request->op != LANE_OPEN))
        send_line(lane, lane->reopen);
}

static void worker_ended(struct lane *lane)
{
    struct err err;
    size_t length;
    uint64_t dropped;
    BUF_LOCAL(how, 200);
    process_describe(lane->process, &how);
    const char *words = process_errors(lane->process, &length, &dropped);
    while (length > 0 && words[length - 1] == '\n')
        length--;
    size_t from = length;
    while (from > 0 && words[from - 1] != '\n')
        from--;
    /* It refuses what it was told at its start: a person's mistake, in its own words. */
    static const char prefix[] = "twagent worker: ";
    size_t skip = sizeof prefix - 1;
    if (strcmp(buf_text(&how), "exited 2") == 0 && length - from > skip &&
        strncmp(words + from, prefix, skip) == 0)
        err_set(&err, ERR_USAGE, "%.*s", (int)(length - from - skip), words + from + skip);
    else
        err_set(&err, ERR_CHILD, "the worker%s%s ended (%s)%s%.*s",
                lane->elsewhere && *lane->host != '\0' ? " on " : "",
                lane->elsewhere ? lane->host : "", buf_text(&how), length > from ? ": " : "",
                (int)(length - from), words + from);
    if (!lane->closing)
        log_event(LOG_WARN, "lane.worker", "", "%s", err.message);
    fail_all(lane, &err);
    process_free(lane->process);
    lane->process = NULL;
}

static enum task_result step_closing(struct lane *lane)
{
    if (lane->process != NULL && !lane->input_closed) {
        lane->input_closed = true;
        process_close_input(lane->process);
        timer_start(lane->loop, &lane->patience, &lane->task, PATIENCE_MS);
    }
    if (lane->process != NULL) {
        if (lane->patience.fired)
            process_stop(lane->process);
        lane->patience.fired = false;
        return TASK_WAIT;
    }
    timer_stop(&lane->patience);
    timer_stop(&lane->watch);
    task_move(&lane->task, CLOSED);
    return TASK_DONE;
}

static enum task_result step(struct task *task)
{
    struct lane *lane = container_of(task, struct lane, task);
    if (lane->process != NULL) {
        take_records(lane);
        if (process_outcome(lane->process) != PROCESS_RUNNING) {
            worker_ended(lane);
            if (task->state == RUNNING)
                task_move(task, IDLE);
        }
    }
    if (lane->closing && task->state != CLOSING)
        task_move(task, CLOSING);
    if (task->state == CLOSING)
        return step_closing(lane);
    if (lane->process == NULL && !list_empty(&lane->submitted))
        start_worker(lane);
    if (lane->process != NULL) {
        send_waiting(lane);
        watch_silence(lane);
    }
    return TASK_WAIT;
}

int lane_open(struct loop *loop, const struct lane_spec *spec, struct lane **out, struct err *err)
{
    static const char *const states[STATES] = {"idle", "running", "closing", "closed"};
    static const uint32_t moves[STATES] = {1U << RUNNING | 1U << CLOSING,
                                           1U << IDLE | 1U << CLOSING, 1U << CLOSED, 0};
    static const struct task_type type = {
        .name = "lane", .states = states, .moves = moves, .state_count = STATES, .step = step};
    struct lane *lane = MEM_NEW(struct lane);
    lane->loop = loop;
    lane->arena = arena_new();
    lane->silence_ms = SILENCE_MS;
    list_init(&lane->submitted);
    if (lane_prepare(lane, spec, err) != 0) {
        arena_free(lane->arena);
        mem_free(lane);
        return -1;
    }
    task_start(loop, &lane->task, &type, NULL, "lane");
    task_expect(&lane->task); /* lane_close() is what it waits for */
    *out = lane;
    return 0;
}

bool lane_is_up(const struct lane *lane)
{
    return lane->process != NULL;
}

const char *lane_host(const struct lane *lane)
{
    return lane->host;
}

void lane_close(struct lane *lane)
{
    if (lane->closing)
        return;
    struct err err;
    err_set(&err, ERR_CANCELLED, "the lane was closed");
    lane->closing = true;
    fail_all(lane, &err);
    task_complete(&lane->task);
}

bool lane_closed(const struct lane *lane)
{
    return lane->task.finished;
}

void lane_free(struct lane *lane)
{
    if (lane == NULL)
        return;
    assert(lane_closed(lane));
    arena_free(lane->arena);
    mem_free(lane->reopen);
    mem_free(lane);
}
