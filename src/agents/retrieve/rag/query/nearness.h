/* rag/nearness: do the words of a query stand together in a passage as they do in the query? For
 * the files of this folder alone. */
#pragma once

#include "agents/retrieve/rag/query/query.h"

/* 0 to 1, by the worth of the query's pairs of neighbours: all of a pair where it stands in that
 * order, half where both are within four words. Takes as long as reading the text. */
float nearness(const struct query *query, struct words *words, const char *title, const char *text);
