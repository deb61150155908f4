/* agents/completion: asks a provider for completions: one engine a key, one task a request.
 * Loop thread only.
 *
 * A completion is on disk before its asker is woken, under the hash of its request, and a request
 * that is already there is never sent again. Faults are answered as agents/retry says, with one
 * gate for the key; what asking again cannot mend (quota, key, model, TLS, more patience asked than
 * we have) blocks the engine, and every request that waits ends with the reason. */
#ifndef AGENTS_COMPLETION_H
#define AGENTS_COMPLETION_H

#include "agents/providers/codec.h"
#include "agents/retry.h"
#include "base/buf.h"
#include "loop/loop.h"
#include "loop/slots.h"
#include "loop/task.h"
#include "loop/work.h"
#include "store/writer.h"

struct http;
struct http_request;
struct completions; /* opaque: the engine */

struct completions_spec { /* texts are copied */
    const struct codec *codec;
    const char *base_url, *key;        /* NULL: the codec's address; no key */
    unsigned in_flight;                /* requests at once; 0: 8 */
    uint64_t seed;                     /* of the jitter */
    const struct retry_policy *policy; /* NULL: the default; borrowed for the engine's life */
    uint64_t connect_ms, first_byte_ms, between_bytes_ms, total_ms; /* 0: loop/http's */
    const char *ca_file;                                            /* or NULL */
};

struct completions *completions_new(struct loop *loop, struct store *store,
                                    struct store_writer *writer,
                                    const struct completions_spec *spec, struct err *err);
void completions_free(struct completions *completions); /* NULL is fine; no ask may be running */

/* ERR_NONE, or why nothing more can be asked. */
const struct err *completions_blocked(const struct completions *completions);

struct completions_totals {
    int64_t requests, answers, from_store, retries; /* requests: sent, retries included */
    int64_t prompt_tokens, completion_tokens;
};
struct completions_totals completions_totals(const struct completions *completions);

struct ask { /* one request; zero-initialize, fill the first part; stays put until finished */
    struct task task;
    struct completion_request request; /* texts borrowed until finished */
    const char *purpose;               /* "ideas", "implement", "repair": kept with the answer */
    int64_t sample;                    /* tells requests with equal texts apart */
    /* the answer, once task.finished */
    struct arena *arena;          /* its memory, until ask_free() */
    struct completion completion; /* where err.code is ERR_NONE */
    enum fault fault;             /* the last one */
    struct err err;               /* ERR_CANCELLED after task_cancel() */
    char key[33];                 /* in STORE_COMPLETIONS */
    bool from_store;
    /* the engine's */
    struct completions *completions;
    struct http_request *http;
    struct codec_state *state;
    struct slot slot;
    struct timer timer;
    struct work work;
    struct store_write write;
    struct buf stored;
    struct err stored_err;
    uint64_t started_ns;
    int failures, malformed;
};

/* Starts it as a task under `parent`, which is woken at its end. */
void ask_start(struct completions *completions, struct ask *ask, struct task *parent,
               const char *id);
void ask_free(struct ask *ask); /* its arena; only once finished or never started */

#endif
