/* eval/worker/open: `open` and `check_problem`: blocking calls on the pool, alone on the lane.
 *
 *   waiting -> working -> measuring -> ended
 *                    \-----------------^   (an error, or nothing to measure)
 *
 * Whatever needs no clock is working: reading the problem, its definition, what it refuses. Only
 * what measures waits for other twagents. */
#include "base/file.h"
#include "base/mem.h"
#include "eval/backend/ceilings.h"
#include "eval/data/timeline.h"
#include "eval/problem/torch.h"
#include "eval/worker/private.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { WAITING, WORKING, MEASURING, ENDED, STATES };

struct open {
    struct request request;
    const struct value *document;
    bool check, bare; /* check_problem, else open; without what only a quiet machine tells */
    struct slot session_slot, core_slot;
    struct turn turn;
    struct work work;
    struct timer timer;
    atomic_bool known; /* the problem is read, and the lane is known, until this one has ended */
    bool told;
    struct work roof; /* the ceilings, of a device that its own clock times, beside the opening */
    struct lane_facts roof_lane;
    int roof_status;
    struct work warm; /* the compiler of what is asked for first */
    int status;
    struct err err;
    struct buf answer; /* members of the record, written on the pool */
    struct json json;
    struct fitness fitness;
    struct probing { /* on a thread of its own, while the problem is opened */
        pthread_t thread;
        bool running;
        struct arena *arena;
        struct lane_facts lane;
        int status;
        struct err err;
    } probing;
};

/* --- on the pool: nothing else touches the worker while all of `sessions` is ours --- */

/* Reads what stays, and writes what is its own alone. */
static void *run_probe(void *argument)
{
    struct open *open = (struct open *)argument;
    struct probing *probing = &open->probing;
    const struct worker *worker = open->request.worker;
    const struct lane_facts *lane = &worker->lane;
    uint64_t begun = timeline_begin();
    probing->lane.gpu_index = worker->options->gpu_index;
    probing->status = worker->options->backend->probe(
        lane->cores, lane->core_count, false, probing->arena, &probing->lane, &probing->err);
    timeline_end("open.probe", begun);
    return NULL;
}

/* Asking a GPU's driver takes as long as other things that are to be done and do not need it. */
static void start_probe(struct open *open, bool beside)
{
    struct worker *worker = open->request.worker;
    struct probing *probing = &open->probing;
    arena_free(worker->lane_arena);
    probing->arena = worker->lane_arena = arena_new();
    worker->lane.device = worker->lane.versions = worker->lane.lock_path = NULL; /* were there */
    worker->lane.gpu = worker->options->backend->device;
    probing->running = beside && pthread_create(&probing->thread, NULL, run_probe, open) == 0;
    if (!probing->running)
        run_probe(open);
}

/* "confined": as "fit" below. The first thing that is known, before anybody's code runs. */
static int look_whether_confined(const struct open *open, const struct lane_facts *lane,
                                 struct err *err)
{
    if (!lane->exposed || strcmp(value_text(open->document, "confined", ""), "must") != 0)
        return 0;
    return err_set(err, ERR_ENVIRONMENT,
                   "%s: a candidate could reach this user's files and processes, and "
                   "its own verdict; twagent doctor says what to do, --unconfined goes on all the "
                   "same",
                   lane->unconfined);
}

/* The lane is what the probe found: session.h's know_lane. */
static int take_probe(void *context, struct err *err)
{
    struct open *open = (struct open *)context;
    struct worker *worker = open->request.worker;
    if (open->probing.running)
        pthread_join(open->probing.thread, NULL);
    open->probing.running = false;
    if (open->probing.status != 0) {
        *err = open->probing.err;
        return -1;
    }
    worker->lane = open->probing.lane;
    if (look_whether_confined(open, &worker->lane, err) != 0)
        return -1;
    bool known = ceilings_take(worker, value_get(open->document, "ceilings"));
    worker->owes_ceilings = value_bool(open->document, "roofline", false) && !known;
    return 0;
}

/* What is asked for first can be compiled from here on: the loop's affair. */
static void tell_known(void *context)
{
    struct open *open = (struct open *)context;
    atomic_store(&open->known, true);
}

static int open_problem(struct open *open, const char *path, bool beside)
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
        .within_ms = (uint64_t)value_int(document, "within_ms", 0),
        .sanitizes = value_bool(document, "sanitizes", false),
        .final = value_bool(document, "final", false),
        .know_lane = beside ? take_probe : NULL,
        .meanwhile = beside ? tell_known : NULL,
        .context = open,
    };
    uint64_t begun = timeline_begin();
    if (problem_load_with(path, options.python, &worker->problem, &open->err) != 0)
        return -1;
    timeline_end("open.problem", begun);
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
        json_put_members(&open->json, own);
    if (interpreter_find(value_text(open->document, "python", NULL), "numpy", worker->arena,
                         &python, &ignored) == 0) {
        json_put_text(&open->json, "python", python.python);
        json_put_text(&open->json, "numpy", python.package);
    }
    json_object_end(&open->json);
}

