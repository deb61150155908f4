/* process/sandbox: a process takes every privilege away from itself: no_new_privs, capabilities,
 * rlimits, Landlock (what it may open) and seccomp (what it may ask the kernel for). Works for any
 * user and in an unprivileged container. Where the kernel lacks Landlock or seccomp the rest still
 * holds, and sandbox_probe() says what is missing. One thread, unless said otherwise. */
#pragma once

#include "base/err.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sandbox_profile {
    SANDBOX_COMPILE,   /* a compiler and its children; writes where it is told */
    SANDBOX_RUNNER,    /* loads an artifact, serves calls: compute, threads, two eventfds */
    SANDBOX_REFERENCE, /* Python, or another trusted definition */
    SANDBOX_GPU,  /* a reference on a GPU: no Landlock, no seccomp, behind which no driver starts */
    SANDBOX_TOOL, /* a disassembler: reads, prints */
    SANDBOX_SANITIZED, /* a candidate as a program with its sanitizers; they read /proc */
    SANDBOX_AGENT,     /* a coding agent: starts programs in groups and sessions of their own */
    SANDBOX_PROFILES
};

const char *sandbox_profile_name(enum sandbox_profile profile); /* "compile", "runner-load", ... */

enum { SANDBOX_PATHS_MAX = 32 };

/* What a compile may take, in each of its processes: ten times what the slowest honest source here
 * does (3 s, NVRTC with cub). Seconds of CPU time, which a busy machine does not use up; the wall
 * clock bounds what hangs, and leaves room for a share of a core in twenty. */
enum { COMPILE_CPU_S = 30, COMPILE_HANG_MS = 600000 };

struct sandbox_limits {     /* 0: the profile's own; UINT64_MAX: none */
    uint64_t address_bytes; /* RLIMIT_AS */
    uint64_t cpu_s;         /* RLIMIT_CPU */
    uint64_t file_bytes;    /* RLIMIT_FSIZE */
    uint64_t files;         /* RLIMIT_NOFILE */
};

struct sandbox_paths { /* files or folders besides the profile's own; borrowed */
    size_t read_count, write_count;
    const char *reads[SANDBOX_PATHS_MAX];  /* read and execute */
    const char *writes[SANDBOX_PATHS_MAX]; /* read, create, write, remove; no execute */
};

/* rlimits but the address space, no_new_privs, capabilities, Landlock. For the calling thread and
 * those it makes after.
 */
int sandbox_confine(enum sandbox_profile profile, const struct sandbox_limits *limits,
                    const struct sandbox_paths *paths, struct err *err) MUST_USE;

/* RLIMIT_AS, from `limits` or else the profile: the last thing to do, since whoever is built with
 * sanitizers can allocate nothing after. */
int sandbox_bound_memory(enum sandbox_profile profile, const struct sandbox_limits *limits,
                         struct err *err) MUST_USE;

/* Addresses whose mappings stay as they are: no call may begin in [from, to), or be so long that it
 * reaches there from below. */
struct sandbox_window {
    uint64_t from, to; /* 0, 0: none */
};

/* The profile's seccomp filter, for all threads of the process; `window` (or NULL) is a runner's.
 * It is the last one: a runner can install no other. */
int sandbox_filter(enum sandbox_profile profile, const struct sandbox_window *window,
                   struct err *err) MUST_USE;

/* Landlock alone (sandbox_landlock.c). `system`: /usr, /lib and what a loader needs may be read;
 * `proc` (or NULL): what of /proc. */
int sandbox_landlock(const struct sandbox_paths *paths, bool system, const char *proc,
                     struct err *err) MUST_USE;
int sandbox_landlock_abi(void); /* 0: the kernel has none, or refuses it */

struct sandbox_facts {
    int landlock_abi;
    bool seccomp;
    const char *missing; /* "NOT SANDBOXED: no seccomp"; NULL: what this project promises holds */
};
void sandbox_probe(struct sandbox_facts *facts);
void sandbox_describe(const struct sandbox_facts *facts, struct json *json); /* one object */

/* `twagent sandbox [--profile P] [--read DIR]... [--write DIR]... [--limit K=V]... -- PROGRAM
 * ARGS`: takes every privilege away from itself, then becomes PROGRAM. For compilers, references
 * and disassemblers. Returns only on failure. */
int sandbox_main(int argc, char **argv);
