/* agents/llm/providers/answer: how an answer of any format is read: a stream of events, or one JSON
 * document from servers that ignore `stream`, told apart by the first byte; text, usage and the way
 * it ended gathered up; the rules of what counts as an answer. A format adds how one of its JSON
 * objects is read. One owner, any thread. */
#pragma once

#include "agents/llm/providers/codec.h"
#include "agents/llm/providers/plain.h"
#include "agents/llm/providers/sse.h"
#include "base/value.h"

struct codec_state {
    struct arena *arena;
    const struct codec *codec;
    struct sse sse;
    struct buf text, whole; /* whole: an answer that is not streamed */
    struct plain plain;
    bool by_tree; /* every event, for whoever wants to compare */
    bool begun, streamed;
    bool done;    /* the format's last event was there; what follows is skipped */
    bool refused; /* by the model or a filter */
    int64_t prompt_tokens, completion_tokens, cached_tokens, written_tokens, billed_micro;
    uint64_t heard;     /* events and bytes that say something */
    const char *finish; /* "stop", "length", "refused", or the format's own word; NULL: not yet */
    const char *model;
    const char *turn;
    enum fault fault; /* an error that came as an event */
    struct err error;
};

struct codec_state *answer_begin(struct arena *arena, const struct codec *codec); /* in the arena */
/* ERR_PROTOCOL on bytes that are not the format; an error event inside a 200 fills `fault`. */
int answer_feed(struct codec_state *state, const char *bytes, size_t length, struct err *err);
uint64_t answer_heard(const struct codec_state *state); /* grows; not with pings, comments */
/* ERR_PROTOCOL where the terminal event never came. Called exactly once for each answer_begin(), on
 * every path: it also gives back what the state holds outside of the arena. */
int answer_finish(struct codec_state *state, struct completion *completion, enum fault *fault,
                  struct err *err);

/* An error object inside the answer; only the first one counts. */
void answer_fail(struct codec_state *state, const struct value *error);
void answer_set_model(struct codec_state *state, const char *name);    /* NULL is fine */
void answer_set_finish(struct codec_state *state, const char *reason); /* copied */

/* A count of `usage`: -1 where it is absent, negative or no integer. */
int64_t answer_count(const struct value *usage, const char *key);
/* What a provider's cache gave of the prompt, and took; 0 where it is not said. Events say it
 * again: only a larger count replaces what was said. */
void answer_cache(struct codec_state *state, int64_t cached, int64_t written);
/* a + b, where an absent one counts as 0; -1 where both are absent or the sum cannot be. */
int64_t answer_sum(int64_t a, int64_t b);
