/* rag/words: text to index terms: words stemmed (libstemmer, English), identifiers whole and in
 * parts. Documents and queries go through the same door. One owner, any thread.
 *
 * `cp.async.bulk.tensor` gives itself, cp.async, cp.async.bulk, cp, async, bulk, tensor;
 * `cuda::barrier` itself, cuda, barrier; `__shfl_xor_sync` shfl_xor_sync, shfl, xor, sync;
 * `cudaMemcpyAsync` cudamemcpyasync, cuda, memcpi (stemmed), async. Case is folded, the underscores
 * around an identifier are dropped, stop words and single characters give nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { TERM_MAX = 96 }; /* bytes; a longer identifier gives its parts alone */

/* Changed whenever the same text gives other terms: an index of another version is built anew. */
enum { WORDS_VERSION = 1 };

enum word_kind { WORD_PLAIN, WORD_WHOLE, WORD_PART, WORD_PREFIX };

struct words; /* opaque */
struct words *words_new(void);
void words_free(struct words *words);

typedef void word_visit(void *context, const char *term, size_t length, enum word_kind kind);

/* Visits every term; returns how many words and identifiers there were, parts not counted: what a
 * field's length is. The text may hold any bytes. */
size_t words_each(struct words *words, const char *text, size_t length, word_visit *visit,
                  void *context);

/* Whether the word of `length` bytes is in a sorted list. */
bool words_among(const char *const *sorted, size_t count, const char *word, size_t length);
