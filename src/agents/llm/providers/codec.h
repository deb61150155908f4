/* agents/llm/providers/codec: what is a provider's own of its format, pure: a request to bytes, an
 * object of the answer to text and usage. What all have in common is answer.h and fault.h. No I/O;
 * one HTTP engine (agents/llm/completion) drives them all. Any thread. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct value;

struct completion_request {
    const char *model;
    const char *system, *prompt;
    size_t shared;      /* bytes at the prompt's beginning that the run's other prompts have, too */
    const char *cache;  /* how long the provider keeps these where it must be asked to; or NULL */
    double temperature; /* < 0: the provider's default */
    int64_t max_tokens; /* 0: the provider's default */
    bool json;          /* asks for a JSON object where the provider can */
    const char *schema; /* of that object, where the provider holds a model to one; or NULL */
    bool whole;         /* its answer comes as one document, not as a stream: in a batch */
    const struct value *body; /* a map of more fields of the request, by a person; or NULL */
    /* The turns before this one, in the provider's form (request_turns()); or NULL. A help, no part
     * of the question: with and without it is the same request. */
    const char *earlier;
};

struct completion {
    char *text;                               /* in the arena; valid UTF-8 */
    int64_t prompt_tokens, completion_tokens; /* -1: the provider did not say */
    int64_t cached_tokens, written_tokens;    /* of the prompt's: from its cache, put into it; 0 */
    int64_t billed_micro; /* what the provider says that it bills, in millionths of a dollar; 0: it
                             does not say */
    const char *finish;   /* "stop", "length", "refused", ... */
    const char *model;    /* as the provider names it, or "" */
    const char *turn;     /* for a later request's `earlier`, where it has thoughts that only the
                             provider can read; else NULL */
};

enum fault {
    FAULT_NONE,
    FAULT_RETRY,    /* 408, 409, 5xx, 529, resets, truncated streams */
    FAULT_LIMITED,  /* 429: wait, all requests of that key */
    FAULT_QUOTA,    /* insufficient_quota, 402: pause the run with the reason */
    FAULT_KEY,      /* 401, 403 */
    FAULT_MODEL,    /* 404 */
    FAULT_TOO_LONG, /* context length, 413 */
    FAULT_REFUSED,  /* refusal, content filter */
    FAULT_FATAL,    /* other 4xx, wrong content type, TLS */
    FAULT_EMPTY     /* a whole answer with nothing in it: asked once more */
};

struct codec_state; /* one answer being read: answer.h */

struct codec {
    const char *name;         /* "openai" */
    const char *default_url;  /* "https://api.openai.com/v1" */
    const char *key_variable; /* "OPENAI_API_KEY" */
    /* Method is POST. `url` and NULL-terminated `headers` go to the arena; the key stands in a
     * header, so headers are never logged. */
    void (*encode)(struct arena *arena, const struct completion_request *request,
                   const char *base_url, const char *key, const char **url,
                   const char *const **headers, struct buf *body);
    /* Reads one object: an event's data, or the whole answer. What it keeps it copies to the
     * state's arena. Errors inside ("error" at the top) are read before it is called. */
    void (*read)(struct codec_state *state, const struct value *object);
    /* GET, and free: where the provider describes the model, so that a wrong key, address or name
     * is found before the work. NULL where it cannot be asked. */
    void (*describe)(struct arena *arena, const char *model, const char *base_url, const char *key,
                     const char **url, const char *const **headers);
    int64_t max_tokens; /* sent where the request says none, since the API needs one; 0: none is */
    bool embeds;        /* its answers are numbers, of no tokens; its endpoint is nobody else's */
};

extern const struct codec codec_openai, codec_responses, codec_anthropic, codec_gemini;
extern const struct codec codec_command, codec_agent; /* programs: none of the functions is there */

const struct codec *codec_find(const char *name); /* NULL where there is none of that name */
