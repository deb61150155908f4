/* agents/llm/embedding: vectors of the queries of a run's prompts, so that passages are ranked by
 * meaning too, asked for through agents/llm/completion like all that a run asks: its retries, its
 * budget, stored before used, found there when the run goes on. An endpoint of its own, so that
 * what ails it holds up nobody who writes. Loop thread only.
 *
 * What fails is said once in a run, and queries go by words alone for some minutes. */
#pragma once

#include "agents/llm/ask.h"

enum { EMBEDDING_LANES = 8 };

struct embedding {                       /* one a run; zero-initialize */
    struct model model;                  /* set by embedding_use(); its codec is NULL before */
    struct completions *completions;     /* borrowed */
    struct slots lanes[EMBEDDING_LANES]; /* by the text: equal ones follow each other, and all but
                                          * the first are answered by the store */
    uint64_t patience_ms;                /* a prompt waits no longer for what it can do without */
    uint64_t rests_until_ns;
    bool said;
};

/* `model`: one whose server speaks OpenAI's /embeddings; its texts are borrowed. */
void embedding_use(struct embedding *embedding, const struct model *model);
/* Why there will be no vectors, in the log, once. */
void embedding_say(struct embedding *embedding, const char *id, const char *why);

struct embedding_ask { /* zero-initialize; stays put until embedding_step() says that it is over */
    const char *const *texts; /* borrowed, and `id`, until it is over */
    size_t count;
    const char *id; /* of who asks: "r3-c17" */
    int64_t step;   /* which of its prompts */
    /* once over: [count][dimensions] in `arena`, or NULL: by words alone */
    const float *vectors;
    size_t dimensions;
    /* its own */
    struct ask ask;
    struct buf prompt;
    struct slot slot;
    struct timer patience;
    bool sent;
};

/* In each step of `owner` until it says true: it is over, and holds nothing but the vectors. With
 * `cancel` that comes soon. */
bool embedding_step(struct embedding *embedding, struct embedding_ask *asking, struct task *owner,
                    struct arena *arena, bool cancel);
