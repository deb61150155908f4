/* agents/completion: one request on its way.
 *
 *   looking up -> waiting -> sending -> storing -> ended
 *        |           ^          |
 *        |           +- backing off <-+ (a fault that asking again may mend)
 *        +-> ended (it is in the store already)
 *
 * Cancelling, and an engine that is blocked, end it from wherever it is once what it started has
 * ended or been taken back.
 */
#include "agents/ask.h"

#include "agents/completion_record.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "loop/http.h"
#include "store/store.h"

#include <assert.h>
#include <string.h>

enum { LOOKING_UP, WAITING, SENDING, BACKING_OFF, STORING, ENDED, STATES };
static const char *const states[STATES] = {"looking up",  "waiting", "sending",
                                           "backing off", "storing", "ended"};
static const uint32_t moves[STATES] = {[LOOKING_UP] = 1u << WAITING | 1u << ENDED,
                                       [WAITING] = 1u << SENDING | 1u << ENDED,
                                       [SENDING] = 1u << BACKING_OFF | 1u << STORING | 1u << ENDED,
                                       [BACKING_OFF] = 1u << WAITING | 1u << ENDED,
                                       [STORING] = 1u << ENDED};

enum { IN_FLIGHT = 8, MALFORMED_MAX = 2, ANSWER_BYTES_MAX = 16 << 20 };

struct completions {
    struct loop *loop;
    struct store *store;
    struct store_writer *writer;
    struct http *http;
    const struct retry_policy *policy;
    char *ca_file;
    uint64_t connect_ms, first_byte_ms, between_bytes_ms, total_ms;
    struct slots slots;
    unsigned capacity;
    struct random random;
    uint64_t gate_ns; /* no request of this key is sent before */
    struct err blocked;
    struct completions_totals totals;
};

struct completions *completions_new(struct loop *loop, struct store *store,
                                    struct store_writer *writer,
                                    const struct completions_spec *spec, struct err *err)
{
    struct http *http = http_new(loop, err);
    if (http == NULL)
        return NULL;
    struct completions *completions = MEM_NEW(struct completions);
    completions->loop = loop;
    completions->store = store;
    completions->writer = writer;
    completions->http = http;
    completions->policy = spec->policy != NULL ? spec->policy : &retry_policy_default;
    completions->ca_file = spec->ca_file != NULL ? mem_strdup(spec->ca_file) : NULL;
    completions->connect_ms = spec->connect_ms;
    completions->first_byte_ms = spec->first_byte_ms;
    completions->between_bytes_ms = spec->between_bytes_ms;
    completions->total_ms = spec->total_ms;
    completions->capacity = spec->in_flight > 0 ? spec->in_flight : IN_FLIGHT;
    slots_init(&completions->slots, "requests", completions->capacity);
    random_init(&completions->random, spec->seed);
    return completions;
}

void completions_free(struct completions *completions)
{
    if (completions == NULL)
        return;
    http_free(completions->http);
    mem_free(completions->ca_file);
    mem_free(completions);
}

const struct err *completions_blocked(const struct completions *completions,
                                      const struct model *model)
{
    (void)model;
    return &completions->blocked;
}

struct completions_totals completions_totals(const struct completions *completions)
{
    return completions->totals;
}

void completions_hold(struct completions *completions, bool held)
{
    slots_resize(&completions->slots, held ? 0 : completions->capacity);
}

size_t completions_gates(const struct completions *completions, struct gate_view *views,
                         size_t most)
{
    if (most > 0)
        views[0] = (struct gate_view){
            .name = "provider",
            .state = completions->blocked.code != ERR_NONE ? GATE_BLOCKED : GATE_OPEN,
            .reason = completions->blocked.code != ERR_NONE ? completions->blocked.message : ""};
    return most > 0;
}

/* ---- ends ---- */

/* A message of a provider may quote the key it was sent. */
static void hide_key(const struct model *model, struct err *err)
{
    if (model->key == NULL || *model->key == '\0')
        return;
    size_t length = strlen(model->key);
    for (char *at = err->message; (at = strstr(at, model->key)) != NULL; at += length)
        memset(at, '*', length);
}

static enum task_result end(struct ask *ask)
{
    timer_stop(&ask->timer);
    slots_release(&ask->slot);
    task_move(&ask->task, ENDED);
    return TASK_DONE;
}

