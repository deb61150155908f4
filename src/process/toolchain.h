/* process/toolchain: compilers and disassemblers that this machine has. Measuring thread or loop
 * thread, once at a time; answers are remembered for the life of the process. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Absolute path of a program in /usr/bin, /usr/local/bin or on PATH; NULL where there is none. */
const char *tool_find(const char *name);

/* The folder that a sandbox must let be read for it to run; NULL where /usr has it. Static. */
const char *tool_prefix(const char *path);

/* The last match of a pattern in the order of names, which is the newest version, but for the
 * alternatives that NVIDIA adds (".alt."); NULL: none. */
const char *tool_newest(struct arena *arena, const char *pattern);
/* The same of `tail` in the packages of the Pythons that are in use or installed. */
const char *tool_wheel(struct arena *arena, const char *tail);

struct tool {
    const char *const *argv;  /* NULL-terminated; argv[0] is a path */
    const char *profile;      /* NULL: "tool" */
    const char *const *env;   /* NULL-terminated, or NULL: PATH and LC_ALL alone */
    const char *const *reads; /* NULL-terminated, or NULL: more that it may read */
    const char *write;        /* a folder that it may write to, or NULL */
    const int *fds;           /* become 3, 4, ...; NULL: none */
    size_t fd_count;
    uint64_t timeout_ms;
    int exit_code; /* that means success */
    unsigned threads_max;
};

/* Runs it in the sandbox, blocking. Its first bytes go to `out` and `errors` (each may be NULL).
 * ERR_CHILD where it ends in another way than with exit_code, ERR_TIMEOUT. */
int tool_run(const struct tool *tool, struct buf *out, struct buf *errors,
             struct err *err) MUST_USE;
