/* agents/llm/completion_record: a completion as it lies in STORE_COMPLETIONS. Pure; any thread. */
#pragma once

#include "agents/llm/providers/codec.h"
#include "base/value.h"

struct completion_use {                /* who asked for what: what a replay goes by */
    const char *run, *asker, *purpose; /* "r3", "r3-c17", "implement" */
    int64_t step;
};

struct completion_origin { /* where an answer comes from and what it took */
    struct completion_use use;
    const char *provider, *model; /* "openai", and the model as the person named it */
    const char *reason;           /* of a refusal; "" or NULL */
    int64_t sample, tries;
    int64_t cost_micro_dollars; /* < 0: not known */
    uint64_t elapsed_ns;
};

/* Identity of a request: everything that the provider is told, where it is asked, and `sample`,
 * which tells apart requests that ask for another answer to the same words. */
void completion_key(const char *provider, const char *place,
                    const struct completion_request *request, int64_t sample, char key[33]);

/* In STORE_FACTS: {"model": name} of who answered, "draw/r3-c17/implement/0". */
void completion_draw_key(const char *asker, const char *purpose, int64_t step, char key[256]);

/* One JSON object: run, asker, purpose, step, sample, provider, model, tries, cost_micro_dollars,
 * ended_ms, elapsed_ms, request{...}, answer{...}. */
void completion_encode(const struct completion_request *request,
                       const struct completion *completion, const struct completion_origin *origin,
                       struct buf *out);

/* Texts go to the arena. ERR_CORRUPT where the record is not one. */
int completion_decode(struct arena *arena, const char *text, size_t length,
                      struct completion *completion, struct err *err) MUST_USE;

/* The same answer served another request: writes the record with that use added into `out`, or
 * returns false where it has it already (or is an old one that cannot be read). */
bool completion_adopt(const char *text, size_t length, const struct completion_use *use,
                      struct buf *out);

/* Calls `visit` with each use that the record knows of. */
typedef void completion_visit(void *context, const struct completion_use *use);
void completion_uses(const struct value *root, completion_visit *visit, void *context);
