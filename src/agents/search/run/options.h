/* agents/search/run/options: what a run is told. Plain values; any thread. */
#pragma once

#include "agents/llm/model.h"

#include <stdbool.h>
#include <stdint.h>

enum strategy {
    STRATEGY_BEAM,   /* the best kernels so far are the parents: `beam` of them, or by `select` */
    STRATEGY_GREEDY, /* the best one alone */
    STRATEGY_ISLANDS /* several pools that seldom meet: diversity on long runs */
};

/* Of a tune: which points are measured, by --strategy. */
enum tune_strategy {
    TUNE_AUTO,       /* all of a small space, else the proposer's */
    TUNE_EXHAUSTIVE, /* every point, in an order drawn by chance */
    TUNE_PROPOSER,
    TUNE_RANDOM /* the control: by chance, until a budget ends it */
};

struct search_options {                    /* borrowed for the search's life */
    const char *problem;                   /* path or shipped name */
    const char *backend;                   /* "cpu" */
    const char *language;                  /* "triton", "both"; NULL: the backend's first */
    const struct models *idea_models;      /* NULL, or of none: the built-in proposer alone */
    const struct models *code_models;      /* NULL: the same */
    const struct models *embedding_models; /* one, for what prompts quote; NULL, none: by words */
    const char *embedding_note;            /* why the one that the index names is not asked */
    const char *python, *baseline, *cores; /* or NULL */
    /* NULL: a run. A tune measures points of tune spaces and nothing else: of "starts", those that
     * ship; of a file (an absolute path); of a candidate in the store ("r3-c17"). */
    const char *kernel;
    enum tune_strategy tune_strategy;
    bool stable; /* a tune's winner must be so over the ladder of sizes: the caller's business */
    const char *devices;  /* GPUs: "0,2", or NULL: the first; a lane on each */
    const char *launcher; /* words before the worker's command, or NULL */
    const char *ca_file;  /* or NULL */
    int64_t branching, rounds, implementations, repairs, beam; /* beam 0: by `select` */
    enum strategy strategy;
    int64_t islands, migration; /* how many; rounds between visits */
    int64_t lanes;              /* workers; 0: one */
    int64_t tuning;             /* points tuned for free in each round with a model; -1: as many as
                                 * it writes, and on while it thinks */
    int64_t requests;           /* in flight for one key; 0: a round's, from 8 to 64 */
    double select;
    int64_t seed; /* the same seed proposes the same from the same answers */
    /* caps, each kept by reservation; 0: none */
    int64_t budget_ms, budget_evaluations, budget_micro_dollars, budget_tokens;
    uint64_t begun_ns; /* by clock_now_ns(): when budget_ms began to run; 0: with the search */
    /* early ends; 0: none */
    double target;                  /* speed-up, lower end of the interval */
    double floor_share;             /* of the problem's floor on this machine */
    int64_t patience;               /* rounds without a new best */
    int64_t mailbox_ms;             /* how long a run waits that waits for mailboxes alone */
    int64_t disk_quota, disk_floor; /* bytes: of the store's folder; left on its disk; 0: none */
    int64_t first_byte_ms, silence_ms, answer_ms; /* limits of a request; 0: usual */
    int64_t call_timeout_ms,
        time_budget_ms;     /* of one call; of one evaluation's samples; 0: usual */
    bool unfit;             /* goes on with a problem that lets null solutions pass */
    bool unconfined;        /* goes on where nothing keeps candidates from the evaluator */
    bool dry_run;           /* one candidate, then stop */
    int64_t passage_tokens; /* most that a prompt quotes of manuals; 0: nothing */
    bool lessons;           /* begins with what earlier runs have taught (default) */
    bool final;             /* measure the champion again, whole (default) */
    const char
        *choice; /* JSON object: how the caller chose its models, kept with the run; or NULL */
    const char *record; /* JSON object: all of this, kept with the run for a resume; or NULL */
    const char *resume; /* "r3": goes on with that run; NULL: a new one */
};
