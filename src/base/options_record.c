/* What was told, kept as JSON and taken from there again. */
#include "base/options.h"
#include "base/options_parse.h"

#include <string.h>

void option_put_json(const struct option *option, const void *target, struct json *json)
{
    const void *at = (const char *)target + option->offset;
    struct buf text;
    switch (option->type) {
    case OPTION_BOOL:
        json_bool(json, *(const bool *)at);
        break;
    case OPTION_REAL:
        json_real(json, *(const double *)at);
        break;
    case OPTION_TEXT:
    case OPTION_CHOICE:
        json_text(json, *(const char *const *)at);
        break;
    case OPTION_ENUM:
        buf_init(&text, 100);
        (void)option_write(option, target, &text);
        json_text(json, buf_text(&text));
        buf_free(&text);
        break;
    default:
        json_int(json, *(const int64_t *)at);
    }
}

static bool is_text(const struct option *option)
{
    return option->type == OPTION_TEXT || option->type == OPTION_CHOICE;
}

const char *options_encode(const struct option_table *table, const void *target,
                           struct arena *arena)
{
    JSON_LOCAL(json, text, 1 << 20);
    json_object(&json);
    for (size_t i = 0; i < table->count; i++) {
        const struct option *option = &table->options[i];
        const void *at = (const char *)target + option->offset;
        if (option->record == NULL || (is_text(option) && *(const char *const *)at == NULL))
            continue;
        json_key(&json, option->record);
        option_put_json(option, target, &json);
    }
    json_object_end(&json);
    return buf_keep(&text, arena);
}

static int decode_field(struct arena *arena, const struct value *item, const struct option *option,
                        void *target, struct err *err)
{
    void *at = (char *)target + option->offset;
    const char *expected;
    if (is_text(option) || option->type == OPTION_ENUM) {
        if (item->kind == VALUE_TEXT)
            return option_store(option, target, item->text, arena, err);
        expected = "a text";
    } else if (option->type == OPTION_BOOL) {
        if (item->kind == VALUE_BOOL)
            return *(bool *)at = item->boolean, 0;
        expected = "true or false";
    } else if (option->type == OPTION_REAL) {
        if (item->kind == VALUE_INT || item->kind == VALUE_REAL)
            return *(double *)at = item->real, 0;
        expected = "a number";
    } else {
        if (item->kind == VALUE_INT)
            return *(int64_t *)at = item->integer, 0;
        expected = "a whole number";
    }
    return err_set(err, ERR_CORRUPT, "expected %s", expected);
}

int options_decode(const struct option_table *table, void *target,
                   const enum option_origin *origins, struct arena *arena,
                   const struct value *value, struct err *err)
{
    if (value == NULL || value->kind != VALUE_MAP)
        return err_set(err, ERR_CORRUPT, "options of the run: expected a JSON object");
    for (size_t i = 0; i < table->count; i++) {
        const struct option *option = &table->options[i];
        const struct value *item = option->record != NULL ? value_get(value, option->record) : NULL;
        if (item != NULL && origins[i] != ORIGIN_COMMAND_LINE &&
            decode_field(arena, item, option, target, err) != 0)
            return err_wrap(err, "options of the run: %s", option->record);
    }
    return 0;
}
