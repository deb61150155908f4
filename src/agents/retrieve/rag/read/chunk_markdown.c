/* Markdown: ATX and setext headings, fenced and indented code, everything else by blank lines. */
#include "agents/retrieve/rag/read/chunker.h"

#include <string.h>

struct state {
    struct chunker *chunker;
    const char *start; /* of the open paragraph; NULL: none */
    const char *end;
    uint32_t line; /* where it starts */
};

static void end_paragraph(struct state *state)
{
    if (state->start != NULL)
        chunker_prose(state->chunker, state->start, (size_t)(state->end - state->start),
                      state->line);
    state->start = NULL;
}

/* "## Title ##": 1 to 6 and the text between, else 0. */
static int atx_heading(const struct text_line *line, const char **text, size_t *length)
{
    size_t at = line->indent, level = 0;
    if (line->indent > 3)
        return 0;
    while (at + level < line->length && line->text[at + level] == '#')
        level++;
    at += level;
    if (level < 1 || level > 6 || (at < line->length && line->text[at] != ' '))
        return 0;
    size_t end = line->length;
    while (end > at && (line->text[end - 1] == ' ' || line->text[end - 1] == '\t'))
        end--;
    size_t hashes = end;
    while (hashes > at && line->text[hashes - 1] == '#')
        hashes--;
    if (hashes > at && line->text[hashes - 1] == ' ') /* "C#" keeps its own */
        end = hashes;
    *text = line->text + at;
    *length = end - at;
    return (int)level;
}

/* A line of = or - below a paragraph of one line. */
static int setext_level(const struct text_line *line)
{
    if (line->indent > 3 || line->indent == line->length)
        return 0;
    char mark = line->text[line->indent];
    if (mark != '=' && mark != '-')
        return 0;
    for (size_t i = line->indent; i < line->length; i++)
        if (line->text[i] != mark && line->text[i] != ' ')
            return 0;
    return mark == '=' ? 1 : 2;
}

/* How many of ` or ~ open a fence; 0: none. */
static size_t fence_length(const struct text_line *line, char *mark)
{
    if (text_line_blank(line))
        return 0;
    size_t length = 0;
    *mark = line->text[line->indent];
    if (*mark != '`' && *mark != '~')
        return 0;
    while (line->indent + length < line->length && line->text[line->indent + length] == *mark)
        length++;
    if (length < 3)
        return 0;
    size_t rest = line->indent + length;
    if (*mark == '`' && memchr(line->text + rest, '`', line->length - rest) != NULL)
        return 0; /* ```code``` in one line */
    return length;
}

static bool closes(const struct text_line *line, char mark, size_t length)
{
    char other;
    size_t own = fence_length(line, &other);
    if (own < length || other != mark)
        return false;
    for (size_t i = line->indent + own; i < line->length; i++)
        if (line->text[i] != ' ' && line->text[i] != '\t')
            return false;
    return true;
}

/* From the line after the opening fence to the closing one, or to the end of the document. */
static void fenced(struct state *state, const char *text, size_t length, size_t *at,
                   uint32_t *number, char mark, size_t fence)
{
    const char *start = text + *at, *end = start;
    uint32_t first = *number + 1;
    struct text_line line;
    while (text_line_next(text, length, at, &line)) {
        ++*number;
        if (closes(&line, mark, fence))
            break;
        end = text + *at;
    }
    chunker_code(state->chunker, start, (size_t)(end - start), first, true);
}

static void indented(struct state *state, const char *text, size_t length, size_t *at,
                     uint32_t *number, const struct text_line *first)
{
    const char *start = first->text, *end = first->text + first->length;
    uint32_t first_line = *number;
    struct text_line line;
    for (size_t next = *at; text_line_next(text, length, &next, &line);) {
        if (!text_line_blank(&line) && line.indent < 4 && line.text[0] != '\t')
            break;
        ++*number;
        *at = next;
        if (!text_line_blank(&line))
            end = line.text + line.length;
    }
    chunker_code(state->chunker, start, (size_t)(end - start), first_line, true);
}

/* YAML between --- lines at the top is for a site's generator. */
static size_t skip_front_matter(const char *text, size_t length, uint32_t *number)
{
    size_t at = 0;
    struct text_line line;
    if (!text_line_next(text, length, &at, &line) || line.length != 3 ||
        memcmp(line.text, "---", 3) != 0)
        return 0;
    uint32_t lines = 1;
    while (text_line_next(text, length, &at, &line)) {
        lines++;
        if (line.length == 3 && memcmp(line.text, "---", 3) == 0) {
            *number = lines;
            return at;
        }
    }
    return 0;
}

static void one_line(struct state *state, const struct text_line *line, uint32_t number)
{
    const char *heading;
    size_t heading_length;
    int level = atx_heading(line, &heading, &heading_length);
    if (level > 0) {
        end_paragraph(state);
        chunker_heading(state->chunker, level, heading, heading_length);
        return;
    }
    bool single = state->start != NULL && number == state->line + 1;
    if (single && (level = setext_level(line)) > 0 && state->start[0] != '|') {
        chunker_heading(state->chunker, level, state->start, (size_t)(state->end - state->start));
        state->start = NULL;
        return;
    }
    if (state->start == NULL) {
        state->start = line->text;
        state->line = number;
    }
    state->end = line->text + line->length;
}

void chunk_markdown(struct chunker *chunker, const char *text, size_t length)
{
    struct state state = {.chunker = chunker};
    struct text_line line;
    uint32_t number = 0;
    size_t at = skip_front_matter(text, length, &number);
    bool list = false; /* in a list, deep indentation is its own */
    while (text_line_next(text, length, &at, &line)) {
        char mark;
        size_t fence;
        number++;
        if (text_line_blank(&line)) {
            end_paragraph(&state);
        } else if ((fence = fence_length(&line, &mark)) > 0) {
            end_paragraph(&state);
            fenced(&state, text, length, &at, &number, mark, fence);
        } else if (state.start == NULL && !list && line.indent >= 4) {
            indented(&state, text, length, &at, &number, &line);
        } else {
            if (line.indent == 0)
                list = line.length > 1 && (strchr("-*+", line.text[0]) != NULL ||
                                           (line.text[0] >= '0' && line.text[0] <= '9'));
            one_line(&state, &line, number);
        }
    }
    end_paragraph(&state);
}
