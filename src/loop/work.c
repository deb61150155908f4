/* loop/work: uv_queue_work with the request kept apart from the caller's struct. */
#include "loop/work.h"

#include "base/mem.h"
#include "loop/private.h"
#include "loop/task.h"

#include <assert.h>

static void on_pool(uv_work_t *request)
{
    struct work *work = request->data;
    work->run(work->argument);
}

static void on_done(uv_work_t *request, int status)
{
    (void)status; /* never cancelled */
    struct work *work = request->data;
    mem_free(request);
    work->handle = NULL;
    work->active = false;
    work->done = true;
    task_complete(work->owner);
}

void work_start(struct loop *loop, struct work *work, struct task *owner,
                void (*run)(void *argument), void *argument)
{
    assert(!work->active);
    uv_work_t *request = MEM_NEW(uv_work_t);
    request->data = work;
    *work = (struct work){
        .active = true, .owner = owner, .run = run, .argument = argument, .handle = request};
    task_expect(owner);
    int status = uv_queue_work(&loop->uv, request, on_pool, on_done);
    if (status != 0)
        loop_die("cannot queue work: %s", uv_strerror(status));
}
