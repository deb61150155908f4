/* eval/runner/host: the worker's side of a runner process, whatever it computes on. Nothing that
 * comes out of it is believed: it can say "done" and it can die, and everything else is measured
 * from outside. Worker's measuring thread; a runner dies with the thread that started it.
 *
 *   starting -> warm (a spare) -> loaded -> calls ... -> reaped
 */
#pragma once

#include "eval/backend/backend.h"
#include "eval/runner/wire.h"
#include "process/spawn.h"

#include <sys/types.h>

struct host;

struct host_kind { /* what differs; each may be NULL */
    /* Every 20 ms that it computes: an error, and the runner is ended. */
    int (*look)(struct host *host, struct err *err);
    void (*bury)(struct host *host); /* it was killed, and is not reaped yet */
    void (*free)(struct host *host); /* what is the kind's own */
};

struct host_page {
    void *at; /* NULL: there is none */
    size_t bytes;
    int fd; /* until the runner has it */
};

struct host {
    struct subject subject; /* first */
    struct host_page control_page, report_page;
    const struct host_kind *kind;
    char name[16]; /* for errors while it starts: "runner", "GPU 0" */
    int pidfd, go, done, errors;
    bool warm, reaped;
    bool spoilt; /* not to be used again */
    /* Who it was started for: tell whether a spare still fits. */
    const struct region *region;
    ino_t inputs_inode, outputs_inode;
    size_t inputs_bytes, outputs_bytes;
};

/* ---- its start ---- */

/* Pages for what it is told and, but for 0 bytes, for what it tells: it can write to the second one
 * alone. Then host_start(), and host_close() it in any case, also where one of the two fails. */
int host_begin(struct host *host, const struct host_kind *kind, size_t control_bytes,
               size_t report_bytes, struct err *err) MUST_USE;
/* Starts `program`, which has the pages, the region and two eventfds as eval/runner/wire.h says.
 * What it writes to stderr, and with `hears_stdout` to stdout, is kept for host_errors(). */
int host_start(struct host *host, const struct region *region, const struct spawn_spec *program,
               bool hears_stdout, struct err *err) MUST_USE;
bool host_fits(const struct host *host, const struct region *region);
/* Until it has said so once; ERR_ENVIRONMENT. */
int host_wait_warm(struct host *host, struct err *err) MUST_USE;

/* ---- the two words ---- */

int host_go(struct host *host, struct err *err) MUST_USE;
/* Waits until `done` was said `times` times. *said counts them (also on failure). ERR_TIMEOUT,
 * ERR_CHILD and ERR_PROTOCOL leave no process behind. */
int host_await(struct host *host, unsigned times, uint64_t deadline_ns, unsigned *said,
               struct err *err) MUST_USE;

/* What it reported, in a page that it can write to; but for REPORT_FINE it is spoilt, and has
 * ended: ERR_CHILD, or ERR_ENVIRONMENT. */
int host_judge(struct host *host, uint32_t status, const char *reason, size_t bytes,
               struct err *err) MUST_USE;

/* ---- a subject with a device of its own: it waits in a read between calls ---- */

void host_rest(struct subject *subject); /* pause, resume: nothing of a candidate's runs there */
/* Each call of such a runner sets all of its memory anew. */
struct subject *host_on_device(struct host *host, const struct subject_ops *ops);

/* ---- its end ---- */

void host_errors(struct host *host, struct buf *text); /* what it wrote and was not read yet */
int host_ended(struct host *host, struct err *err); /* kills, reaps: ERR_CHILD, and how it ended */
void host_end(struct host *host);                   /* the same where it is not reaped yet */
void host_close(struct host *host);                 /* and frees; NULL is fine */

/* ---- spares ---- */

void host_discard(struct host **spares, int count); /* closes them */
/* Waits until none is still starting: before something is timed. One that died goes. */
void host_settle(struct host **spares, int count);