static void put_answer(struct open *open)
{
    struct worker *worker = open->request.worker;
    struct lane_facts *lane = &worker->lane;
    struct json *json = &open->json;
    char host[64] = "";
    if (value_bool(open->document, "host", false) && gethostname(host, sizeof host - 1) == 0)
        json_put_text(json, "host", host);
    json_put_raw(json, "device", lane->device != NULL ? lane->device : "{}");
    put_versions(open);
    json_put_names(json, "facts", &lane->facts);
    json_put_object(json, "ceilings");
    ceilings_put(lane, json);
    json_object_end(json);
    if (worker->problem != NULL)
        json_put_text(json, "problem", worker->problem->name);
    if (worker->unfit != NULL)
        json_put_text(json, "unfit", worker->unfit);
    if (lane->unconfined != NULL && value_get(open->document, "confined") != NULL)
        json_put_text(json, "unconfined", lane->unconfined);
}

/* "fit": "must" refuses what is not, "may" goes on and says so; absent: nobody asks. */
static int look_whether_fit(struct open *open)
{
    struct worker *worker = open->request.worker;
    const char *wanted = value_text(open->document, "fit", NULL);
    if (wanted == NULL)
        return 0;
    if (session_fit(worker->session, &worker->unfit, &open->err) != 0)
        return -1;
    if (worker->unfit == NULL || strcmp(wanted, "must") != 0)
        return 0;
    return err_set(
        &open->err, ERR_USAGE,
        "%s is not fit: %s; twagent problem check says more, --unfit goes on all the same",
        worker->problem->name, worker->unfit);
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
    worker->best_ns = worker->best_look_ns = 0.0;
    worker->unfit = NULL;
    worker->problem = NULL;
    worker->arena = arena_new();
    memory_forget(worker);
    bool beside = path != NULL && worker->options->backend->device;
    start_probe(open, beside);
    if (!beside)
        open->status = take_probe(open, &open->err);
    if (open->status == 0 && path != NULL && worker->options->backend->ready != NULL)
        open->status = worker->options->backend->ready(&open->err);
    if (open->status == 0 && path != NULL)
        open->status = open_problem(open, path, beside);
    if (open->status == 0 && path != NULL)
        open->status = look_whether_fit(open);
    if (open->status == 0 && path != NULL)
        open->status = session_await_library(worker->session, &open->err);
    if (open->probing.running) /* the problem was not opened so far */
        pthread_join(open->probing.thread, NULL);
}

static void run_check(void *argument)
{
    struct open *open = (struct open *)argument;
    struct session *session = open->request.worker->session;
    if (session == NULL) {
        open->status = err_set(&open->err, ERR_USAGE, "no problem is open");
        return;
    }
    fitness_begin(&open->fitness, session, &open->json);
    open->status = fitness_check(&open->fitness, !open->bare, &open->err);
    if (open->bare && open->status == 0) /* beside others: the time is a rough one */
        open->status = fitness_floor(&open->fitness, &open->err);
}

/* With the lane to ourselves. */
static void run_measure(void *argument)
{
    struct open *open = (struct open *)argument;
    open->status = ceilings_measure(open->request.worker, &open->err);
    if (open->status == 0 && open->check)
        open->status = fitness_floor(&open->fitness, &open->err);
}

/* Whether something is left that needs the clock. */
static bool measures(const struct open *open)
{
    const struct worker *worker = open->request.worker;
    bool later = worker->session != NULL && value_bool(open->document, "later", false);
    if (open->status != 0)
        return false;
    return open->check ? !open->bare && !open->fitness.ended : worker->owes_ceilings && !later;
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
    if (open->check)
        fitness_end(&open->fitness);
    else
        put_answer(open);
    json_object_end(&open->json);
    if (open->answer.length > 2) { /* members, without the braces around them */
        buf_add_char(&line, ',');
        buf_add(&line, buf_text(&open->answer) + 1, open->answer.length - 2);
    }
    worker_answer_send(&json, &line);
}

static enum task_result end(struct open *open)
{
    turn_end(&open->turn);
    timer_stop(&open->timer);
    ahead_end(open->request.worker);
    slots_release(&open->core_slot);
    slots_release(&open->session_slot);
    buf_free(&open->answer);
    task_move(&open->request.task, ENDED);
    return TASK_DONE;
}

