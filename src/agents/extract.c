#include "agents/extract.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum { DEPTH_MAX = 8 };

struct span {
    const char *start;
    size_t length;
};

struct fence {
    char mark;
    size_t width;
    const char *body; /* of the outermost one only */
};

struct line {
    const char *start, *end, *next; /* end is before the newline */
};

static struct line line_at(const char *text)
{
    struct line line = {.start = text};
    const char *end = strchr(text, '\n');
    line.end = end != NULL ? end : text + strlen(text);
    line.next = end != NULL ? end + 1 : line.end;
    if (line.end > line.start && line.end[-1] == '\r')
        line.end--;
    return line;
}

/* Is this line a fence? `bare` is set where nothing follows the marks. */
static bool fence_line(const struct line *line, struct fence *fence, bool *bare)
{
    const char *at = line->start;
    while (at < line->end && *at == ' ')
        at++;
    if (at - line->start > 3 || at == line->end || (*at != '`' && *at != '~'))
        return false;
    const char *marks = at;
    while (at < line->end && *at == *marks)
        at++;
    *fence = (struct fence){.mark = *marks, .width = (size_t)(at - marks)};
    if (fence->width < 3 || memchr(at, '`', (size_t)(line->end - at)) != NULL)
        return false; /* ```inline code``` is no fence */
    while (at < line->end && isspace((unsigned char)*at))
        at++;
    *bare = at == line->end;
    return true;
}

/* Does the code define or declare `entry(`? A mention inside a longer name does not count. */
static bool has_entry(const char *text, size_t length, const char *entry)
{
    size_t size = strlen(entry);
    for (size_t i = 0; i + size < length; i++) {
        if (memcmp(text + i, entry, size) != 0)
            continue;
        if (i > 0 && (isalnum((unsigned char)text[i - 1]) || text[i - 1] == '_'))
            continue;
        size_t after = i + size;
        while (after < length && isspace((unsigned char)text[after]))
            after++;
        if (after < length && text[after] == '(')
            return true;
    }
    return false;
}

struct found {
    const char *entry;
    size_t blocks;
    struct span with_entry, with_matter, any, unclosed;
};

static void found_block(struct found *found, const char *start, const char *end, bool closed)
{
    struct span span = {start, (size_t)(end - start)};
    found->blocks++;
    if (!closed) {
        found->unclosed = span;
        return;
    }
    found->any = span;
    if (memmem(start, span.length, "/*---", 5) != NULL)
        found->with_matter = span;
    if (has_entry(start, span.length, found->entry))
        found->with_entry = span;
}

static void find_blocks(const char *text, struct found *found)
{
    struct fence open[DEPTH_MAX];
    size_t depth = 0;
    struct line line;
    for (const char *at = text; *at != '\0'; at = line.next) {
        line = line_at(at);
        struct fence fence;
        bool bare;
        if (!fence_line(&line, &fence, &bare))
            continue;
        if (depth == 0) {
            fence.body = line.next;
            open[depth++] = fence;
        } else if (bare && fence.mark == open[depth - 1].mark &&
                   fence.width >= open[depth - 1].width) {
            if (--depth == 0)
                found_block(found, open[0].body, line.start, true);
        } else if (!bare && depth < DEPTH_MAX) {
            open[depth++] = fence;
        }
    }
    if (depth > 0)
        found_block(found, open[0].body, text + strlen(text), false);
}

/* Length of the UTF-8 sequence at `at`, or 0 where it is not one. */
static size_t utf8_length(const unsigned char *at, size_t left)
{
    if (at[0] < 0x80)
        return 1;
    size_t length = at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : 2;
    if (at[0] < 0xC2 || at[0] > 0xF4 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    if ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F) ||
        (at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F))
        return 0;
    return length;
}

static int check_code(const char *code, size_t length, struct err *err)
{
    const unsigned char *bytes = (const unsigned char *)code;
    for (size_t i = 0; i < length;) {
        size_t size = bytes[i] == 0 ? 0 : utf8_length(bytes + i, length - i);
        if (size == 0 || (size == 3 && memcmp(bytes + i, "\xEF\xBF\xBD", 3) == 0))
            return err_set(err, ERR_PROTOCOL,
                           "the code holds bytes that are not text (at byte %zu); send plain ASCII",
                           i);
        i += size;
    }
    return 0;
}

int extract_code(struct arena *arena, const char *text, const char *entry, const char **code,
                 size_t *length, struct err *err)
{
    struct found found = {.entry = entry};
    find_blocks(text, &found);
    struct span chosen = found.with_entry;
    if (chosen.start == NULL && found.unclosed.start != NULL)
        return err_set(err, ERR_NOT_FOUND,
                       "the code block was not closed: the answer seems to be cut off; send the "
                       "whole file in one fenced block");
    if (chosen.start == NULL)
        chosen = found.with_matter;
    if (chosen.start == NULL)
        chosen = found.any;
    if (chosen.start == NULL && found.blocks == 0 && has_entry(text, strlen(text), entry))
        chosen = (struct span){text, strlen(text)};
    if (chosen.start == NULL)
        return err_set(err, ERR_NOT_FOUND,
                       "no code block found; send the whole file in one fenced block");
    if (check_code(chosen.start, chosen.length, err) != 0)
        return -1;
    *code = arena_strndup(arena, chosen.start, chosen.length);
    *length = chosen.length;
    return 0;
}

/* The end of the JSON value that opens at `at` ('{' or '['), or NULL where it never closes. */
static const char *json_end(const char *at)
{
    char closers[256];
    size_t depth = 0;
    bool quoted = false;
    for (; *at != '\0'; at++) {
        if (quoted) {
            if (*at == '\\' && at[1] != '\0')
                at++;
            else if (*at == '"')
                quoted = false;
        } else if (*at == '"') {
            quoted = true;
        } else if (*at == '{' || *at == '[') {
            if (depth == sizeof closers)
                return NULL;
            closers[depth++] = *at == '{' ? '}' : ']';
        } else if (*at == '}' || *at == ']') {
            if (depth == 0 || closers[depth - 1] != *at)
                return NULL;
            if (--depth == 0)
                return at + 1;
        }
    }
    return NULL;
}

int extract_json(struct arena *arena, const char *text, const char **json, size_t *length,
                 struct err *err)
{
    for (const char *at = strpbrk(text, "{["); at != NULL; at = strpbrk(at + 1, "{[")) {
        /* "[1]" or "{a}" in prose is no document: one starts with a quote, a bracket or closes. */
        const char *inside = at + 1;
        while (isspace((unsigned char)*inside))
            inside++;
        if (strchr(*at == '{' ? "\"}" : "{[\"]", *inside) == NULL || *inside == '\0')
            continue;
        const char *end = json_end(at);
        if (end == NULL)
            continue;
        *length = (size_t)(end - at);
        *json = arena_strndup(arena, at, *length);
        return 0;
    }
    return err_set(err, ERR_NOT_FOUND, "no JSON object or list found in the answer");
}
