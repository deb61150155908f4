/* A task that runs one child and reads its lines, for the tests of loop/process. */
#pragma once

#include "probe.h"

#include "base/buf.h"
#include "loop/process.h"

#include <errno.h>
#include <sys/resource.h>

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

static inline void take_lines(struct child *child)
{
    const char *line;
    while (!child->deaf && (line = process_line(child->process)) != NULL) {
        child->lines++;
        if (strlen(child->text) + strlen(line) + 2 < sizeof child->text) {
            strcat(child->text, line);
            strcat(child->text, "|");
        }
        if (child->lines == 1 && child->answer != NULL) {
            size_t length = strlen(child->answer);
            assert_int_equal(process_write(child->process, child->answer, length, NULL), 0);
            process_close_input(child->process);
        }
        if (child->lines == child->stop_at)
            process_stop(child->process);
    }
}

static inline enum task_result child_step(struct probe *probe)
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

static inline void run(struct child *child)
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

static inline const char *describe(const struct child *child)
{
    static char text[256];
    struct buf buf;
    buf_init(&buf, sizeof text - 1);
    process_describe(child->process, &buf);
    snprintf(text, sizeof text, "%s", buf_text(&buf));
    buf_free(&buf);
    return text;
}

/* clang-format off */
#define OUTPUT(child)  process_output((child)->process, NULL, NULL)
#define ARGV(...) (const char *const[]){FAKE, __VA_ARGS__, NULL}
/* clang-format on */

/* libuv opens its signal pipe, which it keeps, with the first loop. */
static inline int warm_up(void **state)
{
    struct rlimit core = {RLIM_INFINITY,
                          RLIM_INFINITY}; /* where we may: a child must not have it */
    (void)(setrlimit(RLIMIT_CORE, &core) + (state == NULL));
    loop_free(loop_new());
    return 0;
}
