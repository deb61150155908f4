/* loop/private: what the files of src/loop know of each other; nobody else includes it. */
#pragma once

#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"

#include <uv.h>

struct loop {
    uv_loop_t uv;
    uv_idle_t turn;     /* active while a task is ready: the poll then does not sleep */
    uv_timer_t alarm;   /* armed for the first deadline of `timers` */
    uint64_t alarm_ns;  /* the deadline that it is armed for; 0: not armed */
    struct list timers; /* struct timer by deadline, first come first among equals */
    struct list ready;  /* struct task by ready_link */
    struct list tasks;  /* every unfinished struct task by loop_link */
    bool running;
};

/* A programmer's error: says what is wrong on stderr and aborts, in every build type. */
_Noreturn void loop_die(const char *format, ...) PRINTF_LIKE(1, 2);

void loop_ready(struct loop *loop, struct link *ready_link); /* queues a task's next step */
void loop_drain(struct loop *loop);                          /* steps what is ready (task.c) */
void loop_check_finished(const struct loop *loop);           /* dies if a task is left (task.c) */

/* Takes an expectation back: what was pending will not come, and nobody is woken. */
void task_forget(struct task *task);

/* Calls fire(timer) at the deadline, on the loop's turn, in place of waking a task; restarts a
 * timer that is armed. timer_stop() stops it. */
void timer_call(struct loop *loop, struct timer *timer, void (*fire)(struct timer *timer),
                uint64_t delay_ms);
