/* base/utf8: what is text. Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 character at `text`, of which `left` are there; 0 where it is none: overlong
 * forms, surrogates and what lies above U+10FFFF. A NUL is one byte. */
size_t utf8_length(const char *text, size_t left);

/* The same. *hidden: its number where nothing that is shown may have it as it is: a control, or
 * what takes no room or turns the writing round; else 0. */
size_t utf8_shown(const char *text, size_t left, uint32_t *hidden);

/* Text as people paste it, as a program means it: no byte order mark, no characters that take no
 * room, plain spaces for those that do not break. Writes at most `length` bytes to `out`, which may
 * be `text`, and returns how many; what is no UTF-8 stays as it is. */
size_t utf8_plain(const char *text, size_t length, char *out);

/* The first byte that is no text: invalid UTF-8, or a NUL; `length` where all of it is. */
size_t utf8_valid_up_to(const char *text, size_t length);
