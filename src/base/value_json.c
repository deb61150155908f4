#include "base/value.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 64, NODES_MOST = 1000000 };

struct conversion {
    struct arena *arena;
    const char *name;
    size_t nodes;
    struct err *err;
};

static struct value *convert(struct conversion *conversion, json_t *json, int depth);

static struct value *convert_items(struct conversion *conversion, json_t *json, struct value *value,
                                   int depth)
{
    value->kind = json_is_array(json) ? VALUE_LIST : VALUE_MAP;
    value->count = json_is_array(json) ? json_array_size(json) : json_object_size(json);
    value->items =
        (struct value **)arena_array(conversion->arena, value->count, sizeof(struct value *));
    if (value->kind == VALUE_LIST) {
        for (size_t i = 0; i < value->count; i++) {
            value->items[i] = convert(conversion, json_array_get(json, i), depth);
            if (value->items[i] == NULL)
                return NULL;
        }
        return value;
    }
    value->keys = (const char **)arena_array(conversion->arena, value->count, sizeof *value->keys);
    size_t i = 0;
    for (void *at = json_object_iter(json); at != NULL; at = json_object_iter_next(json, at)) {
        value->keys[i] = arena_strdup(conversion->arena, json_object_iter_key(at));
        value->items[i] = convert(conversion, json_object_iter_value(at), depth);
        if (value->items[i++] == NULL)
            return NULL;
    }
    return value;
}

static struct value *convert(struct conversion *conversion, json_t *json, int depth)
{
    if (depth > DEPTH_MOST || ++conversion->nodes > NODES_MOST) {
        err_set(conversion->err, ERR_USAGE, "%s: expected at most %d %s", conversion->name,
                depth > DEPTH_MOST ? DEPTH_MOST : NODES_MOST,
                depth > DEPTH_MOST ? "levels" : "values");
        return NULL;
    }
    struct value *value = ARENA_NEW(conversion->arena, struct value);
    switch (json_typeof(json)) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        return convert_items(conversion, json, value, depth + 1);
    case JSON_STRING:
        value->kind = VALUE_TEXT;
        value->length = json_string_length(json);
        value->text = arena_strndup(conversion->arena, json_string_value(json), value->length);
        break;
    case JSON_INTEGER:
        value->kind = VALUE_INT;
        value->integer = json_integer_value(json);
        value->real = (double)value->integer;
        break;
    case JSON_REAL:
        value->kind = VALUE_REAL;
        value->real = json_real_value(json);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        value->kind = VALUE_BOOL;
        value->boolean = json_is_true(json);
        break;
    case JSON_NULL:
        break;
    }
    return value;
}

int value_parse_json(struct arena *arena, const char *name, const char *text, size_t length,
                     struct value **root, struct err *err)
{
    json_error_t problem;
    json_t *json = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &problem);
    if (json == NULL && json_error_code(&problem) == json_error_out_of_memory)
        abort();
    if (json == NULL)
        return err_set(err, ERR_USAGE, "%s:%d: expected JSON: %s", name,
                       problem.line > 0 ? problem.line : 1, problem.text);
    struct conversion conversion = {.arena = arena, .name = name, .err = err};
    struct value *tree = convert(&conversion, json, 1);
    json_decref(json);
    if (tree == NULL)
        return -1;
    *root = tree;
    return 0;
}
