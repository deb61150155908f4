/* agents/search/parts_private: the pieces that a run is made of. Inside src/agents/search. */
#ifndef AGENTS_SEARCH_PARTS_PRIVATE_H
#define AGENTS_SEARCH_PARTS_PRIVATE_H

#include "agents/diagnosis/diagnosis.h"
#include "agents/lessons/memory.h"
#include "agents/llm/ask.h"
#include "agents/llm/budget.h"
#include "agents/prompt/prompt.h"
#include "agents/proposer/proposer.h"
#include "agents/record/record.h"
#include "agents/retrieve/retrieve.h"
#include "agents/search/search.h"
#include "agents/search/select.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/log.h"
#include "eval/candidate/candidate.h"
#include "eval/lane/lane.h"
#include "loop/loop.h"
#include "loop/slots.h"
#include "loop/work.h"
#include "store/store.h"
#include "store/writer.h"

enum {
    LANE_DEPTH = 3, /* candidates in one lane: measured, compiled, on its way */
    LANES_MAX = 64,
    ARMS_MAX = PROPOSER_STARTS_MAX,
    PARENTS_MAX = 8,
    ISLANDS_MAX = 16,
    POOL_MAX = 96, /* kept kernels that a run remembers; those beyond are on the disk */
    PAUSES_MAX = 100,
    FINAL_TRIES = 3,
    RUN_OFF = 5, /* finalists, timed in turns with each other */
    WORKER_DEATHS_MAX = 2,
    SHRINK_ALL = 12 /* steps after which nothing more can be left out of a prompt */
};

struct search;
struct attempt;

/* A source whose tune space the proposer searches: a shipped start, or a kernel that a model wrote.
 */
struct arm {
    struct search *search;
    const char *name; /* "packed.c" */
    const char *text;
    size_t length;
    char source_hash[33];
    const char *origin; /* candidate that wrote it, or "" for a shipped start */
    struct candidate *candidate;
    int number; /* in the proposer, or -1 */
    int island;
    struct proposer_space space;
    bool stored;
};

/* What a model was asked for, for a candidate that it writes. */
struct writing {
    struct arena *scratch; /* what its prompts are made of */
    struct idea idea;
    const struct attempt *parent; /* the kernel that it starts from; in search->kept */
    struct ask ask;
    bool asked;
    uint64_t tried;             /* models that failed at this question; see struct draw */
    struct retrieval retrieval; /* what its prompt quotes */
    bool retrieving, retrieved;
    int64_t sample;      /* which implementation of the idea */
    int64_t max_tokens;  /* more room after an answer that was cut off; 0: the model's */
    unsigned shrink;     /* after a prompt that was too long */
    const char *source;  /* the last answer's code, to be mended; NULL: nothing yet */
    const char *failure; /* "did not compile"; NULL: a first writing */
    const char *diagnostics;
    struct buf system, prompt;
};

/* The finalists, the best first; each is timed in turns with the first one of then. */
struct run_off {
    struct attempt *ranked[RUN_OFF];
    size_t count, next, entered; /* entered: how many there were */
    bool begun, over, stored;    /* stored: what was measured last is on its way to the disk */
};

/* What a candidate starts from, as it was when that was decided; its lesson compares with it. */
struct before {
    const char *limiter; /* NULL or "": not known */
    double time_ns, speedup, speedup_low, speedup_high;
};

/* One candidate on its way; see candidate.c. */
struct attempt {
    struct task task;
    struct search *search;
    struct link link; /* in search->running, then ->ended, then ->kept or freed */
    struct arena *arena;
    struct idea_record idea; /* written with the candidate where its id is new */
    struct candidate_record record;
    const struct candidate_record *recalled; /* as an earlier process left it; NULL: new */
    struct arm *arm;                         /* NULL until a model has written it */
    int island;
    struct names tune;
    struct before before;
    struct writing *writing; /* NULL: of the built-in proposer, or taken */
    bool wrote;              /* a model did: the source is its own, not a start's */
    struct slot slot, twin_slot;
    struct lane_place *place; /* the lane that it is in */
    bool in_lane, written;    /* waits for or has a place in the lanes; its source is there */
    bool stored, committing, submitted, answered, abandoned;
    int next_state;
    struct lane_request request;
    struct store_write write;
    unsigned deaths;
    /* of what is kept, whose evaluation is on the disk: its profile, and what it was measured by */
    const char *metrics, *baseline;
    enum finding finding;
    double baseline_ns, spread;
};

/* An identity that is being evaluated, or was in this round: nobody else with it is. Others of the
 * same round wait for the first one's verdict, which is theirs too. */
struct known {
    char identity[33];
    const struct attempt *first; /* whose evaluation it is */
    char *verdict;               /* the evaluation as JSON; NULL: not yet */
    struct slots slots;          /* one place: the first one's until it has its verdict */
};

struct settled { /* what is left of it when its round is over */
    struct hash mark;
    int64_t number;
};

/* Candidates of the built-in proposer, first to last: number k is proposed when exactly those
 * before k - window have been taken. */
struct chain {
    int64_t first, ideas_first, limit, window;
    int64_t proposed, taken;
    bool over, drained, has_proposal, tuning;
    struct proposal proposal;
    struct proposer *proposer;
    struct work work; /* proposer_next() computes for some milliseconds */
};

/* The index of manuals; while `work` is active it is the pool thread's. */
struct library {
    struct rag *rag; /* NULL: there is none */
    struct store *store;
    const char *folder;
    const struct model *embeds; /* whom the run would ask for vectors, or NULL */
    bool counts;
    struct work work;
    struct err err, no_vectors; /* no_vectors: why that one is not asked */
};

/* What a prompt is about: ideas where `writing` is NULL. */
struct search_about {
    struct arena *arena;
    const struct attempt *parent; /* or NULL */
    const struct writing *writing;
    int64_t repairs, first_idea, ideas;
};

struct lane_place {
    struct lane *lane;
    struct lane_request open;
    unsigned load;
    const char *cores, *device; /* device: a GPU, or NULL */
};

struct pause {
    uint64_t since_ms, until_ms; /* wall; until 0: it lasts */
    char reason[256];
};

#endif
