/* base/value: a document from outside (YAML, JSON) as a plain tree.
 * Parsed at the border; no libyaml or jansson type leaves base/value*.c. The tree belongs to the
 * arena it was parsed into and is read-only after. Any thread. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_kind {
    VALUE_NULL,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_REAL,
    VALUE_TEXT,
    VALUE_LIST,
    VALUE_MAP
};

struct value {
    enum value_kind kind;
    int line;             /* from 1; 0 where the format has none */
    bool boolean;         /* VALUE_BOOL */
    int64_t integer;      /* VALUE_INT */
    double real;          /* VALUE_REAL, and VALUE_INT too */
    const char *text;     /* VALUE_TEXT, and the raw scalar of every YAML scalar */
    size_t length;        /* bytes of text */
    size_t count;         /* VALUE_LIST, VALUE_MAP */
    struct value **items; /* [count] */
    const char **keys;    /* VALUE_MAP: [count], unique, in the document's order */
    int *key_lines;       /* VALUE_MAP: [count]; NULL where the format has none */
};

/* `name` is the file's name for messages: "spec.yaml:7: expected ...". Depth at most 64; aliases,
 * duplicate keys and several documents are errors. The root may be of any kind.
 * Errors: ERR_USAGE with "name:line: what was expected". */
int value_parse_yaml(struct arena *arena, const char *name, const char *text, size_t length,
                     struct value **root, struct err *err) MUST_USE;
int value_parse_json(struct arena *arena, const char *name, const char *text, size_t length,
                     struct value **root, struct err *err) MUST_USE;

/* Look-ups return NULL (or the fallback) where the key is absent or `map` is NULL or no map. */
const struct value *value_get(const struct value *map, const char *key);
const struct value *value_at(const struct value *map, const char *dotted_path); /* "a.b.c" */
const char *value_text(const struct value *map, const char *key, const char *fallback);
int64_t value_int(const struct value *map, const char *key, int64_t fallback);
double value_real(const struct value *map, const char *key, double fallback);
bool value_bool(const struct value *map, const char *key, bool fallback);

/* Whether a NULL-terminated list has the word. */
bool value_word_among(const char *word, const char *const *words);
/* Refuses a map with a key outside the NULL-terminated list, naming the nearest allowed one. */
int value_check_keys(const struct value *map, const char *name, const char *const *allowed,
                     struct err *err) MUST_USE;
