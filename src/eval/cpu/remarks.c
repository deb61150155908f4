/* Why a loop is not vectorized: the compiler knows, and nobody asks it. */
#include "eval/cpu/profile.h"

#include "base/file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_MAX = 4 << 20, REMARKS_MAX = 24, TEXT_MAX = 200 };

struct remark {
    long line;
    bool vectorized;
    char text[TEXT_MAX];
};

struct remarks {
    size_t count;
    struct remark items[REMARKS_MAX];
};

static const struct {
    const char *marker;
    bool vectorized;
} markers[] = {
    {": optimized: ", true},
    {": missed: ", false},
    {": remark: loop not vectorized: ", false},
    {": remark: vectorized loop ", true},
};

/* What says nothing: that it failed, without a reason; or one statement among many. */
static bool is_noise(const char *text)
{
    static const char *const noise[] = {"couldn't vectorize loop",
                                        "basic block",
                                        "statement clobbers memory",
                                        "loop not vectorized [",
                                        "splitting region",
                                        "unsupported SLP",
                                        "not suitable"};
    for (size_t i = 0; i < sizeof noise / sizeof noise[0]; i++)
        if (strstr(text, noise[i]) != NULL)
            return true;
    return *text == '\0';
}

static void keep(struct remarks *remarks, long line, bool vectorized, const char *text,
                 size_t length)
{
    struct remark remark = {.line = line, .vectorized = vectorized};
    while (length > 0 && isspace((unsigned char)*text)) {
        text++;
        length--;
    }
    const char *option = memmem(text, length, " [-R", 4); /* clang ends with the option's name */
    length = option != NULL ? (size_t)(option - text) : length;
    length = length < TEXT_MAX - 1 ? length : TEXT_MAX - 1;
    for (size_t i = 0; i < length; i++)
        remark.text[i] = isprint((unsigned char)text[i]) ? text[i] : ' ';
    if (strstr(remark.text, "no vectype") != NULL) /* and then names of the compiler's own */
        snprintf(remark.text, sizeof remark.text, "has vectors already, or a type that has none");
    if (is_noise(remark.text) || remarks->count == REMARKS_MAX)
        return;
    for (size_t i = 0; i < remarks->count; i++)
        if (remarks->items[i].line == line && remarks->items[i].vectorized == vectorized &&
            strcmp(remarks->items[i].text, remark.text) == 0)
            return;
    remarks->items[remarks->count++] = remark;
}

static void read_line(struct remarks *remarks, const char *line, size_t length)
{
    static const char source[] = "candidate.c";
    if (length < sizeof source || memcmp(line, source, sizeof source - 1) != 0)
        return;
    const char *colon = memchr(line, ':', length);
    for (size_t i = 0; colon != NULL && i < sizeof markers / sizeof markers[0]; i++) {
        size_t size = strlen(markers[i].marker);
        const char *at = memmem(line, length, markers[i].marker, size);
        if (at == NULL)
            continue;
        keep(remarks, strtol(colon + 1, NULL, 10), markers[i].vectorized, at + size,
             (size_t)(line + length - (at + size)));
        return;
    }
}

static int by_line(const void *a, const void *b)
{
    const struct remark *first = a, *second = b;
    return first->line < second->line ? -1 : first->line > second->line;
}

void remarks_parse(const char *text, size_t length, struct json *json)
{
    struct remarks remarks = {0};
    const char *end = text + length;
    for (const char *at = text; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        read_line(&remarks, at, (size_t)(stop - at));
        at = stop + 1;
    }
    qsort(remarks.items, remarks.count, sizeof remarks.items[0], by_line);
    json_array(json);
    for (size_t i = 0; i < remarks.count; i++) {
        json_object(json);
        json_put_int(json, "line", remarks.items[i].line);
        json_put_text(json, "kind", remarks.items[i].vectorized ? "vectorized" : "missed");
        json_put_text(json, "text", remarks.items[i].text);
        json_object_end(json);
    }
    json_array_end(json);
}

void remarks_put(const char *path, struct json *json)
{
    struct err ignored;
    if (path == NULL)
        return;
    BUF_LOCAL(text, FILE_MAX);
    if (file_read(path, &text, &ignored) == 0) {
        json_key(json, "remarks");
        remarks_parse(buf_text(&text), text.length, json);
    }
}