static enum task_result fail(struct ask *ask, enum fault fault, const struct err *err)
{
    ask->fault = fault;
    ask->err = *err;
    hide_key(ask->model, &ask->err);
    log_event(LOG_WARN, "completion.failed", ask->task.id, "%s", ask->err.message);
    return end(ask);
}

/* Some faults are the key's, not the request's: whoever waits for the key learns of it. */
static bool blocks(enum fault fault)
{
    return fault == FAULT_QUOTA || fault == FAULT_KEY || fault == FAULT_MODEL;
}

static void block(struct completions *completions, const struct model *model, const struct err *err)
{
    if (completions->blocked.code != ERR_NONE)
        return;
    completions->blocked = *err;
    hide_key(model, &completions->blocked);
    log_event(LOG_ERROR, "provider.blocked", model->name, "%s", completions->blocked.message);
    list_each (link, &completions->slots.waiters) {
        struct slot *slot = container_of(link, struct slot, link);
        task_wake(slot->owner);
    }
}

/* ---- looking up ---- */

static void look_up(void *argument)
{
    struct ask *ask = argument;
    if (store_get(ask->completions->store, STORE_COMPLETIONS, ask->key, &ask->stored,
                  &ask->stored_err) == 0)
        ask->stored_err.code = ERR_NONE;
}

static enum task_result step_looking_up(struct ask *ask)
{
    if (!ask->work.active && !ask->work.done)
        work_start(ask->task.loop, &ask->work, &ask->task, look_up, ask);
    if (!ask->work.done)
        return TASK_WAIT;
    if (ask->stored_err.code == ERR_NONE &&
        completion_decode(ask->arena, buf_text(&ask->stored), ask->stored.length, &ask->completion,
                          &ask->stored_err) == 0) {
        ask->from_store = true;
        ask->completions->totals.from_store++;
        buf_free(&ask->stored);
        log_event(LOG_DEBUG, "completion.stored", ask->task.id, "%s: answered by the store",
                  ask->purpose);
        return end(ask);
    }
    buf_free(&ask->stored);
    if (ask->stored_err.code != ERR_NOT_FOUND)
        return fail(ask, FAULT_FATAL, &ask->stored_err);
    task_move(&ask->task, WAITING);
    return TASK_AGAIN;
}

/* ---- waiting and sending ---- */

static int send_request(struct ask *ask, struct err *err)
{
    struct completions *completions = ask->completions;
    struct buf body;
    const char *url;
    const char *const *headers;
    buf_init(&body, 64 << 20);
    ask->model->codec->encode(ask->arena, &ask->request, ask->model->base_url, ask->model->key,
                              &url, &headers, &body);
    const struct http_spec spec = {.method = "POST",
                                   .url = url,
                                   .headers = headers,
                                   .body = buf_text(&body),
                                   .body_length = body.length,
                                   .connect_ms = completions->connect_ms,
                                   .first_byte_ms = completions->first_byte_ms,
                                   .between_bytes_ms = completions->between_bytes_ms,
                                   .total_ms = completions->total_ms,
                                   .body_max = ANSWER_BYTES_MAX,
                                   .ca_file = completions->ca_file};
    ask->http = http_start(completions->http, &ask->task, &spec, err);
    buf_free(&body);
    if (ask->http == NULL)
        return -1;
    ask->state = ask->model->codec->begin(ask->arena);
    completions->totals.requests++;
    return 0;
}

static enum task_result step_waiting(struct ask *ask)
{
    struct completions *completions = ask->completions;
    if (completions->blocked.code != ERR_NONE)
        return fail(ask, FAULT_FATAL, &completions->blocked);
    if (!ask->slot.granted && !list_linked(&ask->slot.link) &&
        !slots_acquire(&completions->slots, &ask->slot, &ask->task, 1))
        return TASK_WAIT;
    if (!ask->slot.granted)
        return TASK_WAIT;
    uint64_t now = clock_now_ns();
    if (now < completions->gate_ns) {
        if (!ask->timer.armed)
            timer_start(ask->task.loop, &ask->timer, &ask->task,
                        (completions->gate_ns - now) / 1000000 + 1);
        return TASK_WAIT;
    }
    struct err err;
    if (send_request(ask, &err) != 0)
        return fail(ask, FAULT_FATAL, &err);
    task_move(&ask->task, SENDING);
    return TASK_WAIT;
}

