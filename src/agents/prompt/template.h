/* agents/prompt/template: a prompt from templates/NAME.txt with {{named slots}}.
 * Loading blocks (through loop/work or at start); rendering is pure. Any thread. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct template; /* opaque; lives in the arena that it was parsed into */

/* `slots`: NULL-terminated names that the prompt may use. "{{name}}" stands for a slot; blanks
 * inside the braces are allowed. An unknown slot, or braces that do not close on their line, is
 * ERR_USAGE with "name:line: ...". A line that is "{{slot}}" alone vanishes with its newline where
 * the slot is empty, so that optional parts leave no hole. */
int template_parse(struct arena *arena, const char *name, const char *text,
                   const char *const *slots, struct template **parsed, struct err *err) MUST_USE;

/* Reads `file` ("idea.txt") from the shipped templates. ERR_ENVIRONMENT where it is not there. */
int template_load(struct arena *arena, const char *file, const char *const *slots,
                  struct template **parsed, struct err *err) MUST_USE;

struct slot_text {
    const char *slot, *text;
};

/* `texts`: [count]; a slot without a text is empty. */
void template_render(const struct template *template, const struct slot_text *texts, size_t count,
                     struct buf *out);
