/* agents/llm/providers/codec: a provider's format, pure: a request to bytes, bytes to text and
 * usage, a status to a class. No I/O; one HTTP engine (agents/llm/completion) drives them all. Any
 * thread. */
#ifndef AGENTS_LLM_PROVIDERS_CODEC_H
#define AGENTS_LLM_PROVIDERS_CODEC_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct completion_request {
    const char *model;
    const char *system, *prompt;
    double temperature; /* < 0: the provider's default */
    int64_t max_tokens; /* 0: the provider's default */
    bool json;          /* asks for a JSON object where the provider can */
    const char *schema; /* of that object, where the provider holds a model to one; or NULL */
};

struct completion {
    char *text;                               /* in the arena; valid UTF-8 */
    int64_t prompt_tokens, completion_tokens; /* -1: the provider did not say */
    const char *finish;                       /* "stop", "length", "refused", ... */
    const char *model;                        /* as the provider names it, or "" */
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

struct codec_state; /* opaque: one answer being read; lives in the arena given to begin() */

struct codec {
    const char *name;         /* "openai" */
    const char *default_url;  /* "https://api.openai.com/v1" */
    const char *key_variable; /* "OPENAI_API_KEY" */
    /* Method is POST. `url` and NULL-terminated `headers` go to the arena; the key stands in a
     * header, so headers are never logged. */
    void (*encode)(struct arena *arena, const struct completion_request *request,
                   const char *base_url, const char *key, const char **url,
                   const char *const **headers, struct buf *body);
    struct codec_state *(*begin)(struct arena *arena);
    /* ERR_PROTOCOL on bytes that are not the format; an error event inside a 200 fills `fault`. */
    int (*feed)(struct codec_state *state, const char *bytes, size_t length, struct err *err);
    /* ERR_PROTOCOL where the terminal event never came. Called exactly once for each begin(), on
     * every path: it also gives back what the state holds outside of the arena. */
    int (*finish)(struct codec_state *state, struct completion *completion, enum fault *fault,
                  struct err *err);
    uint64_t (*heard)(const struct codec_state *state); /* grows; but not with pings, comments */
    /* Of a status other than 200: its class and a line for people, without the key. */
    enum fault (*classify)(int status, const char *body, size_t length, struct buf *reason);
    /* GET, and free: where the provider describes the model, so that a wrong key, address or name
     * is found before the work. NULL where it cannot be asked. */
    void (*describe)(struct arena *arena, const char *model, const char *base_url, const char *key,
                     const char **url, const char *const **headers);
    /* The class of describe()'s answer. FAULT_NONE: the model is there, or the server cannot say
     * (it does not describe models); a 404 is the model's only where the body speaks of it. */
    enum fault (*described)(const char *model, int status, const char *body, size_t length,
                            struct buf *reason);
    int64_t (*patience_ms)(const char *body, size_t length); /* -1: an error's body asks for none */
    int64_t max_tokens; /* sent where the request says none, since the API needs one; 0: none is */
    bool embeds;        /* its answers are numbers, of no tokens; its endpoint is nobody else's */
};

extern const struct codec codec_openai, codec_anthropic, codec_gemini;

const struct codec *codec_find(const char *name); /* NULL where there is none of that name */

#endif
