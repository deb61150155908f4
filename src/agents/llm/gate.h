/* agents/llm/gate: one key at one address: who may send now. Loop thread only; inside the engine
 * (agents/llm/completion*.c). Slots for requests at once; a 429 closes it for everybody until the
 * time that was asked for; failures in a row break it, and one request at a time probes; what
 * asking again cannot mend blocks it. Each change of its state is one event.
 *
 * What lets it open again is looked at when somebody asks, so that no timer outlives the asks:
 * whoever waits keeps a timer for gate_opens_ns(). */
#ifndef AGENTS_LLM_GATE_H
#define AGENTS_LLM_GATE_H

#include "agents/llm/completion.h"
#include "loop/slots.h"

struct ask;

struct gate {
    struct link link; /* among the engine's */
    char *provider, *base_url, *key, *name;
    const struct retry_policy *policy;
    struct random *random;
    struct slots slots;
    unsigned capacity;
    bool embeds; /* for embeddings: their faults hold up nobody who writes */
    bool held, blocked;
    enum gate_state state;
    uint64_t since_wall_ms, until_wall_ms;
    struct err reason;
    uint64_t until_ns;   /* limited or parked before that; 0: neither */
    bool parked, broken; /* parked: the longer of the two kinds of patience */
    int failures, probes;
    uint64_t probe_ns;
    uint64_t rest_ns;           /* not probed before by who could ask another */
    const struct ask *prober;   /* whose request is out while it is broken */
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

struct gate *gate_new(const struct model *model, const struct retry_policy *policy,
                      struct random *random, unsigned capacity);
void gate_free(struct gate *gate);
bool gate_fits(const struct gate *gate, const struct model *model);

/* Looks at the clock, and lets in whom it can. */
void gate_update(struct gate *gate);
void gate_hold(struct gate *gate, bool held);

/* This ask, which has a slot, may send now; it becomes the one that probes where that is due. */
bool gate_admits(struct gate *gate, const struct ask *ask);
bool gate_is_shut(const struct gate *gate, const struct ask *ask); /* parked or broken: not soon */
/* The same for who could ask another: NULL, one that is not there yet. */
bool gate_rests(const struct gate *gate, const struct ask *ask);
uint64_t gate_opens_ns(const struct gate *gate);  /* when to look again; 0: somebody will say so */
uint64_t gate_rested_ns(const struct gate *gate); /* the same for who could ask another */

/* ERR_NONE, or why this model can never be asked through it. */
const struct err *gate_blocked(const struct gate *gate, const struct model *model);

/* What became of a request; `reason` without the key. */
void gate_succeeded(struct gate *gate); /* any answer that shows that the provider works */
/* `lost_ms`: how long it took until that was known. The longer, the longer a broken one rests
 * before who could ask another probes it. */
void gate_failed(struct gate *gate, const struct ask *ask, uint64_t lost_ms,
                 const struct err *reason);
/* It said nothing for so long, though others could be asked: broken at once. False: it was so
 * already, and this request tells nothing new. */
bool gate_silent(struct gate *gate, const struct ask *ask, uint64_t silent_ms,
                 const struct err *reason);
void gate_limit(struct gate *gate, uint64_t delay_ms, bool park, const struct err *reason);
void gate_block(struct gate *gate, const struct model *model, enum fault fault,
                const struct err *reason);
void gate_leave(struct gate *gate, const struct ask *ask); /* it ended, or turned back unsent */

/* The one for reasons alike, a new one where there is none (or the last where there is no room). */
struct cause *cause_of(struct cause *causes, size_t *count, enum gate_state state,
                       const char *reason); /* completion_models.c */
size_t gate_causes(const struct gate *gate, const char *model_name,
                   struct cause causes[CAUSES_MOST]);
size_t gate_views(const struct gate *gate, struct gate_view *views, size_t most);

#endif
