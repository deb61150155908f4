#include "base/value.h"

#include "base/buf.h"
#include "base/options.h"

#include <string.h>

static const struct value *get_n(const struct value *map, const char *key, size_t length)
{
    if (map == NULL || map->kind != VALUE_MAP)
        return NULL;
    for (size_t i = 0; i < map->count; i++)
        if (strncmp(map->keys[i], key, length) == 0 && map->keys[i][length] == '\0')
            return map->items[i];
    return NULL;
}

const struct value *value_get(const struct value *map, const char *key)
{
    return get_n(map, key, strlen(key));
}

const struct value *value_at(const struct value *map, const char *dotted_path)
{
    for (;;) {
        const char *dot = strchr(dotted_path, '.');
        if (dot == NULL)
            return value_get(map, dotted_path);
        map = get_n(map, dotted_path, (size_t)(dot - dotted_path));
        dotted_path = dot + 1;
    }
}

const char *value_text(const struct value *map, const char *key, const char *fallback)
{
    const struct value *value = value_get(map, key);
    return value != NULL && value->kind == VALUE_TEXT ? value->text : fallback;
}

int64_t value_int(const struct value *map, const char *key, int64_t fallback)
{
    const struct value *value = value_get(map, key);
    return value != NULL && value->kind == VALUE_INT ? value->integer : fallback;
}

double value_real(const struct value *map, const char *key, double fallback)
{
    const struct value *value = value_get(map, key);
    bool number = value != NULL && (value->kind == VALUE_REAL || value->kind == VALUE_INT);
    return number ? value->real : fallback;
}

bool value_bool(const struct value *map, const char *key, bool fallback)
{
    const struct value *value = value_get(map, key);
    return value != NULL && value->kind == VALUE_BOOL ? value->boolean : fallback;
}

bool value_word_among(const char *word, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static int refuse_key(const struct value *map, size_t index, const char *name,
                      const char *const *allowed, struct err *err)
{
    const char *key = map->keys[index];
    int line = map->key_lines != NULL ? map->key_lines[index] : map->line;
    const char *nearest = options_nearest(key, allowed);
    BUF_LOCAL(list, 240);
    for (size_t i = 0; allowed[i] != NULL; i++)
        buf_addf(&list, "%s%s", i == 0 ? "" : ", ", allowed[i]);
    if (nearest != NULL)
        err_set(err, ERR_USAGE, "%s:%d: expected the key \"%s\", not \"%.100s\"", name, line,
                nearest, key);
    else
        err_set(err, ERR_USAGE, "%s:%d: expected one of the keys %s%s, not \"%.100s\"", name, line,
                buf_text(&list), list.dropped > 0 ? "..." : "", key);
    return -1;
}

int value_check_keys(const struct value *map, const char *name, const char *const *allowed,
                     struct err *err)
{
    if (map == NULL || map->kind != VALUE_MAP)
        return err_set(err, ERR_USAGE, "%s:%d: expected a map", name, map != NULL ? map->line : 0);
    for (size_t i = 0; i < map->count; i++)
        if (!value_word_among(map->keys[i], allowed))
            return refuse_key(map, i, name, allowed, err);
    return 0;
}