/* ---- reading ---- */

static bool content_type_fits(const struct ask *ask)
{
    const char *type = http_header(ask->http, "content-type");
    return *type == '\0' || strstr(type, "json") != NULL || strstr(type, "event-stream") != NULL;
}

/* Hands what has arrived to the codec; false ends the reading. */
static bool read_body(struct ask *ask, struct err *err, enum fault *fault)
{
    size_t length;
    if (http_status(ask->http) != 200)
        return true;
    if (!content_type_fits(ask)) {
        *fault = FAULT_FATAL;
        err_set(err, ERR_PROTOCOL, "content-type is \"%.80s\"; is the base URL right?",
                http_header(ask->http, "content-type"));
        return false;
    }
    const char *body = http_body(ask->http, &length);
    int status = length > 0 ? ask->model->codec->feed(ask->state, body, length, err) : 0;
    http_consume(ask->http, length);
    return status == 0;
}

/* The class of what came, and its line for people in *err. FAULT_NONE: ask->completion is good. */
static enum fault judge(struct ask *ask, bool readable, struct err *err, enum fault early)
{
    const struct codec *codec = ask->model->codec;
    struct err ended;
    enum fault fault = FAULT_NONE;
    int finished = codec->finish(ask->state, &ask->completion, &fault, &ended);
    ask->state = NULL;
    if (!readable && err->code == ERR_LIMIT)
        return FAULT_FATAL; /* a bomb is as long the second time */
    if (!readable)
        return early != FAULT_NONE ? early : fault != FAULT_NONE ? fault : FAULT_RETRY;
    const struct err *network = http_error(ask->http);
    if (network->code != ERR_NONE) {
        *err = *network;
        if (http_error_is_tls(ask->http)) {
            block(ask->completions, ask->model, network);
            return FAULT_FATAL;
        }
        return network->code == ERR_NETWORK || network->code == ERR_TIMEOUT ? FAULT_RETRY
                                                                            : FAULT_FATAL;
    }
    int status = http_status(ask->http);
    if (status != 200) {
        size_t length;
        const char *body = http_body(ask->http, &length);
        struct buf reason;
        buf_init(&reason, sizeof err->message - 1);
        fault = codec->classify(status, body, length, &reason);
        err_set(err, ERR_PROTOCOL, "%s", buf_text(&reason));
        buf_free(&reason);
        return fault;
    }
    if (finished != 0)
        *err = ended;
    return finished != 0 ? fault : FAULT_NONE;
}

static enum task_result faulted(struct ask *ask, enum fault fault, struct err *err, int64_t after)
{
    struct completions *completions = ask->completions;
    ask->failures++;
    if (blocks(fault))
        block(completions, ask->model, err);
    bool malformed = fault == FAULT_RETRY && err->code == ERR_PROTOCOL && after < 0 &&
                     strncmp(err->message, "HTTP ", 5) != 0;
    if (malformed && ++ask->malformed > MALFORMED_MAX)
        return fail(ask, fault, err);
    struct retry_decision decision =
        retry_decide(completions->policy, fault, ask->failures, after, &completions->random);
    if (decision.park) {
        struct err parked;
        err_set(&parked, ERR_LIMIT, "%s asks to wait %.0f s, more than %.0f s: parked (%.300s)",
                ask->model->name, (double)after / 1000,
                (double)completions->policy->honour_ms / 1000, err->message);
        block(completions, ask->model, &parked);
        return fail(ask, fault, &parked);
    }
    if (!decision.again)
        return fail(ask, fault, err);
    completions->totals.retries++;
    uint64_t until = clock_now_ns() + decision.delay_ms * 1000000;
    if (decision.whole_key && until > completions->gate_ns)
        completions->gate_ns = until;
    hide_key(ask->model, err);
    log_event(LOG_INFO, "completion.retry", ask->task.id, "try %d in %.1f s: %s", ask->failures + 1,
              (double)decision.delay_ms / 1000, err->message);
    slots_release(&ask->slot);
    timer_start(ask->task.loop, &ask->timer, &ask->task, decision.delay_ms);
    task_move(&ask->task, BACKING_OFF);
    return TASK_WAIT;
}

