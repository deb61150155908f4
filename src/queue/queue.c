/* queue/queue: a cycle at a time on the pool reads what arrived and commits, in one batch, what was
 * admitted and what was found; nobody is told of either before.
 *
 *   OPEN -> ENDING (lanes close, the last cycle) -> done
 */
#include "queue/private.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { OPEN, ENDING, STATES };
static const char *const states[STATES] = {"open", "ending"};
static const uint32_t moves[STATES] = {1u << ENDING, 0};
enum { FIRST_MEAN_MS = 1000, WRITE_AGAIN_MS = 2000, RETRY_MOST_S = 60 };

static void move_all(struct list *from, struct list *to)
{
    for (struct link *link; (link = list_pop(from));)
        list_append(to, link);
}

/* ---- answers ---- */

static void answer(struct queue *queue, struct queue_asked *asked, enum queue_outcome outcome)
{
    list_remove(&asked->link);
    asked->outcome = outcome;
    if (outcome == QUEUE_ACCEPTED)
        queue->now.accepted += asked->count;
    else
        queue->now.refused += asked->count;
    queue->options->answered(queue->options->context, asked);
}

static void answer_ending(struct queue *queue, struct list *list)
{
    list_each_safe (link, list) {
        struct queue_asked *asked = container_of(link, struct queue_asked, link);
        (void)err_set(&asked->err, ERR_CANCELLED, "the server ends");
        answer(queue, asked, QUEUE_BROKEN);
    }
}

static size_t bytes_of(const struct queue_asked *asked)
{
    size_t bytes = 0;
    for (size_t i = 0; i < asked->count; i++)
        bytes += asked->items[i].length;
    return bytes;
}

/* What is admitted but not on the disk yet counts, too. */
static void count_admitted(const struct queue *queue, const char *client, size_t *own, size_t *all,
                           size_t *bytes)
{
    list_each (link, &queue->admitted) {
        const struct queue_asked *asked = container_of(link, struct queue_asked, link);
        *all += asked->count;
        *bytes += bytes_of(asked);
        *own += strcmp(asked->client, client) == 0 ? asked->count : 0;
    }
}

static void admit(struct queue *queue, struct queue_asked *asked)
{
    size_t own = client_waiting(queue, asked->client), all = queue->waiting, bytes = queue->bytes;
    count_admitted(queue, asked->client, &own, &all, &bytes);
    bool own_full = own + asked->count > QUEUE_OF_CLIENT;
    if (own_full || all + asked->count > QUEUE_WAITING || bytes + bytes_of(asked) > QUEUE_BYTES) {
        double lanes = queue->place_count ? (double)queue->place_count : 1;
        double seconds = (double)(own_full ? own : all) * queue->mean_ms / lanes / 2000;
        asked->retry_s = seconds > RETRY_MOST_S ? RETRY_MOST_S : 1 + (unsigned)seconds;
        (void)err_set(&asked->err, ERR_LIMIT, "%zu of %s wait; come again in %u s",
                      own_full ? own : all, own_full ? "yours" : "all clients", asked->retry_s);
        answer(queue, asked, QUEUE_FULL);
        return;
    }
    asked->first = queue->next_id;
    queue->next_id += asked->count;
    list_append(&queue->admitted, &asked->link);
}

/* ---- a cycle ---- */

static void run_cycle(void *argument)
{
    struct cycle *cycle = argument;
    const struct queue_options *options = cycle->queue->options;
    struct store_batch *batch = store_batch_new();
    list_each (link, &cycle->parsing) {
        struct queue_asked *asked = container_of(link, struct queue_asked, link);
        if (options->parse(options->context, asked))
            asked->count = 0;
    }
    list_each (link, &cycle->accepting)
        record_accept(batch, container_of(link, struct queue_asked, link));
    list_each (link, &cycle->keeping)
        record_keep(batch, container_of(link, struct job, link));
    cycle->failed =
        store_batch_empty(batch) ? 0 : store_commit(cycle->queue->store, batch, &cycle->err);
    store_batch_free(batch);
}

static void take_accepted(struct queue *queue)
{
    struct cycle *cycle = &queue->cycle;
    list_each_safe (link, &cycle->accepting) {
        struct queue_asked *asked = container_of(link, struct queue_asked, link);
        if (cycle->failed)
            asked->err = cycle->err;
        for (size_t i = 0; !cycle->failed && i < asked->count; i++)
            job_wait(queue, asked->client, asked->first + i, asked->items[i].problem,
                     asked->items[i].backend, asked->items[i].length);
        answer(queue, asked, cycle->failed ? QUEUE_BROKEN : QUEUE_ACCEPTED);
    }
}

