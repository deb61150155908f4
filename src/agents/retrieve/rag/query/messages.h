/* rag/messages: what CUDA prints of an error, and what headers call it. A question that quotes a
 * message is one about its enumerators, whose comments say it in other words. One owner, any
 * thread. */
#pragma once

#include "agents/retrieve/rag/query/words.h"

struct messages;                                    /* opaque */
struct messages *messages_new(struct words *words); /* borrows it for the call */
void messages_free(struct messages *messages);

/* Visits the enumerators, as indexed terms, of the longest message that stands in a query, whose
 * words are indexed terms in their order. */
void messages_each(const struct messages *messages, const char *const *terms, size_t count,
                   word_visit *visit, void *context);
