/* JSON documents in an answer's prose. What looks like one and never closes is passed over; looking
 * is bounded, so that an answer made of brackets alone costs no more than some readings of it. */
#include "agents/ideas/extract.h"

#include <ctype.h>
#include <string.h>

enum { DEPTH_MAX = 128, READINGS_MAX = 16 };

/* The end of the JSON value that opens at `at` ('{' or '['), or NULL where it never closes; what
 * was read is taken from *left, and nothing is found once that is spent. */
static const char *json_end(const char *at, size_t *left)
{
    char closers[DEPTH_MAX];
    size_t depth = 0;
    bool quoted = false;
    for (; *at != '\0' && *left > 0; at++, (*left)--) {
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

/* "[1]" or "{a}" in prose is no document: one goes on with a quote or a bracket, or closes. */
static bool opens_document(const char *at)
{
    const char *inside = at + 1;
    while (isspace((unsigned char)*inside))
        inside++;
    return *inside != '\0' && strchr(*at == '{' ? "\"}" : "{[\"]", *inside) != NULL;
}

bool extract_json_next(const char **at, const char **json, size_t *length)
{
    size_t left = READINGS_MAX * (strlen(*at) + 1);
    for (const char *open = strpbrk(*at, "{["); open != NULL; open = strpbrk(open + 1, "{[")) {
        const char *end = opens_document(open) ? json_end(open, &left) : NULL;
        if (end == NULL)
            continue;
        *json = open;
        *length = (size_t)(end - open);
        *at = end;
        return true;
    }
    *at += strlen(*at);
    return false;
}

/* Of a "\uXXXX", else 0. */
static unsigned unit_at(const char *at, size_t left)
{
    unsigned unit = 0;
    if (left < 6 || at[0] != '\\' || at[1] != 'u')
        return 0;
    for (int i = 2; i < 6; i++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = strchr(digits, tolower((unsigned char)at[i]));
        if (at[i] == '\0' || digit == NULL)
            return 0;
        unit = 16 * unit + (unsigned)(digit - digits);
    }
    return unit;
}

const char *extract_json_text(struct arena *arena, const char *json, size_t length)
{
    char *text = arena_strndup(arena, json, length);
    for (size_t at = 0; at < length; at++) {
        unsigned unit = unit_at(text + at, length - at);
        unsigned second = unit > 0 ? unit_at(text + at + 6, length - at - 6) : 0;
        bool pair = unit >= 0xD800 && unit <= 0xDBFF && second >= 0xDC00 && second <= 0xDFFF;
        if (unit >= 0xD800 && unit <= 0xDFFF && !pair)
            text[at + 2] = text[at + 3] = text[at + 4] = 'f', text[at + 5] = 'd';
        at += pair ? 11 : text[at] == '\\' ? 1 : 0;
    }
    return text;
}

static int line_of(const char *text, const char *at)
{
    int line = 1;
    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

int extract_json(struct arena *arena, const char *text, const char **json, size_t *length,
                 struct err *err)
{
    const char *at = text, *found;
    if (extract_json_next(&at, &found, length)) {
        *json = extract_json_text(arena, found, *length);
        return 0;
    }
    for (at = strpbrk(text, "{["); at != NULL; at = strpbrk(at + 1, "{["))
        if (opens_document(at))
            return err_set(err, ERR_NOT_FOUND,
                           "the JSON that opens in line %d of the answer never closes: it is cut "
                           "off, or its brackets and quotes do not match",
                           line_of(text, at));
    return err_set(err, ERR_NOT_FOUND, "no JSON object or list found in the answer");
}
