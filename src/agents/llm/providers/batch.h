/* agents/llm/providers/batch: requests that go together, for half the price and an answer within a
 * day: what is each provider's own of that, pure. A batch is made with a name of ours, looked at
 * until it has ended, and its results are told apart by the id that each request had. Any thread.
 */
#pragma once

#include "agents/llm/providers/codec.h"
#include "base/value.h"

struct batch_item {
    const char *id; /* up to 64 letters, digits and "-" */
    const struct completion_request *request;
};

enum batch_step { BATCH_UPLOAD, BATCH_CREATE, BATCH_LOOK, BATCH_FETCH, BATCH_CANCEL, BATCH_LIST };

struct batch_place {
    const struct codec *codec;
    const char *base_url, *key, *model;
    const char *name; /* the batch's, by us */
};

struct batch_call { /* in the arena; a secret is in the headers */
    const char *method, *url;
    const char *const *headers;
};

enum { BATCH_SOURCES = 2 };

struct batch_view { /* texts in the arena of what was read */
    const char *id; /* by the provider */
    const char *name;
    bool ended; /* no result comes any more */
    int64_t done, total;
    const char *sources[BATCH_SOURCES]; /* what BATCH_FETCH takes; NULL: nothing there */
    const struct value *results;        /* a list of them, where they come with the view; or NULL */
    const char *left;                   /* ended: what became of requests without a result */
    enum fault fault; /* all of it was refused, and nothing is billed: for this `reason` */
    const char *reason;
};

struct batch_result {
    const char *id;
    const struct value *answer; /* as the provider answers one request; NULL: */
    enum fault fault;           /* nothing was billed */
    const char *reason;
};

struct batch_format {
    bool uploads; /* a file with the requests goes first, and its id is what BATCH_CREATE takes */
    bool named;   /* BATCH_LIST tells our name for a batch */
    size_t requests_most, bytes_most;
    /* The requests as one body, of BATCH_UPLOAD or of BATCH_CREATE. */
    void (*put)(struct arena *arena, const struct batch_place *place,
                const struct batch_item *items, size_t count, struct buf *out);
    /* `what`: the id of the file, the batch or the source that the step is about; or NULL. */
    const char *(*path)(struct arena *arena, const struct batch_place *place, enum batch_step step,
                        const char *what);
    void (*view)(struct arena *arena, const struct value *object, struct batch_view *view);
    void (*result)(struct arena *arena, const struct value *object, struct batch_result *result);
};

const struct batch_format *batch_format_of(const struct codec *codec); /* NULL: it has none */

struct batch_call batch_call_of(struct arena *arena, const struct batch_place *place,
                                enum batch_step step, const char *what);
/* OpenAI's second body: of the file with the requests. */
void batch_put_create(const struct batch_place *place, const char *file, struct buf *out);
/* ERR_PROTOCOL where it is none, or its id could not stand in an address. */
int batch_read_view(struct arena *arena, const struct batch_place *place, const struct value *root,
                    struct batch_view *view, struct err *err) MUST_USE;
/* Of BATCH_LIST's answer: the one with our name; NULL. */
const struct value *batch_find(struct arena *arena, const struct batch_place *place,
                               const struct value *root);
