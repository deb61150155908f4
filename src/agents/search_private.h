/* agents/search_private: the parts of a run that its files share. Inside src/agents/search*.c. */
#ifndef AGENTS_SEARCH_PRIVATE_H
#define AGENTS_SEARCH_PRIVATE_H

#include "agents/proposer.h"
#include "agents/record.h"
#include "agents/search.h"
#include "agents/select.h"
#include "base/list.h"
#include "base/log.h"
#include "base/random.h"
#include "eval/candidate.h"
#include "eval/lane.h"
#include "loop/loop.h"
#include "loop/slots.h"
#include "store/store.h"
#include "store/writer.h"

enum { LANE_DEPTH = 3, ARMS_MAX = PROPOSER_STARTS_MAX, FINAL_TRIES = 3, WORKER_DEATHS_MAX = 2 };

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
    int number; /* in the proposer */
    struct proposer_space space;
    bool stored;
};

/* One candidate on its way; see search_candidate.c. */
struct attempt {
    struct task task;
    struct search *search;
    struct link link; /* in search->running, then ->finished, then ->kept or freed */
    struct arena *arena;
    struct idea_record idea; /* written with the candidate where its id is new */
    struct candidate_record record;
    struct arm *arm;
    struct names tune;
    struct slot slot;
    bool stored, committing, submitted, answered, abandoned;
    int next_state;
    struct lane_request request;
    struct store_write write;
    unsigned deaths;
};

struct search {
    struct task task;
    struct search_options options;
    struct store *store;
    struct store_writer *writer;
    struct arena *arena;
    struct problem *problem;
    struct names facts;
    struct lane *lane;
    struct lane_request open, final;
    struct slots lane_slots;
    struct random random;
    struct proposer *proposer;
    struct arm arms[ARMS_MAX];
    size_t arm_count;
    struct arm *by_number[ARMS_MAX]; /* the proposer's numbers */
    struct list running, finished, kept;
    size_t in_flight;
    int64_t proposed, idea_number, event_number;
    bool exhausted;
    struct run_record record;
    char id[32];
    uint64_t started_ns;
    struct timer deadline, patience;
    unsigned stops;
    bool budget_reached, written_start, written_end, facts_written;
    struct store_write write;
    struct attempt *best; /* in kept */
    int final_try;
    bool final_done;
    struct attempt *finalist;
    struct evaluation champion; /* texts in final.arena */
    bool has_champion;
    double mean_evaluation_ns;
    const char *phase;
    struct err err;
};

/* --- search.c --- */
void search_fail(struct search *search,
                 const struct err *err); /* the run ends; first error counts */
bool search_stopping(const struct search *search);
void search_event(struct search *search, struct store_batch *batch, enum log_level level,
                  const char *kind, const char *subject, const char *format, ...) PRINTF_LIKE(6, 7);
void search_put_run(struct search *search, struct store_batch *batch);

/* --- search_candidate.c --- */
struct attempt *attempt_start(struct search *search, const struct proposal *proposal);
void attempt_abandon(struct attempt *attempt); /* stop it: cancels what it waits for */
void attempt_free(struct attempt *attempt);
bool attempt_is_kernel(const struct attempt *attempt);

/* --- search_start.c: arms, facts, words --- */
int search_load(struct search *search, struct err *err) MUST_USE; /* the problem and its starts */
int search_opened(struct search *search,
                  struct err *err) MUST_USE;                     /* after LANE_OPEN: facts, floor */
char *search_ceilings_key(const struct search_options *options); /* mem_free() it */
void search_idea_words(struct search *search, const struct proposal *proposal,
                       struct attempt *attempt);

/* --- search_final.c --- */
/* One step of the champion's last measurement; true when it has come to its end. */
bool search_final_step(struct search *search);

#endif
