#include "base/utf8.h"

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
