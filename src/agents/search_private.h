/* agents/search_private: the parts of a run that its files share. Inside src/agents/search*.c. */
#ifndef AGENTS_SEARCH_PRIVATE_H
#define AGENTS_SEARCH_PRIVATE_H

#include "agents/ask.h"
#include "agents/prompt.h"
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

/* What a model was asked for, for a candidate that it writes. */
struct writing {
    struct idea idea;
    const struct attempt *parent; /* the kernel that it starts from; in search->kept */
    struct ask ask;
    bool asked;
    int64_t sample;      /* which implementation of the idea */
    int64_t max_tokens;  /* more room after an answer that was cut off; 0: the run's */
    const char *source;  /* the last answer's code, to be mended; NULL: nothing yet */
    const char *failure; /* "did not compile"; NULL: a first writing */
    const char *diagnostics;
    struct buf system, prompt;
};

/* One candidate on its way; see search_candidate.c. */
struct attempt {
    struct task task;
    struct search *search;
    struct link link; /* in search->running, then ->finished, then ->kept or freed */
    struct arena *arena;
    struct idea_record idea; /* written with the candidate where its id is new */
    struct candidate_record record;
    struct arm *arm; /* NULL until a model has written it */
    struct names tune;
    struct writing *writing; /* NULL: of the built-in proposer */
    struct slot slot;
    bool in_lane, written; /* has or waits for a place in the lane; its source is there */
    bool stored, committing, submitted, answered, abandoned;
    int next_state;
    struct lane_request request;
    struct store_write write;
    unsigned deaths;
    bool runs_off, ran_off; /* is among the finalists; has been measured again as one */
};

/* A source with its numbers that has been evaluated: it is not evaluated again. */
struct known {
    char identity[33];
    const char *id;
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
    size_t in_flight; /* attempts that have not ended */
    size_t lane_load; /* those that are in the lane, or wait for it */
    int64_t proposed, idea_number, event_number;
    bool exhausted;
    struct run_record record;
    char id[32];
    uint64_t started_ns;
    struct timer deadline, patience;
    unsigned stops;
    /* with a model */
    struct completions *completions;
    struct prompts *prompts;
    struct prompt_context context;
    struct model_round *round; /* the one under way */
    struct prompt_attempt *history;
    size_t history_count, history_capacity;
    int64_t tuned; /* points measured for free since the round began */
    bool rounds_over;
    const char *provider_stopped; /* why no more can be asked, or NULL */
    struct known *known;          /* identities that have been evaluated */
    size_t known_count, known_capacity;
    bool budget_reached, written_start, written_end, facts_written;
    struct store_write write;
    struct attempt *best; /* in kept */
    int final_try;
    bool run_off_begun, run_off_over;
    bool final_done;
    struct attempt *finalist;
    struct evaluation champion; /* texts in final.arena */
    bool has_champion;
    double first_ended_ms; /* when the first evaluation had ended: it pays for what all share */
    const char *phase;
    bool searching; /* in the phase of that name: rates make sense */
    struct err err;
};

/* --- search.c --- */
extern const struct task_type search_type;
void search_fail(struct search *search,
                 const struct err *err); /* the run ends; first error counts */
bool search_stopping(const struct search *search);
void search_event(struct search *search, struct store_batch *batch, enum log_level level,
                  const char *kind, const char *subject, const char *format, ...) PRINTF_LIKE(6, 7);
void search_put_run(struct search *search, struct store_batch *batch);

int64_t search_attempts_most(const struct search *search);
const char *search_stop_reason(const struct search *search); /* "" for none */
double search_elapsed_ms(const struct search *search);

/* --- search_candidate.c --- */
struct attempt *attempt_start(struct search *search, const struct proposal *proposal);
/* A model is to write it: idea `number`, implementation `sample`; its round waits for it. */
struct attempt *attempt_start_writing(struct search *search, struct task *round,
                                      const struct idea *idea, const char *idea_id,
                                      const struct attempt *parent, int64_t sample);
void attempt_abandon(struct attempt *attempt); /* stop it: cancels what it waits for */
void attempt_free(struct attempt *attempt);
bool attempt_is_kernel(const struct attempt *attempt);

/* --- search_writing.c: one step of WRITING --- */
enum writing_result { WRITING_WAIT, WRITING_DONE, WRITING_FAILED }; /* reason in the record */
enum writing_result writing_step(struct attempt *attempt);
/* Sends it back with what went wrong; false where no repair is left. */
bool writing_repair(struct attempt *attempt, const char *failure, const char *diagnostics);
void writing_free(struct writing *writing);

/* --- search_round.c: rounds of ideas from a model --- */
int search_model_open(struct search *search, struct err *err) MUST_USE;
bool search_model_rounds(struct search *search); /* starts what is due; false when all is over */
void search_model_stop(struct search *search);
void search_model_close(struct search *search);
void search_remember(struct search *search, const struct attempt *attempt); /* for the history */

/* --- search_start.c: arms, facts, words --- */
int search_load(struct search *search, struct err *err) MUST_USE; /* the problem and its starts */
int search_arm_add(struct search *search, struct arm *arm);       /* its number, or -1 */
int search_opened(struct search *search,
                  struct err *err) MUST_USE; /* after LANE_OPEN: facts, floor */
int search_open_lane(struct search *search); /* search->err says why not */
void search_put_ceilings(struct search *search, struct store_batch *batch);
void search_idea_words(struct search *search, const struct proposal *proposal,
                       struct attempt *attempt);

/* --- search_final.c --- */
/* One step of the champion's last measurement; true when it has come to its end. */
bool search_final_step(struct search *search);

#endif
