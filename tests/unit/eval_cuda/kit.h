/* What the tests of compiling share: this program answers to "cuda-compile" and "sandbox" itself,
 * as twagent does; a softmax of two dims as the problem; build and run in one move. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../run_build.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "eval/cpu/cpu.h"
#include "eval/cuda/compile/compile.h"
#include "eval/cuda/cuda.h"
#include "eval/cuda/target.h"
#include "process/sandbox.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static inline bool kit_internal(int argc, char **argv, int *code)
{
    if (argc >= 2 && strcmp(argv[1], "cuda-compile") == 0)
        *code = cuda_compile_main(argc - 2, argv + 2);
    else if (argc >= 2 && strcmp(argv[1], "sandbox") == 0)
        *code = sandbox_main(argc - 2, argv + 2);
    else
        return false;
    return true;
}

/* What it starts is this program, with the source's own data. */
static inline void kit_start_self(void)
{
    char *self = file_self_path();
    setenv("TWAGENT_SELF", self, 1);
    mem_free(self);
    setenv("TWAGENT_DATA", TEST_SOURCE_DIR, 1);
}

/* Skips the test, saying so, where there is no NVRTC. */
static inline void kit_need_nvrtc(void)
{
    struct cuda_compiler compiler;
    struct err err = {0};
    struct arena *arena = arena_new();
    bool found = cuda_compiler_find(arena, &compiler, &err) == 0;
    arena_free(arena);
    if (!found) {
        print_message("skipped: %s\n", err.message);
        skip();
    }
}

struct kit {
    struct arena *arena;
    struct problem *problem; /* borrowed if `given` */
    bool given;
    struct candidate *candidate;
    struct names tune;
    struct build build;
    struct cuda_report report; /* of a build that ended well */
    struct buf said;           /* what the compiler said */
    struct buf shown;          /* what the author sees of it */
    struct err err;
    char folder[64];
};

static inline void kit_open(struct kit *kit, struct problem *problem)
{
    *kit = (struct kit){.arena = arena_new(), .problem = problem, .given = problem != NULL};
    buf_init(&kit->said, 1 << 20);
    buf_init(&kit->shown, 1 << 16);
    strcpy(kit->folder, "/tmp/twagent-test-XXXXXX");
    assert_non_null(mkdtemp(kit->folder));
    setenv("XDG_CACHE_HOME", kit->folder, 1); /* nothing of another test, or of whoever runs it */
    if (problem == NULL &&
        problem_load(TEST_SOURCE_DIR "/problems/softmax", &kit->problem, &kit->err) != 0)
        fail_msg("%s", kit->err.message);
}

static inline void kit_close(struct kit *kit)
{
    struct err err;
    candidate_free(kit->candidate);
    if (!kit->given)
        problem_free(kit->problem);
    buf_free(&kit->said);
    buf_free(&kit->shown);
    arena_free(kit->arena);
    setenv("XDG_CACHE_HOME", "/proc/none", 1); /* no folder can be made there */
    if (file_remove_tree(kit->folder, &err) != 0)
        fail_msg("%s", err.message);
}

static inline int kit_run(struct kit *kit)
{
    buf_reset(&kit->said);
    return run_build(&kit->build.spec, &kit->said);
}

/* Without a plan it is no candidate: then it is read as C, where there is none. */
static inline void kit_parse(struct kit *kit, const char *text)
{
    candidate_free(kit->candidate);
    kit->candidate = NULL;
    const char *name = strstr(text, "launch:") != NULL ? "candidate.cu" : "candidate.c";
    if (candidate_parse(kit->problem, name, text, strlen(text), &kit->candidate, &kit->err) != 0)
        fail_msg("%s", kit->err.message);
    kit->candidate->language = &language_cuda;
    kit->tune = (struct names){0};
    tune_at(kit->candidate, 0, &kit->tune);
}

/* The exit code of compiling kit->candidate; `report` or `shown` are filled in. */
static inline int kit_build(struct kit *kit, const char *arch, enum build_flavour flavour)
{
    if (cuda_build(kit->arena, arch, kit->problem, kit->candidate, &kit->tune, NULL, flavour,
                   kit->folder, &kit->build, &kit->err) != 0)
        fail_msg("%s", kit->err.message);
    int code = kit_run(kit);
    buf_reset(&kit->shown);
    if (code != 0)
        cuda_diagnostics(kit->candidate, buf_text(&kit->said), kit->said.length, &kit->shown);
    else if (cuda_report_read(kit->arena, kit->build.log, &kit->report, &kit->err) != 0)
        fail_msg("%s", kit->err.message);
    return code;
}

static inline int kit_compile(struct kit *kit, const char *text)
{
    kit_parse(kit, text);
    return kit_build(kit, "sm_90a", BUILD_FAST);
}

static inline bool kit_shows(const struct kit *kit, const char *word)
{
    return strstr(buf_text(&kit->shown), word) != NULL;
}
