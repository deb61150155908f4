#include "eval/backend/lines.h"

#include <ctype.h>
#include <string.h>

bool line_next(const char **at, const char *end, struct line *line)
{
    if (*at >= end)
        return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    line->text = *at;
    line->length = (size_t)((stop != NULL ? stop : end) - *at);
    *at = stop != NULL ? stop + 1 : end;
    return true;
}

const char *line_find(const struct line *line, const char *word)
{
    return memmem(line->text, line->length, word, strlen(word));
}

bool line_begins(const struct line *line, const char *word)
{
    size_t length = strlen(word);
    return line->length >= length && memcmp(line->text, word, length) == 0;
}

void line_quote(const struct candidate *candidate, long number, struct buf *out)
{
    enum { QUOTE_MAX = 160 };
    const char *at = candidate->source, *end = at + candidate->length;
    struct line line = {NULL, 0};
    for (long i = 1; i <= number; i++)
        if (!line_next(&at, end, &line))
            return;
    size_t shown = line.length < QUOTE_MAX ? line.length : QUOTE_MAX;
    buf_addf(out, "%6ld | ", number);
    for (size_t i = 0; i < shown; i++)
        buf_add_char(out, iscntrl((unsigned char)line.text[i]) ? ' ' : line.text[i]);
    buf_add_text(out, shown < line.length ? "...\n" : "\n");
}
