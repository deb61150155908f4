#include "process/clean.h"

#include <ctype.h>
#include <string.h>

enum { SHOWN_MAX = 400 };

/* Where the last part of the path at text[i] begins. */
static size_t last_part(const char *text, size_t i, size_t length)
{
    size_t last = i;
    for (size_t j = i; j < length && strchr(" '\"):,;", text[j]) == NULL; j++)
        if (text[j] == '/')
            last = j;
    return last + 1;
}

void clean_line(struct buf *out, const char *text, size_t length)
{
    size_t most = length < SHOWN_MAX ? length : SHOWN_MAX;
    for (size_t i = 0; i < most; i++) {
        bool begins = i == 0 || strchr(" '`\"(", text[i - 1]) != NULL;
        if (begins && text[i] == '/' && i + 1 < most && isalnum((unsigned char)text[i + 1]))
            i = last_part(text, i, most);
        if (begins && i + 2 < most && text[i] == '0' && text[i + 1] == 'x') {
            buf_add_text(out, "0x..");
            for (i++; i + 1 < most && isxdigit((unsigned char)text[i + 1]);)
                i++;
            continue;
        }
        bool shown = i < most && (isprint((unsigned char)text[i]) || (text[i] & 0x80) != 0);
        buf_add_char(out, shown ? text[i] : ' ');
    }
    if (most < length)
        buf_add_text(out, "...");
    buf_add_char(out, '\n');
}
