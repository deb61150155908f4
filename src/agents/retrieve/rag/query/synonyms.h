/* rag/synonyms: what the field calls by several names. A query's word also finds the others, for a
 * part of its weight; documents are indexed as they are. One owner, any thread. */
#pragma once

#include "agents/retrieve/rag/query/words.h"

struct synonyms;                                    /* opaque */
struct synonyms *synonyms_new(struct words *words); /* borrows it for the call */
void synonyms_free(struct synonyms *synonyms);

/* Visits the other names of an indexed term (as words_each() gave it), as indexed terms. */
void synonyms_each(const struct synonyms *synonyms, const char *term, size_t length,
                   word_visit *visit, void *context);
