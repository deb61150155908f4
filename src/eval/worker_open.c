/* eval/worker_open: `open` and `check_problem`: blocking calls on the pool, alone on the lane.
 *
 *   waiting -> working -> ended
 */
#include "base/mem.h"
#include "eval/reference_probe.h"
#include "eval/worker_private.h"

#include <string.h>

enum { WAITING, WORKING, ENDED, STATES };

struct open {
    struct request request;
    const struct value *document;
    bool check; /* check_problem, else open */
    struct slot session_slot, core_slot;
    struct turn turn;
    struct work work;
    int status;
    struct err err;
    struct buf answer; /* members of the record, written on the pool */
    struct json json;
};

static const char *const ceilings[] = {"copy_bytes_per_s", "read_bytes_per_s", "flops_per_s"};

/* --- on the pool: nothing else touches the worker while all of `sessions` is ours --- */

/* The device record as the backend wrote it, with ceilings that came from an earlier run. */
static void patch_device(struct worker *worker)
{
    struct lane_facts *lane = &worker->lane;
    const double numbers[] = {lane->copy_bytes_per_s, lane->read_bytes_per_s, lane->flops_per_s};
    struct value *device;
    struct buf text;
    struct json json;
    if (lane->device == NULL || value_parse_json(worker->arena, "device", lane->device,
                                                 strlen(lane->device), &device, NULL) != 0)
        return;
    buf_init(&text, 1 << 16);
    json_init(&json, &text);
    json_object(&json);
    for (size_t i = 0; i < device->count; i++) {
        json_key(&json, device->keys[i]);
        size_t which = 0;
        while (which < 3 && strcmp(ceilings[which], device->keys[i]) != 0)
            which++;
        if (which < 3 && numbers[which] > 0.0)
            json_real(&json, numbers[which]);
        else
            json_value(&json, device->items[i]);
    }
    json_object_end(&json);
    lane->device = arena_strdup(worker->arena, buf_text(&text));
    buf_free(&text);
}

static int probe(struct open *open)
{
    struct worker *worker = open->request.worker;
    struct lane_facts *lane = &worker->lane;
    int cores[sizeof lane->cores / sizeof lane->cores[0]];
    size_t core_count = lane->core_count;
    memcpy(cores, lane->cores, sizeof cores);
    const struct value *known = value_get(open->document, "ceilings");
    if (worker->options->backend->probe(cores, core_count,
                                        value_bool(open->document, "roofline", false),
                                        worker->arena, lane, &open->err) != 0)
        return -1;
    double *numbers[] = {&lane->copy_bytes_per_s, &lane->read_bytes_per_s, &lane->flops_per_s};
    for (size_t i = 0; i < 3; i++)
        if (!(*numbers[i] > 0.0))
            *numbers[i] = value_real(known, ceilings[i], 0.0);
    patch_device(worker);
    return 0;
}

static int open_problem(struct open *open, const char *path)
{
    struct worker *worker = open->request.worker;
    const struct value *document = open->document;
    const char *text = value_text(document, "python", NULL);
    const char *baseline = value_text(document, "baseline", NULL);
    struct session_options options = {
        .python = text != NULL ? arena_strdup(worker->arena, text) : NULL,
        .folder = worker->folder,
        .baseline = baseline != NULL ? arena_strdup(worker->arena, baseline) : NULL,
        .call_timeout_ms = (uint64_t)value_int(document, "call_timeout_ms", 0),
        .time_budget_ms = (uint64_t)value_int(document, "time_budget_ms", 0),
        .memory_bytes = (uint64_t)value_int(document, "memory_bytes", 0),
    };
    if (problem_load(path, &worker->problem, &open->err) != 0)
        return -1;
    return session_open(worker->problem, worker->options->backend, &worker->lane, &options,
                        &worker->session, &open->err);
}

/* Without a problem nothing has looked for Python yet. */
static void put_versions(struct open *open)
{
    struct worker *worker = open->request.worker;
    struct interpreter python;
    struct err ignored;
    struct value *own;
    json_key(&open->json, "versions");
    if (worker->session != NULL) {
        json_raw(&open->json, session_versions(worker->session));
        return;
    }
    json_object(&open->json);
    const char *text = worker->lane.versions != NULL ? worker->lane.versions : "{}";
    if (value_parse_json(worker->arena, "versions", text, strlen(text), &own, NULL) == 0)
        for (size_t i = 0; i < own->count; i++) {
            json_key(&open->json, own->keys[i]);
            json_value(&open->json, own->items[i]);
        }
    if (interpreter_find(value_text(open->document, "python", NULL), worker->arena, &python,
                         &ignored) == 0) {
        json_put_text(&open->json, "python", python.python);
        json_put_text(&open->json, "numpy", python.numpy);
    }
    json_object_end(&open->json);
}

