/* loop/loop: timers by an injected clock, signals, and work on the pool. */
#include "probe.h"

#include "base/clock.h"
#include "loop/work.h"

static uint64_t now_ns;

static uint64_t fake_now(void *context)
{
    (void)context;
    return now_ns;
}

/* --- timers --- */

struct alarm {
    struct probe probe;
    struct timer timer;
    uint64_t delay_ms;
};

static char rings[256];

static enum task_result alarm_step(struct probe *probe)
{
    struct alarm *alarm = (struct alarm *)probe;
    if (probe->steps == 1) {
        timer_start(probe->task.loop, &alarm->timer, &probe->task, alarm->delay_ms);
        assert_true(alarm->timer.armed);
        assert_int_equal(probe->task.pending, 1);
        return TASK_WAIT;
    }
    if (!alarm->timer.fired)
        return TASK_WAIT;
    assert_false(alarm->timer.armed);
    snprintf(rings + strlen(rings), sizeof rings - strlen(rings), "%s@%llu ", probe->task.id,
             (unsigned long long)(now_ns / 1000000));
    return TASK_DONE;
}

/* Moves the clock by a millisecond a step, so that time passes only when the test says so. */
static enum task_result clock_step(struct probe *probe)
{
    now_ns += 1000000;
    return now_ns / 1000000 >= *(uint64_t *)probe->context ? TASK_DONE : TASK_AGAIN;
}

static enum task_result turn_step(struct probe *probe)
{
    return probe->steps < 1000000 && *(bool *)probe->context ? TASK_AGAIN : TASK_DONE;
}

static void test_timers_fire_in_order_of_deadline(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t delay_ms;
    } given[] = {{"a", 5000}, {"b", 10}, {"c", 3000}, {"d", 10}, {"e", 0}, {"f", 4000}};
    enum { COUNT = sizeof given / sizeof given[0] };
    static struct alarm alarms[COUNT];
    clock_inject(fake_now, NULL);
    now_ns = 0;
    rings[0] = '\0';
    struct loop *loop = loop_new();
    for (size_t i = 0; i < COUNT; i++) {
        probe_start(loop, &alarms[i].probe, NULL, given[i].name, alarm_step, NULL);
        alarms[i].delay_ms = given[i].delay_ms;
    }
    uint64_t end_ms = 6000;
    struct probe ticker;
    probe_start(loop, &ticker, NULL, "clock", clock_step, &end_ms);
    loop_run(loop);
    clock_inject(NULL, NULL);
    /* A turn may take many steps, so only the order and "not before" are certain. */
    char names[16] = "", *rest = NULL;
    for (char *word = strtok_r(rings, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        strncat(names, word, 1);
        uint64_t at = strtoull(strchr(word, '@') + 1, NULL, 10);
        for (size_t i = 0; i < COUNT; i++) {
            if (given[i].name[0] == word[0])
                assert_true(at >= given[i].delay_ms);
        }
    }
    assert_string_equal(names, "ebdcfa");
    loop_free(loop);
}

struct juggler {
    struct probe probe;
    struct timer kept, dropped, never;
};

static enum task_result juggler_step(struct probe *probe)
{
    struct juggler *juggler = (struct juggler *)probe;
    struct loop *loop = probe->task.loop;
    switch (probe->steps) {
    case 1:
        timer_stop(&juggler->never); /* never started: harmless */
        timer_start(loop, &juggler->dropped, &probe->task, 1);
        timer_start(loop, &juggler->kept, &probe->task, 1000000);
        timer_start(loop, &juggler->kept, &probe->task, 2); /* again: still one */
        assert_int_equal(probe->task.pending, 2);
        timer_stop(&juggler->dropped);
        timer_stop(&juggler->dropped);
        assert_int_equal(probe->task.pending, 1);
        return TASK_WAIT;
    default:
        assert_true(juggler->kept.fired);
        assert_false(juggler->dropped.fired);
        timer_start(loop, &juggler->dropped, &probe->task, UINT64_MAX); /* never, by overflow */
        timer_stop(&juggler->dropped); /* and does not keep the loop alive */
        return TASK_DONE;
    }
}

