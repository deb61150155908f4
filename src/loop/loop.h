/* loop/loop: the one event loop of a process (libuv underneath), its timers and its signals.
 * Loop thread only. Nothing here calls upward: everything that ends wakes the task that owns it,
 * on a later turn. A loop that ends while a task is unfinished aborts with that task's name. */
#pragma once

#include "base/err.h"
#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct loop; /* opaque */
struct task;

struct loop *loop_new(void);       /* also ignores SIGPIPE and lets SIGCHLD be */
void loop_run(struct loop *loop);  /* returns when no task is left and no handle is open */
void loop_free(struct loop *loop); /* asserts that loop_run() has returned or never ran */

/* A timer wakes its owner once when it fires; while it is armed the owner has something to wait
 * for. Memory is the owner's and must stay put until fired or stopped. Zero-initialize it. */
struct timer {
    bool armed, fired; /* read by the owner */
    struct task *owner;
    uint64_t deadline_ns;
    struct link link;
    struct loop *loop;                 /* this and fire: for the files of src/loop alone */
    void (*fire)(struct timer *timer); /* called in place of the wake */
};
void timer_start(struct loop *loop, struct timer *timer, struct task *owner, uint64_t delay_ms);
void timer_stop(struct timer *timer); /* no wake comes after; harmless when not armed */

/* Counts deliveries of a signal and wakes the owner at each. Does not keep the loop alive, and is
 * nothing to wait for: a task needs something else pending. Stop it before loop_free(). */
struct signal_watch {
    unsigned count; /* deliveries so far; read by the owner */
    struct task *owner;
    void *handle;
};
int signal_watch_start(struct loop *loop, struct signal_watch *watch, struct task *owner,
                       int signal_number, struct err *err) MUST_USE;
void signal_watch_stop(struct signal_watch *watch);
