#include "base/fields.h"

#include <math.h>

static const struct {
    enum value_kind kind;
    const char *expected;
} types[] = {
    [FIELD_TEXT] = {VALUE_TEXT, "a text"},        [FIELD_JSON] = {VALUE_MAP, "an object"},
    [FIELD_INT] = {VALUE_INT, "an integer"},      [FIELD_REAL] = {VALUE_REAL, "a number"},
    [FIELD_BOOL] = {VALUE_BOOL, "true or false"},
};

void fields_put(const struct field *fields, size_t count, const void *from, struct json *json)
{
    for (const struct field *field = fields; field < fields + count; field++) {
        const void *at = (const char *)from + field->offset;
        const char *text = field->type <= FIELD_JSON ? *(const char *const *)at : NULL;
        json_key(json, field->key);
        switch (field->type) {
        case FIELD_TEXT:
            json_text(json, text != NULL ? text : "");
            break;
        case FIELD_JSON:
            json_raw(json, text != NULL && *text != '\0' ? text : "{}");
            break;
        case FIELD_INT:
            json_int(json, *(const int64_t *)at);
            break;
        case FIELD_REAL:
            json_real(json, *(const double *)at);
            break;
        case FIELD_BOOL:
            json_bool(json, *(const bool *)at);
            break;
        }
    }
}

static bool is_of_type(const struct field *field, const struct value *value)
{
    return value->kind == types[field->type].kind ||
           (field->type == FIELD_REAL && value->kind == VALUE_INT);
}

/* `value` NULL: there is none. */
static void store(const struct field *field, struct arena *arena, const struct value *value,
                  void *to)
{
    void *at = (char *)to + field->offset;
    switch (field->type) {
    case FIELD_TEXT:
        *(const char **)at = value != NULL ? value->text : "";
        break;
    case FIELD_JSON:
        *(const char **)at = value != NULL ? value_json(value, arena) : "{}";
        break;
    case FIELD_INT:
        *(int64_t *)at = value != NULL ? value->integer : 0;
        break;
    case FIELD_REAL:
        *(double *)at = value == NULL ? 0 : value->kind == VALUE_NULL ? NAN : value->real;
        break;
    case FIELD_BOOL:
        *(bool *)at = value != NULL && value->boolean;
        break;
    }
}

void fields_take(const struct field *fields, size_t count, struct arena *arena,
                 const struct value *map, void *to)
{
    for (const struct field *field = fields; field < fields + count; field++) {
        const struct value *value = value_get(map, field->key);
        if (value != NULL && field->type != FIELD_JSON && !is_of_type(field, value))
            value = NULL;
        store(field, arena, value, to);
    }
}

int fields_demand(const struct field *fields, size_t count, struct arena *arena,
                  const struct value *map, void *to, struct err *err)
{
    for (const struct field *field = fields; field < fields + count; field++) {
        const struct value *value = value_get(map, field->key);
        bool unknown = value != NULL && value->kind == VALUE_NULL && field->type == FIELD_REAL;
        if (value == NULL || !(unknown || is_of_type(field, value)))
            return err_set(err, ERR_PROTOCOL, "expected %s for \"%s\"", types[field->type].expected,
                           field->key);
        store(field, arena, value, to);
        if (field->type == FIELD_TEXT)
            *(const char **)(void *)((char *)to + field->offset) = arena_strdup(arena, value->text);
    }
    return 0;
}
