#include "agents/providers/text.h"

#include <stdbool.h>
#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD";

size_t text_sequence(const char *text, size_t left)
{
    const unsigned char *at = (const unsigned char *)text;
    static const struct {
        unsigned char low, high, second_low, second_high;
        size_t length;
    } rows[] = {
        {0x01, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (at[0] < rows[i].low || at[0] > rows[i].high)
            continue;
        if (rows[i].length > left)
            return 0;
        if (rows[i].length > 1 && (at[1] < rows[i].second_low || at[1] > rows[i].second_high))
            return 0;
        for (size_t j = 2; j < rows[i].length; j++)
            if (at[j] < 0x80 || at[j] > 0xBF)
                return 0;
        return rows[i].length;
    }
    return 0;
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
