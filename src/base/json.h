/* base/json: writes JSON into a buf; commas and escapes are its business.
 * One owner, any thread. Invalid UTF-8 becomes U+FFFD; NaN and infinities become null. */
#pragma once

#include "base/buf.h"
#include "base/value.h"

#include <stdbool.h>
#include <stdint.h>

struct names;

struct json {
    struct buf *out; /* borrowed */
    unsigned depth;
    uint64_t has_items; /* one bit a level */
    bool after_key;
};

/* Writes into a text of a function's own, as BUF_LOCAL. */
#define JSON_LOCAL(name, text, most)                                                               \
    BUF_LOCAL(text, most);                                                                         \
    struct json name = {.out = &text}

void json_init(struct json *json, struct buf *out);
void json_object(struct json *json); /* { */
void json_object_end(struct json *json);
void json_array(struct json *json); /* [ */
void json_array_end(struct json *json);
void json_key(struct json *json, const char *key);
void json_text(struct json *json, const char *text); /* NULL writes null */
void json_text_n(struct json *json, const char *text, size_t length);
void json_int(struct json *json, int64_t number);
void json_real(struct json *json, double number); /* shortest text that reads back the same */
void json_bool(struct json *json, bool truth);
void json_null(struct json *json);
void json_value(struct json *json, const struct value *value); /* a whole tree; NULL: null */
const char *value_json(const struct value *value, struct arena *arena); /* NULL, over 64 MiB: {} */
void json_raw(struct json *json, const char *text);                     /* already JSON */
void json_names(struct json *json, const struct names *names);    /* {"M": 4, ...}; NULL: {} */
char *names_json(const struct names *names, struct arena *arena); /* the same as a text */

/* Key and value in one move. */
void json_put_text(struct json *json, const char *key, const char *text);
void json_put_int(struct json *json, const char *key, int64_t number);
void json_put_real(struct json *json, const char *key, double number);
void json_put_bool(struct json *json, const char *key, bool truth);
void json_put_object(struct json *json, const char *key); /* { */
void json_put_array(struct json *json, const char *key);  /* [ */
void json_put_raw(struct json *json, const char *key, const char *text);
void json_put_names(struct json *json, const char *key, const struct names *names);
void json_put_value(struct json *json, const char *key, const struct value *value); /* or null */
void json_put_positive(struct json *json, const char *key, double number); /* else null: unknown */
void json_put_known(struct json *json, const char *key, double number);    /* the same, 0 too */
void json_put_members(struct json *json, const struct value *map);         /* NULL, no map: none */
