/* reStructuredText: underlined (and overlined) titles, whose marks rank in the order in which they
 * come; literal blocks and code directives; the rest by blank lines. */
#include "agents/retrieve/rag/read/chunker.h"

#include <ctype.h>
#include <string.h>

enum { MARKS_MOST = 6 };

struct state {
    struct chunker *chunker;
    char marks[MARKS_MOST * 2]; /* mark and whether it was above too */
    int mark_count;
    const char *start, *end; /* the open paragraph */
    uint32_t line;
};

/* Three or more of the same mark and nothing else; 0: none. */
static char adornment(const struct text_line *line)
{
    size_t length = line->length;
    while (length > 0 && line->text[length - 1] == ' ')
        length--;
    if (line->indent > 0 || length < 3 || !ispunct((unsigned char)line->text[0]))
        return 0;
    for (size_t i = 1; i < length; i++)
        if (line->text[i] != line->text[0])
            return 0;
    return line->text[0];
}

static int level_of(struct state *state, char mark, bool over)
{
    for (int i = 0; i < state->mark_count; i++)
        if (state->marks[2 * i] == mark && state->marks[2 * i + 1] == (char)over)
            return i + 1;
    if (state->mark_count == MARKS_MOST)
        return MARKS_MOST;
    state->marks[2 * state->mark_count] = mark;
    state->marks[2 * state->mark_count + 1] = (char)over;
    return ++state->mark_count;
}

static void end_paragraph(struct state *state)
{
    if (state->start != NULL)
        chunker_prose(state->chunker, state->start, (size_t)(state->end - state->start),
                      state->line);
    state->start = NULL;
}

/* The lines from *at that are blank or deeper than `indent` are a literal block. */
static void literal(struct state *state, const char *text, size_t length, size_t *at,
                    uint32_t *number, size_t indent)
{
    const char *start = NULL, *end = NULL;
    uint32_t first = 0, lines = *number;
    struct text_line line;
    for (size_t next = *at; text_line_next(text, length, &next, &line);) {
        bool blank = text_line_blank(&line);
        if (!blank && line.indent <= indent)
            break;
        lines++;
        bool option = start == NULL && !blank && line.text[line.indent] == ':';
        if (!blank && !option) {
            if (start == NULL) {
                start = line.text;
                first = lines;
            }
            end = line.text + line.length;
        }
        *at = next;
        *number = lines;
    }
    if (start != NULL)
        chunker_code(state->chunker, start, (size_t)(end - start), first, true);
}

static bool begins(const struct text_line *line, const char *word)
{
    size_t length = strlen(word);
    return line->length - line->indent >= length &&
           memcmp(line->text + line->indent, word, length) == 0;
}

static bool is_code_directive(const struct text_line *line)
{
    return begins(line, ".. code-block::") || begins(line, ".. code::") ||
           begins(line, ".. sourcecode::") || begins(line, ".. literalinclude::");
}

static bool ends_in_colons(const struct text_line *line)
{
    return line->length >= 2 && line->text[line->length - 1] == ':' &&
           line->text[line->length - 2] == ':' && !begins(line, "..");
}

/* A title between two lines of marks, or above one; moves *at past the mark below. */
static bool title(struct state *state, const char *text, size_t length, size_t *at,
                  uint32_t *number, const struct text_line *line)
{
    struct text_line below;
    size_t next = *at;
    char over = adornment(line);
    if (over != 0) {
        struct text_line name;
        if (!text_line_next(text, length, &next, &name) || text_line_blank(&name) ||
            !text_line_next(text, length, &next, &below) || adornment(&below) != over)
            return false;
        chunker_heading(state->chunker, level_of(state, over, true), name.text, name.length);
        *number += 2;
    } else {
        if (line->indent > 0 || !text_line_next(text, length, &next, &below) ||
            adornment(&below) == 0)
            return false;
        chunker_heading(state->chunker, level_of(state, adornment(&below), false), line->text,
                        line->length);
        *number += 1;
    }
    *at = next;
    return true;
}

void chunk_rst(struct chunker *chunker, const char *text, size_t length)
{
    struct state state = {.chunker = chunker};
    struct text_line line;
    uint32_t number = 0;
    for (size_t at = 0; text_line_next(text, length, &at, &line);) {
        number++;
        if (text_line_blank(&line)) {
            end_paragraph(&state);
            continue;
        }
        if (state.start == NULL && title(&state, text, length, &at, &number, &line))
            continue;
        if (is_code_directive(&line)) {
            end_paragraph(&state);
            literal(&state, text, length, &at, &number, line.indent);
            continue;
        }
        if (state.start == NULL) {
            state.start = line.text;
            state.line = number;
        }
        state.end = line.text + line.length;
        if (ends_in_colons(&line)) {
            end_paragraph(&state);
            literal(&state, text, length, &at, &number, line.indent);
        }
    }
    end_paragraph(&state);
}
