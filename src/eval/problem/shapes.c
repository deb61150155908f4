/* The spec's own shapes (`check`, `sizes`) and the rule for valid ones (`where`). */
#include "eval/problem/read.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

static int read_where(struct reading *reading)
{
    const struct value *where = value_get(reading->root, "where");
    if (where == NULL)
        return 0;
    return document_expr(&reading->document, where, &reading->problem->where, NULL);
}

static struct dim_spec *find_dim(struct problem *problem, const char *name)
{
    for (size_t i = 0; i < problem->dim_count; i++)
        if (strcmp(problem->dims[i].name, name) == 0)
            return &problem->dims[i];
    return NULL;
}

static int add_shape(struct reading *reading, int line, const struct names *given)
{
    struct problem *problem = reading->problem;
    struct err *err = reading->document.err;
    if (problem->shape_count == SHAPES_MAX)
        return document_refuse(&reading->document, line, "expected at most %d check shapes",
                               SHAPES_MAX - 1);
    if (problem_dims(problem, given, &problem->shapes[problem->shape_count], err) != 0) {
        err->code = ERR_USAGE;
        return err_wrap(err, "%s:%d", reading->document.name, line);
    }
    problem->shape_count++;
    return 0;
}

/* Numbers for dims that are not derived. */
static int read_given(struct reading *reading, const struct value *map, struct names *given)
{
    const struct document *document = &reading->document;
    if (map->kind != VALUE_MAP)
        return document_refuse(document, map->line, "expected a map of dims: {M: 1, N: 300}");
    for (size_t i = 0; i < map->count; i++) {
        const struct dim_spec *dim = find_dim(reading->problem, map->keys[i]);
        if (dim == NULL || dim->derived)
            return document_refuse(document, map->key_lines[i], "expected %s, not \"%.80s\"",
                                   dim == NULL ? "a dim" : "a dim that does not follow from others",
                                   map->keys[i]);
        if (map->items[i]->kind != VALUE_INT)
            return document_refuse(document, map->items[i]->line, "expected a number for %s",
                                   dim->name);
        if (names_set(given, dim->name, map->items[i]->integer, document->err) != 0)
            return err_wrap(document->err, "%s:%d", document->name, map->line);
    }
    return 0;
}

static int read_shape(struct reading *reading, const struct value *map)
{
    struct names given = {0};
    return read_given(reading, map, &given) != 0 ? -1 : add_shape(reading, map->line, &given);
}

static int read_check(struct reading *reading)
{
    const struct value *list = value_get(reading->root, "check");
    struct names none = {0};
    if (add_shape(reading, document_key_line(reading->root, "dims"), &none) != 0)
        return -1;
    if (list == NULL)
        return 0;
    if (list->kind != VALUE_LIST)
        return document_refuse(&reading->document, list->line,
                               "expected check: [{M: 1, ...}, ...], a list of maps of dims");
    for (size_t i = 0; i < list->count; i++)
        if (read_shape(reading, list->items[i]) != 0)
            return -1;
    return 0;
}

static int read_hidden(struct reading *reading)
{
    const struct document *document = &reading->document;
    const struct value *map = value_get(reading->root, "hidden");
    if (map == NULL)
        return 0;
    if (map->kind != VALUE_MAP)
        return document_refuse(document, map->line, "expected hidden: {M: [LOW, HIGH], ...}");
    for (size_t i = 0; i < map->count; i++) {
        struct dim_spec *dim = find_dim(reading->problem, map->keys[i]);
        const struct value *range = map->items[i];
        if (dim == NULL || dim->derived)
            return document_refuse(document, map->key_lines[i], "expected %s, not \"%.80s\"",
                                   dim == NULL ? "a dim" : "a dim that does not follow from others",
                                   map->keys[i]);
        if (range->kind != VALUE_LIST || range->count != 2 || range->items[0]->kind != VALUE_INT ||
            range->items[1]->kind != VALUE_INT || range->items[0]->integer < 0 ||
            range->items[1]->integer > INT32_MAX ||
            range->items[0]->integer > range->items[1]->integer)
            return document_refuse(document, range->line, "expected %s: [LOW, HIGH]", dim->name);
        dim->hidden_low = range->items[0]->integer;
        dim->hidden_high = range->items[1]->integer;
    }
    return 0;
}

