/* agents/llm/endpoint: one key at one address: who may send now. Loop thread only; inside
 * the engine (agents/llm/completion*.c). It has a concurrency limit (slots), a rate limit (after a
 * 429 all requests wait until the time that was asked for) and a circuit breaker. The breaker is
 * closed while requests get through, opens after failures in a row, and is half-open while one
 * request probes. What asking again cannot mend blocks the endpoint. Each change of its state is
 * one event.
 *
 * Time is looked at when somebody asks, so that no timer outlives the asks: whoever waits keeps a
 * timer for endpoint_retry_ns(). */
#pragma once

#include "agents/llm/completion.h"
#include "loop/slots.h"

struct ask;

struct endpoint {
    struct link link; /* among the engine's */
    char *provider, *base_url, *key, *name;
    const struct retry_policy *policy;
    struct random *random;
    struct slots slots;
    unsigned capacity;
    bool embeds;  /* for embeddings: their faults hold up nobody who writes */
    bool batches; /* requests go together, so that any number of them may */
    bool held, blocked;
    enum endpoint_state state;
    uint64_t since_wall_ms, until_wall_ms;
    struct err reason;
    uint64_t until_ns; /* limited or parked before that; 0: neither */
    bool parked;       /* the rate limit lasts longer than we wait for in silence */
    bool breaker_open; /* or half-open, where there is a prober */
    int failures, probes;
    uint64_t probe_ns;          /* when an open breaker lets one request probe */
    uint64_t avoid_ns;          /* not probed before by who could ask another */
    const struct ask *prober;   /* whose request probes a half-open breaker */
    struct list blocked_models; /* struct blocked_model */
    struct cause causes[CAUSES_MOST];
    size_t cause_count;
};

struct blocked_model {
    struct link link;
    char *wire_name, *name, *model; /* name: of the view; model: as the person named it */
    uint64_t since_wall_ms;
    struct err reason;
};

struct endpoint *endpoint_new(const struct model *model, const struct retry_policy *policy,
                              struct random *random, unsigned capacity);
void endpoint_free(struct endpoint *endpoint);
bool endpoint_fits(const struct endpoint *endpoint, const struct model *model);

/* Looks at the clock, and lets in whom it can. */
void endpoint_update(struct endpoint *endpoint);
void endpoint_hold(struct endpoint *endpoint, bool held);

/* This ask, which has a slot, may send now; it becomes the probe where one is due. */
bool endpoint_admits(struct endpoint *endpoint, const struct ask *ask);
bool endpoint_is_unavailable(const struct endpoint *endpoint,
                             const struct ask *ask); /* parked, or the breaker is open */
/* The same for who could ask another: NULL, one that is not there yet. */
bool endpoint_is_avoided(const struct endpoint *endpoint, const struct ask *ask);
uint64_t endpoint_retry_ns(
    const struct endpoint *endpoint); /* when to look again; 0: somebody will say so */
uint64_t
endpoint_avoided_until_ns(const struct endpoint *endpoint); /* the same for who could ask another */

/* ERR_NONE, or why this model can never be asked through it. */
const struct err *endpoint_blocked(const struct endpoint *endpoint, const struct model *model);

/* What became of a request; `reason` without the key. */
void endpoint_succeeded(
    struct endpoint *endpoint); /* any answer that shows that the provider works */
/* `lost_ms`: how long it took until that was known. The longer, the longer an open breaker is left
 * alone by who could ask another. */
void endpoint_failed(struct endpoint *endpoint, const struct ask *ask, uint64_t lost_ms,
                     const struct err *reason);
/* It said nothing for so long, though others could be asked: the breaker opens at once. False: it
 * was open already, and this request tells nothing new. */
bool endpoint_silent(struct endpoint *endpoint, const struct ask *ask, uint64_t silent_ms,
                     const struct err *reason);
void endpoint_limit(struct endpoint *endpoint, uint64_t delay_ms, bool park,
                    const struct err *reason);
void endpoint_block(struct endpoint *endpoint, const struct model *model, enum fault fault,
                    const struct err *reason);
void endpoint_leave(struct endpoint *endpoint,
                    const struct ask *ask); /* it ended, or turned back unsent */

/* The one for reasons alike, a new one where there is none (or the last where there is no room). */
struct cause *cause_of(struct cause *causes, size_t *count, enum endpoint_state state,
                       const char *reason); /* completion_models.c */
size_t endpoint_causes(const struct endpoint *endpoint, const char *model_name,
                       struct cause causes[CAUSES_MOST]);
size_t endpoint_views(const struct endpoint *endpoint, struct endpoint_view *views, size_t most);
