/* rag/embed: texts to vectors, by a server that speaks OpenAI's /embeddings, for `twagent docs`.
 * Any thread but a loop's: it runs a loop of its own until all answers are there. A run asks by
 * agents/llm/embedding. */
#pragma once

#include "agents/retrieve/rag/rag.h"

enum { EMBED_BATCH = 64, EMBED_TEXT_MOST = 6000, EMBED_DIMENSIONS_MOST = 8192 };

struct embedder {      /* texts borrowed */
    const char *url;   /* "https://api.openai.com/v1" */
    const char *key;   /* or NULL */
    const char *model; /* as the server calls it */
    const char *name;  /* as the person does */
    const char *ca_file;
};

/* `count` texts, at most EMBED_BATCH; of each the first EMBED_TEXT_MOST bytes are sent. *vectors:
 * [count][*dimensions] in the arena, of length 1. Asks again, up to four times, where the server is
 * busy or out of reach. ERR_NETWORK with its status or what was wrong; never the key. */
int embed_texts(const struct embedder *embedder, const char *const *texts, size_t count,
                struct arena *arena, float **vectors, size_t *dimensions, struct err *err) MUST_USE;

/* Asks for vectors of every passage that has none of this model's, some at a time, each lot there
 * for good once it is answered; another model's are dropped. ERR_BUSY where another process changes
 * the documents, ERR_NETWORK. */
int rag_embed(struct rag *rag, const struct embedder *embedder, size_t *embedded,
              struct err *err) MUST_USE;
/* Sets query->vector, in the arena. ERR_NOT_FOUND where the index has no vectors of that model. */
int rag_embed_query(struct rag *rag, const struct embedder *embedder, struct arena *arena,
                    struct rag_query *query, struct err *err) MUST_USE;

/* Does the index have vectors of this model (as the server calls it)? ERR_NOT_FOUND says how it
 * comes to have them. */
int rag_has_vectors(struct rag *rag, const char *model, struct err *err) MUST_USE;
/* Whose vectors the index has: as the person named it, and its address; both "" where it has none,
 * or an earlier version of the program asked for them. */
int rag_embedded_by(struct rag *rag, struct arena *arena, const char **name, const char **url,
                    struct err *err) MUST_USE;