static void store_answer(struct ask *ask)
{
    struct buf text;
    buf_init(&text, 64 << 20);
    completion_encode(&ask->request, &ask->completion, ask->purpose, ask->sample, ask->failures + 1,
                      clock_now_ns() - ask->started_ns, &text);
    struct store_batch *batch = store_batch_new();
    store_batch_put(batch, STORE_COMPLETIONS, ask->key, buf_text(&text), text.length);
    buf_free(&text);
    store_write_take(ask->completions->writer, &ask->write, &ask->task, batch);
}

static enum task_result step_sending(struct ask *ask)
{
    struct err err = {ERR_NONE, ""};
    enum fault early = FAULT_NONE;
    bool readable = read_body(ask, &err, &early);
    if (readable && !http_done(ask->http))
        return TASK_WAIT;
    int64_t after = readable ? retry_after(http_header(ask->http, "retry-after-ms"),
                                           http_header(ask->http, "retry-after"), clock_wall_ms())
                             : -1;
    enum fault fault = judge(ask, readable, &err, early);
    http_free_request(ask->http);
    ask->http = NULL;
    if (fault != FAULT_NONE)
        return faulted(ask, fault, &err, after);
    struct completions_totals *totals = &ask->completions->totals;
    totals->answers++;
    totals->prompt_tokens += ask->completion.prompt_tokens > 0 ? ask->completion.prompt_tokens : 0;
    totals->completion_tokens +=
        ask->completion.completion_tokens > 0 ? ask->completion.completion_tokens : 0;
    slots_release(&ask->slot);
    task_move(&ask->task, STORING);
    store_answer(ask);
    return TASK_WAIT;
}

/* ---- the task ---- */

/* Lets go of everything that can be let go of; true when nothing is left to wait for. */
static bool let_go(struct ask *ask)
{
    if (ask->http != NULL)
        http_free_request(ask->http);
    ask->http = NULL;
    if (ask->state != NULL) {
        enum fault ignored;
        struct err err;
        (void)ask->model->codec->finish(ask->state, &ask->completion, &ignored, &err);
    }
    ask->state = NULL;
    return !ask->write.active && !ask->work.active;
}

static enum task_result ask_step(struct task *task)
{
    struct ask *ask = container_of(task, struct ask, task);
    if (task->cancel_requested && task->state != STORING) {
        if (!let_go(ask))
            return TASK_WAIT;
        buf_free(&ask->stored);
        err_set(&ask->err, ERR_CANCELLED, "stopped");
        return end(ask);
    }
    switch (task->state) {
    case LOOKING_UP:
        return step_looking_up(ask);
    case WAITING:
        return step_waiting(ask);
    case SENDING:
        return step_sending(ask);
    case BACKING_OFF:
        if (ask->timer.armed)
            return TASK_WAIT;
        task_move(task, WAITING);
        return TASK_AGAIN;
    default:
        if (ask->write.active)
            return TASK_WAIT;
        if (ask->write.err.code != ERR_NONE) {
            store_batch_free(ask->write.batch);
            ask->write.batch = NULL;
            return fail(ask, FAULT_NONE, &ask->write.err);
        }
        return end(ask);
    }
}

static const struct task_type ask_type = {"completion", states, moves, STATES, ask_step, NULL};

void ask_start(struct completions *completions, struct ask *ask, struct task *parent,
               const char *id)
{
    ask->completions = completions;
    ask->arena = arena_new();
    ask->started_ns = clock_now_ns();
    buf_init(&ask->stored, 64 << 20);
    if (ask->request.model == NULL) {
        ask->request.model = ask->model->wire_name;
        ask->request.temperature = ask->model->temperature;
    }
    if (ask->request.max_tokens == 0)
        ask->request.max_tokens = ask->model->max_tokens;
    completion_key(ask->model->codec->name, ask->model->base_url, &ask->request, ask->sample,
                   ask->key);
    task_start(completions->loop, &ask->task, &ask_type, parent, id);
}

void ask_free(struct ask *ask)
{
    assert(ask->arena == NULL || ask->task.finished);
    arena_free(ask->arena);
    ask->arena = NULL;
}
