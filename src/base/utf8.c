#include "base/utf8.h"

#include <stdbool.h>

size_t utf8_length(const char *text, size_t left)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t length = at[0] < 0x80   ? 1
                    : at[0] < 0xc2 ? 0
                    : at[0] < 0xe0 ? 2
                    : at[0] < 0xf0 ? 3
                    : at[0] < 0xf5 ? 4
                                   : 0;
    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
        (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
        return 0;
    return length;
}

size_t utf8_shown(const char *text, size_t left, uint32_t *hidden)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t length = utf8_length(text, left);
    uint32_t code = length == 2   ? (at[0] & 31U) << 6 | (at[1] & 63U)
                    : length == 3 ? (at[0] & 15U) << 12 | (at[1] & 63U) << 6 | (at[2] & 63U)
                    : length == 4 ? (at[0] & 7U) << 18 | (at[1] & 63U) << 12 | (at[2] & 63U) << 6 |
                                        (at[3] & 63U)
                                  : at[0];
    bool hides = code < ' ' || (code >= 0x7F && code < 0xA0) || code == 0x61C ||
                 (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
                 (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF ||
                 (code >= 0xE0000 && code <= 0xE0FFF); /* letters that nobody sees: tags */
    *hidden = hides && length > 0 ? code : 0;
    return length;
}

enum plain { PLAIN_KEPT, PLAIN_SPACE, PLAIN_NONE };

/* Joiners are letters' own in some writings: they stay. */
static enum plain plain_of(const unsigned char *at, size_t length)
{
    uint32_t code = length == 2   ? (at[0] & 31U) << 6 | (at[1] & 63U)
                    : length == 3 ? (at[0] & 15U) << 12 | (at[1] & 63U) << 6 | (at[2] & 63U)
                                  : 0;
    if (code == 0xFEFF || code == 0x200B || code == 0x2060 || code == 0xAD)
        return PLAIN_NONE;
    bool space = code == 0xA0 || (code >= 0x2000 && code <= 0x200A) || code == 0x202F ||
                 code == 0x205F || code == 0x3000;
    return space ? PLAIN_SPACE : PLAIN_KEPT;
}

size_t utf8_plain(const char *text, size_t length, char *out)
{
    size_t used = 0, step;
    for (size_t at = 0; at < length; at += step) {
        step = utf8_length(text + at, length - at);
        step = step > 0 ? step : 1;
        enum plain plain = plain_of((const unsigned char *)text + at, step);
        for (size_t i = 0; i < step && plain == PLAIN_KEPT; i++)
            out[used++] = text[at + i];
        if (plain == PLAIN_SPACE)
            out[used++] = ' ';
    }
    return used;
}

size_t utf8_valid_up_to(const char *text, size_t length)
{
    size_t at = 0;
    while (at < length) {
        size_t step = text[at] == '\0' ? 0 : utf8_length(text + at, length - at);
        if (step == 0)
            return at;
        at += step;
    }
    return length;
}