static int read_sizes(struct reading *reading)
{
    const struct document *document = &reading->document;
    struct problem *problem = reading->problem;
    const struct value *map = value_get(reading->root, "sizes");
    if (map == NULL)
        return 0;
    if (map->kind != VALUE_MAP || map->count > SIZES_MAX)
        return document_refuse(document, map->line,
                               "expected sizes: {NAME: {M: 4096, ...}, ...}, at most %d",
                               SIZES_MAX);
    for (size_t i = 0; i < map->count; i++) {
        struct names dims, *given = &problem->sizes.items[problem->sizes.count].given;
        const char *name = map->keys[i];
        if (document_check_name(document, map->key_lines[i], "a size's name", name) != 0 ||
            read_given(reading, map->items[i], given) != 0)
            return -1;
        if (problem_dims(problem, given, &dims, document->err) != 0) {
            document->err->code = ERR_USAGE;
            return err_wrap(document->err, "%s:%d", document->name, map->items[i]->line);
        }
        problem->sizes.items[problem->sizes.count++].name = name;
    }
    return 0;
}

int problem_read_shapes(struct reading *reading)
{
    struct problem *problem = reading->problem;
    struct err *err = reading->document.err;
    double flops, bytes;
    if (read_where(reading) != 0 || read_check(reading) != 0 || read_hidden(reading) != 0 ||
        read_sizes(reading) != 0)
        return -1;
    for (size_t i = 0; i < problem->shape_count; i++)
        if (problem_work(problem, &problem->shapes[i], &flops, &bytes, err) != 0)
            return err_wrap(err, "%s:%d", reading->document.name,
                            document_key_line(reading->root, "flops"));
    return 0;
}

/* --- another main shape --- */

static const struct names *find_size(const struct problem *problem, const char *name)
{
    for (size_t i = 0; i < problem->sizes.count; i++)
        if (strcmp(problem->sizes.items[i].name, name) == 0)
            return &problem->sizes.items[i].given;
    return NULL;
}

bool problem_has_size(const struct problem *problem, const char *name)
{
    return find_size(problem, name) != NULL;
}

const char *problem_size_of(const char *path)
{
    const char *at = strrchr(path, '@');
    return at != NULL && at != path && strchr(at, '/') == NULL ? at : NULL;
}

/* What may stand behind the @. */
static int no_size(const struct problem *problem, const char *text, struct err *err)
{
    BUF_LOCAL(known, 1 << 10);
    for (size_t i = 0; i < problem->sizes.count; i++)
        buf_addf(&known, "%s, ", problem->sizes.items[i].name);
    buf_add_text(&known, "dims, or NAME=NUMBER,... of");
    for (size_t i = 0; i < problem->dim_count; i++)
        if (!problem->dims[i].derived)
            buf_addf(&known, " %s", problem->dims[i].name);
    return err_set(err, ERR_USAGE, "expected a size of %s: %s; not \"%.80s\"", problem->name,
                   buf_text(&known), text);
}

/* "M=64,N=8" */
static int parse_size(struct problem *problem, const char *text, struct names *given,
                      struct err *err)
{
    do {
        const char *equals = strchr(text, '=');
        char *end = NULL;
        long long number = equals != NULL ? strtoll(equals + 1, &end, 10) : 0;
        const char *name =
            equals != NULL ? arena_strndup(problem->arena, text, (size_t)(equals - text)) : text;
        const struct dim_spec *dim = find_dim(problem, name);
        if (equals == NULL || end == equals + 1 || (*end != ',' && *end != '\0') || dim == NULL ||
            dim->derived)
            return no_size(problem, text, err);
        if (names_set(given, dim->name, number, err) != 0)
            return -1;
        text = *end == ',' ? end + 1 : end;
    } while (*text != '\0');
    return 0;
}

int problem_resize(struct problem *problem, const char *size, struct err *err)
{
    const struct names *known = find_size(problem, size);
    struct names given = {0};
    double flops, bytes;
    if (known != NULL)
        given = *known;
    else if (strcmp(size, "dims") != 0 && parse_size(problem, size, &given, err) != 0)
        return -1;
    if (problem_dims(problem, &given, &problem->shapes[0], err) != 0 ||
        problem_work(problem, &problem->shapes[0], &flops, &bytes, err) != 0) {
        err->code = ERR_USAGE;
        return err_wrap(err, "%s@%s", problem->name, size);
    }
    problem->file = arena_printf(problem->arena, "%s@%s", problem->file, size);
    return 0;
}