static void put_answer(struct open *open)
{
    const struct worker *worker = open->request.worker;
    const struct lane_facts *lane = &worker->lane;
    struct json *json = &open->json;
    const double numbers[] = {lane->copy_bytes_per_s, lane->read_bytes_per_s, lane->flops_per_s};
    json_key(json, "device");
    json_raw(json, lane->device != NULL ? lane->device : "{}");
    put_versions(open);
    json_key(json, "facts");
    json_object(json);
    for (size_t i = 0; i < lane->facts.count; i++)
        json_put_int(json, lane->facts.name[i], lane->facts.number[i]);
    json_object_end(json);
    json_key(json, "ceilings");
    json_object(json);
    for (size_t i = 0; i < 3; i++)
        if (numbers[i] > 0.0)
            json_put_real(json, ceilings[i], numbers[i]);
    json_object_end(json);
    if (worker->problem != NULL)
        json_put_text(json, "problem", worker->problem->name);
}

static void run_open(void *argument)
{
    struct open *open = (struct open *)argument;
    struct worker *worker = open->request.worker;
    const char *path = value_text(open->document, "problem", NULL);
    session_close(worker->session);
    problem_free(worker->problem);
    arena_free(worker->arena);
    worker->session = NULL;
    worker->problem = NULL;
    worker->arena = arena_new();
    memory_forget(worker);
    open->status = probe(open);
    if (open->status == 0 && path != NULL)
        open->status = open_problem(open, path);
    if (open->status == 0)
        put_answer(open);
}

static void run_check(void *argument)
{
    struct open *open = (struct open *)argument;
    struct session *session = open->request.worker->session;
    bool fit;
    open->status = session == NULL ? err_set(&open->err, ERR_USAGE, "no problem is open")
                                   : session_check_problem(session, &open->json, &fit, &open->err);
}

/* --- on the loop --- */

static void answer(struct open *open)
{
    struct json json;
    struct buf line;
    if (open->status != 0) {
        answer_error(open->request.id, &open->err);
        return;
    }
    worker_answer_begin(&json, &line, open->request.id, "result");
    if (open->answer.length > 2) { /* members, without the braces around them */
        buf_add_char(&line, ',');
        buf_add(&line, buf_text(&open->answer) + 1, open->answer.length - 2);
    }
    worker_answer_send(&json, &line);
}

static enum task_result end(struct open *open)
{
    turn_end(&open->turn);
    slots_release(&open->core_slot);
    slots_release(&open->session_slot);
    buf_free(&open->answer);
    task_move(&open->request.task, ENDED);
    return TASK_DONE;
}

static enum task_result step(struct task *task)
{
    struct open *open = (struct open *)task;
    struct worker *worker = open->request.worker;
    if (task->state == WORKING) {
        if (open->work.active)
            return TASK_WAIT; /* a blocking call ends when it ends, cancelled or not */
        json_object_end(&open->json);
        answer(open);
        return end(open);
    }
    if (task->cancel_requested) {
        err_set(&open->err, ERR_CANCELLED, "cancelled");
        open->status = -1;
        answer(open);
        return end(open);
    }
    if (!slot_hold(&open->session_slot, &worker->sessions, task, READERS_MOST) ||
        !slot_hold(&open->core_slot, &worker->cores, task, worker->cores.capacity))
        return TASK_WAIT;
    bool measures = open->check || value_bool(open->document, "roofline", false);
    if (measures && !turn_take(worker, &open->turn, task, open->request.id))
        return TASK_WAIT;
    task_move(task, WORKING);
    work_start(task->loop, &open->work, task, open->check ? run_check : run_open, open);
    return TASK_WAIT;
}

static void start(struct worker *worker, struct arena *arena, const struct value *document,
                  bool check)
{
    static const char *const states[STATES] = {"waiting", "working", "ended"};
    static const uint32_t moves[STATES] = {1U << WORKING | 1U << ENDED, 1U << ENDED, 0};
    static const struct task_type type = {
        .name = "open", .states = states, .moves = moves, .state_count = STATES, .step = step};
    struct open *open = MEM_NEW(struct open);
    open->request.arena = arena;
    open->document = document;
    open->check = check;
    buf_init(&open->answer, ANSWER_MOST - (1 << 16));
    json_init(&open->json, &open->answer);
    json_object(&open->json);
    request_begin(worker, &open->request, &type, value_text(document, "id", ""));
}

void open_start(struct worker *worker, struct arena *arena, const struct value *document)
{
    start(worker, arena, document, false);
}

void check_start(struct worker *worker, struct arena *arena, const struct value *document)
{
    start(worker, arena, document, true);
}
