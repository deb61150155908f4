/* rag/embed: texts to vectors, by a server that speaks OpenAI's /embeddings.
 * Any thread but a loop's: it runs a loop of its own until all answers are there. */
#ifndef RAG_EMBED_H
#define RAG_EMBED_H

#include "base/arena.h"
#include "base/err.h"

#include <stddef.h>

enum { EMBED_BATCH = 64, EMBED_TEXT_MOST = 6000, EMBED_DIMENSIONS_MOST = 8192 };

struct embedder {      /* texts borrowed */
    const char *url;   /* "https://api.openai.com/v1" */
    const char *key;   /* or NULL */
    const char *model; /* as the server calls it */
    const char *ca_file;
};

/* `count` texts, at most EMBED_BATCH; of each the first EMBED_TEXT_MOST bytes are sent. *vectors:
 * [count][*dimensions] in the arena, of length 1. Asks again, up to four times, where the server is
 * busy or out of reach. ERR_NETWORK with its status or what was wrong; never the key. */
int embed_texts(const struct embedder *embedder, const char *const *texts, size_t count,
                struct arena *arena, float **vectors, size_t *dimensions, struct err *err) MUST_USE;

#endif
