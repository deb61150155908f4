/* rag/gather: an inverted index of some passages in memory, while they are read: term -> ids and
 * impacts. One owner, any thread.
 *
 * The impact is BM25F's saturated weight of a term in a passage (Robertson & Zaragoza 2009, 3.6):
 *   w = sum over fields of boost_f * tf_f / (1 - b_f + b_f * length_f / usual_f);  w / (k1 + w)
 * in 1/255. The usual lengths are constants of the chunker's making, not means of the collection,
 * so that impacts stay true while documents come and go; df and N are read when a query is. A
 * passage's impacts are all scaled by what such passages are worth: prose 1, declarations less. */
#ifndef RAG_GATHER_H
#define RAG_GATHER_H

#include "agents/retrieve/rag/chunk.h"
#include "agents/retrieve/rag/words.h"

#include <stddef.h>
#include <stdint.h>

/* Changed whenever the same words give other impacts. */
enum { GATHER_VERSION = 4 };

struct gather;                                  /* opaque */
struct gather *gather_new(struct words *words); /* borrows it */
void gather_free(struct gather *gather);

/* Ids must ascend. */
void gather_passage(struct gather *gather, uint32_t id, enum document_kind kind,
                    const struct passage *passage);

struct gathered {
    const char *term;
    size_t length;
    uint32_t *ids;
    uint8_t *impacts;
    size_t count, capacity;
};
/* Sorted by term; borrowed until the next gather_passage(). */
const struct gathered *const *gather_terms(struct gather *gather, size_t *count);

#endif
