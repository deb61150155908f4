/* loop/process: run one child, bounded in time, memory and output.
 * Loop thread only. The owner is woken on a later turn: at the end, and, for a child that talks
 * (`lines`), at every complete line. Done means exited AND both pipes at their end, with a bounded
 * drain since a grandchild may hold them; what is in them is read, however late the loop is. A
 * child gets its own process group; at the deadline the group gets TERM, then KILL. It inherits
 * only the descriptors named here, and dies with us (with the thread that runs the loop). What is
 * left of the group at the end is killed. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct task;
struct process; /* opaque */

struct process_spec {        /* borrowed until process_start() returns */
    const char *const *argv; /* NULL-terminated; argv[0] is a path */
    const char *const *env;  /* NULL: an empty environment, never ours */
    const char *folder;      /* working directory; NULL: "/" */
    const char *input;       /* written to stdin, then closed; NULL with lines: stays open */
    size_t input_length;
    uint64_t timeout_ms;       /* 0 is refused unless `lines`: every child has a limit */
    uint64_t kill_after_ms;    /* from TERM to KILL; 0: 500 */
    size_t output_max;         /* bytes kept of each stream, half head, half tail; 0: 1 MiB */
    uint64_t memory_max_bytes; /* RLIMIT_AS; 0: none */
    uint64_t file_max_bytes;   /* RLIMIT_FSIZE; 0: none */
    uint64_t cpu_max_s;        /* RLIMIT_CPU; 0: none */
    bool lines;                /* stdout is a stream of lines for process_line() */
    const int *pass_fds;       /* become 3, 4, ... in the child; NULL: none */
    size_t pass_count;
};

enum process_outcome {
    PROCESS_RUNNING,
    PROCESS_EXITED,   /* status holds the exit code */
    PROCESS_SIGNALED, /* status holds the signal's number */
    PROCESS_TIMEOUT,  /* our deadline; TERM or KILL ended it */
    PROCESS_FLOODED   /* a line of output_max bytes, or that many bytes of lines left unread */
};

/* NULL with *err where the child could not be started (then nothing is pending). */
struct process *process_start(struct loop *loop, struct task *owner,
                              const struct process_spec *spec, struct err *err);

enum process_outcome process_outcome(const struct process *process);
int process_status(const struct process *process);
int process_pid(const struct process *process); /* 0 once reaped */
/* What was kept: the first output_max / 2 bytes, then, where some were dropped, the last ones. Of a
 * `lines` child, process_output() is what was not read as a line. Borrowed until the next turn. */
const char *process_output(const struct process *process, size_t *length, uint64_t *dropped);
const char *process_errors(const struct process *process, size_t *length, uint64_t *dropped);

/* The next complete line without its newline, or NULL; borrowed until the next call. */
const char *process_line(struct process *process);
/* Queues bytes for stdin (a `lines` child); ERR_CHILD once it is gone, ERR_FULL past 64 MiB. */
int process_write(struct process *process, const void *bytes, size_t length,
                  struct err *err) MUST_USE;
void process_close_input(struct process *process);

void process_stop(struct process *process); /* TERM now, KILL later; the end comes as always */
void process_free(struct process *process); /* only when not running; NULL is fine */

/* One line for people: "exited 1", "killed by SIGSEGV", "stopped after 10.0 s". */
void process_describe(const struct process *process, struct buf *out);
