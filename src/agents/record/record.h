/* agents/record: what a run keeps in the store, as plain structs with their JSON. The keys: "r3" in
 * STORE_RUNS; "r3-i12" in STORE_IDEAS; "r3-c17" in STORE_CANDIDATES and STORE_EVALUATIONS
 * ("r3-c17-final" there is the champion's last measurement, "r3-c17-over-r3-c5" one of the
 * run-off); a source's hash in STORE_SOURCES; "r3-42" in STORE_EVENTS. Any thread. Texts of a
 * decoded record are in its arena. */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

struct run_record {
    const char *id, *problem, *problem_file, *backend, *provider, *model;
    const char *state;   /* "running", "done", "stopped", "failed", "died" */
    const char *stopped; /* "budget", "interrupted", "N answers awaited", an error's line; "" */
    const char *options; /* JSON object: what a resume needs, as its caller wrote it */
    const char *choice; /* JSON object: --model, --idea-model, --code-model and what says of them */
    const char
        *context;       /* JSON object: device, facts, baseline: prompts of a resume say the same */
    const char *paused; /* why the run waits now; "": it does not */
    const char *pauses; /* JSON object {"list": [{since_ms, until_ms, reason}...]}, the last 100 */
    const char *asked;  /* JSON object {"list": [{name, asked, answered, failed, moved, cached,
                         * micro_dollars, causes: [{state, times, since_ms, until_ms, total_ms,
                         * reason}...]}...]}: what became of the requests to each model */
    const char *agents; /* coding agents at work now, and what each has had evaluated; "": none */
    const char *batches; /* of requests that providers have now, in words; "": none */
    const char *baseline, *best;
    const char *problem_hash; /* eval/problem/identity's; "": an earlier twagent's */
    const char *definition;   /* what a person calls the reference: "numpy", "heat.c"; "" */
    const char *finding;      /* of the champion against its baseline, verified; "": none */
    const char *noise;        /* where that is "too noisy to say": why, and what helps; or "" */
    const char *left_out; /* baselines that the champion was not timed against, its package; "" */
    const char *unfit; /* what the problem's tolerance lets pass: said wherever a result is; "" */
    const char *unconfined; /* what was missing of the sandbox: likewise; "" */
    bool win, verified;
    int64_t number, round, evaluated, kept, rejected, failed;
    int64_t outside; /* points that were none of their space: no part of `evaluated` */
    int64_t dropped; /* far behind at the main shape, the only one that they were checked at */
    int64_t in_flight, awaited, requests, tokens, micro_dollars, pid; /* pid: whose run it is now */
    int64_t resumes;               /* how often it was gone on with */
    int64_t strange_parents;       /* ideas that named a parent which was none of theirs */
    double left_ms;                /* as estimated when the record was written; < 0: not known */
    uint64_t started_ms, ended_ms; /* wall clock; 0: not ended */
    uint64_t saved_ms;             /* when this was written */
    double lane_waits;             /* share of time that lanes waited for another twagent's turn;
                                    * like lane_busy of all the run's processes */
    double elapsed_ms, lane_busy, speedup, speedup_low, speedup_high, time_ns;
};

struct idea_record {
    const char *id, *run, *parent; /* parent: a candidate's id, or "" */
    const char *title, *category, *why;
    double expected; /* speed-up over the parent that was hoped for; 0: not said */
    int64_t round;
};

struct candidate_record {
    const char *id, *run, *idea, *parent;
    const char *name;         /* the source's file name: "packed.c" */
    const char *source;       /* its hash, key in STORE_SOURCES; "" while there is none */
    const char *tune;         /* JSON object of numbers */
    const char *identity;     /* hash of source and numbers */
    const char *state;        /* "proposed", ..., "kept", "rejected", "failed", "dropped" */
    const char *duplicate_of; /* a candidate's id, or "" */
    const char *verdict, *reason;
    double time_ns, speedup, speedup_low, speedup_high;
    double time_high; /* upper end of the time's interval, which ranks it; 0: not known */
    int64_t number, round, repairs;
    int64_t island;                    /* of --strategy islands; 0: also where there is one */
    int64_t evaluations;               /* how often a lane was asked about it */
    const char *failure, *diagnostics; /* while it waits to be mended: what goes into the prompt */
    const char *first_failure;         /* of one that was mended: a line; or "" */
    const char *mended;                /* a line for each mend that did not do; or "" */
    const char *agent;   /* of one that a coding agent worked on: how that ended, a line; or "" */
    const char *attempt; /* of what such an agent had evaluated: the one that it worked on; or "" */
    bool dropped, tuning; /* tuning: a point tuned for free beside a model's round */
    bool outside;         /* the device has less than its numbers ask for */
};

void run_record_encode(const struct run_record *record, struct buf *out);
void idea_record_encode(const struct idea_record *record, struct buf *out);
void candidate_record_encode(const struct candidate_record *record, struct buf *out);

int run_record_decode(struct arena *arena, const char *text, size_t length,
                      struct run_record *record, struct err *err) MUST_USE;
int idea_record_decode(struct arena *arena, const char *text, size_t length,
                       struct idea_record *record, struct err *err) MUST_USE;
int candidate_record_decode(struct arena *arena, const char *text, size_t length,
                            struct candidate_record *record, struct err *err) MUST_USE;

/* Done, and not cut short by a budget, a person, a mailbox, a failure. */
bool run_record_ended_itself(const struct run_record *record);
/* What a person calls that which its speed-up is against: "reference" by its definition's name. */
const char *run_record_baseline(const struct run_record *run);
