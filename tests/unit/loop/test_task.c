/* loop/task: moves, steps, wakes, parents, and a million completions on a small stack. */
#include "probe.h"

#include <pthread.h>

/* --- a machine of three states --- */

enum { IDLE, WORKING, OVER };
static const char *const states[] = {"idle", "working", "over"};
static const uint32_t moves[] = {[IDLE] = 1 << WORKING, [WORKING] = 1 << OVER | 1 << WORKING};
static char trace[256];

static void moved(struct task *task, int from, int to)
{
    (void)task;
    snprintf(trace + strlen(trace), sizeof trace - strlen(trace), "%s>%s ", states[from],
             states[to]);
}

static enum task_result machine_step(struct task *task)
{
    if (task->state == OVER)
        return TASK_DONE;
    task_move(task, task->state + 1);
    return TASK_AGAIN;
}

static const struct task_type machine = {.name = "machine",
                                         .states = states,
                                         .moves = moves,
                                         .state_count = 3,
                                         .step = machine_step,
                                         .moved = moved};

static void test_moves_are_events(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    struct task task;
    trace[0] = '\0';
    task_start(loop, &task, &machine, NULL, "m1");
    assert_string_equal(task_state_name(&task), "idle");
    loop_run(loop);
    assert_true(task.finished);
    assert_string_equal(trace, "idle>working working>over ");
    assert_string_equal(task_state_name(&task), "over");
    loop_free(loop);
}

/* --- what aborts, and what it says --- */

static void move_not_allowed(void)
{
    struct task task;
    task_start(loop_new(), &task, &machine, NULL, "m2");
    task_move(&task, OVER);
}

static void move_out_of_range(void)
{
    struct task task;
    task_start(loop_new(), &task, &machine, NULL, "m2");
    task_move(&task, 3);
}

static enum task_result wait_step(struct probe *probe)
{
    (void)probe;
    return TASK_WAIT;
}

static void run_one(enum task_result (*body)(struct probe *))
{
    struct loop *loop = loop_new();
    struct probe probe;
    probe_start(loop, &probe, NULL, "p7", body, NULL);
    loop_run(loop);
}

static void waits_for_nothing(void)
{
    run_one(wait_step);
}

static enum task_result expect_step(struct probe *probe)
{
    if (probe->steps == 1)
        task_expect(&probe->task);
    return TASK_WAIT;
}

static void never_completed(void)
{
    run_one(expect_step);
}

static enum task_result done_too_early(struct probe *probe)
{
    task_expect(&probe->task);
    return TASK_DONE;
}

static void done_with_completions_outstanding(void)
{
    run_one(done_too_early);
}

static enum task_result complete_too_often(struct probe *probe)
{
    task_complete(&probe->task);
    return TASK_WAIT;
}

static void completed_too_often(void)
{
    run_one(complete_too_often);
}

static enum task_result bad_result(struct probe *probe)
{
    (void)probe;
    return (enum task_result)77;
}

static void result_out_of_range(void)
{
    run_one(bad_result);
}

