/* loop/process with a child that talks: lines, answers, floods, stopping. */
#include "child.h"

static void test_lines(void **state)
{
    (void)state;
    struct child child = {.spec = {.argv = ARGV("lines", "3"), .lines = true}};
    run(&child);
    assert_string_equal(child.text, "line 0|line 1|line 2|");
    process_free(child.process);

    /* Pieces of lines, an empty line, a rest without its newline. */
    child =
        (struct child){.spec = {.argv = ARGV("partial", "one\n\nthree\nrest", "1"), .lines = true}};
    run(&child);
    assert_string_equal(child.text, "one||three|");
    assert_string_equal(OUTPUT(&child), "rest");
    process_free(child.process);

    /* Far more lines than output_max, taken as they come. */
    child = (struct child){
        .spec = {.argv = ARGV("lines", "100000"), .lines = true, .output_max = 4096}};
    run(&child);
    assert_int_equal(child.lines, 100000);
    assert_int_equal(process_outcome(child.process), PROCESS_EXITED);
    process_free(child.process);
}

enum { BUSY = 3000 }; /* more than a turn steps */

static enum task_result busy_step(struct probe *probe)
{
    const struct child *child = probe->context;
    return child->probe.task.finished ? TASK_DONE : TASK_AGAIN;
}

static void test_an_owner_that_waits_its_turn_is_not_flooded(void **state)
{
    (void)state;
    static struct probe busy[BUSY];
    struct child child = {
        .spec = {.argv = ARGV("lines", "5000"), .lines = true, .output_max = 200}};
    struct loop *loop = loop_new();
    for (int i = 0; i < BUSY; i++)
        probe_start(loop, &busy[i], NULL, "busy", busy_step, &child);
    probe_start(loop, &child.probe, NULL, "child", child_step, NULL);
    loop_run(loop);
    assert_int_equal(process_outcome(child.process), PROCESS_EXITED);
    assert_int_equal(child.lines, 5000);
    process_free(child.process);
    loop_free(loop);
}

/* Until the child has ended, and again between two of its lines: longer than whoever has a child's
 * pipe, and says nothing, is waited for. */
static enum task_result standstill_step(struct probe *probe)
{
    const struct child *child = probe->context;
    if (probe->steps == 1 || child->lines > 0)
        usleep(700000);
    return child->lines > 0 ? TASK_DONE : TASK_AGAIN;
}

/* What a child said before it ended is read, however late the loop is. */
static void test_the_end_of_a_child_is_read_late(void **state)
{
    (void)state;
    struct probe standstill;
    struct child child = {
        .spec = {.argv = ARGV("lines", "5000"), .lines = true, .output_max = 4096}};
    struct loop *loop = loop_new();
    probe_start(loop, &child.probe, NULL, "child", child_step, NULL);
    probe_start(loop, &standstill, NULL, "standstill", standstill_step, &child);
    loop_run(loop);
    assert_int_equal(process_outcome(child.process), PROCESS_EXITED);
    assert_int_equal(child.lines, 5000);
    process_free(child.process);
    loop_free(loop);
}

static void test_lines_are_answered(void **state)
{
    (void)state;
    /* `cat` says nothing until it is asked; the first request goes in by `input`-less start. */
    struct child child = {.spec = {.argv = ARGV("cat"), .lines = true, .timeout_ms = 60000},
                          .answer = "three\n"};
    child.spec.input = "one\n";
    child.spec.input_length = 4;
    struct loop *loop = loop_new();
    /* With `input` stdin closes after it: an answer is then refused. */
    child.answer = NULL;
    probe_start(loop, &child.probe, NULL, "child", child_step, NULL);
    loop_run(loop);
    assert_string_equal(child.text, "one|");
    struct err err = {0};
    assert_int_equal(process_write(child.process, "x", 1, &err), -1);
    assert_int_equal(err.code, ERR_CHILD);
    process_free(child.process);
    loop_free(loop);

    child = (struct child){
        .spec = {.argv = (const char *const[]){"/bin/sh", "-c", "echo hello; exec cat", NULL},
                 .lines = true},
        .answer = "two\nthree\n"};
    run(&child);
    assert_string_equal(child.text, "hello|two|three|");
    assert_int_equal(process_outcome(child.process), PROCESS_EXITED);
    process_free(child.process);
}

static void test_floods_of_lines(void **state)
{
    (void)state;
    struct child child = {.spec = {.argv = ARGV("flood", "1000000"),
                                   .lines = true,
                                   .output_max = 5000,
                                   .kill_after_ms = 50}};
    run(&child);
    assert_int_equal(process_outcome(child.process), PROCESS_FLOODED);
    assert_non_null(strstr(describe(&child), "longer than 5000 bytes"));
    process_free(child.process);

    child = (struct child){.spec = {.argv = ARGV("lines", "100000"),
                                    .lines = true,
                                    .output_max = 5000,
                                    .kill_after_ms = 50},
                           .deaf = true};
    run(&child);
    assert_int_equal(process_outcome(child.process), PROCESS_FLOODED);
    assert_string_equal(process_line(child.process), "line 0"); /* they can still be read */
    assert_string_equal(process_line(child.process), "line 1");
    process_free(child.process);
}

static void test_stop(void **state)
{
    (void)state;
    struct child child = {
        .spec = {.argv = ARGV("ignore-term", "600000"), .lines = true, .kill_after_ms = 20},
        .stop_at = 1};
    run(&child);
    assert_string_equal(child.text, "ready|");
    assert_int_equal(process_outcome(child.process), PROCESS_SIGNALED);
    assert_int_equal(process_status(child.process), SIGKILL);
    process_free(child.process);
}

static enum task_result overfill(struct probe *probe)
{
    static struct process *process;
    if (probe->steps == 1) {
        struct process_spec spec = {.argv = ARGV("sleep", "600000"), .lines = true};
        struct err err = {0};
        process = process_start(probe->task.loop, &probe->task, &spec, &err);
        assert_non_null(process);
        size_t chunk = 16 << 20;
        char *bytes = calloc(1, chunk);
        for (int i = 0; i < 4; i++)
            assert_int_equal(process_write(process, bytes, chunk, &err), 0);
        assert_int_equal(process_write(process, "x", 1, &err), -1);
        assert_int_equal(err.code, ERR_FULL);
        free(bytes);
        process_stop(process);
        return TASK_WAIT;
    }
    if (process_outcome(process) == PROCESS_RUNNING)
        return TASK_WAIT;
    process_free(process);
    return TASK_DONE;
}

static void test_input_has_a_bound(void **state)
{
    (void)state;
    struct loop *loop = loop_new();
    struct probe probe;
    probe_start(loop, &probe, NULL, "overfill", overfill, NULL);
    loop_run(loop);
    loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_an_owner_that_waits_its_turn_is_not_flooded),
        cmocka_unit_test(test_the_end_of_a_child_is_read_late),
        cmocka_unit_test(test_lines_are_answered),
        cmocka_unit_test(test_floods_of_lines),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_input_has_a_bound),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
