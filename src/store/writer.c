/*                    take                      on the disk, or failed
 *   (no task) ----------------> COMMITTING -----------------------------> done, if the queue is
 *                                   ^                                      empty; the next take
 *                                   +--- what queued up meanwhile ---+     starts it again
 */
#include "store/writer.h"

#include "base/log.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "loop/task.h"
#include "loop/work.h"
#include "store/internal.h"

#include <assert.h>

enum { GROUP_MAX = 256 }; /* writes in one transaction */

struct store_writer {
    struct task task; /* lives while something is queued */
    bool running;
    struct loop *loop;
    struct store *store;
    struct list queue; /* struct store_write, first come first served */
    struct work work;
    /* The pool thread's from work_start() until work.done: */
    struct store_write *group[GROUP_MAX];
    const struct store_batch *batches[GROUP_MAX];
    size_t count;
    struct err err;
};

enum { COMMITTING };
static const char *const states[] = {"committing"};
static const uint32_t moves[] = {1u << COMMITTING};

static void commit_group(void *argument)
{
    struct store_writer *writer = argument;
    writer->err = (struct err){ERR_NONE, ""};
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

static enum task_result step(struct task *task)
{
    struct store_writer *writer = container_of(task, struct store_writer, task);
    if (writer->work.active)
        return TASK_WAIT;
    if (writer->work.done)
        finish_group(writer);
    fill_group(writer);
    if (writer->count == 0) {
        writer->running = false;
        return TASK_DONE;
    }
    work_start(writer->loop, &writer->work, task, commit_group, writer);
    return TASK_WAIT;
}

static const struct task_type type = {
    .name = "store writer", .states = states, .moves = moves, .state_count = 1, .step = step};

struct store_writer *store_writer_new(struct loop *loop, struct store *store)
{
    struct store_writer *writer = MEM_NEW(struct store_writer);
    writer->loop = loop;
    writer->store = store;
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
