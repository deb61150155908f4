/* agents/ideas/extract: what a model's answer holds: code from its fences, a JSON document from its
 * prose. Pure and deterministic: the same answer always gives the same code. Any thread. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* As `entry`: device code, whose kernels have any names. A block with the word and front matter
 * then counts as one that defines it, without front matter as one that names it. */
#define EXTRACT_GPU    "__global__"
#define EXTRACT_TRITON "@triton.jit"

/* A fence opens at a line of three or more ` or ~ (indented at most three spaces) with an optional
 * language, and closes at a line of the same mark, at least as long and with nothing after it.
 * Inside a fence, a line of marks with a language opens a nested one, which closes first.
 *
 * The choice, in this order: blocks that define `entry` (the name, parentheses and a body), ones
 * that name it, ones with the front matter's mark, then all; of equals the last closed one wins,
 * since models improve as they go. A block inside another counts where the outer one lacks the
 * entry. Where nothing defines it, the fences are read once more, loosely (extract.c). An unclosed
 * block is an answer that was cut off and is refused where no closed one defines the entry. Without
 * a fence, the text counts from its first line of code on where that defines the entry. CRLF
 * becomes LF. A NUL, a byte 0xFF, invalid UTF-8 or U+FFFD in the code is ERR_PROTOCOL.
 *
 * Errors: ERR_NOT_FOUND, one line that says to the model what was wrong with its answer. */
int extract_code(struct arena *arena, const char *text, const char *entry, const char **code,
                 size_t *length, struct err *err) MUST_USE;

/* The first whole JSON object or list in the text: inside a fence, or bare between prose. The
 * result is a copy in the arena; whether it parses is the caller's business. ERR_NOT_FOUND, with
 * what was there instead. */
int extract_json(struct arena *arena, const char *text, const char **json, size_t *length,
                 struct err *err) MUST_USE;

/* A copy of a document, in which halves of surrogate pairs, which no reader takes, are U+FFFD. */
const char *extract_json_text(struct arena *arena, const char *json, size_t length);

/* The next one at or after *at, which moves past it; the span is in the text itself. False at the
 * end. `*at` set to the text starts. */
bool extract_json_next(const char **at, const char **json, size_t *length);
