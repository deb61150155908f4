/* eval/lane: a worker as the agent sees it: a child behind two pipes, started again when it dies.
 * Loop thread only. Requests are answered in the order of their ends, not of their starts. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "eval/data/evaluation.h"

struct json;
struct loop;
struct task;
struct lane; /* opaque */

enum { LANES_MAX = 64, WORKER_DEATHS_MAX = 2 };

struct lane_spec {
    /* "srun -n1", before the program; NULL: none. A worker behind one that is asked something and
     * stays silent for minutes is taken for dead. */
    const char *launcher;
    const char *backend;                      /* "cpu" */
    const char *cores;                        /* or NULL */
    const char *device;                       /* a GPU (the first of a list), or NULL: 0 */
    const char *problem;                      /* path; NULL: none is opened (probe only) */
    const char *python, *baseline;            /* or NULL */
    uint64_t call_timeout_ms, time_budget_ms; /* 0: defaults */
    bool roofline; /* measure the ceilings at open (else `ceilings` or unknown) */
    bool later;    /* not at open, but with the first timing: what needs no clock comes first */
    /* that the problem be fit, that candidates be confined: not asked, or refused where it is not,
     * or gone on and said */
    enum lane_demand { DEMAND_NONE, DEMAND_MUST, DEMAND_MAY } fitness, walls;
    const char *ceilings;           /* JSON from an earlier run's record, cached; or NULL */
    const char *ahead_name, *ahead; /* a source that will be asked for first, built while the
                                       problem is opened; or NULL */
    const char *ahead_tune;         /* at these numbers, JSON; NULL: every parameter's first */
    bool sanitizes;                 /* what is asked for first will be sanitized, if it wins */
    bool final;                     /* a final measurement will be asked for, of every baseline */
    bool ahead_space;               /* all points will be, where they are few */
};

enum lane_op { LANE_OPEN, LANE_EVALUATE, LANE_CHECK_PROBLEM };

/* One request. Zero-initialize; memory stays put until done. Texts are borrowed until done. */
struct lane_request {
    enum lane_op op;
    const char *id;      /* "r3-c17" */
    const char *problem; /* LANE_OPEN: in place of the spec's; NULL: that */
    const char *name;    /* the source's file name: gives the language */
    const char *source;
    size_t source_length;
    const char *tune; /* JSON object of numbers, or NULL: every parameter's first */
    enum effort effort;
    const char
        *until; /* "compile" or "check": nothing behind that stage, VERDICT_DROPPED; or NULL */
    bool profile, sanitize, cachegrind, bare; /* bare: of a problem's check, beside others */
    double best_ns;
    bool of_run; /* what the lane has measured since with this word counts as best_ns does */
    double late; /* one of many: looked at first, at the main shape; how many times as long as a
                  * kernel is the end of it, VERDICT_DROPPED. 0: not looked at */
    uint64_t within_ms; /* what can be left out is, to be done by then; 0: no hurry */
    /* Another kernel, which is timed in turns with it in place of the baseline: `speedup` is over
     * that one. NULL: none. */
    const char *rival_name, *rival_source, *rival_tune;
    size_t rival_length;
    /* the answer */
    bool active, done;
    struct err err;               /* ERR_CHILD: the worker died; ask again */
    struct arena *arena;          /* the answer's memory; the owner frees it */
    struct evaluation evaluation; /* LANE_EVALUATE */
    const struct value *answer;   /* the whole answer object, all ops */
    double final_ms;              /* what a final measurement of this kernel would take; 0: ? */
    double final_least_ms;        /* without what it can leave out */
    enum stage stage;             /* where it is now; the owner is woken at changes too */
    bool waits;                   /* another twagent times on its cores or its GPU */
    unsigned deaths;              /* the owner's own count of ERR_CHILD; the lane leaves it alone */
    struct task *owner;
    struct link link;
};

int lane_open(struct loop *loop, const struct lane_spec *spec, struct lane **lane,
              struct err *err) MUST_USE; /* starts the worker; the problem is opened by a request */
void lane_submit(struct lane *lane, struct lane_request *request, struct task *owner);
void lane_cancel(struct lane *lane, struct lane_request *request); /* done, ERR_CANCELLED */
/* Shares of the wall time since the first evaluation: something was evaluated; that one waited for
 * another twagent, which is no part of the first. */
double lane_busy_ratio(const struct lane *lane);
double lane_waits_ratio(const struct lane *lane);
double lane_busy_ms(const struct lane *lane);   /* of the first, in all */
bool lane_is_up(const struct lane *lane);       /* it has a worker: the next request starts none */
const char *lane_host(const struct lane *lane); /* the last worker's machine; "": not known */
void lane_close(struct lane *lane);             /* the worker is stopped within a second */
bool lane_closed(const struct lane *lane);
void lane_free(struct lane *lane); /* once closed */

/* --- lanes.c: for whoever has several --- */
struct lane_share {
    const char *cores, *device; /* or NULL */
};
/* For as many lanes as are asked for, or one on each device that is named where those are more.
 * Behind a launcher each takes the cores that are there. In `arena`, or the spec's own. */
int lane_shares(struct arena *arena, const struct lane_spec *spec, size_t lanes,
                struct lane_share shares[LANES_MAX], size_t *count, struct err *err) MUST_USE;
/* An `open` whose worker died is asked again, WORKER_DEATHS_MAX times: true, and it is active. */
bool lane_open_again(struct lane *lane, struct lane_request *open, struct task *owner);

/* --- ask.c: opens a lane, asks it one thing, and closes it. Blocking: a loop of its own. --- */
/* `open` has the answer or the error, and the arena that the caller frees; so has `then`, which is
 * submitted once the lane is open (NULL: nothing is). At one of `signals`, which end with 0 (NULL:
 * none), what is under way ends with ERR_CANCELLED. */
void lane_ask(const struct lane_spec *spec, const char *name, struct lane_request *open,
              struct lane_request *then, const int *signals);
/* An answer's members, without what is between the worker and us. */
void lane_put_answer(struct json *json, const struct value *answer);
