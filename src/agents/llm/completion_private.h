/* agents/llm/completion_private: what the engine's files share. Inside
 * src/agents/llm/completion*.c. */
#pragma once

#include "agents/llm/ask.h"
#include "agents/llm/command.h"
#include "agents/llm/endpoint.h"
#include "agents/llm/key_command.h"
#include "agents/llm/replay.h"
#include "loop/http.h"
#include "loop/process.h"
#include "store/store.h"

enum ask_state {
    LOOKING_UP,
    WAITING,   /* for its endpoint */
    RESERVING, /* for its budget, which has to be on disk */
    SENDING,
    SETTLING, /* what became of its money goes to disk */
    BACKING_OFF,
    MAILING,   /* an answer is awaited beside its request's file */
    REPLAYING, /* looked for in a recorded run */
    STORING,
    ENDED,
    ASK_STATES
};

struct model_tally {
    struct link link;
    char *name;
    struct model_view view;
    const struct endpoint *endpoint; /* or NULL */
    uint64_t word_ms, answer_ms;     /* the longest until the first word, until the end */
    unsigned silences;               /* since its last answer: given up for others */
    bool cuts;                       /* it has been said that its server cuts prompts */
};

struct completions {
    struct loop *loop;
    struct store *store;
    struct store_writer *writer;
    struct http *http;
    const struct retry_policy *policy;
    char *run, *ca_file;
    struct budget *budget;
    uint64_t connect_ms, first_byte_ms, between_bytes_ms, total_ms;
    unsigned capacity;
    bool held;
    struct random random;
    bool hurried; /* no batch is waited for any more */
    struct list endpoints, replays, tallies;
    struct list batches;      /* struct batch */
    struct list asks;         /* every struct ask that has not ended, by `all` */
    struct list budget_queue; /* those that wait for room in the budget, by `link` */
    struct completions_totals totals;
};

/* --- completion.c --- */
struct endpoint *completions_endpoint(struct completions *completions, const struct model *model);
struct replay *completions_replay(struct completions *completions, const char *run);
void completions_wake(struct completions *completions,
                      const struct endpoint *endpoint); /* NULL: all */

struct endpoint *
completions_find_endpoint(const struct completions *completions,
                          const struct model *model); /* NULL: it was never asked */

/* --- completion_models.c --- */
struct model_tally *completions_tally(struct completions *completions, const struct model *model);
void completions_free_tallies(struct completions *completions);
void ask_note_failure(struct ask *ask, const struct err *err);
void ask_note_word(const struct ask *ask, uint64_t ms); /* its first, after so long */
void ask_note_answer(const struct ask *ask);
bool ask_has_others(const struct ask *ask);   /* one of ask->others could be asked now */
uint64_t ask_looks_ns(const struct ask *ask); /* when one of its models may be asked; 0: never */
/* How long it is waited for while others could be asked: without a word, or for its end. */
uint64_t ask_patience_ms(const struct ask *ask, bool heard);

/* --- completion_ask.c: ends, and what comes between two states --- */
enum task_result ask_end(struct ask *ask);
enum task_result ask_fail(struct ask *ask, enum fault fault, const struct err *err);
/* Its slot, its places in queues, its part as a probe. */
void ask_let_go(struct ask *ask);
/* Puts `batch` on disk (NULL: nothing has to), then goes on in state `next`. */
enum task_result ask_settle(struct ask *ask, struct store_batch *batch, int next);
void ask_hide_key(const struct model *model, struct err *err);
/* Stores what ask->completion holds; `batch` has what else belongs to it, or is NULL. */
enum task_result ask_store(struct ask *ask, struct store_batch *batch, const char *reason);

/* --- completion_money.c --- */
/* Does the ask have what its request may cost, on disk? ASK_BROKE fills *err. */
enum ask_money { ASK_PAID, ASK_WAITS, ASK_BROKE };
enum ask_money ask_reserve(struct ask *ask, struct err *err);
int64_t ask_max_tokens(const struct ask *ask); /* as sent; 0: none is */
enum spend_end {
    SPEND_RELEASED,
    SPEND_LOST, /* nothing came back: what it cost is not known */
    SPEND_CUT,  /* a part came back */
    SPEND_SETTLED,
    SPEND_KEPT /* stays reserved in the ledger: a later process takes the answer */
};
void ask_look_at_usage(const struct ask *ask); /* a prompt that was cut in silence is said once */
/* Closes what is reserved; NULL where nothing is. */
struct store_batch *ask_close_spend(struct ask *ask, enum spend_end how);
void ask_leave_budget(struct ask *ask); /* its place in the queue */

/* --- completion_send.c --- */
int ask_send(struct ask *ask, struct err *err) MUST_USE;
enum task_result ask_step_sending(struct ask *ask);
struct store_batch *ask_stop_sending(struct ask *ask); /* gives up on what is on its way */

/* What became of a request. */
struct verdict {
    enum fault fault;
    struct err err; /* a line for people */
    int64_t after_ms;
    bool alive;     /* an answer, if not the one that was asked for */
    bool malformed; /* whole as HTTP, not as an answer */
    bool told;      /* the endpoint has heard of it already: of a batch, from its first request */
    bool tls, stale;
    enum spend_end money;
};
enum task_result ask_judged(struct ask *ask, const struct verdict *verdict);
void ask_judge_status(const struct http_request *http, struct verdict *verdict); /* not 200 */
/* Of an answer that came whole, and is none: `fault` as answer_finish() says. */
void ask_judge_answer(const struct ask *ask, enum fault fault, struct verdict *verdict);

/* --- completion_command.c: a program is asked --- */
int ask_start_command(struct ask *ask, struct err *err) MUST_USE;
enum task_result ask_step_command(struct ask *ask);
bool ask_stops_command(struct ask *ask); /* it has not ended yet, and is told to */
void ask_free_command(struct ask *ask);  /* one that has ended; harmless where there is none */

/* --- completion_key.c --- */
/* True where the key may be used now; else its command runs, and all that wait are woken at its
 * end. One that failed leaves the old key for half a minute. */
bool key_is_ready(struct completions *completions, const struct model *model);

/* --- completion_offline.c: where nobody is asked over a network --- */
enum task_result ask_step_mailing(struct ask *ask);
enum task_result ask_step_replaying(struct ask *ask);
