#include "base/json.h"

#include "base/expr.h"
#include "base/utf8.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void json_init(struct json *json, struct buf *out)
{
    *json = (struct json){.out = out};
}

/* Before every value and every key: the comma, where one is due. At the root there is none. */
static void begin_item(struct json *json)
{
    if (json->after_key) {
        json->after_key = false;
        return;
    }
    if (json->depth == 0)
        return;
    uint64_t bit = UINT64_C(1) << json->depth;
    if (json->has_items & bit)
        buf_add_char(json->out, ',');
    json->has_items |= bit;
}

static void open_level(struct json *json, char bracket)
{
    begin_item(json);
    buf_add_char(json->out, bracket);
    assert(json->depth < 63);
    json->depth++;
    json->has_items &= ~(UINT64_C(1) << json->depth);
}

static void close_level(struct json *json, char bracket)
{
    assert(json->depth > 0 && !json->after_key);
    json->depth--;
    buf_add_char(json->out, bracket);
}

void json_object(struct json *json)
{
    open_level(json, '{');
}

void json_object_end(struct json *json)
{
    close_level(json, '}');
}

void json_array(struct json *json)
{
    open_level(json, '[');
}

void json_array_end(struct json *json)
{
    close_level(json, ']');
}

static void add_escaped(struct buf *out, unsigned char c)
{
    switch (c) {
    case '"':
        buf_add_text(out, "\\\"");
        break;
    case '\\':
        buf_add_text(out, "\\\\");
        break;
    case '\n':
        buf_add_text(out, "\\n");
        break;
    case '\r':
        buf_add_text(out, "\\r");
        break;
    case '\t':
        buf_add_text(out, "\\t");
        break;
    default:
        buf_addf(out, "\\u%04x", c);
        break;
    }
}

static void add_string(struct buf *out, const char *text, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)text;
    buf_add_char(out, '"');
    size_t from = 0; /* of what needs no change and is not yet written */
    size_t at = 0;
    while (at < length) {
        size_t step = utf8_length(text + at, length - at);
        if (step > 1 || (step == 1 && bytes[at] >= 0x20 && bytes[at] != '"' && bytes[at] != '\\')) {
            at += step;
            continue;
        }
        buf_add(out, text + from, at - from);
        if (step == 0)
            buf_add_text(out, "\xef\xbf\xbd");
        else
            add_escaped(out, bytes[at]);
        from = ++at;
    }
    buf_add(out, text + from, at - from);
    buf_add_char(out, '"');
}

static void add_real(struct buf *out, double number)
{
    if (!isfinite(number)) {
        buf_add_text(out, "null");
        return;
    }
    if (number == 0.0 && signbit(number)) { /* "-0" is an integer to many readers, and loses it */
        buf_add_text(out, "-0.0");
        return;
    }
    char text[40];
    /* 15 digits always survive the way through a double, except among the subnormal ones. */
    int digits = number != 0.0 && fabs(number) < DBL_MIN ? 1 : 15;
    for (; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    buf_add_text(out, text);
}

void json_key(struct json *json, const char *key)
{
    assert(json->depth > 0 && !json->after_key);
    begin_item(json);
    add_string(json->out, key, strlen(key));
    buf_add_char(json->out, ':');
    json->after_key = true;
}

void json_text(struct json *json, const char *text)
{
    if (text == NULL)
        json_null(json);
    else
        json_text_n(json, text, strlen(text));
}

void json_text_n(struct json *json, const char *text, size_t length)
{
    begin_item(json);
    add_string(json->out, text, length);
}

void json_int(struct json *json, int64_t number)
{
    begin_item(json);
    buf_addf(json->out, "%" PRId64, number);
}

void json_real(struct json *json, double number)
{
    begin_item(json);
    add_real(json->out, number);
}

void json_bool(struct json *json, bool truth)
{
    json_raw(json, truth ? "true" : "false");
}

void json_null(struct json *json)
{
    json_raw(json, "null");
}

void json_raw(struct json *json, const char *text)
{
    begin_item(json);
    buf_add_text(json->out, text);
}

/* Keeps its commas itself, so that a tree of any depth fits below any level of the writer. */
static void add_tree(struct buf *out, const struct value *value)
{
    switch (value->kind) {
    case VALUE_NULL:
        buf_add_text(out, "null");
        break;
    case VALUE_BOOL:
        buf_add_text(out, value->boolean ? "true" : "false");
        break;
    case VALUE_INT:
        buf_addf(out, "%" PRId64, value->integer);
        break;
    case VALUE_REAL:
        add_real(out, value->real);
        break;
    case VALUE_TEXT:
        add_string(out, value->text, value->length);
        break;
    case VALUE_LIST:
    case VALUE_MAP:
        buf_add_char(out, value->kind == VALUE_MAP ? '{' : '[');
        for (size_t i = 0; i < value->count; i++) {
            if (i > 0)
                buf_add_char(out, ',');
            if (value->kind == VALUE_MAP) {
                add_string(out, value->keys[i], strlen(value->keys[i]));
                buf_add_char(out, ':');
            }
            add_tree(out, value->items[i]);
        }
        buf_add_char(out, value->kind == VALUE_MAP ? '}' : ']');
        break;
    }
}

void json_value(struct json *json, const struct value *value)
{
    if (value == NULL) {
        json_null(json);
        return;
    }
    begin_item(json);
    add_tree(json->out, value);
}

const char *value_json(const struct value *value, struct arena *arena)
{
    JSON_LOCAL(json, text, 64 << 20);
    json_value(&json, value);
    return value != NULL && text.dropped == 0 ? buf_keep(&text, arena) : "{}";
}

void json_names(struct json *json, const struct names *names)
{
    json_object(json);
    for (size_t i = 0; names != NULL && i < names->count; i++)
        json_put_int(json, names->name[i], names->number[i]);
    json_object_end(json);
}

char *names_json(const struct names *names, struct arena *arena)
{
    JSON_LOCAL(json, text, 1 << 14);
    json_names(&json, names);
    return buf_keep(&text, arena);
}

void json_put_text(struct json *json, const char *key, const char *text)
{
    json_key(json, key);
    json_text(json, text);
}

void json_put_int(struct json *json, const char *key, int64_t number)
{
    json_key(json, key);
    json_int(json, number);
}

void json_put_real(struct json *json, const char *key, double number)
{
    json_key(json, key);
    json_real(json, number);
}

void json_put_bool(struct json *json, const char *key, bool truth)
{
    json_key(json, key);
    json_bool(json, truth);
}

void json_put_object(struct json *json, const char *key)
{
    json_key(json, key);
    json_object(json);
}

void json_put_array(struct json *json, const char *key)
{
    json_key(json, key);
    json_array(json);
}

void json_put_raw(struct json *json, const char *key, const char *text)
{
    json_key(json, key);
    json_raw(json, text);
}

void json_put_positive(struct json *json, const char *key, double number)
{
    json_put_real(json, key, number > 0 ? number : NAN);
}

void json_put_known(struct json *json, const char *key, double number)
{
    json_put_real(json, key, number >= 0 ? number : NAN);
}

void json_put_members(struct json *json, const struct value *map)
{
    for (size_t i = 0; map != NULL && map->kind == VALUE_MAP && i < map->count; i++) {
        json_key(json, map->keys[i]);
        json_value(json, map->items[i]);
    }
}

void json_put_names(struct json *json, const char *key, const struct names *names)
{
    json_key(json, key);
    json_names(json, names);
}

void json_put_value(struct json *json, const char *key, const struct value *value)
{
    json_key(json, key);
    json_value(json, value);
}
