/* eval/measure/session: one problem open on one lane: its reference, baselines, shapes, and the
 * pool of secret input sets with their expected outputs. Blocking; worker's measuring thread.
 *
 * A set's seed comes from the kernel's random source and is never told. No subject sees the same
 * set twice in its life: a runner that has been through the pool is replaced by a fresh one, and
 * every evaluation redraws part of the pool, so that what one call saw can help no other. */
#pragma once

#include "eval/sets/sets.h"

int session_open(const struct problem *problem, const struct backend *backend,
                 const struct lane_facts *lane, const struct session_options *options,
                 struct session **session, struct err *err) MUST_USE;
void session_close(struct session *session);

struct rival_kernel { /* another kernel of the problem, to be timed in turns with a candidate */
    const struct candidate *candidate;
    const struct names *tune;
};

struct measure_request {
    const struct candidate *candidate;
    const struct names *tune;
    const char *artifact;    /* of BUILD_FAST */
    const char *sanitized;   /* of BUILD_SANITIZED; NULL: none */
    const char *remarks_log; /* or NULL */
    const char *portable;    /* of BUILD_PORTABLE, to count with; NULL: none */
    enum effort effort;
    bool profile;
    bool sanitizes;     /* if it wins `sanitized` will be there before session_finish() */
    bool alone;         /* no other one waits: a sanitizer may work beside its checks */
    double best_ns;     /* 0: none yet */
    double behind;      /* of a look: how many times as long is not worth more */
    uint64_t within_ms; /* what can be left out is, to be done by then; 0: no hurry */
    /* Between two samples, where nothing is under way: who else waits for the clock may have it for
     * a while. How long that took, in ns. NULL: nobody is let in. */
    uint64_t (*breathe)(void *breather);
    void *breather;
    const struct rival_kernel *rival; /* it stands in the baseline's place; NULL: none */
};

/* Checks, then times, then (where asked) sanitizes and profiles; fills *evaluation, whose texts are
 * in `arena`. An error here is ours (ERR_CHILD of a reference, ERR_IO): the step can be tried
 * again. In three steps, so that the worker can have its cores to itself for the second one:
 * after session_check() the other two are called in turn whatever the verdict; each does nothing
 * where there is one. session_finish() must follow also an error of the others. */
int session_check(struct session *session, const struct measure_request *request,
                  struct arena *arena, struct evaluation *evaluation, struct err *err) MUST_USE;
int session_time(struct session *session, struct err *err) MUST_USE;
int session_finish(struct session *session, struct err *err) MUST_USE;
/* look.c: a few checked calls of the main shape, which its artifact has to be built for alone. What
 * is wrong there has its verdict; of all else there is none yet, and *fastest_ns. session_finish()
 * must follow, also an error. */
int session_look(struct session *session, const struct measure_request *request,
                 struct arena *arena, struct evaluation *evaluation, double *fastest_ns,
                 struct err *err) MUST_USE;
/* What a look took is more than `behind` times `best_ns`; 0: none known. */
bool session_look_behind(double time_ns, double best_ns, double behind);
/* What a final measurement would take now, by what was measured so far, and without what it can
 * leave out; 0: no kernel yet. */
double session_final_ms(const struct session *session, double *least_ms);
/* Candidates, and the baseline that they are timed with, are timed by a device's own clock. */
bool session_by_device(const struct session *session);
/* Any thread: what is being measured, or will be, ends between two calls with ERR_CANCELLED, until
 * session_uncancel(). The thread that cancels calls that before it has another one measured.
 */
void session_cancel(struct session *session);
void session_uncancel(struct session *session);
/* What session_open() has begun: the process of a library that candidates are timed with. An error
 * says what is wrong with that. */
int session_await_library(struct session *session, struct err *err) MUST_USE;
/* What every record says before anything is known: identity, tune numbers, empty texts. */
void evaluation_begin(struct evaluation *evaluation, const struct candidate *candidate,
                      const struct names *tune, struct arena *arena);
const char *session_versions(const struct session *session); /* JSON object: the lane's, Python's */
void session_ceilings(struct session *session); /* the lane's rates are others; floor.c */

/* May it be searched at all: does its tolerance refuse the null solutions at the main shape? *why
 * is NULL, or says what it lets pass, borrowed from the session. Known by the problem's hash where
 * it was fit before (fitness_known.c). Before the first candidate. */
int session_fit(struct session *session, const char **why, struct err *err) MUST_USE;

/* Is the problem fit? Begun, checked, its floor looked at, ended, in this order; findings become
 * members of the open JSON object. -1 is ours; what the problem's own code did is a finding. */
struct fitness {
    struct session *session;
    struct json *json;
    bool fit, ended; /* ended: there is nothing more to find */
};

void fitness_begin(struct fitness *fitness, struct session *session, struct json *json);
/* Whatever needs no clock: the reference runs, repeats itself, refuses the null solutions of
 * docs/inputs-and-tolerance.md; the named baselines are right, where wanted. */
int fitness_check(struct fitness *fitness, bool baselines, struct err *err) MUST_USE;
int fitness_floor(struct fitness *fitness, struct err *err) MUST_USE; /* times the reference */
void fitness_end(struct fitness *fitness);
