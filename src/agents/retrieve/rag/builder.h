/* rag/builder: an inverted index of some passages in memory, while they are read: term -> ids and
 * impacts. One owner, any thread.
 *
 * The impact is BM25F's saturated weight of a term in a passage (Robertson & Zaragoza 2009, 3.6):
 *   w = sum over fields of boost_f * tf_f / (1 - b_f + b_f * length_f / usual_f);  w / (k1 + w)
 * in 1/255. The usual lengths are constants of the chunker's making, not means of the collection,
 * so that impacts stay true while documents come and go; df and N are read when a query is. A
 * passage's impacts are all scaled by what such passages are worth: prose 1, declarations less. */
#pragma once

#include "agents/retrieve/rag/query/words.h"
#include "agents/retrieve/rag/read/chunk.h"

#include <stddef.h>
#include <stdint.h>

/* Changed whenever the same words give other impacts. */
enum { BUILDER_VERSION = 4 };

struct index_builder;                                   /* opaque */
struct index_builder *builder_new(struct words *words); /* borrows it */
void builder_free(struct index_builder *builder);

/* Ids must ascend. */
void builder_add(struct index_builder *builder, uint32_t id, enum document_kind kind,
                 const struct passage *passage);

struct term_postings {
    const char *term;
    size_t length;
    uint32_t *ids;
    uint8_t *impacts;
    size_t count, capacity;
};
/* Sorted by term; borrowed until the next builder_add(). */
const struct term_postings *const *builder_terms(struct index_builder *builder, size_t *count);