static void take_kept(struct queue *queue)
{
    struct cycle *cycle = &queue->cycle;
    if (list_empty(&cycle->keeping))
        return;
    if (cycle->failed) { /* a full disk: they are kept until it is not */
        log_event(LOG_WARN, "queue.keep", "", "%s", cycle->err.message);
        move_all(&cycle->keeping, &queue->finished);
        timer_start(queue->task.loop, &queue->timer, &queue->task, WRITE_AGAIN_MS);
        return;
    }
    for (struct link *link; (link = list_pop(&cycle->keeping));) {
        job_free(container_of(link, struct job, link));
        queue->now.done++;
    }
    queue->options->changed(queue->options->context);
}

static void end_cycle(struct queue *queue)
{
    struct cycle *cycle = &queue->cycle;
    if (!queue->work.done)
        return;
    queue->work.done = false;
    take_accepted(queue);
    take_kept(queue);
    list_each_safe (link, &cycle->parsing) {
        struct queue_asked *asked = container_of(link, struct queue_asked, link);
        list_remove(link);
        if (asked->count > 0)
            admit(queue, asked);
        else
            answer(queue, asked, QUEUE_REFUSED);
    }
}

static void begin_cycle(struct queue *queue)
{
    struct cycle *cycle = &queue->cycle;
    bool failed = cycle->failed && queue->timer.armed;
    if (queue->work.active || (list_empty(&queue->arrived) && list_empty(&queue->admitted) &&
                               (failed || list_empty(&queue->finished))))
        return;
    cycle->queue = queue;
    cycle->failed = 0;
    move_all(&queue->arrived, &cycle->parsing);
    move_all(&queue->admitted, &cycle->accepting);
    move_all(&queue->finished, &cycle->keeping);
    work_start(queue->task.loop, &queue->work, &queue->task, run_cycle, cycle);
}

/* ---- the task ---- */

static bool is_news(const struct facts *now, const struct facts *told)
{
    bool same =
        now->waiting == told->waiting && now->place_count == told->place_count &&
        now->measuring_count == told->measuring_count &&
        memcmp(now->measuring, told->measuring, now->measuring_count * sizeof *now->measuring) == 0;
    for (size_t i = 0; same && i < now->place_count; i++)
        same = now->places[i].state == told->places[i].state;
    return !same;
}

static void add_measured(struct facts *now, struct list *jobs)
{
    list_each (link, jobs)
        if (now->measuring_count < QUEUE_PLACES * DEPTH)
            now->measuring[now->measuring_count++] = container_of(link, struct job, link)->id;
}

static void tell(struct queue *queue)
{
    struct facts *now = &queue->now;
    uint64_t ms = clock_now_ms();
    now->waiting = queue->waiting;
    now->measuring_count = 0;
    add_measured(now, &queue->measured);
    add_measured(now,
                 &queue->finished); /* until its result is on the disk: none of them waits again */
    add_measured(now, &queue->cycle.keeping);
    now->place_count = queue->place_count;
    for (size_t i = 0; i < queue->place_count; i++) {
        const struct place *place = &queue->places[i];
        now->places[i].backend = place->backend;
        now->places[i].device = place->share.device;
        now->places[i].state = place_state(place);
        snprintf(now->places[i].host, sizeof now->places[i].host, "%s", place_host(place));
        snprintf(now->places[i].machine, sizeof now->places[i].machine, "%s", place->machine);
        snprintf(now->places[i].why, sizeof now->places[i].why, "%s", place->why);
        now->places[i].busy_ms = place_busy_ms(place);
        now->places[i].since_ms = place->first_ms ? (double)(ms - place->first_ms) : 0;
    }
    bool news = is_news(now, &queue->told);
    now->changes += news;
    pthread_mutex_lock(&queue->lock);
    queue->told = *now;
    pthread_mutex_unlock(&queue->lock);
    if (news)
        queue->options->changed(queue->options->context);
}

