/* Plain text, and what pdftotext makes of a PDF: paragraphs by blank lines; form feeds begin pages;
 * short lines that begin with a number, as "3.2 Shared Memory" does, are taken for headings. */
#include "agents/retrieve/rag/read/chunker.h"

#include <ctype.h>
#include <string.h>

enum { HEADING_LONGEST = 80 };

/* "3.2.1. Bank Conflicts": 3, the number's depth, else 0. */
static int numbered_heading(const struct text_line *line)
{
    size_t at = line->indent, digits = 0;
    int depth = 0;
    if (line->length - line->indent > HEADING_LONGEST)
        return 0;
    while (at < line->length && (isdigit((unsigned char)line->text[at]) || line->text[at] == '.')) {
        if (line->text[at] == '.') {
            if (digits == 0)
                return 0;
            digits = 0;
        } else if (++digits > 2) {
            return 0;
        } else if (digits == 1) {
            depth++;
        }
        at++;
    }
    size_t blanks = at;
    while (at < line->length && line->text[at] == ' ')
        at++;
    if (depth == 0 || depth > 4 || at == blanks || at >= line->length ||
        !isupper((unsigned char)line->text[at]))
        return 0;
    char last = line->text[line->length - 1];
    return isalnum((unsigned char)last) || last == ')' || last == '?' ? depth : 0;
}

void chunk_plain(struct chunker *chunker, const char *text, size_t length)
{
    struct text_line line;
    const char *start = NULL, *end = NULL;
    uint32_t number = 0, first = 0;
    for (size_t at = 0; text_line_next(text, length, &at, &line);) {
        number++;
        bool new_page = line.length > 0 && line.text[0] == '\f';
        while (line.length > 0 && line.text[0] == '\f') {
            line.text++;
            line.length--;
            line.indent = line.indent ? line.indent - 1 : 0;
        }
        line.indent = 0;
        while (line.indent < line.length && isspace((unsigned char)line.text[line.indent]))
            line.indent++;
        int depth = text_line_blank(&line) ? 0 : numbered_heading(&line);
        if (start != NULL && (new_page || depth > 0 || text_line_blank(&line))) {
            chunker_prose(chunker, start, (size_t)(end - start), first);
            start = NULL;
        }
        if (depth > 0) {
            chunker_heading(chunker, depth + 1, line.text + line.indent, line.length - line.indent);
        } else if (!text_line_blank(&line)) {
            if (start == NULL) {
                start = line.text;
                first = number;
            }
            end = line.text + line.length;
        }
    }
    if (start != NULL)
        chunker_prose(chunker, start, (size_t)(end - start), first);
}
