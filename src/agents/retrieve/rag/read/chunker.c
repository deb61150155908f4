#include "agents/retrieve/rag/read/chunker.h"

#include "base/mem.h"

#include <string.h>

static const char *const kind_names[DOCUMENT_KINDS] = {"markdown", "html", "rst",    "plain",
                                                       "source",   "pdf",  "script", "notebook"};

const char *document_kind_name(enum document_kind kind)
{
    return kind < DOCUMENT_KINDS ? kind_names[kind] : "?";
}

bool text_line_next(const char *text, size_t length, size_t *at, struct text_line *line)
{
    if (*at >= length)
        return false;
    const char *start = text + *at, *newline = memchr(start, '\n', length - *at);
    line->text = start;
    line->length = newline ? (size_t)(newline - start) : length - *at;
    *at += line->length + (newline != NULL);
    if (line->length > 0 && line->text[line->length - 1] == '\r')
        line->length--;
    line->indent = 0;
    while (line->indent < line->length &&
           (line->text[line->indent] == ' ' || line->text[line->indent] == '\t'))
        line->indent++;
    return true;
}

bool text_line_blank(const struct text_line *line)
{
    return line->indent == line->length;
}

/* Bytes of `text` up to `most` that end no letter of UTF-8 in its middle. */
static size_t whole_letters(const char *text, size_t length, size_t most)
{
    if (length <= most)
        return length;
    while (most > 0 && ((unsigned char)text[most] & 0xc0) == 0x80)
        most--;
    return most;
}

static void set_heading(char *heading, const char *text, size_t length)
{
    size_t used = 0;
    length = whole_letters(text, length, HEADING_MOST);
    for (size_t i = 0; i < length; i++) { /* runs of blanks and controls become one blank */
        bool blank = (unsigned char)text[i] <= ' ';
        if (!blank)
            heading[used++] = text[i];
        else if (used > 0 && heading[used - 1] != ' ')
            heading[used++] = ' ';
    }
    while (used > 0 && heading[used - 1] == ' ')
        used--;
    heading[used] = '\0';
}

static void chunker_start(struct chunker *chunker, const char *name, struct passage_list *list)
{
    *chunker = (struct chunker){.list = list};
    buf_init(&chunker->text, (size_t)64 << 20);
    set_heading(chunker->headings[0], name, strlen(name));
}

void chunker_heading(struct chunker *chunker, int level, const char *text, size_t length)
{
    chunker_flush(chunker);
    int at = level < 1 ? 0 : level > HEADING_LEVELS ? HEADING_LEVELS - 1 : level - 1;
    set_heading(chunker->headings[at], text, length);
    for (int i = at + 1; i < HEADING_LEVELS; i++)
        chunker->headings[i][0] = '\0';
}

static const char *path_text(struct chunker *chunker, int innermost)
{
    BUF_LOCAL(path, HEADING_LEVELS * (HEADING_MOST + 8));
    for (int i = 0; i < innermost; i++) {
        if (chunker->headings[i][0] == '\0')
            continue;
        if (path.length > 0)
            buf_add_text(&path, " > ");
        buf_add_text(&path, chunker->headings[i]);
    }
    return arena_strndup(chunker->list->arena, buf_text(&path), path.length);
}

static struct passage *append(struct passage_list *list)
{
    MEM_MORE(list->items, list->count, list->capacity);
    return &list->items[list->count++];
}

void chunker_flush(struct chunker *chunker)
{
    struct arena *arena = chunker->list->arena;
    size_t length = chunker->text.length;
    while (length > 0 && chunker->text.data[length - 1] == '\n')
        length--;
    if (length > 0) {
        int innermost = HEADING_LEVELS - 1;
        while (innermost > 0 && chunker->headings[innermost][0] == '\0')
            innermost--;
        struct code_span *spans = arena_array(arena, chunker->span_count + 1, sizeof *spans);
        for (size_t i = 0; i < chunker->span_count; i++)
            spans[i] = chunker->spans[i];
        for (size_t i = 0; i < chunker->span_count; i++)
            if (spans[i].end > length)
                spans[i].end = (uint32_t)length;
        *append(chunker->list) =
            (struct passage){.title = arena_strdup(arena, chunker->headings[innermost]),
                             .path = path_text(chunker, innermost),
                             .text = arena_strndup(arena, chunker->text.data, length),
                             .length = length,
                             .line = chunker->line,
                             .spans = spans,
                             .span_count = chunker->span_count};
    }
    buf_reset(&chunker->text);
    chunker->span_count = 0;
    chunker->prose = false;
}

