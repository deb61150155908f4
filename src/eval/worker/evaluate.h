/* eval/worker/evaluate: what an evaluation holds between its steps. Loop thread; while `work` is
 * active the pool has `measure`, `evaluation`, `status` and `err`. */
#pragma once

#include "eval/worker/private.h"

enum evaluate_state {
    QUEUED,
    AHEAD,
    COMPILING,
    WAITING,
    LOOKING,
    PARKED,
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
    enum stage until; /* nothing behind this stage is wanted; STAGES: all is */
    bool of_run;      /* far behind is also who is so of what this session has shown of the run */
    bool late;        /* it is to be looked at first */
    bool narrow;      /* and for that is built for the main shape alone */
    double behind;    /* how many times as long as a kernel ends it there */
    double look_ns;   /* fastest of a look at it; 0: there was none */
    double to_beat_ns, seen_ns; /* what the look is told, and tells */
    struct evaluation looked;
    bool parked; /* somebody is to complete its task */
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

extern const struct task_type evaluate_type;

/* --- look.c: a first look, at the main shape alone --- */

void evaluate_run_look(void *argument);                   /* on the pool */
double evaluate_best(const struct evaluate *evaluate);    /* of kernels, of its run; 0: none */
double evaluate_to_beat(const struct evaluate *evaluate); /* by what is known, or looked at; 0: - */
/* Of one that was looked at and is still here: nothing speaks for going on with it now. */
bool evaluate_is_behind(const struct evaluate *evaluate); /* of a kernel: it is dropped */
bool evaluate_waits(const struct evaluate *evaluate);     /* of one that may become a kernel */
void evaluate_drop(struct evaluate *evaluate);
void evaluate_begin_whole(struct evaluate *evaluate); /* for all shapes, from its compile on */
bool evaluate_steps_back(struct evaluate *evaluate);  /* true: it is parked, and holds nothing */
unsigned evaluate_look_cores(const struct worker *worker);
void evaluate_park(struct evaluate *evaluate);
void evaluate_unpark(struct evaluate *evaluate);
void evaluate_unpark_all(struct worker *worker); /* something has become known */

/* --- build.c --- */

/* It has passed `stage`, and no more was asked for: it has its verdict, which is no kernel's. */
bool evaluate_stops(struct evaluate *evaluate, enum stage stage);

/* A compile with several processes has as many cores: whoever came first is done first, and not all
 * at the same time, late. */
bool build_hold(const struct build *build, struct slot *slot, struct slots *compilers,
                struct task *task);

/* The candidate, its tune numbers, and what is asked for. -1: the evaluation has its verdict. */
int evaluate_read(struct evaluate *evaluate) MUST_USE;
/* The command of a build, then the build itself. */
int evaluate_prepare_build(struct evaluate *evaluate, enum build_flavour flavour) MUST_USE;
int evaluate_start_build(struct evaluate *evaluate) MUST_USE;
bool evaluate_end_build(struct evaluate *evaluate); /* false: the evaluation has its verdict */
bool evaluate_next_extra(const struct evaluate *evaluate, enum build_flavour *flavour);
void evaluate_end_extra(struct evaluate *evaluate);
void evaluate_remove_builds(struct evaluate *evaluate);