static void test_stop_and_restart(void **state)
{
    (void)state;
    struct loop *loop = loop_new(); /* the real clock: 2 ms */
    static struct juggler juggler;
    probe_start(loop, &juggler.probe, NULL, "juggler", juggler_step, NULL);
    loop_run(loop);
    assert_int_equal(juggler.probe.steps, 2);
    loop_free(loop);
}

/* --- signals --- */

struct watcher {
    struct probe probe;
    struct signal_watch watch;
};

static enum task_result watcher_step(struct probe *probe)
{
    struct watcher *watcher = (struct watcher *)probe;
    if (probe->steps == 1) {
        struct err err;
        assert_int_equal(
            signal_watch_start(probe->task.loop, &watcher->watch, &probe->task, SIGUSR1, &err), 0);
        task_expect(&probe->task); /* a watch alone is nothing to wait for */
        raise(SIGUSR1);
        return TASK_WAIT;
    }
    if (watcher->watch.count == 1 && probe->number++ == 0) {
        raise(SIGUSR1);
        return TASK_WAIT;
    }
    if (watcher->watch.count < 2)
        return TASK_WAIT;
    signal_watch_stop(&watcher->watch);
    signal_watch_stop(&watcher->watch);
    task_complete(&probe->task);
    *(bool *)probe->context = false;
    return TASK_DONE;
}

static void test_signals_are_counted(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    static struct watcher watcher;
    bool turning = true;
    probe_start(loop, &watcher.probe, NULL, "watcher", watcher_step, &turning);
    struct probe turner; /* keeps the loop alive, which a watch does not */
    probe_start(loop, &turner, NULL, "turner", turn_step, &turning);
    loop_run(loop);
    assert_int_equal(watcher.watch.count, 2);
    loop_free(loop);

    loop = loop_new();
    struct probe probe = {.body = NULL};
    struct signal_watch watch = {0};
    struct err err = {0};
    task_start(loop, &probe.task, &probe_type, NULL, "p");
    assert_int_equal(signal_watch_start(loop, &watch, &probe.task, SIGKILL, &err), -1);
    assert_int_equal(err.code, ERR_ENVIRONMENT);
    assert_null(watch.handle);
    loop_free(loop);
}

static void open_watch_at_the_end(void)
{
    static struct signal_watch watch;
    struct loop *loop = loop_new();
    struct probe probe = {.body = NULL};
    struct err err;
    task_start(loop, &probe.task, &probe_type, NULL, "p");
    if (signal_watch_start(loop, &watch, &probe.task, SIGUSR2, &err) == 0)
        loop_free(loop);
}

static void test_a_handle_left_open_dies(void **state)
{
    (void)state;
    const char *words = dying_words(open_watch_at_the_end);
    assert_non_null(strstr(words, "open handle: signal"));
}

/* --- work --- */

enum { JOBS = 200 };

struct jobs {
    struct probe probe;
    struct work work[JOBS];
    int numbers[JOBS];
};

static void square(void *argument)
{
    int *number = argument;
    *number *= *number;
}

static enum task_result jobs_step(struct probe *probe)
{
    struct jobs *jobs = (struct jobs *)probe;
    if (probe->steps == 1) {
        for (int i = 0; i < JOBS; i++) {
            jobs->numbers[i] = i;
            work_start(probe->task.loop, &jobs->work[i], &probe->task, square, &jobs->numbers[i]);
            assert_true(jobs->work[i].active);
            assert_false(jobs->work[i].done);
        }
        assert_int_equal(probe->task.pending, JOBS);
    }
    if (probe->task.pending > 0)
        return TASK_WAIT;
    for (int i = 0; i < JOBS; i++) {
        assert_true(jobs->work[i].done);
        assert_false(jobs->work[i].active);
        assert_int_equal(jobs->numbers[i], i * i);
    }
    return TASK_DONE;
}

static void test_work_is_done_elsewhere(void **state)
{
    (void)state;
    static struct jobs jobs;
    struct loop *loop = loop_new();
    probe_start(loop, &jobs.probe, NULL, "jobs", jobs_step, NULL);
    loop_run(loop);
    assert_true(jobs.probe.task.finished);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timers_fire_in_order_of_deadline),
        cmocka_unit_test(test_stop_and_restart),
        cmocka_unit_test(test_signals_are_counted),
        cmocka_unit_test(test_a_handle_left_open_dies),
        cmocka_unit_test(test_work_is_done_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