static void run_warm(void *argument)
{
    struct open *open = (struct open *)argument;
    const struct backend *backend = open->request.worker->options->backend;
    const struct value *ahead = value_get(open->document, "ahead");
    const struct language *language = language_of_file(value_text(ahead, "name", ""));
    uint64_t begun = timeline_begin();
    if (language != NULL && target_has(backend->target, language))
        backend->warm_compiler(language);
    timeline_end("open.compiler", begun);
}

static void run_roof(void *argument)
{
    struct open *open = (struct open *)argument;
    uint64_t begun = timeline_begin();
    struct err ignored; /* then they are measured behind it */
    open->roof_status = ceilings_probe(open->request.worker, false, &open->roof_lane, &ignored);
    timeline_end("ceilings", begun);
}

/* While the pool opens the problem, which leaves a device idle for most of the time. */
static void go_on_beside(struct open *open)
{
    enum { ASK_AGAIN_MS = 20 };
    struct worker *worker = open->request.worker;
    struct task *task = &open->request.task;
    if (open->roof.done)
        turn_end(&open->turn);
    if (open->check || !worker->options->backend->device || open->timer.armed ||
        task->cancel_requested)
        return;
    if (!open->told && !atomic_load(&open->known)) {
        timer_start(task->loop, &open->timer, task, ASK_AGAIN_MS);
        return;
    }
    if (!open->told)
        ahead_begin(worker, value_get(open->document, "ahead"));
    open->told = true;
    bool later = value_bool(open->document, "later", false);
    if (worker->owes_ceilings && lane_is_apart(&worker->lane) && !later && !open->roof.active &&
        !open->roof.done && turn_take(worker, &open->turn, task, open->request.id))
        work_start(task->loop, &open->roof, task, run_roof, open);
}

static void take_roof(struct open *open)
{
    struct worker *worker = open->request.worker;
    if (open->roof.done && open->roof_status == 0 && open->status == 0 && worker->owes_ceilings)
        ceilings_keep(worker, &open->roof_lane);
}

static enum task_result step_waiting(struct open *open)
{
    struct worker *worker = open->request.worker;
    struct task *task = &open->request.task;
    if (!slot_hold(&open->session_slot, &worker->sessions, task, READERS_MOST) ||
        !slot_hold(&open->core_slot, &worker->cores, task, worker->cores.capacity))
        return TASK_WAIT;
    task_move(task, WORKING);
    work_start(task->loop, &open->work, task, open->check ? run_check : run_open, open);
    if (value_get(open->document, "ahead") != NULL &&
        worker->options->backend->warm_compiler != NULL)
        work_start(task->loop, &open->warm, task, run_warm, open);
    go_on_beside(open);
    return TASK_WAIT;
}

/* A blocking call ends when it ends, cancelled or not. */
static enum task_result step(struct task *task)
{
    struct open *open = (struct open *)task;
    if (open->work.active) {
        go_on_beside(open);
        return TASK_WAIT;
    }
    if (open->roof.active || open->warm.active)
        return TASK_WAIT;
    if (task->state == WORKING)
        take_roof(open);
    if (task->state == WORKING && measures(open)) {
        open->work.done = false;
        task_move(task, MEASURING);
    }
    if (open->work.done) {
        answer(open);
        return end(open);
    }
    if (task->cancel_requested) {
        open->status = err_set(&open->err, ERR_CANCELLED, "cancelled");
        answer(open);
        return end(open);
    }
    if (task->state == WAITING)
        return step_waiting(open);
    if (!turn_take(open->request.worker, &open->turn, task, open->request.id))
        return TASK_WAIT;
    work_start(task->loop, &open->work, task, run_measure, open);
    return TASK_WAIT;
}

/* Ceilings can be had from beside another twagent, too, and the time is the run's: a quarter. */
static uint64_t patience_ns(int64_t within_ms)
{
    enum { SHARE = 4, MOST_MS = 360000 };
    if (within_ms <= 0 || within_ms > MOST_MS)
        return 0;
    return (uint64_t)within_ms * 1000000 / SHARE;
}

static void start(struct worker *worker, struct arena *arena, const struct value *document,
                  bool check)
{
    static const char *const states[STATES] = {"waiting", "working", "measuring", "ended"};
    static const uint32_t moves[STATES] = {1U << WORKING | 1U << ENDED,
                                           1U << MEASURING | 1U << ENDED, 1U << ENDED, 0};
    static const struct task_type type = {
        .name = "open", .states = states, .moves = moves, .state_count = STATES, .step = step};
    struct open *open = MEM_NEW(struct open);
    open->request.arena = arena;
    open->document = document;
    open->check = check;
    open->bare = check && value_bool(document, "bare", false);
    open->turn.patience_ns = patience_ns(value_int(document, "within_ms", 0));
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
