/* A task for tests: one state, and a step function that the test gives. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "loop/loop.h"
#include "loop/task.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct probe {
    struct task task;
    enum task_result (*body)(struct probe *probe);
    void *context;
    int steps; /* how often body() was called */
    int number;
};

static inline enum task_result probe_step(struct task *task)
{
    struct probe *probe = (struct probe *)task;
    probe->steps++;
    return probe->body(probe);
}

static const char *const probe_states[] = {"probing"};
static const uint32_t probe_moves[] = {0};
static const struct task_type probe_type = {
    .name = "probe",
    .states = probe_states,
    .moves = probe_moves,
    .state_count = 1,
    .step = probe_step,
};

static inline void probe_start(struct loop *loop, struct probe *probe, struct task *parent,
                               const char *id, enum task_result (*body)(struct probe *),
                               void *context)
{
    *probe = (struct probe){.body = body, .context = context};
    task_start(loop, &probe->task, &probe_type, parent, id);
}

/* Runs `body` in a child process and returns what it wrote to stderr before it aborted; fails
 * where it did not abort. The text is static. */
static inline const char *dying_words(void (*body)(void))
{
    static char words[4096];
    int pipe_fds[2];
    assert_int_equal(pipe(pipe_fds), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(pipe_fds[1], 2);
        close(pipe_fds[0]);
        close(pipe_fds[1]);
        body();
        _exit(0);
    }
    close(pipe_fds[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(pipe_fds[0], words + length, sizeof words - 1 - length)) > 0)
        length += (size_t)got;
    words[length] = '\0';
    close(pipe_fds[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        fail_msg("did not abort (status %d), said: %s", status, words);
    return words;
}

/* How many descriptors this process has open. */
static inline int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        char link[64], target[256];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        count += readlink(link, target, sizeof target) >= 0;
    }
    return count;
}
