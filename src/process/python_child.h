/* process/python_child: one long-lived trusted child behind two pipes that answers a line with a
 * line. Inside src/eval/reference. Blocking; worker's measuring thread. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct child {          /* zero-initialize */
    int pid;            /* 0: not running */
    int input, output;  /* ours: we write its stdin, we read its stdout */
    int errors;         /* a memfd that took its stderr */
    struct buf pending; /* what was read and not asked for yet */
    struct buf line;    /* the last line handed out */
};

/* `pass` become descriptors 3, 4, ... in the child, which has no others of ours. Dies with us. */
int child_start(struct child *child, const char *const *argv, const char *const *env,
                const int *pass, size_t pass_count, struct err *err) MUST_USE;

/* Writes all of it; ERR_CHILD where the child is gone. */
int child_send(struct child *child, const char *text, size_t length, struct err *err) MUST_USE;

/* Waits for a whole line; borrowed until the next call. ERR_TIMEOUT, or ERR_CHILD with how it ended
 * and the last line that it wrote to stderr: the child is gone after either. */
int child_line(struct child *child, uint64_t timeout_ms, const char **line,
               struct err *err) MUST_USE;

bool child_said(const struct child *child); /* child_line() would not wait, or hears of its end */
void child_pause(struct child *child);      /* SIGSTOP to the group, confirmed */
void child_resume(struct child *child);
void child_stop(struct child *child); /* KILL to the group, reaped; harmless when not running */
