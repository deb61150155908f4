/* rag/query: what a query asks for: terms with weights, in the order of its words. For the files of
 * this folder alone. */
#pragma once

#include "agents/retrieve/rag/query/messages.h"
#include "agents/retrieve/rag/query/postings.h"
#include "agents/retrieve/rag/query/synonyms.h"
#include "agents/retrieve/rag/query/words.h"

#include <stdbool.h>

enum { QUERY_TERMS_MOST = 48 };

struct query_term {
    char text[TERM_MAX + 1];
    size_t length;
    float weight; /* by kind and count; search.c multiplies it by the idf */
    bool plain;   /* a word, no identifier */
    bool other;   /* another name of a word of the query, or what a message stands for */
    size_t place; /* which term of the query it was, or is another name of */
    struct postings postings; /* search.c's */
};

struct query {
    struct query_term terms[QUERY_TERMS_MOST]; /* search.c sorts them: `place` stays */
    size_t count;
    size_t
        sequence[QUERY_TERMS_MOST]; /* places of the words and parts, as they follow each other */
    size_t sequence_count;
    float worth[QUERY_TERMS_MOST]; /* by place; 0 for terms that the index lacks: search.c's */
};

void query_read(struct query *query, const char *text, struct words *words,
                const struct synonyms *synonyms, const struct messages *messages);
