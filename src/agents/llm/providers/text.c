#include "agents/llm/providers/text.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD";

size_t text_sequence(const char *at, size_t left)
{
    return *at != '\0' ? utf8_length(at, left) : 0;
}

void text_clean(const char *bytes, size_t length, struct buf *out)
{
    for (size_t at = 0; at < length;) {
        size_t size = text_sequence(bytes + at, length - at);
        if (size > 0)
            buf_add(out, bytes + at, size);
        else
            buf_add_text(out, replacement);
        at += size > 0 ? size : 1;
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int text_unit(const char *at, size_t left)
{
    if (left < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    int number = 0;
    for (int i = 2; i < 6; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return -1;
        number = number * 16 + digit;
    }
    return number;
}

/* One escape; returns how many bytes of the input it took. */
static size_t clean_escape(const char *at, size_t left, struct buf *out)
{
    int first = text_unit(at, left);
    if (first < 0) {
        size_t taken = left >= 2 && (unsigned char)at[1] < 0x80 ? 2 : 1;
        buf_add(out, at, taken);
        return taken;
    }
    if (first >= 0xD800 && first <= 0xDBFF) {
        int second = text_unit(at + 6, left - 6);
        if (second >= 0xDC00 && second <= 0xDFFF) {
            buf_add(out, at, 12);
            return 12;
        }
    }
    if (first == 0 || (first >= 0xD800 && first <= 0xDFFF))
        buf_add_text(out, replacement);
    else
        buf_add(out, at, 6);
    return 6;
}

void text_clean_json(const char *json, size_t length, struct buf *out)
{
    for (size_t at = 0; at < length;) {
        if (json[at] == '\\') {
            at += clean_escape(json + at, length - at, out);
            continue;
        }
        size_t size = text_sequence(json + at, length - at);
        if (size == 0)
            buf_add_text(out, replacement);
        else
            buf_add(out, json + at, size);
        at += size > 0 ? size : 1;
    }
}

/* Of a bare word or a number at `at`, or 0. */
static size_t word_length(const char *at, size_t left)
{
    size_t length = 0;
    while (length < left && (isalnum((unsigned char)at[length]) || at[length] == '-' ||
                             at[length] == '+' || at[length] == '.' || at[length] == '_'))
        length++;
    return length;
}

static bool is_readable(const char *word, size_t length)
{
    enum { DIGITS_MOST = 18 };
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strlen(words[i]) == length && memcmp(word, words[i], length) == 0)
            return true;
    return length <= DIGITS_MOST && strcspn(word, "eENI") >= length;
}

void text_clean_numbers(const char *json, size_t length, struct buf *out)
{
    bool quoted = false;
    for (size_t at = 0; at < length;) {
        size_t size = quoted ? 0 : word_length(json + at, length - at);
        if (size > 0 && !is_readable(json + at, size))
            buf_add_text(out, "-1");
        else if (size > 0)
            buf_add(out, json + at, size);
        if (size > 0) {
            at += size;
            continue;
        }
        if (quoted && json[at] == '\\' && at + 1 < length) {
            buf_add(out, json + at, 2);
            at += 2;
            continue;
        }
        quoted = quoted != (json[at] == '"');
        buf_add_char(out, json[at++]);
    }
}