static enum task_result step_ending(struct queue *queue)
{
    answer_ending(queue, &queue->arrived);
    answer_ending(queue, &queue->admitted);
    bool closed = places_close(queue);
    if (!queue->work.active && !list_empty(&queue->finished) && !queue->cycle.failed)
        begin_cycle(queue);
    if (queue->work.active || !closed)
        return TASK_WAIT;
    timer_stop(&queue->timer);
    return TASK_DONE;
}

static enum task_result queue_step(struct task *task)
{
    struct queue *queue = container_of(task, struct queue, task);
    end_cycle(queue);
    if (task->cancel_requested) {
        if (task->state != ENDING)
            task_move(task, ENDING);
        return step_ending(queue);
    }
    places_step(queue);
    begin_cycle(queue);
    tell(queue);
    return TASK_WAIT;
}

static const struct task_type queue_type = {"queue", states, moves, STATES, queue_step, NULL};

int queue_open(struct loop *loop, const struct queue_options *options, struct queue **result,
               struct err *err)
{
    struct queue *queue = MEM_NEW(struct queue);
    queue->options = options;
    queue->mean_ms = FIRST_MEAN_MS;
    struct list *const lists[] = {
        &queue->clients,  &queue->measured,      &queue->arrived,         &queue->admitted,
        &queue->finished, &queue->cycle.parsing, &queue->cycle.accepting, &queue->cycle.keeping};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        list_init(lists[i]);
    pthread_mutex_init(&queue->lock, NULL);
    if (store_open(options->folder, true, false, &queue->store, err) ||
        records_restore(queue, err)) {
        clients_free(queue);
        store_close(queue->store);
        mem_free(queue);
        return -1;
    }
    task_start(loop, &queue->task, &queue_type, NULL, "queue");
    task_expect(&queue->task); /* queue_stop() is what it waits for */
    *result = queue;
    return 0;
}

void queue_ask(struct queue *queue, struct queue_asked *asked)
{
    if (queue->task.cancel_requested) {
        (void)err_set(&asked->err, ERR_CANCELLED, "the server ends");
        answer(queue, asked, QUEUE_BROKEN);
        return;
    }
    list_append(&queue->arrived, &asked->link);
    task_wake(&queue->task);
}

void queue_stop(struct queue *queue)
{
    if (queue->task.cancel_requested)
        return;
    task_cancel(&queue->task);
    task_complete(&queue->task);
}

void queue_free(struct queue *queue)
{
    if (!queue)
        return;
    assert(queue->task.finished);
    list_each_safe (link, &queue->finished)
        job_free(container_of(link, struct job, link));
    clients_free(queue);
    store_close(queue->store);
    pthread_mutex_destroy(&queue->lock);
    mem_free(queue);
}

/* ---- any thread ---- */

uint64_t queue_version(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    uint64_t changes = queue->told.changes;
    pthread_mutex_unlock(&queue->lock);
    return store_version(queue->store) + changes;
}

void queue_put_facts(struct queue *queue, struct buf *out)
{
    struct json json = {.out = out};
    pthread_mutex_lock(&queue->lock);
    const struct facts facts = queue->told;
    pthread_mutex_unlock(&queue->lock);
    json_object(&json);
    json_put_int(&json, "waiting", (int64_t)facts.waiting);
    json_put_int(&json, "measuring", (int64_t)facts.measuring_count);
    json_put_int(&json, "done", (int64_t)facts.done);
    json_put_int(&json, "accepted", (int64_t)facts.accepted);
    json_put_int(&json, "accepted_before", (int64_t)facts.again);
    json_put_int(&json, "refused", (int64_t)facts.refused);
    json_put_int(&json, "clients", (int64_t)facts.clients);
    json_put_array(&json, "lanes");
    for (size_t i = 0; i < facts.place_count; i++) {
        double since = facts.places[i].since_ms;
        json_object(&json);
        json_put_text(&json, "backend", facts.places[i].backend);
        json_put_text(&json, "device", facts.places[i].device);
        json_put_text(&json, "state", facts.places[i].state);
        if (*facts.places[i].host)
            json_put_text(&json, "host", facts.places[i].host);
        if (*facts.places[i].machine)
            json_put_text(&json, "machine", facts.places[i].machine);
        if (*facts.places[i].why)
            json_put_text(&json, "why", facts.places[i].why);
        json_put_real(&json, "busy_ms", facts.places[i].busy_ms);
        json_put_real(&json, "since_ms", since);
        json_put_real(&json, "busy_share", since > 0 ? facts.places[i].busy_ms / since : 0);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
}
