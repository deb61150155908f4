/* base/utf8: what is text. Any thread. */
#pragma once

#include <stddef.h>

/* Bytes of the UTF-8 character at `text`, of which `left` are there; 0 where it is none: overlong
 * forms, surrogates and what lies above U+10FFFF. A NUL is one byte. */
size_t utf8_length(const char *text, size_t left);

/* The first byte that is no text: invalid UTF-8, or a NUL; `length` where all of it is. */
size_t utf8_valid_up_to(const char *text, size_t length);
