/* loop/process against tests/fakes/fake_child: one misbehaviour a case. */
#include "probe.h"

#include "base/buf.h"
#include "loop/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>

#define FAKE TEST_BINARY_DIR "/tests/fakes/fake_child"

struct child {
    struct probe probe;
    struct process_spec spec;
    struct process *process;
    struct err err;
    char text[4096]; /* what a `lines` child said, joined by '|' */
    int lines, stop_at;
    const char *answer; /* written after the first line */
    bool deaf;          /* never takes a line out */
};

static void take_lines(struct child *child)
{
    const char *line;
    while (!child->deaf && (line = process_line(child->process)) != NULL) {
        child->lines++;
        if (strlen(child->text) + strlen(line) + 2 < sizeof child->text) {
            strcat(child->text, line);
            strcat(child->text, "|");
        }
        if (child->lines == 1 && child->answer != NULL) {
            struct err err;
            assert_int_equal(
                process_write(child->process, child->answer, strlen(child->answer), &err), 0);
            process_close_input(child->process);
        }
        if (child->lines == child->stop_at)
            process_stop(child->process);
    }
}

static enum task_result child_step(struct probe *probe)
{
    struct child *child = (struct child *)probe;
    if (probe->steps == 1) {
        child->process = process_start(probe->task.loop, &probe->task, &child->spec, &child->err);
        if (child->process == NULL)
            return TASK_DONE;
        assert_true(process_pid(child->process) > 0);
        assert_int_equal(process_outcome(child->process), PROCESS_RUNNING);
        return TASK_WAIT;
    }
    if (child->spec.lines)
        take_lines(child);
    return process_outcome(child->process) == PROCESS_RUNNING ? TASK_WAIT : TASK_DONE;
}

static void run(struct child *child)
{
    int before = open_descriptors();
    struct loop *loop = loop_new();
    probe_start(loop, &child->probe, NULL, "child", child_step, NULL);
    loop_run(loop);
    loop_free(loop);
    assert_int_equal(open_descriptors(), before);
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child, not even a zombie */
    assert_int_equal(errno, ECHILD);
}

static const char *describe(const struct child *child)
{
    static char text[256];
    struct buf buf;
    buf_init(&buf, sizeof text - 1);
    process_describe(child->process, &buf);
    snprintf(text, sizeof text, "%s", buf_text(&buf));
    buf_free(&buf);
    return text;
}

static const char *output(const struct child *child)
{
    return process_output(child->process, NULL, NULL);
}

#define ARGV(...)                                                                                  \
    (const char *const[])                                                                          \
    {                                                                                              \
        FAKE, __VA_ARGS__, NULL                                                                    \
    }

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
        {"ignore-term", "60000", 200, PROCESS_TIMEOUT, SIGKILL, "stopped after 0.2 s"},
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

static void test_grandchild_holds_the_pipes(void **state)
{
    (void)state;
    struct child child = {.spec = {.argv = ARGV("hold", "600000"), .timeout_ms = 60000}};
    run(&child);
    assert_int_equal(process_outcome(child.process), PROCESS_EXITED);
    pid_t grandchild = (pid_t)atoi(output(&child));
    assert_true(grandchild > 1);
    process_free(child.process);
    /* Killed with its group; what is left is at most a zombie of whoever adopted it. */
    for (int i = 0; i < 200 && kill(grandchild, 0) == 0; i++) {
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
    assert_int_equal(kill(grandchild, 0), -1);
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
        assert_string_equal(output(&child), cases[i].expected);
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
    assert_string_equal(output(&child), "as 8589934592\nfsize 12345\ncpu 9\ncore 0\n");
    process_free(child.process);
    child = (struct child){.spec = {.argv = ARGV("limits"), .timeout_ms = 60000}};
    run(&child);
    assert_string_equal(output(&child), "as none\nfsize none\ncpu none\ncore 0\n");
    process_free(child.process);
    child = (struct child){.spec = {.argv = ARGV("spin"), .cpu_max_s = 1, .timeout_ms = 60000}};
    run(&child);
    assert_int_equal(process_outcome(child.process), PROCESS_SIGNALED);
    assert_string_equal(describe(&child), "killed by SIGXCPU");
    process_free(child.process);
}

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
    assert_string_equal(output(&child), "rest");
    process_free(child.process);

    /* Far more lines than output_max, taken as they come. */
    child = (struct child){
        .spec = {.argv = ARGV("lines", "100000"), .lines = true, .output_max = 4096}};
    run(&child);
    assert_int_equal(child.lines, 100000);
    assert_int_equal(process_outcome(child.process), PROCESS_EXITED);
    process_free(child.process);
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

/* libuv opens its signal pipe, which it keeps, with the first loop. */
static int warm_up(void **state)
{
    (void)state;
    loop_free(loop_new());
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_cannot_start),
        cmocka_unit_test(test_bad_descriptor),
        cmocka_unit_test(test_flood_is_cut_and_counted),
        cmocka_unit_test(test_input_is_written_whole),
        cmocka_unit_test(test_input_that_nobody_reads),
        cmocka_unit_test(test_grandchild_holds_the_pipes),
        cmocka_unit_test(test_what_a_child_inherits),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_lines_are_answered),
        cmocka_unit_test(test_floods_of_lines),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_input_has_a_bound),
        cmocka_unit_test(test_free_while_running_dies),
        cmocka_unit_test(test_dies_with_us),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
