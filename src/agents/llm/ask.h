/* agents/llm/ask: one request for a completion, a task; agents/llm/completion is the engine that it
 * goes through and says what happens to it. Loop thread only. */
#pragma once

#include "agents/llm/completion.h"
#include "agents/llm/mailbox.h"
#include "base/buf.h"
#include "loop/slots.h"
#include "loop/task.h"
#include "loop/work.h"

struct http_request;
struct process;
struct endpoint; /* opaque: one key at one address */
struct batch;
struct batch_member;
struct replay;

/* Where an agent works on a candidate. */
struct ask_site {
    void *context;
    /* Makes its folder, with the request `text`, to which it may add, as a file; NULL with the
     * error. The asker removes it when the ask has ended. */
    const char *(*begin)(void *context, struct buf *text, struct err *err);
    /* In words what came of it; then any end of it is an answer. NULL: nothing. */
    const char *(*came)(void *context);
};

struct ask { /* one request; zero-initialize, fill the first part; stays put until finished */
    struct task task;
    const struct model *model;
    struct completion_request request; /* texts borrowed until finished; model, temperature and
                                        * max_tokens are filled in from `model` where not set */
    const char *purpose;               /* "ideas", "implement", "repair": kept with the answer */
    int64_t sample;                    /* tells requests with equal texts apart */
    const struct models *others; /* who can be asked in its place (itself among them is fine): then
                                  * it waits for no endpoint that is unavailable and for no model
                                  * for ever, but ends as `moved`. NULL: nobody can */
    const struct ask_site *site; /* of an agent's; NULL: it is asked as a program is. The answer's
                                  * text then says how it ended, and its last words */
    bool impatient; /* can be done without: few tries, and no waiting for an endpoint that is
                     * parked or whose breaker is open */
    int64_t step;   /* which request of this asker and purpose: 0, 1, ...; what a replay goes by */
    /* the answer, once task.finished */
    struct arena *arena;          /* its memory, until ask_free() */
    struct completion completion; /* where err.code is ERR_NONE */
    enum fault fault;             /* the last one; FAULT_TOO_LONG: shrink the prompt and ask anew */
    struct err err; /* ERR_CANCELLED after task_cancel(); ERR_LIMIT at the budget's cap */
    char key[33];   /* in STORE_COMPLETIONS */
    bool from_store;
    bool over_budget; /* err: the cap is reached */
    bool moved;       /* err: another is to be asked; its own model is unavailable now */
    /* the engine's */
    struct completions *completions;
    struct endpoint *endpoint; /* NULL: mailbox and replay */
    struct replay *replay;     /* or NULL */
    struct model_tally *tally;
    struct cause *noted; /* why it failed, until what that cost is known */
    struct http_request *http;
    struct process *process; /* in its place, where a program is asked; in this folder */
    const char *folder;
    struct batch *batch; /* or in its place; NULL */
    struct batch_member *member;
    struct codec_state *state;
    struct slot slot;
    struct timer timer;
    struct work work;
    struct store_write write;
    struct spend spend;
    struct mail mail;
    struct link all, link; /* link: in the queue for the budget */
    struct buf stored;
    struct err stored_err;
    uint64_t started_ns, sent_ns;
    uint64_t heard, heard_ns; /* of the codec's: how much, and when it last grew */
    int failures, malformed, empty, free_retries;
    int next;       /* the state after SETTLING */
    bool timed_out; /* the last time, so that this one goes on a connection of its own */
    bool awaited;   /* no answer lies in the mailbox yet */
    bool alias;     /* found in the store under another asker's name */
    bool renewed;   /* its key was refused, and is not asked for again */
    bool flooded;   /* an agent was stopped for what it printed */
};

/* Do a prompt and its answer go into what models.yaml says of the model (`context`)? By a cautious
 * guess of a token for every three bytes. Lowers max_tokens to what is left beside the prompt,
 * half of the whole at least; ERR_USAGE names the setting where that is not there. Nothing that
 * does not fit is sent: such an ask ends with FAULT_TOO_LONG. */
int ask_fit(const struct model *model, struct completion_request *request,
            struct err *err) MUST_USE;

/* Starts it as a task under `parent`, which is woken at its end. `id`: "r3-c17", "r3-round2". */
void ask_start(struct completions *completions, struct ask *ask, struct task *parent,
               const char *id);
/* Of an answered one: what a later request may have for its `earlier`; NULL: nothing. */
const char *ask_turns(struct arena *arena, const struct ask *ask);
void ask_free(struct ask *ask);  /* its arena; only once finished or never started */
void ask_bound(struct ask *ask); /* looks whether an agent prints too much, and stops it */
