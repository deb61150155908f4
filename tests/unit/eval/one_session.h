/* A session with the stand-in backend and one candidate, the product that fake_backend.h computes,
 * in it. */
#pragma once

#include "eval/measure/session_private.h"

#include "fake_backend.h"
#include "measured.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static uint64_t machine_bytes __attribute__((unused)); /* 0: this machine's memory */

struct fixture {
    struct folder folder, builds;
    struct problem *problem;
    struct candidate *candidate;
    struct session *session;
    struct lane_facts lane;
    struct names tune;
    struct arena *arena;
    struct measure_request request;
    struct err err;
};

/* `entries`: what the stand-in's artifacts may name; "product" among them. `spec`: another one, or
 * NULL. */
static inline int open_problem(struct fixture *f, const struct fake_entry *entries,
                               const char *reference, const char *spec)
{
    int core = 0;
    *f = (struct fixture){.arena = arena_new()};
    fake_kernels = entries;
    fake_problem(&f->folder, reference, "");
    if (spec != NULL)
        folder_put(&f->folder, "spec.yaml", spec);
    folder_make(&f->builds);
    struct session_options options = {.folder = f->builds.path,
                                      .baseline = "product",
                                      .call_timeout_ms = 60000, /* none of these hangs */
                                      .time_budget_ms = 10,
                                      .memory_bytes = 1 << 20,
                                      .machine_bytes = machine_bytes};
    if (problem_load(f->folder.path, &f->problem, &f->err) != 0 ||
        fake_probe(&core, 1, false, f->arena, &f->lane, &f->err) != 0 ||
        session_open(f->problem, &fake_backend, &f->lane, &options, &f->session, &f->err) != 0 ||
        candidate_parse(f->problem, "c.c", "product", 7, &f->candidate, &f->err) != 0)
        return -1;
    tune_at(f->candidate, 0, &f->tune);
    f->request = (struct measure_request){.candidate = f->candidate,
                                          .tune = &f->tune,
                                          .artifact = "product",
                                          .effort = EFFORT_SEARCH};
    return 0;
}

static inline int open_product(struct fixture *f, const struct fake_entry *entries)
{
    return open_problem(f, entries, "def reference(A, B):\n    return A @ B\n", NULL);
}

static int tear_down(void **state)
{
    struct fixture *f = (struct fixture *)*state;
    candidate_free(f->candidate);
    session_close(f->session);
    problem_free(f->problem);
    arena_free(f->arena);
    folder_remove(&f->folder);
    folder_remove(&f->builds);
    return 0;
}

static inline void measure(struct fixture *f, enum effort effort)
{
    struct evaluation evaluation = {0};
    f->request.effort = effort;
    assert_int_equal(session_measure(f->session, &f->request, f->arena, &evaluation, &f->err), 0);
    if (evaluation.verdict != VERDICT_KERNEL)
        fail_msg("%s", evaluation.reason);
}
