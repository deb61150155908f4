/* Virtual time for a loop: base/clock's injected source is what was skipped, and for one that runs
 * the real clock beside it. An idle handle sees every turn: where no task is ready, no work is on
 * the pool and a timer is armed, nothing can happen before its deadline, so the clock is put there.
 * What the program itself needs (its steps, its commits) takes its real time on a clock that runs,
 * and none on one that stands still. */
#include "night.h"

#include "base/clock.h"
#include "loop/loop.h"
#include "loop/private.h" /* it asks the loop what nobody else may: is there nothing to do? */
#include "loop/task.h"

#include <string.h>
#include <time.h>

static struct {
    struct loop *loop;
    uv_idle_t idle;
    struct task nudge; /* makes the loop look at its timers */
    uint64_t skipped_ns, started_ns, turned_ns;
    int turns;
    bool stands_still, ending;
} clockwork;

static uint64_t now_ns(void *context)
{
    (void)context;
    struct timespec now;
    if (clockwork.stands_still)
        return clockwork.skipped_ns;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + clockwork.skipped_ns;
}

/* Who looks again and again without waiting for anything would hold the night up for ever, and a
 * core in a real one. */
static void look_for_spinning(void)
{
    enum { TURNS_MOST = 1000000 };
    if (clockwork.skipped_ns != clockwork.turned_ns)
        clockwork.turns = 0;
    clockwork.turned_ns = clockwork.skipped_ns;
    if (clockwork.stands_still && clockwork.turns++ > TURNS_MOST)
        loop_die("%d turns of the loop, and no time has passed: a task spins", TURNS_MOST);
}

static void on_idle(uv_idle_t *idle)
{
    (void)idle;
    struct loop *loop = clockwork.loop;
    look_for_spinning();
    if (!list_empty(&loop->ready) || loop->uv.active_reqs.count > 0 || list_empty(&loop->timers))
        return;
    const struct timer *first = container_of(loop->timers.head.next, struct timer, link);
    uint64_t now = clock_now_ns();
    if (first->deadline_ns > now)
        clockwork.skipped_ns += first->deadline_ns - now;
    task_wake(&clockwork.nudge);
}

static enum task_result nudge_step(struct task *task)
{
    (void)task;
    return clockwork.ending ? TASK_DONE : TASK_WAIT;
}

void virtual_time_start(struct loop *loop, bool stands_still)
{
    static const char *const states[] = {"ticking"};
    static const uint32_t moves[] = {0};
    static const struct task_type type = {.name = "clockwork",
                                          .states = states,
                                          .moves = moves,
                                          .state_count = 1,
                                          .step = nudge_step};
    clockwork.stands_still = stands_still;
    clockwork.skipped_ns = 1; /* to some, a time of 0 is none */
    clock_inject(now_ns, NULL);
    clockwork.loop = loop;
    clockwork.started_ns = clock_now_ns();
    uv_idle_init(&loop->uv, &clockwork.idle);
    uv_idle_start(&clockwork.idle, on_idle);
    uv_unref((uv_handle_t *)&clockwork.idle);
    task_start(loop, &clockwork.nudge, &type, NULL, "clockwork");
    task_expect(&clockwork.nudge);
}

void virtual_time_end(void)
{
    clockwork.ending = true;
    uv_close((uv_handle_t *)&clockwork.idle, NULL);
    task_complete(&clockwork.nudge);
}

double virtual_ms(void)
{
    return clockwork.loop != NULL ? (double)(clock_now_ns() - clockwork.started_ns) / 1e6 : 0;
}
