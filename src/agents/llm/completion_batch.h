/* agents/llm/completion_batch: requests that go to a provider together, for half the price and an
 * answer within a day. An ask that has all it needs joins a batch in place of being sent, and is
 * woken with its part of what came of it. Inside src/agents/llm/completion*.c.
 *
 * What a batch holds is in STORE_FACTS ("batch/r3/NAME") before the provider hears of it, and the
 * provider's id as soon as it is known; so a killed run finds it again, and its reservations stay
 * open until then. */
#pragma once

#include "agents/llm/completion_private.h"
#include "agents/llm/providers/batch.h"

struct batch_member {
    char key[33];       /* of its completion, and its id in the batch */
    struct ask *ask;    /* NULL: none in this process yet, or it has left */
    bool joined, ended; /* joined: ever; ended: what follows is known */
    const char *answer; /* JSON in the batch's arena; NULL: */
    struct verdict fault;
};

struct batch {
    struct task task;
    struct completions *completions;
    struct link link; /* among the engine's */
    struct arena *arena;
    const struct batch_format *format;
    const struct model *model; /* of who joined first; NULL: nobody has since a kill */
    struct endpoint *endpoint;
    const char *name, *provider, *base_url, *wire_name;
    const char *id; /* by the provider; NULL: not known */
    struct batch_member **members;
    size_t count, capacity, joined; /* joined: have not left */
    size_t bytes;                   /* of its requests, about */
    bool recalled, kept;            /* kept: its record stays, for a later process */
    int64_t done;                   /* of its requests, as the provider says */
    uint64_t created_ms;            /* wall clock */
    /* the task's */
    struct arena *scratch; /* of the call under way */
    struct http_request *http;
    struct timer timer, grace;
    struct store_write write;
    const char *file, *sources[BATCH_SOURCES];
    struct verdict failure; /* of making it: told where no batch is found */
    uint64_t first_ns, rest_ms;
    bool stopping, cancelled, renewed; /* renewed: since a look that was heard */
    const char *left;
    int troubles; /* looks that failed in a row */
};

/* --- completion_batch.c: members, and the record --- */
void batch_join(struct ask *ask);
bool batch_recall(struct ask *ask); /* joins the one of an earlier process that has its request */
/* False: it has to wait for what comes of the batch, which is told that nobody wants it. */
bool batch_leaves(struct ask *ask);
void batch_leave(struct ask *ask); /* whatever it had to do is done; harmless where it is in none */
enum task_result ask_step_batched(struct ask *ask);
void batches_free(struct completions *completions);
int batches_recall(struct completions *completions, struct err *err) MUST_USE;
void batch_put_record(const struct batch *batch, struct store_batch *out);
void batch_remove_record(const struct batch *batch, struct store_batch *out);

/* --- completion_batch_task.c --- */
enum batch_state {
    GATHERING,
    NOTING,
    UPLOADING,
    CREATING,
    NAMING,
    RESTING,
    LOOKING,
    FETCHING,
    CANCELLING,
    SEEKING,
    HANDING,
    CLEARING,
    OVER,
    BATCH_STATES
};
extern const struct task_type batch_type;
bool batch_gathers(const struct batch *batch);
/* Asks the provider whether it was made. */
enum task_result batch_seek(struct batch *batch);

/* --- completion_batch_call.c --- */
enum { BATCH_BODY_MOST = 256 << 20, BATCH_SOON_MS = 1000 };
struct batch_place batch_place_of(const struct batch *batch);
/* Moves to `state`, in which what the call says is awaited. */
enum task_result batch_call(struct batch *batch, enum batch_state state, enum batch_step step,
                            const char *what, const struct buf *body);
void batch_drop_call(struct batch *batch);
const struct value *batch_parse(struct arena *arena, const char *text, size_t length);
/* The answer's body, as one object, as a batch; else the verdict says what is wrong. */
const char *batch_heard(struct batch *batch, size_t *length, struct verdict *verdict);
const struct value *batch_heard_object(struct batch *batch, struct verdict *verdict);
bool batch_heard_view(struct batch *batch, struct batch_view *view, struct verdict *verdict);
void batch_end_member(struct batch_member *member, const struct verdict *verdict);
/* All that have no end yet get this one. The first tells the endpoint, for all. */
enum task_result batch_hand_out(struct batch *batch, const struct verdict *verdict);
enum task_result batch_dissolve(struct batch *batch, const struct verdict *verdict);
enum task_result batch_keep(struct batch *batch, enum fault fault, const struct err *err);
enum task_result batch_rest(struct batch *batch, uint64_t ms);
uint64_t batch_next_look_ms(struct batch *batch);

/* --- completion_batch_look.c --- */
enum task_result batch_step_resting(struct batch *batch);
enum task_result batch_step_cancelling(struct batch *batch);
enum task_result batch_step_looking(struct batch *batch);
enum task_result batch_step_fetching(struct batch *batch);
