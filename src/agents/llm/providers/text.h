/* agents/llm/providers/text: makes what a provider sent safe to parse: bytes that are not UTF-8,
 * and escapes that stand for no character, become U+FFFD. Code with U+FFFD in it is refused later
 * (agents/ideas/extract), prose is read on. Any thread. */
#pragma once

#include "base/buf.h"

#include <stddef.h>

/* Copies any bytes as text: invalid UTF-8 and NUL are replaced. */
void text_clean(const char *bytes, size_t length, struct buf *out);
/* Copies JSON text: invalid UTF-8, \u0000 and lone surrogate escapes are replaced. */
void text_clean_json(const char *json, size_t length, struct buf *out);

/* For JSON that could not be read: numbers that no parser takes (NaN, Infinity, 1e999, hundreds of
 * digits) become -1, so that a usage gone wrong does not cost the answer beside it. */
void text_clean_numbers(const char *json, size_t length, struct buf *out);

/* Length of the valid UTF-8 sequence at `at`, or 0; a NUL is none. */
size_t text_sequence(const char *at, size_t left);
/* The 16-bit unit of "\uXXXX" at `at`, or -1. */
int text_unit(const char *at, size_t left);
