#include "agents/llm/providers/plain.h"

#include "agents/llm/providers/text.h"

#include <stdint.h>
#include <string.h>

enum { EVENT_BYTES_MAX = 4096 }; /* of a pattern: a stream keeps it */

/* ---- strings ---- */

/* A "\uXXXX", or two that are one character: its code point, or -1 where it is none of a text. */
static int32_t code_point(const char *at, size_t left, size_t *length)
{
    int first = text_unit(at, left);
    *length = 6;
    if (first <= 0 || (first >= 0xDC00 && first <= 0xDFFF))
        return -1;
    if (first < 0xD800 || first > 0xDFFF)
        return first;
    int second = text_unit(at + 6, left - 6);
    *length = 12;
    if (second < 0xDC00 || second > 0xDFFF)
        return -1;
    return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
}

static void add_code_point(struct buf *out, int32_t code)
{
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    int length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    char bytes[4];
    if (length == 1) {
        buf_add_char(out, (char)code);
        return;
    }
    for (int i = length - 1; i > 0; i--, code >>= 6)
        bytes[i] = (char)(0x80 | (code & 0x3F));
    bytes[0] = (char)(leads[length] | code);
    buf_add(out, bytes, (size_t)length);
}

/* What a letter after a backslash stands for, or 0. */
static char escaped(char letter)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;
    return found != NULL ? meanings[found - letters] : '\0';
}

/* How many bytes the character at `at` takes, or 0 where a tree must say what becomes of it. */
static size_t step(const char *at, size_t left)
{
    unsigned char byte = (unsigned char)*at;
    size_t length;
    if (byte >= 0x80)
        return text_sequence(at, left);
    if (byte < 0x20)
        return 0;
    if (byte != '\\')
        return 1;
    if (left >= 2 && escaped(at[1]) != '\0')
        return 2;
    return code_point(at, left, &length) >= 0 ? length : 0;
}

/* The closing quote of the string whose first byte is at `at`; false where it is not a plain one.
 */
static bool find_end(const char *text, size_t length, size_t at, size_t *end)
{
    while (at < length && text[at] != '"') {
        size_t taken = step(text + at, length - at);
        if (taken == 0)
            return false;
        at += taken;
    }
    *end = at;
    return at < length;
}

/* Of a string that find_end() has passed. */
static void add_string(struct buf *out, const char *text, size_t length)
{
    while (length > 0) {
        const char *slash = memchr(text, '\\', length);
        size_t run = slash != NULL ? (size_t)(slash - text) : length;
        buf_add(out, text, run);
        text += run;
        length -= run;
        if (length == 0)
            return;
        size_t taken = 2;
        if (text[1] == 'u')
            add_code_point(out, code_point(text, length, &taken));
        else
            buf_add_char(out, escaped(text[1]));
        text += taken;
        length -= taken;
    }
}

/* ---- patterns ---- */

/* Where the string of the first `"key": "` begins and ends. */
static bool find_string(const char *event, size_t length, const char *key, size_t *begin,
                        size_t *end)
{
    size_t key_length = strlen(key);
    const char *found = event;
    while ((found = memmem(found, length - (size_t)(found - event), key, key_length)) != NULL) {
        size_t at = (size_t)(found - event) + key_length;
        found += key_length;
        if (at >= length || event[at++] != ':')
            continue;
        while (at < length && event[at] == ' ')
            at++;
        if (at >= length || event[at++] != '"')
            continue;
        *begin = at;
        return find_end(event, length, at, end);
    }
    return false;
}

static bool add_hole(struct plain *plain, const char *key, bool words)
{
    size_t begin, end;
    if (!find_string(plain->event.data, plain->event.length, key, &begin, &end))
        return false;
    size_t at = plain->hole_count++;
    for (; at > 0 && plain->holes[at - 1].begin > begin; at--)
        plain->holes[at] = plain->holes[at - 1];
    plain->holes[at].begin = begin;
    plain->holes[at].end = end;
    plain->holes[at].words = words;
    return true;
}

bool plain_take(struct plain *plain, const char *event, size_t length)
{
    static const char *const keys[] = {"\"content\"", "\"text\"", "\"partial_json\""};
    plain->proven = false;
    if (length == 0 || length > EVENT_BYTES_MAX || plain->tries >= PLAIN_TRIES_MAX)
        return false;
    plain->tries++;
    plain->hole_count = 0;
    plain->event.max = EVENT_BYTES_MAX;
    buf_reset(&plain->event);
    buf_add(&plain->event, event, length);
    bool found = false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !found; i++)
        found = add_hole(plain, keys[i], true);
    /* OpenAI fills its events up with noise, so that their lengths tell nothing of their words. */
    if (found)
        (void)add_hole(plain, "\"obfuscation\"", false);
    return found;
}

void plain_fill(const struct plain *plain, const char *words, struct buf *event)
{
    size_t at = 0;
    for (size_t i = 0; i < plain->hole_count; i++) {
        buf_add(event, plain->event.data + at, plain->holes[i].begin - at);
        buf_add_text(event, plain->holes[i].words ? words : "");
        at = plain->holes[i].end;
    }
    buf_add(event, plain->event.data + at, plain->event.length - at);
}

void plain_free(struct plain *plain)
{
    buf_free(&plain->event);
}

/* ---- reading ---- */

bool plain_read(const struct plain *plain, const char *event, size_t length, struct buf *words)
{
    const char *pattern = plain->event.data, *text = NULL;
    size_t at = 0, from = 0, text_length = 0;
    if (!plain->proven)
        return false;
    for (size_t i = 0; i < plain->hole_count; i++) {
        size_t same = plain->holes[i].begin - from, end;
        if (length - at < same || memcmp(event + at, pattern + from, same) != 0)
            return false;
        at += same;
        if (!find_end(event, length, at, &end))
            return false;
        if (plain->holes[i].words) {
            text = event + at;
            text_length = end - at;
        }
        at = end;
        from = plain->holes[i].end;
    }
    size_t rest = plain->event.length - from;
    if (text == NULL || length - at != rest || memcmp(event + at, pattern + from, rest) != 0)
        return false;
    add_string(words, text, text_length);
    return true;
}
