/* eval/worker/evaluate: what an evaluation holds between its steps. Loop thread; while `work` is
 * active the pool has `measure`, `evaluation`, `status` and `err`. */
#pragma once

#include "eval/worker/private.h"

enum evaluate_state {
    QUEUED,
    AHEAD,
    COMPILING,
    WAITING,
    CHECKING,
    TIMING,
    EXTRAS,
    FINISHING,
    ENDED,
    EVALUATE_STATES
};

struct evaluate {
    struct request request;
    const struct value *document;
    struct slot session_slot, ahead_slot, core_slot, compiler_slot, measure_slot;
    struct turn turn;
    struct candidate *candidate;
    struct names tune;
    struct hash identity;
    struct candidate *rival; /* whom it is timed with, in place of the baseline; NULL: nobody */
    struct names rival_tune;
    struct rival_kernel rival_spec;
    bool profile, sanitize, cachegrind;
    bool of_run; /* far behind is also who is so of what this session has shown of the run */
    /* building */
    enum build_flavour flavour;
    struct build build;
    struct process *process; /* NULL: none runs */
    uint64_t started_ns;
    const char *folder; /* of all its builds */
    unsigned tried;     /* bit set of flavours */
    /* measuring */
    struct measure_request measure;
    struct evaluation evaluation;
    struct work work;
    int status;
    struct err err;
};

/* --- build.c --- */

/* The candidate, its tune numbers, and what is asked for. -1: the evaluation has its verdict. */
int evaluate_read(struct evaluate *evaluate) MUST_USE;
/* The command of a build, then the build itself. */
int evaluate_prepare_build(struct evaluate *evaluate, enum build_flavour flavour) MUST_USE;
int evaluate_start_build(struct evaluate *evaluate) MUST_USE;
bool evaluate_end_build(struct evaluate *evaluate); /* false: the evaluation has its verdict */
bool evaluate_next_extra(const struct evaluate *evaluate, enum build_flavour *flavour);
void evaluate_end_extra(struct evaluate *evaluate);
void evaluate_remove_builds(struct evaluate *evaluate);
