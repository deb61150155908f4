/* agents/llm/providers/embeddings: texts to vectors by OpenAI's /embeddings, which vLLM, Ollama,
 * llama.cpp and most gateways speak too, as a codec like the others: the lines of a request's
 * prompt are the texts, and the answer's text has a line for each of their vectors. Pure; any
 * thread. https://platform.openai.com/docs/api-reference/embeddings */
#pragma once

#include "agents/llm/providers/codec.h"

#include <stddef.h>

extern const struct codec codec_embeddings; /* not found by codec_find(): it completes nothing */

/* Appends one text to a prompt, on a line of its own: control characters become blanks. */
void embeddings_add(struct buf *prompt, const char *text);

/* The vectors of an answer's text: [count][*dimensions] in the arena, each of length 1. NULL where
 * it has not exactly `count` of them. The same text always gives the same bits. */
const float *embeddings_read(struct arena *arena, const char *text, size_t count,
                             size_t *dimensions);
