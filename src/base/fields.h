/* base/fields: a plain struct's fields as members of a JSON object, and back: one const table does
 * both, in the table's order. Any thread.
 *
 *     static const struct field fields[] = {FIELD(run, TEXT, name), FIELD(run, INT, round)};
 *     fields_put(FIELDS(fields), &run, &json);
 *     fields_take(FIELDS(fields), arena, root, &run); */
#pragma once

#include "base/json.h"

#include <stddef.h>

enum field_type {
    FIELD_TEXT, /* const char *; NULL is written as "" */
    FIELD_JSON, /* const char *: an object's text; NULL and "" are written as {} */
    FIELD_INT,  /* int64_t */
    FIELD_REAL, /* double */
    FIELD_BOOL
};

struct field {
    const char *key;
    enum field_type type;
    size_t offset;
};

#define FIELD(of, type, name) FIELD_AS(of, type, name, #name)
#define FIELD_AS(of, type, name, key)                                                              \
    {                                                                                              \
        key, FIELD_##type, offsetof(struct of, name)                                               \
    }
#define FIELDS(table) (table), sizeof(table) / sizeof(table)[0]

/* Members of an open object. */
void fields_put(const struct field *fields, size_t count, const void *from, struct json *json);
/* What is missing, null or of another type is "", "{}", 0 or false. A text is `map`'s own; JSON is
 * written anew into `arena`, whatever its kind. */
void fields_take(const struct field *fields, size_t count, struct arena *arena,
                 const struct value *map, void *to);
/* The same where that is ERR_PROTOCOL, JSON must be an object, texts are copied and a number's null
 * is NaN. `to` is filled up to there. */
int fields_demand(const struct field *fields, size_t count, struct arena *arena,
                  const struct value *map, void *to, struct err *err) MUST_USE;