static void open_at(struct chunker *chunker, uint32_t line)
{
    if (chunker->text.length == 0)
        chunker->line = line;
    else
        buf_add_char(&chunker->text, '\n');
}

/* Where to cut prose that is too long: after a line, else a sentence, else a word, else anywhere.
 */
static size_t cut_at(const char *text, size_t length)
{
    size_t most = whole_letters(text, length, PASSAGE_GOOD);
    size_t line = 0, sentence = 0, word = 0;
    for (size_t i = most / 3; i < most; i++) {
        if (text[i] == '\n')
            line = i + 1;
        else if (text[i] == ' ' && i > 0 && strchr(".!?;", text[i - 1]) != NULL)
            sentence = i + 1;
        else if (text[i] == ' ')
            word = i + 1;
    }
    return line ? line : sentence ? sentence : word ? word : most > 0 ? most : length;
}

void chunker_prose(struct chunker *chunker, const char *text, size_t length, uint32_t line)
{
    while (length > 0 && (unsigned char)text[length - 1] <= ' ')
        length--;
    if (length == 0)
        return;
    if (chunker->text.length > 0 && chunker->text.length + length > PASSAGE_GOOD)
        chunker_flush(chunker);
    while (length > PASSAGE_MOST) {
        size_t cut = cut_at(text, length);
        open_at(chunker, line);
        buf_add(&chunker->text, text, cut);
        chunker_flush(chunker);
        for (size_t i = 0; i < cut; i++)
            line += text[i] == '\n';
        text += cut;
        length -= cut;
    }
    open_at(chunker, line);
    buf_add(&chunker->text, text, length);
    buf_add_char(&chunker->text, '\n');
    chunker->prose = true;
}

void chunker_code(struct chunker *chunker, const char *text, size_t length, uint32_t line,
                  bool fence)
{
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
        length--;
    if (length == 0)
        return;
    if (chunker->text.length > 0 && chunker->text.length + length > PASSAGE_MOST)
        chunker_flush(chunker);
    open_at(chunker, line);
    if (fence)
        buf_add_text(&chunker->text, "```\n");
    MEM_MORE(chunker->spans, chunker->span_count, chunker->span_capacity);
    uint32_t start = (uint32_t)chunker->text.length;
    buf_add(&chunker->text, text, length);
    chunker->spans[chunker->span_count++] =
        (struct code_span){start, (uint32_t)chunker->text.length};
    buf_add_text(&chunker->text, fence ? "\n```\n" : "\n");
    if (chunker->text.length > PASSAGE_GOOD)
        chunker_flush(chunker);
}

static void chunker_end(struct chunker *chunker)
{
    chunker_flush(chunker);
    buf_free(&chunker->text);
    mem_free(chunker->spans);
    chunker->spans = NULL;
}

void chunk_document(enum document_kind kind, const char *name, const char *text, size_t length,
                    struct passage_list *list)
{
    static void (*const readers[DOCUMENT_KINDS])(struct chunker *, const char *, size_t) = {
        [DOCUMENT_MARKDOWN] = chunk_markdown, [DOCUMENT_HTML] = chunk_html,
        [DOCUMENT_RST] = chunk_rst,           [DOCUMENT_PLAIN] = chunk_plain,
        [DOCUMENT_SOURCE] = chunk_source,     [DOCUMENT_PDF] = chunk_plain,
        [DOCUMENT_SCRIPT] = chunk_script,     [DOCUMENT_NOTEBOOK] = chunk_notebook};
    struct chunker chunker;
    chunker_start(&chunker, name, list);
    readers[kind](&chunker, text, length);
    chunker_end(&chunker);
}

void passage_list_free(struct passage_list *list)
{
    mem_free(list->items);
    *list = (struct passage_list){.arena = list->arena};
}
