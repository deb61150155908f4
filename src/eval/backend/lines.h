/* eval/backend/lines: a compiler's words, line by line, as a candidate's author may see them. Any
 * thread. */
#pragma once

#include "base/buf.h"
#include "eval/candidate/candidate.h"

struct line {
    const char *text;
    size_t length;
};

bool line_next(const char **at, const char *end, struct line *line); /* false: that was the last */
const char *line_find(const struct line *line, const char *word);    /* NULL: it is not there */
bool line_begins(const struct line *line, const char *word);
/* "    12 | ": that line of the candidate's own source, cut. */
void line_quote(const struct candidate *candidate, long number, struct buf *out);
