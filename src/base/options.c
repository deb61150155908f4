#include "base/options.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/options_parse.h"
#include "base/value.h"

#include <stdlib.h>
#include <string.h>

enum { FILE_MOST = 1024 * 1024, WORD_MOST = 64 };

int options_defaults(const struct option_table *table, void *target, enum option_origin *origins,
                     struct arena *arena, struct err *err)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct option *option = &table->options[i];
        origins[i] = ORIGIN_DEFAULT;
        char *field = (char *)target + option->offset;
        if (option->default_text != NULL) {
            if (option_store(option, target, option->default_text, arena, err) != 0)
                return err_wrap(err, "the default of --%s", option->name);
        } else if (option->type == OPTION_BOOL) {
            *(bool *)(void *)field = false;
        } else if (option->type == OPTION_ENUM) {
            *(int *)(void *)field = 0;
        } else { /* a pointer, a double or an int64_t */
            memset(field, 0, sizeof(int64_t));
        }
    }
    return 0;
}

static const struct option *find_key(const struct option_table *table, const char *key)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->options[i].name, key) == 0)
            return &table->options[i];
    return NULL;
}

static int refuse_key(const struct option_table *table, const char *path, int line, const char *key,
                      struct err *err)
{
    const char **names = (const char **)mem_array(table->count + 1, sizeof *names);
    for (size_t i = 0; i < table->count; i++)
        names[i] = table->options[i].name;
    const char *nearest = options_nearest(key, names);
    mem_free((void *)names);
    if (nearest != NULL)
        return err_set(err, ERR_USAGE, "%s:%d: expected the key \"%s\", not \"%.80s\"", path, line,
                       nearest, key);
    return err_set(err, ERR_USAGE, "%s:%d: expected the name of an option, not \"%.80s\"", path,
                   line, key);
}

static int store_map(const struct option_table *table, void *target, enum option_origin *origins,
                     struct arena *arena, const char *path, const struct value *map,
                     struct err *err)
{
    if (map->kind == VALUE_NULL) /* a file of comments only */
        return 0;
    if (map->kind != VALUE_MAP)
        return err_set(err, ERR_USAGE, "%s:%d: expected \"option: value\" lines", path, map->line);
    for (size_t i = 0; i < map->count; i++) {
        const struct value *value = map->items[i];
        const struct option *option = find_key(table, map->keys[i]);
        if (option == NULL)
            return refuse_key(table, path, map->key_lines[i], map->keys[i], err);
        if (value->kind == VALUE_LIST || value->kind == VALUE_MAP || value->kind == VALUE_NULL)
            return err_set(err, ERR_USAGE, "%s:%d: %s: expected one value, not %s", path,
                           value->line, option->name,
                           value->kind == VALUE_NULL   ? "nothing"
                           : value->kind == VALUE_LIST ? "a list"
                                                       : "a map");
        if (option_store(option, target, value->text, arena, err) != 0)
            return err_wrap(err, "%s:%d: %s", path, value->line, option->name);
        origins[option - table->options] = ORIGIN_FILE;
    }
    return 0;
}

int options_file(const struct option_table *table, void *target, enum option_origin *origins,
                 struct arena *arena, const char *path, struct err *err)
{
    BUF_LOCAL(text, FILE_MOST);
    struct value *root;
    if (file_read(path, &text, err) != 0 ||
        value_parse_yaml(arena, path, buf_text(&text), text.length, &root, err) != 0)
        return -1;
    return store_map(table, target, origins, arena, path, root, err);
}

int options_environment(const struct option_table *table, void *target, enum option_origin *origins,
                        struct arena *arena, struct err *err)
{
    for (size_t i = 0; i < table->count; i++) {
        const char *variable = table->options[i].environment;
        const char *text = variable != NULL ? getenv(variable) : NULL;
        if (text == NULL || *text == '\0') /* set to nothing is how a shell unsets in passing */
            continue;
        if (option_store(&table->options[i], target, text, arena, err) != 0)
            return err_wrap(err, "%s in the environment", variable);
        origins[i] = ORIGIN_ENVIRONMENT;
    }
    return 0;
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edit distance in which a swap of neighbours counts as one (optimal string alignment). */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MOST + 1];
    size_t a_length = strlen(a), b_length = strlen(b);
    for (size_t k = 0; k <= b_length; k++)
        rows[0][k] = k;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *second = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= b_length; k++) {
            size_t changed = above[k - 1] + (a[i - 1] != b[k - 1]);
            row[k] = least_of(changed, least_of(above[k], row[k - 1]) + 1);
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                row[k] = least_of(row[k], second[k - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

const char *options_nearest(const char *word, const char *const *names)
{
    size_t length = strlen(word);
    if (length > WORD_MOST)
        return NULL;
    const char *nearest = NULL;
    size_t best = 0;
    for (; *names != NULL; names++) {
        size_t name_length = strlen(*names);
        if (name_length > WORD_MOST)
            continue;
        size_t longer = length > name_length ? length : name_length;
        size_t allowed = longer < 3 ? 0 : longer < 6 ? 1 : longer / 3;
        size_t edits = distance(word, *names);
        if (edits <= allowed && (nearest == NULL || edits < best)) {
            nearest = *names;
            best = edits;
        }
    }
    return nearest;
}
