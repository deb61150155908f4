/* loop/task: the ready queue and the rules of a step. */
#include "loop/task.h"

#include "loop/private.h"

#include <assert.h>
#include <stdio.h>

/* Steps between two polls for I/O: long enough to pay for the poll, short enough that a crowd of
 * busy tasks does not starve the sockets. */
enum { STEPS_A_TURN = 1024, NAMES_SHOWN = 10 };

void task_start(struct loop *loop, struct task *task, const struct task_type *type,
                struct task *parent, const char *id)
{
    assert(type->state_count >= 1 && type->state_count <= 32);
    *task = (struct task){.type = type, .loop = loop, .parent = parent};
    snprintf(task->id, sizeof task->id, "%s", id);
    if (parent != NULL)
        task_expect(parent);
    list_append(&loop->tasks, &task->loop_link);
    task_wake(task);
}

const char *task_state_name(const struct task *task)
{
    return task->type->states[task->state];
}

void task_move(struct task *task, int state)
{
    const struct task_type *type = task->type;
    if (state < 0 || state >= type->state_count)
        loop_die("%s %s: no state %d", type->name, task->id, state);
    int from = task->state;
    if ((type->moves[from] >> state & 1) == 0)
        loop_die("%s %s: the move from %s to %s is not allowed", type->name, task->id,
                 type->states[from], type->states[state]);
    task->state = state;
    if (type->moved != NULL)
        type->moved(task, from, state);
}

void task_wake(struct task *task)
{
    if (task->finished || task->queued)
        return;
    task->queued = true;
    loop_ready(task->loop, &task->ready_link);
}

void task_cancel(struct task *task)
{
    if (task->finished || task->cancel_requested)
        return;
    task->cancel_requested = true;
    task_wake(task);
}

void task_expect(struct task *task)
{
    if (task->finished)
        loop_die("%s %s: is finished and cannot wait for more", task->type->name, task->id);
    task->pending++;
}

void task_forget(struct task *task)
{
    if (task->pending == 0)
        loop_die("%s %s: more completions than were expected, in state %s", task->type->name,
                 task->id, task_state_name(task));
    task->pending--;
}

void task_complete(struct task *task)
{
    task_forget(task);
    task_wake(task);
}

static void finish(struct task *task)
{
    if (task->pending != 0) /* what is outstanding would complete into freed memory */
        loop_die("%s %s: done in state %s with %u completions outstanding", task->type->name,
                 task->id, task_state_name(task), task->pending);
    struct task *parent = task->parent;
    task->finished = true;
    task->queued = false;
    list_remove(&task->ready_link);
    list_remove(&task->loop_link);
    if (parent != NULL)
        task_complete(parent); /* the parent may free the task from here on */
}

static void step(struct task *task)
{
    task->queued = false;
    switch (task->type->step(task)) {
    case TASK_AGAIN:
        task_wake(task);
        return;
    case TASK_WAIT:
        if (task->pending == 0 && !task->queued)
            loop_die("%s %s: waits for nothing in state %s", task->type->name, task->id,
                     task_state_name(task));
        return;
    case TASK_DONE:
        finish(task);
        return;
    }
    loop_die("%s %s: step() returned no task_result", task->type->name, task->id);
}

void loop_drain(struct loop *loop)
{
    for (int steps = 0; steps < STEPS_A_TURN; steps++) {
        struct link *link = list_pop(&loop->ready);
        if (link == NULL)
            return;
        step(container_of(link, struct task, ready_link));
    }
}

void loop_check_finished(const struct loop *loop)
{
    if (list_empty(&loop->tasks))
        return;
    int shown = 0;
    list_each (link, &loop->tasks) {
        const struct task *task = container_of(link, struct task, loop_link);
        if (++shown > NAMES_SHOWN)
            break;
        fprintf(stderr, "twagent: unfinished: %s %s in state %s, %u pending\n", task->type->name,
                task->id, task_state_name(task), task->pending);
    }
    const struct task *first = container_of(loop->tasks.head.next, struct task, loop_link);
    loop_die("the loop ended while %s %s is unfinished in state %s", first->type->name, first->id,
             task_state_name(first));
}
