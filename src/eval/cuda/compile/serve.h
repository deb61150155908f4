/* eval/cuda/compile/serve: a process that has NVRTC loaded and headers precompiled, and forks for
 * each compile. The worker starts one with its first build and holds one end of a socket pair,
 * which every compile's own process gets as a descriptor; the server ends when all of them are
 * closed. It reads no source: a child of its does, confined as any other compile. It has no CUDA
 * context, and cannot open a driver.
 *
 * A request is one packet: strings, each behind a letter that says what it is, and the descriptors
 * unit, cubin, log, errors, reply. The reply: ACCEPTED at once, later the exit code as an int. */
#pragma once

#include "eval/cuda/compile/job.h"

#include <sys/types.h>

enum {
    SERVE_FD = 3, /* of the server, and of whoever asks it */
    SERVE_FDS = 5,
    SERVE_PACKET_MAX = 16 << 10,
    SERVE_ACCEPTED = 'a',
    SERVE_ACCEPT_MS = 60000 /* of one that hangs; then whoever asks compiles by itself */
};

/* The server (serve.c): `twagent cuda-compile --serve ...`; job->compiler and job->arch say
 * which. Returns at the end of all. */
int cuda_serve(const struct cuda_job *job, struct err *err) MUST_USE;

/* One compile by the server at `server`; false where there is none that answers: nothing is
 * written then. (ask.c) */
bool cuda_serve_ask(int server, const struct cuda_job *job, int *code);

/* The worker's end of a running server for this compiler, started where there is none; -1: none to
 * be had, or $TWAGENT_CUDA_SERVER is "0". It is nobody's to close. (ask.c) */
int cuda_serve_start(const struct cuda_compiler *compiler, const char *arch);

/* A server of any kind that answers so, for the life of the process; zeroed at first. */
struct served {
    int fd; /* our end, once `starts` > 0 */
    pid_t pid;
    unsigned starts;
    bool running;
};
/* The same for `argv`, which gets its end as SERVE_FD. (ask.c) */
int serve_start(struct served *server, const char *const *argv);

/* ---- headers that are ready (pch.c); the server's own thread ---- */

struct pch_shelf;
struct pch_shelf *pch_shelf_new(const char *folder); /* for the server's life */

/* Which precompiled header a unit can use. *create: it has to be made first, by the compile itself,
 * who then says how that went; NULL: none. The path lives as long as the shelf. */
const char *pch_find(struct pch_shelf *shelf, const struct cuda_job *job, bool *create);
void pch_made(struct pch_shelf *shelf, const char *path, bool fine);

/* What the unit has before its stop; mem_free() it. NULL: no header worth the while. */
char *pch_prefix(int unit);
