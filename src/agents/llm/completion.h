/* agents/llm/completion: asks providers for completions: one endpoint a key at an address,
 * one task a request. Loop thread only.
 *
 * A completion is on disk, with its request, usage and cost, before its asker is woken, under the
 * hash of its request, and a request that is already there is never sent again; a refusal is kept
 * like an answer. Faults are answered as agents/llm/retry says. What asking again cannot mend
 * (quota, key, model, TLS) blocks the endpoint, failures in a row open its circuit breaker, more
 * patience asked than we have parks it until then: requests wait meanwhile, and
 * completions_endpoints() says why.
 *
 * A model behind a mailbox is asked by a file and answers by one beside it; a model that replays
 * takes the answers of a recorded run, by who asked. */
#pragma once

#include "agents/llm/budget.h"
#include "agents/llm/model.h"
#include "agents/llm/retry.h"
#include "loop/loop.h"
#include "store/writer.h"

struct completions; /* opaque: the engine */

struct completions_spec {  /* texts are copied */
    const char *run;       /* "r3": in the ledger and in mailboxes' file names */
    struct budget *budget; /* borrowed; NULL: no cap is kept and nothing is written to the ledger */
    unsigned in_flight;    /* requests of one key at once; 0: 8 */
    uint64_t seed;         /* of the jitter */
    const struct retry_policy *policy; /* NULL: the default; borrowed for the engine's life */
    /* 0: loop/http's. One that only pings ends after first_byte_ms + between_bytes_ms. */
    uint64_t connect_ms, first_byte_ms, between_bytes_ms, total_ms;
    const char *ca_file; /* or NULL */
};

struct completions *completions_new(struct loop *loop, struct store *store,
                                    struct store_writer *writer,
                                    const struct completions_spec *spec, struct err *err);
void completions_free(struct completions *completions); /* NULL is fine; no ask may be running */

/* No request is sent while held (a person's pause); those on their way end as usual. */
void completions_hold(struct completions *completions, bool held);
/* No batch that was cancelled is waited for any more; a later process takes what it answers. */
void completions_hurry(struct completions *completions);
bool completions_held(const struct completions *completions);

enum endpoint_state {
    ENDPOINT_READY,
    ENDPOINT_LIMITED,      /* a 429: until the time it asked for */
    ENDPOINT_PARKED,       /* the same, longer than we wait for in silence */
    ENDPOINT_BREAKER_OPEN, /* failed again and again: one request probes at a time */
    ENDPOINT_BLOCKED       /* quota, key, model or TLS: until a person mends it and resumes */
};

struct endpoint_view { /* texts borrowed until the next turn */
    const char *name;  /* "openai https://api.openai.com/v1" */
    enum endpoint_state state;
    bool embeds;                           /* of embeddings: no run waits for it */
    const char *reason;                    /* "" while ready */
    uint64_t since_wall_ms, until_wall_ms; /* 0: not known */
};

/* Why requests failed, or why an endpoint was not ready: all that had this reason. */
enum { CAUSES_MOST = 8 };
struct cause {
    enum endpoint_state state; /* ENDPOINT_READY: of single requests, which failed */
    int64_t times;
    uint64_t since_wall_ms, until_wall_ms; /* the first's, the last's; until 0: it lasts */
    uint64_t total_ms, began_wall_ms;      /* how long in all; the last one's begin */
    int64_t micro_dollars;                 /* what these requests cost */
    char reason[160];
};

struct model_view { /* what became of the requests to a model */
    const char *name;
    bool embeds;
    int64_t asked, answered, failed, cached; /* requests sent; cached: answered by the store */
    int64_t moved;                           /* asked of another one in its place */
    int64_t micro_dollars;
    struct cause failures[CAUSES_MOST];
    size_t failure_count;
    struct cause nothing[CAUSES_MOST]; /* answers that brought nothing, by why */
    size_t nothing_count;
};
/* Every model that was asked; returns how many. Names are borrowed for the engine's life. */
size_t completions_models(const struct completions *completions, struct model_view *views,
                          size_t most);
/* The same of its endpoint: when it was limited, parked, blocked, its breaker open. */
size_t completions_causes(const struct completions *completions, const char *model_name,
                          struct cause causes[CAUSES_MOST]);

struct ask;
/* An answer that came, was paid for and brought nothing: no ideas, no code, what was there before.
 */
void completions_note_nothing(const struct ask *ask, const char *reason);

/* A model that had better not be drawn now: blocked, parked, or the breaker open with no probe due.
 */
bool completions_avoided(struct completions *completions, const struct model *model);

/* Every endpoint that has been asked; returns how many. */
size_t completions_endpoints(const struct completions *completions, struct endpoint_view *views,
                             size_t most);

/* ERR_NONE while this model can still be asked; else why not, ever, in this process. */
const struct err *completions_blocked(const struct completions *completions,
                                      const struct model *model);

struct completions_totals {
    int64_t requests, answers, from_store, retries; /* requests: sent, retries included */
    int64_t prompt_tokens, completion_tokens;
    int64_t waiting; /* asks that have not ended */
    int64_t awaited; /* of these, those whose answer a mailbox has not yet */
};
struct completions_totals completions_totals(const struct completions *completions);
/* "12 requests in batch_abc, 3 done in 1:07", in hours and minutes; nothing where none is on its
 * way. */
void completions_say_batches(const struct completions *completions, struct buf *out);
