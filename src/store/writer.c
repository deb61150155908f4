/*                    take                      on the disk, or failed
 *   (no task) ----------------> COMMITTING -----------------------------> done, if the queue is
 *                               |  ^    ^                                  empty; the next take
 *                 disk or map   |  |    +--- what queued up meanwhile       starts it again
 *                       full    v  | RETRY_MS later, or given up
 *                              FULL: the same group again, before whatever came after it
 */
#include "store/writer.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "loop/task.h"
#include "loop/work.h"
#include "store/internal.h"

#include <assert.h>
#include <string.h>

enum {
    GROUP_MAX = 256, /* writes in one transaction */
    RETRY_MS = 2000, /* while there is no room */
};
static const uint64_t readers_ns = 5 * UINT64_C(1000000000); /* between looks for dead readers */

struct store_writer {
    struct task task; /* lives while something is queued */
    bool running;
    struct loop *loop;
    struct store *store;
    struct list queue; /* struct store_write, first come first served */
    struct work work;
    struct timer retry;
    uint64_t retry_ms, full_since_ns;
    bool given_up; /* from now on, no room is a failure */
    char waits[sizeof((struct err *)NULL)->message];
    /* The pool thread's from work_start() until work.done: */
    struct store_write *group[GROUP_MAX];
    const struct store_batch *batches[GROUP_MAX];
    size_t count;
    struct err err;
    uint64_t readers_at_ns; /* when dead readers were last looked for */
};

enum { COMMITTING, FULL };
static const char *const states[] = {"committing", "full"};
static const uint32_t moves[] = {1u << FULL, 1u << COMMITTING};

/* A reader that was killed keeps pages from being used again, which lets the file grow: only
 * commits take pages, so that looking before them is often enough. */
static void check_readers(struct store_writer *writer)
{
    uint64_t now = clock_now_ns();
    if (now - writer->readers_at_ns < readers_ns)
        return;
    writer->readers_at_ns = now;
    struct err err;
    size_t cleared = 0;
    if (store_check_readers(writer->store, &cleared, &err) != 0)
        log_event(LOG_WARN, "store.readers", "", "%s", err.message);
    else if (cleared > 0)
        log_event(LOG_INFO, "store.readers", "", "%zu dead readers forgotten", cleared);
}

static void commit_group(void *argument)
{
    struct store_writer *writer = argument;
    writer->err = (struct err){ERR_NONE, ""};
    check_readers(writer);
    if (store_commit_all(writer->store, writer->batches, writer->count, &writer->err) == 0)
        writer->err.code = ERR_NONE;
}

static void finish(struct store_write *write, const struct err *err)
{
    write->err = *err;
    if (err->code == ERR_NONE) {
        store_batch_free(write->batch);
        write->batch = NULL;
    }
    write->active = false;
    write->done = true;
    task_complete(write->owner);
}

static void finish_group(struct store_writer *writer)
{
    if (writer->err.code != ERR_NONE)
        log_event(LOG_ERROR, "store.commit", "", "%zu writes failed: %s", writer->count,
                  writer->err.message);
    for (size_t i = 0; i < writer->count; i++)
        finish(writer->group[i], &writer->err);
    writer->count = 0;
    writer->work.done = false;
}

/* The group stays as it is, so that nothing overtakes it. */
static enum task_result wait_for_room(struct store_writer *writer)
{
    writer->work.done = false;
    if (writer->full_since_ns == 0) {
        writer->full_since_ns = clock_now_ns();
        log_event(LOG_ERROR, "store.full", "", "%s", writer->err.message);
    }
    memcpy(writer->waits, writer->err.message, sizeof writer->waits);
    timer_start(writer->loop, &writer->retry, &writer->task, writer->retry_ms);
    task_move(&writer->task, FULL);
    return TASK_WAIT;
}

static void room_again(struct store_writer *writer)
{
    if (writer->full_since_ns == 0)
        return;
    double waited = (double)(clock_now_ns() - writer->full_since_ns) * 1e-9;
    log_event(LOG_WARN, "store.room", "", "the store can be written to again, after %.0f s",
              waited);
    writer->full_since_ns = 0;
    writer->waits[0] = '\0';
}

/* A batch that could not be built fails by itself, not with the others of its group. */
static void fill_group(struct store_writer *writer)
{
    while (writer->count < GROUP_MAX) {
        struct link *link = list_pop(&writer->queue);
        if (link == NULL)
            return;
        struct store_write *write = container_of(link, struct store_write, link);
        if (write->batch->err.code != ERR_NONE) {
            finish(write, &write->batch->err);
            continue;
        }
        writer->group[writer->count] = write;
        writer->batches[writer->count++] = write->batch;
    }
}

static enum task_result commit_next(struct store_writer *writer)
{
    if (writer->count == 0) /* else: what has waited for room */
        fill_group(writer);
    if (writer->count == 0) {
        writer->running = false;
        return TASK_DONE;
    }
    work_start(writer->loop, &writer->work, &writer->task, commit_group, writer);
    return TASK_WAIT;
}

static enum task_result step(struct task *task)
{
    struct store_writer *writer = container_of(task, struct store_writer, task);
    if (writer->work.active || writer->retry.armed)
        return TASK_WAIT;
    if (task->state == FULL) {
        task_move(task, COMMITTING);
        return commit_next(writer);
    }
    if (writer->work.done && writer->err.code == ERR_FULL && !writer->given_up)
        return wait_for_room(writer);
    if (writer->work.done) {
        if (writer->err.code == ERR_NONE)
            room_again(writer);
        finish_group(writer);
    }
    return commit_next(writer);
}

static const struct task_type type = {
    .name = "store writer", .states = states, .moves = moves, .state_count = 2, .step = step};

struct store_writer *store_writer_new(struct loop *loop, struct store *store)
{
    struct store_writer *writer = MEM_NEW(struct store_writer);
    writer->loop = loop;
    writer->store = store;
    writer->retry_ms = RETRY_MS;
    writer->readers_at_ns = clock_now_ns(); /* opening the store has looked */
    list_init(&writer->queue);
    return writer;
}

void store_writer_free(struct store_writer *writer)
{
    if (writer == NULL)
        return;
    assert(list_empty(&writer->queue) && !writer->running);
    mem_free(writer);
}

void store_write_take(struct store_writer *writer, struct store_write *write, struct task *owner,
                      struct store_batch *batch)
{
    assert(!write->active && batch != NULL);
    *write = (struct store_write){.active = true, .owner = owner, .batch = batch};
    task_expect(owner);
    list_append(&writer->queue, &write->link);
    if (writer->running)
        return;
    writer->running = true;
    task_start(writer->loop, &writer->task, &type, NULL, "store");
}

const char *store_writer_waits(const struct store_writer *writer)
{
    return writer->waits[0] != '\0' ? writer->waits : NULL;
}

void store_writer_give_up(struct store_writer *writer)
{
    writer->given_up = true;
    writer->waits[0] = '\0';
    if (!writer->retry.armed)
        return;
    timer_stop(&writer->retry); /* one last try: there may be room by now */
    task_wake(&writer->task);
}

void store_writer_retry_after(struct store_writer *writer, uint64_t ms)
{
    writer->retry_ms = ms;
}
