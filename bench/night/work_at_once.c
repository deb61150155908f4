/* loop/work.h without threads: what is begun is done on the loop's next turn, first come first
 * served. On a pool, what ends first is chance. */
#include "loop/work.h"

#include "base/mem.h"
#include "loop/loop.h"
#include "loop/private.h"
#include "loop/task.h"

#include <assert.h>

struct errand {
    struct timer timer;
    struct work *work;
};

static void do_it(struct timer *timer)
{
    struct errand *errand = container_of(timer, struct errand, timer);
    struct work *work = errand->work;
    mem_free(errand);
    work->run(work->argument);
    work->active = false;
    work->done = true;
    task_complete(work->owner);
}

void work_start(struct loop *loop, struct work *work, struct task *owner,
                void (*run)(void *argument), void *argument)
{
    assert(!work->active);
    struct errand *errand = MEM_NEW(struct errand);
    errand->work = work;
    *work = (struct work){.active = true, .owner = owner, .run = run, .argument = argument};
    task_expect(owner);
    timer_call(loop, &errand->timer, do_it, 0);
}
