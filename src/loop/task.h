/* loop/task: an explicit state machine: a table of allowed moves and one step function.
 * Loop thread only. Completions (timers, slots, http, process, work, other tasks) store a result
 * and wake the owner; step() is only ever called from the loop's own turn, never from inside
 * another step, so a million completions that are ready at once grow no stack.
 *
 *   task_start -> step -> AGAIN: step again on this turn's queue (after the others)
 *                      -> WAIT:  sleep until woken; a task that waits for nothing (pending == 0)
 *                                is a programmer's error and aborts with its name
 *                      -> DONE:  never stepped again; its parent is woken; with completions
 *                                outstanding it aborts, since they would come to freed memory
 */
#pragma once

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

enum task_result { TASK_AGAIN, TASK_WAIT, TASK_DONE };

struct task;
struct loop;

struct task_type {
    const char *name;                            /* "candidate" */
    const char *const *states;                   /* names, [state_count]; state 0 is the first */
    const uint32_t *moves;                       /* [state_count]: bit set of states allowed next */
    int state_count;                             /* at most 32 */
    enum task_result (*step)(struct task *task); /* one state's worth of work; never blocks */
    /* Each move is an event: called by task_move() after the check. May be NULL. */
    void (*moved)(struct task *task, int from, int to);
};

struct task { /* embed as the first member; the memory is the owner's until done */
    const struct task_type *type;
    struct loop *loop;
    struct task *parent; /* woken when this one is done; NULL for a root */
    char id[40];         /* "r3-c17": identity in logs */
    int state;
    unsigned pending;      /* completions outstanding, children included */
    bool cancel_requested; /* tested in one place in step() */
    bool finished;
    bool queued;
    struct link ready_link, loop_link;
};

/* Registers the task and queues its first step. `parent` (or NULL) counts it as pending. */
void task_start(struct loop *loop, struct task *task, const struct task_type *type,
                struct task *parent, const char *id);
void task_move(struct task *task, int state); /* aborts on a move that the table does not allow */
void task_wake(struct task *task);            /* step on a later turn; idempotent until stepped */
void task_cancel(struct task *task);          /* sets cancel_requested and wakes; idempotent */

/* For whatever completes into a task: expect() when an operation starts, complete() once when it
 * ends (wakes the owner). Every operation in src/loop does so by itself. */
void task_expect(struct task *task);
void task_complete(struct task *task);

const char *task_state_name(const struct task *task);
