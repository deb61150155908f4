/* What the tests of the CPU backend share: this program answers to "runner", "sandbox" and
 * "cpu-compile" itself, as twagent does; a small matrix product to build kernels for; build, open,
 * call in one move. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "eval/cpu/built.h"
#include "eval/cpu/cpu.h"
#include "eval/cpu/host.h"
#include "eval/cpu/profile.h"
#include "process/sandbox.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* True where this process was started as one of the program's internal commands. */
static inline bool kit_internal(int argc, char **argv, int *code)
{
    if (argc >= 2 && strcmp(argv[1], "runner") == 0)
        *code = cpu_runner_main(argc - 3, argv + 3);
    else if (argc >= 2 && strcmp(argv[1], "sandbox") == 0)
        *code = sandbox_main(argc - 2, argv + 2);
    else if (argc >= 2 && strcmp(argv[1], "cpu-compile") == 0)
        *code = built_main(argc - 2, argv + 2);
    else
        return false;
    return true;
}

struct kit {
    struct arena *arena;
    struct lane_facts lane;
    struct problem *problem;
    struct candidate *candidate;
    struct layout layout;
    struct region region;
    struct call call;
    struct build build;
    struct subject *subject;
    struct err err;
    struct buf said; /* of the compiler */
    char folder[64];
};

enum { KIT_HANG_MS = 120000 }; /* of a call that ends by itself, however late */

/* The dims are 7, 5, 3; inputs are small integers, so that every order of sums is exact. */
void kit_open(struct kit *kit);
void kit_close(struct kit *kit);
/* The command of a build alone, in kit->build. */
void kit_lay_out(struct kit *kit, const char *name, const char *text, enum build_flavour flavour);
/* 0, or the compiler's exit code; `said` has its words. `text` is C, or C++ where `name` says so.
 */
int kit_compile(struct kit *kit, const char *name, const char *text, enum build_flavour flavour);
int kit_run_build(struct kit *kit); /* its exit code */
int kit_load(struct kit *kit);      /* opens a runner for what was compiled */
int kit_call(struct kit *kit);      /* poisons C, calls */
bool kit_right(const struct kit *kit);
float *kit_output(const struct kit *kit);
/* Compiles, loads and calls; the error's code. The text of the failure is in kit->err. */
enum err_code kit_try(struct kit *kit, const char *text);

#define KIT_SIGNATURE                                                                              \
    "void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)\n"
#define KIT_RIGHT                                                                                  \
    "for (int64_t i = 0; i < M; i++) for (int64_t j = 0; j < N; j++) {\n"                          \
    "float s = 0; for (int64_t k = 0; k < K; k++) s += A[i*K+k] * B[k*N+j]; C[i*N+j] = s; }\n"
