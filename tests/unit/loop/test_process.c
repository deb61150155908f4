/* loop/process and process/spawn against tests/fakes/fake_child: one misbehaviour a case. */
#include "child.h"

#include "process/spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>

static void test_ends(void **state)
{
    (void)state;
    static const struct {
        const char *mode, *argument;
        uint64_t timeout_ms;
        enum process_outcome outcome;
        int status;
        const char *words;
    } cases[] = {
        {"exit", "0", 60000, PROCESS_EXITED, 0, "exited 0"},
        {"exit", "7", 60000, PROCESS_EXITED, 7, "exited 7"},
        {"raise", "11", 60000, PROCESS_SIGNALED, SIGSEGV, "killed by SIGSEGV"},
        {"raise", "9", 60000, PROCESS_SIGNALED, SIGKILL, "killed by SIGKILL"},
        {"sleep", "60000", 50, PROCESS_TIMEOUT, SIGTERM, "stopped after 0.1 s"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct child child = {.spec = {.argv = ARGV(cases[i].mode, cases[i].argument),
                                       .timeout_ms = cases[i].timeout_ms,
                                       .kill_after_ms = 50}};
        run(&child);
        assert_non_null(child.process);
        assert_int_equal(process_outcome(child.process), cases[i].outcome);
        assert_int_equal(process_status(child.process), cases[i].status);
        assert_int_equal(process_pid(child.process), 0);
        assert_string_equal(describe(&child), cases[i].words);
        process_free(child.process);
    }
}

/* One that was stopped before it could refuse to be is no such case: it has longer then. */
static void test_one_that_does_not_stop(void **state)
{
    (void)state;
    int status = SIGTERM;
    for (uint64_t timeout_ms = 100; status == SIGTERM; timeout_ms *= 2) {
        struct child child = {.spec = {.argv = ARGV("ignore-term", "600000"),
                                       .timeout_ms = timeout_ms,
                                       .kill_after_ms = 50}};
        run(&child);
        assert_int_equal(process_outcome(child.process), PROCESS_TIMEOUT);
        assert_memory_equal(describe(&child), "stopped after ", 14);
        status = process_status(child.process);
        process_free(child.process);
    }
    assert_int_equal(status, SIGKILL);
}

static void test_cannot_start(void **state)
{
    (void)state;
    static const struct {
        const char *program, *folder;
        enum err_code code;
        const char *words;
    } cases[] = {
        {"/nonexistent/program", NULL, ERR_ENVIRONMENT,
         "cannot run /nonexistent/program: No such file or directory"},
        {"/etc/passwd", NULL, ERR_ENVIRONMENT, "cannot run /etc/passwd: Permission denied"},
        {FAKE, "/nonexistent", ERR_ENVIRONMENT, "No such file or directory"},
        {NULL, NULL, ERR_USAGE, "without a program"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct child child = {.spec = {.argv = (const char *const[]){cases[i].program, NULL},
                                       .folder = cases[i].folder,
                                       .timeout_ms = 1000}};
        run(&child);
        assert_null(child.process);
        assert_int_equal(child.err.code, cases[i].code);
        assert_non_null(strstr(child.err.message, cases[i].words));
    }
    struct child child = {.spec = {.argv = ARGV("exit", "0")}};
    run(&child);
    assert_null(child.process);
    assert_int_equal(child.err.code, ERR_USAGE); /* no time limit */
}

static void test_bad_descriptor(void **state)
{
    (void)state;
    struct child child = {.spec = {.argv = ARGV("exit", "0"),
                                   .timeout_ms = 1000,
                                   .pass_fds = (const int[]){987},
                                   .pass_count = 1}};
    run(&child);
    assert_null(child.process);
    assert_int_equal(child.err.code, ERR_ENVIRONMENT);
    assert_non_null(strstr(child.err.message, "descriptors"));
}

static void test_flood_is_cut_and_counted(void **state)
{
    (void)state;
    for (int fd = 1; fd <= 2; fd++) {
        struct child child = {.spec = {.argv = ARGV("flood", "5200001", fd == 1 ? "1" : "2"),
                                       .timeout_ms = 60000,
                                       .output_max = 1001}};
        run(&child);
        size_t length;
        uint64_t dropped;
        const char *text =
            (fd == 1 ? process_output : process_errors)(child.process, &length, &dropped);
        assert_int_equal(process_outcome(child.process), PROCESS_EXITED);
        assert_int_equal(length, 1001);
        assert_int_equal(dropped, 5200001 - 1001);
        assert_int_equal(strlen(text), 1001);
        for (size_t i = 0; i < 500; i++)
            assert_int_equal(text[i], 'a' + (int)(i % 26));
        /* The fake repeats whole chunks of 26 x 256 bytes, so the phase is the position's. */
        for (size_t i = 0; i < 501; i++)
            assert_int_equal(text[500 + i], 'a' + (int)((5200001 - 501 + i) % 26));
        process_free(child.process);
    }
}

static void test_input_is_written_whole(void **state)
{
    (void)state;
    size_t length = 3 << 20;
    char *input = malloc(length);
    for (size_t i = 0; i < length; i++)
        input[i] = (char)('A' + i * 7 % 26);
    struct child child = {.spec = {.argv = ARGV("cat"),
                                   .input = input,
                                   .input_length = length,
                                   .timeout_ms = 60000,
                                   .output_max = length}};
    run(&child);
    size_t got;
    uint64_t dropped;
    const char *text = process_output(child.process, &got, &dropped);
    assert_int_equal(got, length);
    assert_int_equal(dropped, 0);
    assert_memory_equal(text, input, length);
    process_free(child.process);
    free(input);
}

static void test_input_that_nobody_reads(void **state)
{
    (void)state;
    char *input = calloc(1, 1 << 20);
    struct child child = {.spec = {.argv = ARGV("close-input", "50"),
                                   .input = input,
                                   .input_length = 1 << 20,
                                   .timeout_ms = 60000}};
    run(&child);
    assert_int_equal(process_outcome(child.process), PROCESS_EXITED);
    assert_int_equal(process_status(child.process), 0);
    process_free(child.process);
    free(input);
}

/* Killed with its group: however late that is, it ends, and does not sleep its ten minutes; what is
 * left is at most a zombie of whoever adopted it. */
static void assert_ended(pid_t grandchild)
{
    assert_true(grandchild > 1);
    while (kill(grandchild, 0) == 0) {
        char path[64], line[512];
        snprintf(path, sizeof path, "/proc/%d/stat", (int)grandchild);
        FILE *stat = fopen(path, "r");
        if (stat == NULL)
            return;
        const char *got = fgets(line, sizeof line, stat);
        fclose(stat);
        if (got == NULL || strstr(line, ") Z ") != NULL || strstr(line, ") X ") != NULL)
            return;
        usleep(10000);
    }
}

static void test_grandchild_holds_the_pipes(void **state)
{
    (void)state;
    struct child child = {.spec = {.argv = ARGV("hold", "600000"), .timeout_ms = 60000}};
    run(&child);
    assert_int_equal(process_outcome(child.process), PROCESS_EXITED);
    pid_t grandchild = (pid_t)atoi(OUTPUT(&child));
    process_free(child.process);
    assert_ended(grandchild);
}

static void test_what_a_child_inherits(void **state)
{
    (void)state;
    setenv("TWAGENT_TEST_SECRET", "hush", 1);
    int leak = open("/dev/null", O_RDONLY); /* not close-on-exec */
    assert_true(leak >= 3);
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    assert_int_equal(write(pipe_fds[1], "passed", 6), 6);
    const int pass[] = {pipe_fds[0], 1};
    const struct {
        const char *mode, *argument;
        const char *const *env;
        const char *folder;
        size_t pass_count;
        const char *expected;
    } cases[] = {
        {"fds", NULL, NULL, NULL, 0, "0 1 2 "},
        {"fds", NULL, NULL, NULL, 2, "0 1 2 3 4 "},
        {"read-fd", "3", NULL, NULL, 2, "passed"},
        {"env", NULL, NULL, NULL, 0, ""},
        {"env", NULL, (const char *const[]){"A=1", "B=2", NULL}, NULL, 0, "A=1\nB=2\n"},
        {"folder", NULL, NULL, NULL, 0, "/"},
        {"folder", NULL, NULL, "/proc", 0, "/proc"},
        {"signals", NULL, NULL, NULL, 0, "0000000000000000\n0000000000000000\n"},
        {"group", NULL, NULL, NULL, 0, "own group"},
        {"cat", NULL, NULL, NULL, 0, ""}, /* stdin is at its end */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct child child = {.spec = {.argv = ARGV(cases[i].mode, cases[i].argument),
                                       .env = cases[i].env,
                                       .folder = cases[i].folder,
                                       .pass_fds = pass,
                                       .pass_count = cases[i].pass_count,
                                       .timeout_ms = 60000}};
        run(&child);
        assert_string_equal(OUTPUT(&child), cases[i].expected);
        process_free(child.process);
    }
    close(leak);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void test_limits(void **state)
{
    (void)state;
    struct child child = {.spec = {.argv = ARGV("limits"),
                                   .memory_max_bytes = UINT64_C(1) << 33,
                                   .file_max_bytes = 12345,
                                   .cpu_max_s = 9,
                                   .timeout_ms = 60000}};
    run(&child);
    assert_string_equal(OUTPUT(&child), "as 8589934592\nfsize 12345\ncpu 9\ncore 0\n");
    process_free(child.process);
    child = (struct child){.spec = {.argv = ARGV("limits"), .timeout_ms = 60000}};
    run(&child);
    assert_string_equal(OUTPUT(&child), "as none\nfsize none\ncpu none\ncore 0\n");
    process_free(child.process);
    child = (struct child){.spec = {.argv = ARGV("spin"), .cpu_max_s = 1, .timeout_ms = 600000}};
    run(&child);
    assert_int_equal(process_outcome(child.process), PROCESS_SIGNALED);
    assert_string_equal(describe(&child), "killed by SIGXCPU");
    process_free(child.process);
}

static void test_blocking(void **state)
{
    (void)state;
    static const struct {
        const char *const argv[4];
        uint64_t timeout_ms;
        int exit_code, status;
        enum err_code code;
        const char *words;
    } cases[] = {
        {{FAKE, "exit", "0"}, 60000, 0, 0, ERR_NONE, ""},
        {{FAKE, "exit", "7"}, 60000, 7, 0, ERR_NONE, ""},
        {{FAKE, "exit", "7"}, 60000, 0, -1, ERR_CHILD, "it exited 7"},
        {{FAKE, "raise", "11"}, 60000, 0, 11, ERR_CHILD, "it was killed by signal 11"},
        {{FAKE, "ignore-term", "600000"}, 50, 0, -1, ERR_TIMEOUT, "it took too long"},
        {{"/bin/sh", "-c", "exec >&- 2>&-; exec sleep 600"}, 50, 0, -1, ERR_TIMEOUT, "too long"},
        {{FAKE, "flood", "1000000"}, 60000, 0, 0, ERR_NONE, ""},
        {{FAKE, "exit", "0"}, 0, 0, -1, ERR_USAGE, "without a time limit"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct spawn_spec spec = {.argv = cases[i].argv, .name = "it"};
        struct err err = {0};
        struct buf out, errors;
        buf_init(&out, 100);
        buf_init(&errors, 100);
        int status = spawn_run(&spec, cases[i].timeout_ms, cases[i].exit_code, &out, &errors, &err);
        assert_int_equal(status, cases[i].status);
        assert_int_equal(err.code, cases[i].code);
        assert_non_null(strstr(err.message, cases[i].words));
        assert_true(out.length <= 100);
        buf_free(&out);
        buf_free(&errors);
    }
    struct buf out;
    struct err err;
    buf_init(&out, 100);
    const struct spawn_spec hold = {.argv = ARGV("hold", "600000")};
    assert_int_equal(spawn_run(&hold, 60000, 0, &out, NULL, &err), 0);
    assert_ended((pid_t)atoi(buf_text(&out)));
    buf_free(&out);
}

static enum task_result start_and_hang(struct probe *probe)
{
    if (probe->steps == 1) {
        struct process_spec spec = {.argv = ARGV("sleep", "600000"), .timeout_ms = 600000};
        struct err err = {0};
        struct process *process = process_start(probe->task.loop, &probe->task, &spec, &err);
        if (process == NULL)
            _exit(1);
        int pid = process_pid(process);
        if (write(*(int *)probe->context, &pid, sizeof pid) != (ssize_t)sizeof pid)
            _exit(1);
    }
    return TASK_WAIT;
}

static void test_dies_with_us(void **state)
{
    (void)state;
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* so that the orphan is ours to wait for */
    pid_t parent = fork();
    if (parent == 0) {
        struct loop *loop = loop_new();
        struct probe probe;
        probe_start(loop, &probe, NULL, "hang", start_and_hang, &pipe_fds[1]);
        loop_run(loop);
        _exit(0);
    }
    int pid = 0, status = 0;
    assert_int_equal(read(pipe_fds[0], &pid, sizeof pid), sizeof pid);
    kill(parent, SIGKILL);
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

static void free_running(void)
{
    struct loop *loop = loop_new();
    struct probe probe = {.body = start_and_hang};
    task_start(loop, &probe.task, &probe_type, NULL, "x");
    struct process_spec spec = {.argv = ARGV("sleep", "600000"), .timeout_ms = 600000};
    struct err err;
    process_free(process_start(loop, &probe.task, &spec, &err));
}

static void test_free_while_running_dies(void **state)
{
    (void)state;
    assert_non_null(strstr(dying_words(free_running), "which is running"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_one_that_does_not_stop),
        cmocka_unit_test(test_cannot_start),
        cmocka_unit_test(test_bad_descriptor),
        cmocka_unit_test(test_flood_is_cut_and_counted),
        cmocka_unit_test(test_input_is_written_whole),
        cmocka_unit_test(test_input_that_nobody_reads),
        cmocka_unit_test(test_grandchild_holds_the_pipes),
        cmocka_unit_test(test_what_a_child_inherits),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_blocking),
        cmocka_unit_test(test_free_while_running_dies),
        cmocka_unit_test(test_dies_with_us),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
