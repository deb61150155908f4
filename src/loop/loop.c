/* loop/loop: one uv_idle drains the ready tasks, one uv_timer serves every deadline.
 *
 * The idle handle is active while a task is ready, so libuv polls without sleeping between two
 * drains and I/O is never starved. Deadlines are compared with clock_now_ns(), not with libuv's
 * clock: an early wake of the uv_timer is armed again, and a test that injects a clock sees its
 * timers fire on the next turn after it moved the clock. */
#include "loop/loop.h"

#include "base/clock.h"
#include "base/mem.h"
#include "loop/private.h"
#include "loop/task.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define NS_PER_MS UINT64_C(1000000)

_Noreturn void loop_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("twagent: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

static void fire_timers(struct loop *loop);

static void on_turn(uv_idle_t *idle)
{
    struct loop *loop = idle->data;
    fire_timers(loop);
    loop_drain(loop);
    if (list_empty(&loop->ready))
        uv_idle_stop(&loop->turn);
}

struct loop *loop_new(void)
{
    struct loop *loop = MEM_NEW(struct loop);
    list_init(&loop->timers);
    list_init(&loop->ready);
    list_init(&loop->tasks);
    int status = uv_loop_init(&loop->uv);
    if (status != 0)
        loop_die("cannot make an event loop: %s", uv_strerror(status));
    uv_idle_init(&loop->uv, &loop->turn);
    uv_timer_init(&loop->uv, &loop->alarm);
    loop->uv.data = loop->turn.data = loop->alarm.data = loop;
    /* A peer or a child that goes away is an error of write(), not the end of the process. */
    signal(SIGPIPE, SIG_IGN);
    /* Ignored by whoever started us, it would reap our children before we read their status. */
    signal(SIGCHLD, SIG_DFL);
    return loop;
}

void loop_run(struct loop *loop)
{
    assert(!loop->running);
    loop->running = true;
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    loop->running = false;
    loop_check_finished(loop);
}

static void report_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle))
        fprintf(stderr, "twagent: open handle: %s\n", uv_handle_type_name(handle->type));
}

void loop_free(struct loop *loop)
{
    if (loop == NULL)
        return;
    assert(!loop->running);
    uv_close((uv_handle_t *)&loop->turn, NULL);
    uv_close((uv_handle_t *)&loop->alarm, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT); /* only closing handles are left */
    if (uv_loop_close(&loop->uv) != 0) {
        uv_walk(&loop->uv, report_handle, NULL);
        loop_die("loop_free() while a handle is open");
    }
    mem_free(loop);
}

void loop_ready(struct loop *loop, struct link *ready_link)
{
    if (list_empty(&loop->ready))
        uv_idle_start(&loop->turn, on_turn);
    list_append(&loop->ready, ready_link);
}

/* --- timers --- */

static void arm(struct loop *loop);

static void on_alarm(uv_timer_t *alarm)
{
    struct loop *loop = alarm->data;
    loop->alarm_ns = 0;
    fire_timers(loop);
}

/* Brings the uv_timer in line with the first deadline. One that is armed too early is left alone:
 * it finds nothing due and comes back here. */
static void arm(struct loop *loop)
{
    if (list_empty(&loop->timers)) {
        uv_timer_stop(&loop->alarm); /* an armed one would keep the loop alive */
        loop->alarm_ns = 0;
        return;
    }
    struct timer *first = container_of(loop->timers.head.next, struct timer, link);
    if (loop->alarm_ns != 0 && loop->alarm_ns <= first->deadline_ns)
        return;
    uint64_t now = clock_now_ns();
    uint64_t left = first->deadline_ns > now ? first->deadline_ns - now : 0;
    uv_update_time(&loop->uv);
    uv_timer_start(&loop->alarm, on_alarm, left / NS_PER_MS + (left % NS_PER_MS != 0), 0);
    loop->alarm_ns = first->deadline_ns > 0 ? first->deadline_ns : 1;
}

static void fire_timers(struct loop *loop)
{
    if (list_empty(&loop->timers))
        return;
    uint64_t now = clock_now_ns();
    struct list due; /* apart, so that a timer started with no delay meanwhile waits its turn */
    list_init(&due);
    list_each_safe (link, &loop->timers) {
        struct timer *timer = container_of(link, struct timer, link);
        if (timer->deadline_ns > now)
            break;
        list_remove(link);
        list_append(&due, link);
    }
    for (struct link *link = list_pop(&due); link != NULL; link = list_pop(&due)) {
        struct timer *timer = container_of(link, struct timer, link);
        timer->armed = false;
        timer->fired = true;
        if (timer->fire != NULL)
            timer->fire(timer);
        else
            task_complete(timer->owner);
    }
    arm(loop);
}

/* From the tail, since a new deadline is mostly the latest. */
static void insert(struct loop *loop, struct timer *timer, uint64_t delay_ms)
{
    uint64_t now = clock_now_ns();
    uint64_t delay_ns = delay_ms < UINT64_MAX / NS_PER_MS ? delay_ms * NS_PER_MS : UINT64_MAX;
    timer->loop = loop;
    timer->deadline_ns = delay_ns < UINT64_MAX - now ? now + delay_ns : UINT64_MAX;
    timer->armed = true;
    timer->fired = false;
    struct link *before = loop->timers.head.previous;
    while (before != &loop->timers.head &&
           container_of(before, struct timer, link)->deadline_ns > timer->deadline_ns)
        before = before->previous;
    timer->link.previous = before;
    timer->link.next = before->next;
    before->next->previous = &timer->link;
    before->next = &timer->link;
    arm(loop);
}

void timer_start(struct loop *loop, struct timer *timer, struct task *owner, uint64_t delay_ms)
{
    timer_stop(timer);
    timer->owner = owner;
    timer->fire = NULL;
    task_expect(owner);
    insert(loop, timer, delay_ms);
}

void timer_call(struct loop *loop, struct timer *timer, void (*fire)(struct timer *timer),
                uint64_t delay_ms)
{
    timer_stop(timer);
    timer->fire = fire;
    insert(loop, timer, delay_ms);
}

void timer_stop(struct timer *timer)
{
    if (!timer->armed)
        return;
    timer->armed = false;
    list_remove(&timer->link);
    if (timer->fire == NULL)
        task_forget(timer->owner);
    if (list_empty(&timer->loop->timers))
        arm(timer->loop);
}

/* --- signals --- */

static void on_signal(uv_signal_t *handle, int signal_number)
{
    (void)signal_number;
    struct signal_watch *watch = handle->data;
    watch->count++;
    task_wake(watch->owner);
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

int signal_watch_start(struct loop *loop, struct signal_watch *watch, struct task *owner,
                       int signal_number, struct err *err)
{
    assert(watch->handle == NULL);
    uv_signal_t *handle = MEM_NEW(uv_signal_t);
    uv_signal_init(&loop->uv, handle);
    handle->data = watch;
    int status = uv_signal_start(handle, on_signal, signal_number);
    if (status != 0) {
        uv_close((uv_handle_t *)handle, free_handle);
        return err_set(err, ERR_ENVIRONMENT, "cannot watch signal %d: %s", signal_number,
                       uv_strerror(status));
    }
    uv_unref((uv_handle_t *)handle);
    watch->count = 0;
    watch->owner = owner;
    watch->handle = handle;
    return 0;
}

void signal_watch_stop(struct signal_watch *watch)
{
    if (watch->handle == NULL)
        return;
    uv_close(watch->handle, free_handle);
    watch->handle = NULL;
}
