/* eval/problem/text: what the readers of spec.yaml and of front matter share: errors with their
 * line, names, expressions in text or list form, tensors. Inside eval/problem and
 * eval/candidate only. Everything read lies in the document's arena. */
#pragma once

#include "base/value.h"
#include "eval/problem/problem.h"

struct document {
    struct arena *arena;
    const char *name; /* stands in messages */
    struct err *err;
    /* Which names an expression may use, and what to call them in a message. */
    bool (*known)(void *context, const char *name);
    void *context;
    const char *known_as; /* "a dim" */
};

/* "name:line: ..." as ERR_USAGE; returns -1. */
int document_refuse(const struct document *document, int line, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* An identifier of C that is no keyword and no word of ours; `what` is "a dim's name". */
int document_check_name(const struct document *document, int line, const char *what,
                        const char *name) MUST_USE;

/* One expression: a number or a text. `text` may be NULL. */
int document_expr(const struct document *document, const struct value *value,
                  const struct expr **expr, const char **text) MUST_USE;

/* Up to `max` expressions: a number, a text with commas, or a list whose items, where a flow list
 * was split inside parentheses, are joined again. `texts` may be NULL. */
int document_exprs(const struct document *document, const struct value *value, const char *what,
                   size_t max, const struct expr **exprs, const char **texts,
                   size_t *count) MUST_USE;

/* `map`: {shape, dtype[, range]}; `range` only where `ranged`. */
int document_tensor(const struct document *document, const char *name, int line,
                    const struct value *map, bool ranged, struct tensor_spec *tensor) MUST_USE;

/* The line of a map's key, for messages about its value being absent or of another kind. */
int document_key_line(const struct value *map, const char *key);
