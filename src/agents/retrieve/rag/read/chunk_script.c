/* Python, and notebooks of it: a passage is a function or class with its decorators; a notebook's
 * cells of text are Markdown. */
#include "agents/retrieve/rag/read/chunker.h"
#include "base/value.h"

#include <ctype.h>
#include <string.h>

/* "def name(", "async def name(", "class name:": the name, and its length; 0: none. */
static size_t defined_name(const struct text_line *line, const char **name, bool *type)
{
    static const char *const words[] = {"class ", "def ", "async def "};
    const char *at = line->text + line->indent, *end = line->text + line->length;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t size = strlen(words[i]);
        if ((size_t)(end - at) <= size || memcmp(at, words[i], size) != 0)
            continue;
        *type = i == 0;
        *name = at + size;
        for (at = *name; at < end && (isalnum((unsigned char)*at) || *at == '_'); at++)
            ;
        return (size_t)(at - *name);
    }
    return 0;
}

static bool decorates(const struct text_line *line)
{
    return line->indent < line->length && line->text[line->indent] == '@';
}

struct piece {
    const char *start;
    size_t length;
    uint32_t line;
};

static void end_piece(struct chunker *chunker, struct piece *piece)
{
    if (piece->length > 0)
        chunker_code(chunker, piece->start, piece->length, piece->line, false);
    piece->length = 0;
}

void chunk_script(struct chunker *chunker, const char *text, size_t length)
{
    struct piece piece = {text, 0, 1};
    struct text_line line;
    uint32_t number = 0;
    bool decorated = false;
    for (size_t at = 0, from = 0; text_line_next(text, length, &at, &line); from = at) {
        const char *name;
        bool type = false;
        size_t found = line.indent <= 4 ? defined_name(&line, &name, &type) : 0;
        bool starts = found > 0 || (line.indent <= 4 && decorates(&line));
        number++;
        if ((starts && !decorated) || piece.length > PASSAGE_GOOD)
            end_piece(chunker, &piece);
        if (found > 0) {
            struct piece before = piece; /* decorators belong to what they decorate */
            if (!decorated)
                before.length = 0;
            chunker_heading(chunker, line.indent == 0 ? 2 : 3, name, found);
            piece = before;
        }
        decorated = starts && found == 0;
        if (piece.length == 0)
            piece = (struct piece){text + from, 0, number};
        piece.length = (size_t)(text + at - piece.start);
    }
    end_piece(chunker, &piece);
}

static void put_source(const struct value *source, struct buf *out)
{
    if (source == NULL)
        return;
    if (source->kind == VALUE_TEXT)
        buf_add_text(out, source->text);
    for (size_t i = 0; source->kind == VALUE_LIST && i < source->count; i++)
        if (source->items[i]->kind == VALUE_TEXT)
            buf_add_text(out, source->items[i]->text);
    buf_add_char(out, '\n');
}

void chunk_notebook(struct chunker *chunker, const char *text, size_t length)
{
    ARENA_LOCAL(arena);
    struct value *notebook;
    struct err ignored;
    if (value_parse_json(arena, "notebook", text, length, &notebook, &ignored) != 0)
        return;
    const struct value *cells = value_get(notebook, "cells");
    for (size_t i = 0; cells && cells->kind == VALUE_LIST && i < cells->count; i++) {
        const struct value *cell = cells->items[i];
        BUF_LOCAL(source, length + 2);
        put_source(value_get(cell, "source"), &source);
        if (strcmp(value_text(cell, "cell_type", ""), "markdown") == 0)
            chunk_markdown(chunker, buf_text(&source), source.length);
        else
            chunk_script(chunker, buf_text(&source), source.length);
    }
}