static void test_programmers_errors_abort_by_name(void **state)
{
    (void)state;
    static const struct {
        void (*body)(void);
        const char *words;
    } cases[] = {
        {move_not_allowed, "machine m2: the move from idle to over is not allowed"},
        {move_out_of_range, "machine m2: no state 3"},
        {waits_for_nothing, "probe p7: waits for nothing in state probing"},
        {never_completed, "the loop ended while probe p7 is unfinished in state probing"},
        {done_with_completions_outstanding, "probe p7: done in state probing with 1 completions"},
        {completed_too_often, "probe p7: more completions than were expected"},
        {result_out_of_range, "probe p7: step() returned no task_result"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *words = dying_words(cases[i].body);
        if (strstr(words, cases[i].words) == NULL)
            fail_msg("expected: %s\ngot: %s", cases[i].words, words);
    }
}

/* --- wakes --- */

static enum task_result wake_self(struct probe *probe)
{
    static bool stepping;
    assert_false(stepping); /* never from inside itself */
    stepping = true;
    task_wake(&probe->task);
    task_wake(&probe->task);
    stepping = false;
    return probe->steps == 5 ? TASK_DONE : TASK_WAIT;
}

static void test_wakes_are_idempotent_until_stepped(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    struct probe probe;
    probe_start(loop, &probe, NULL, "p", wake_self, NULL);
    loop_run(loop);
    assert_int_equal(probe.steps, 5);
    task_wake(&probe.task); /* after the end: nothing */
    loop_run(loop);
    assert_int_equal(probe.steps, 5);
    loop_free(loop);
}

static enum task_result until_cancelled(struct probe *probe)
{
    if (probe->task.cancel_requested) {
        task_complete(&probe->task); /* what it waited for is over too */
        return TASK_DONE;
    }
    task_expect(&probe->task);
    return TASK_WAIT;
}

static enum task_result canceller(struct probe *probe)
{
    task_cancel(probe->context);
    task_cancel(probe->context);
    return TASK_DONE;
}

static void test_cancel(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    struct probe victim, other;
    probe_start(loop, &victim, NULL, "victim", until_cancelled, NULL);
    probe_start(loop, &other, NULL, "other", canceller, &victim.task);
    loop_run(loop);
    assert_true(victim.task.finished);
    assert_int_equal(victim.steps, 2);
    loop_free(loop);
}

static char order[64];

static enum task_result note_twice(struct probe *probe)
{
    size_t length = strlen(order);
    order[length] = probe->task.id[0];
    order[length + 1] = 0;
    return probe->steps == 2 ? TASK_DONE : TASK_AGAIN;
}

static void test_again_comes_after_the_others(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    struct probe probes[3];
    order[0] = '\0';
    for (int i = 0; i < 3; i++)
        probe_start(loop, &probes[i], NULL, (const char *const[]){"a", "b", "c"}[i], note_twice,
                    NULL);
    loop_run(loop);
    assert_string_equal(order, "abcabc");
    loop_free(loop);
}

static enum task_result child_step(struct probe *probe)
{
    return probe->steps < 3 ? TASK_AGAIN : TASK_DONE;
}

static enum task_result parent_step(struct probe *probe)
{
    struct probe **children = probe->context;
    if (probe->steps == 1) {
        for (int i = 0; i < 3; i++) {
            children[i] = calloc(1, sizeof *children[i]);
            probe_start(probe->task.loop, children[i], &probe->task, "child", child_step, NULL);
        }
        assert_int_equal(probe->task.pending, 3);
    }
    for (int i = 0; i < 3; i++) {
        if (children[i] != NULL && children[i]->task.finished) {
            free(children[i]); /* its memory is the parent's from then on */
            children[i] = NULL;
        }
    }
    return probe->task.pending == 0 ? TASK_DONE : TASK_WAIT;
}

static void test_parents_wait_for_children(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    struct probe *children[3] = {0}, parent;
    probe_start(loop, &parent, NULL, "parent", parent_step, children);
    loop_run(loop);
    assert_true(parent.task.finished);
    assert_null(children[0]);
    assert_null(children[2]);
    loop_free(loop);
}

static void test_a_loop_that_never_ran(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    struct probe probe;
    probe_start(loop, &probe, NULL, "p", wait_step, NULL);
    loop_free(loop);
    loop_free(NULL);
    loop = loop_new();
    loop_run(loop); /* nothing to do */
    loop_free(loop);
}

/* --- a million completions, all ready at once, on a stack of 256 KiB --- */

enum { TASKS = 100000, COMPLETIONS = 1000000, STACK_BYTES = 256 << 10, RESERVE = 96 << 10 };

static struct probe *crowd;
static char *stack_low; /* the lowest address of a local that a step saw */
static long steps_taken;

static void note_stack(void)
{
    char here;
    char *volatile address = &here;
    if (stack_low == NULL || address < stack_low)
        stack_low = address;
}

/* Each wakes the next in the ring, which is where recursion would come from. */
static enum task_result ring_step(struct probe *probe)
{
    note_stack();
    steps_taken++;
    struct probe *next = &crowd[(probe->number + 1) % TASKS];
    task_wake(&next->task);
    if (probe->steps == COMPLETIONS / TASKS)
        return TASK_DONE;
    return TASK_AGAIN;
}

static enum task_result sink_step(struct probe *probe)
{
    note_stack();
    if (probe->steps == 1) {
        for (int i = 0; i < COMPLETIONS; i++)
            task_expect(&probe->task);
        return TASK_WAIT;
    }
    return probe->task.pending == 0 ? TASK_DONE : TASK_WAIT;
}

static enum task_result source_step(struct probe *probe)
{
    note_stack();
    for (int i = 0; i < COMPLETIONS; i++)
        task_complete(probe->context);
    return TASK_DONE;
}

/* A chain in which the end of each ends its parent: 100,000 deep. */
static enum task_result chain_step(struct probe *probe)
{
    note_stack();
    int next = probe->number + 1;
    if (probe->steps == 1 && next < TASKS) {
        probe_start(probe->task.loop, &crowd[next], &probe->task, "chain", chain_step, NULL);
        crowd[next].number = next;
        return TASK_WAIT;
    }
    return TASK_DONE;
}

static void *crowd_thread(void *argument)
{
    (void)argument;
    char *top = NULL;
    struct loop *loop = loop_new();
    note_stack();
    top = stack_low;
    for (int i = 0; i < TASKS; i++) {
        probe_start(loop, &crowd[i], NULL, "ring", ring_step, NULL);
        crowd[i].number = i;
    }
    loop_run(loop);

    static struct probe sink, source;
    probe_start(loop, &sink, NULL, "sink", sink_step, NULL);
    probe_start(loop, &source, NULL, "source", source_step, &sink.task);
    loop_run(loop);

    probe_start(loop, &crowd[0], NULL, "chain", chain_step, NULL);
    loop_run(loop);
    loop_free(loop);
    return (void *)(top - stack_low);
}

static void test_a_million_completions_grow_no_stack(void **state)
{
    (void)state;
    crowd = calloc(TASKS, sizeof *crowd);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    pthread_t thread;
    void *depth;
    assert_int_equal(pthread_create(&thread, &attributes, crowd_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, &depth), 0);
    pthread_attr_destroy(&attributes);
    assert_true(steps_taken >= COMPLETIONS);
    for (int i = 0; i < TASKS; i++)
        assert_true(crowd[i].task.finished);
    assert_in_range((size_t)depth, 0, RESERVE); /* what libuv's poll needs, once */
    free(crowd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves_are_events),
        cmocka_unit_test(test_programmers_errors_abort_by_name),
        cmocka_unit_test(test_wakes_are_idempotent_until_stepped),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_again_comes_after_the_others),
        cmocka_unit_test(test_parents_wait_for_children),
        cmocka_unit_test(test_a_loop_that_never_ran),
        cmocka_unit_test(test_a_million_completions_grow_no_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
