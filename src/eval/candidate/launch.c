/* The launch plan's keys of front matter: launch, tma, memset. They come after tune and workspace,
 * whose names they use. */
#include "eval/candidate/read.h"

#include <stdlib.h>
#include <string.h>

int candidate_find_map(const struct candidate *candidate, const char *name)
{
    for (size_t i = 0; i < candidate->map_count; i++)
        if (strcmp(candidate->maps[i].name, name) == 0)
            return (int)i;
    return -1;
}

static bool candidate_is_output(const struct problem *problem, const char *name)
{
    for (size_t i = 0; i < problem->output_count; i++)
        if (strcmp(problem->outputs[i].name, name) == 0)
            return true;
    return false;
}

/* --- launch --- */

static int read_args(struct candidate_reading *reading, const struct value *list,
                     struct launch *launch)
{
    enum { MOST = sizeof launch->args / sizeof launch->args[0] };
    const struct document *document = &reading->document;
    if (list->kind != VALUE_LIST || list->count > MOST)
        return document_refuse(document, list->line, "expected args: [NAME, ...], at most %d",
                               MOST);
    for (size_t i = 0; i < list->count; i++) {
        const char *name = list->items[i]->text;
        if (list->items[i]->kind == VALUE_INT) { /* its text is taken apart by the plan */
            launch->args[launch->arg_count++] = name;
            continue;
        }
        if (name == NULL || (!problem_has_dim(reading->problem, name) &&
                             !problem_has_tensor(reading->problem, name) &&
                             !candidate_is_workspace(reading->candidate, name) &&
                             candidate_find_map(reading->candidate, name) < 0))
            return document_refuse(document, list->items[i]->line,
                                   "expected a tensor, a workspace, a dim or a number, not "
                                   "\"%.80s\"",
                                   name != NULL ? name : "a list or a map");
        launch->args[launch->arg_count++] = name;
    }
    return 0;
}

static int read_extent(struct candidate_reading *reading, const struct value *map, const char *key,
                       const struct expr **exprs)
{
    const struct value *value = value_get(map, key);
    size_t count;
    if (value == NULL)
        return 0;
    if (document_exprs(&reading->document, value, key, 3, exprs, NULL, &count) != 0)
        return -1;
    if (count == 0)
        return document_refuse(&reading->document, value->line,
                               "expected one to three expressions for %s", key);
    return 0;
}

/* Numbers that a compile is given, by the function's own names for them. */
static int read_constants(struct candidate_reading *reading, const struct value *map,
                          struct launch *launch)
{
    const struct document *document = &reading->document;
    if (map->kind != VALUE_MAP || map->count > CONSTANTS_MAX)
        return document_refuse(document, map->line,
                               "expected constexpr: {NAME: EXPRESSION, ...}, at most %d of them",
                               CONSTANTS_MAX);
    for (size_t i = 0; i < map->count; i++) {
        if (document_check_name(document, map->key_lines[i], "a constant's name", map->keys[i]) ||
            document_expr(document, map->items[i], &launch->constants[i].value, NULL))
            return -1;
        launch->constants[i].name = map->keys[i];
        launch->constant_count++;
    }
    return 0;
}

static int check_launch_keys(const struct candidate_reading *reading, const struct value *map)
{
    static const char *const keys[] = {"entry",  "grid", "block",       "cluster",
                                       "shared", "args", "cooperative", NULL};
    static const char *const compiled[] = {"entry", "grid", "args", "constexpr", NULL};
    const struct language *language = reading->candidate->language;
    bool fixes = language != NULL && language->fixes_block;
    return value_check_keys(map, reading->document.name, fixes ? compiled : keys,
                            reading->document.err);
}

/* Nothing of ours is named by an entry, so that it may begin with _, as kernels of Triton's do. */
static int check_entry(const struct document *document, int line, const char *name)
{
    const char *rest = name + strspn(name, "_");
    if (strcmp(name, "kernel") == 0 || strcmp(name, "main") == 0)
        return 0;
    if (*rest == '\0' || rest == name || strlen(name) > 63)
        rest = name;
    return document_check_name(document, line, "an entry's name", rest);
}

static int read_launch(struct candidate_reading *reading, const struct value *map,
                       struct launch *launch)
{
    const struct document *document = &reading->document;
    const struct language *language = reading->candidate->language;
    if (check_launch_keys(reading, map) != 0)
        return -1;
    const struct value *entry = value_get(map, "entry");
    if (entry == NULL || entry->kind != VALUE_TEXT)
        return document_refuse(document, map->line, "expected entry: FUNCTION in the launch");
    if (check_entry(document, entry->line, entry->text) != 0)
        return -1;
    launch->entry = entry->text;
    const char *needed[] = {"grid", "block"};
    bool blocks = language != NULL && (language->own_blocks || language->fixes_block);
    size_t needs = language == NULL || !language->plan ? 0 : blocks ? 1 : 2;
    for (size_t i = 0; i < needs; i++)
        if (value_get(map, needed[i]) == NULL)
            return document_refuse(document, map->line, "expected %s: in the launch of %s",
                                   needed[i], launch->entry);
    if (read_extent(reading, map, "grid", launch->grid) != 0 ||
        read_extent(reading, map, "block", launch->block) != 0 ||
        read_extent(reading, map, "cluster", launch->cluster) != 0)
        return -1;
    const struct value *shared = value_get(map, "shared");
    if (shared != NULL && document_expr(document, shared, &launch->shared_bytes, NULL) != 0)
        return -1;
    const struct value *cooperative = value_get(map, "cooperative");
    if (cooperative != NULL && cooperative->kind != VALUE_BOOL)
        return document_refuse(document, cooperative->line, "expected cooperative: true, or false");
    launch->cooperative = value_bool(map, "cooperative", false);
    const struct value *constants = value_get(map, "constexpr");
    if (constants != NULL && read_constants(reading, constants, launch) != 0)
        return -1;
    const struct value *args = value_get(map, "args");
    return args != NULL ? read_args(reading, args, launch) : 0;
}

int candidate_read_launches(struct candidate_reading *reading, const struct value *list)
{
    struct candidate *candidate = reading->candidate;
    if (list->kind != VALUE_LIST || list->count == 0 || list->count > LAUNCHES_MAX)
        return document_refuse(&reading->document, list->line,
                               "expected launch: a list of 1 to %d maps with entry, grid, block, "
                               "args",
                               LAUNCHES_MAX);
    candidate_facts(reading, true);
    int result = 0;
    for (size_t i = 0; result == 0 && i < list->count; i++, candidate->launch_count++)
        result = read_launch(reading, list->items[i], &candidate->launches[i]);
    candidate_facts(reading, false);
    return result;
}

/* --- tma --- */

/* "128", "128B" or 128; "none" and absent are 0. */
static int read_bytes(const struct document *document, const struct value *map, const char *key,
                      const int *allowed, int *bytes)
{
    const struct value *value = value_get(map, key);
    char *end = NULL;
    *bytes = 0;
    if (value == NULL || (value->text != NULL && strcmp(value->text, "none") == 0))
        return 0;
    long number = value->text != NULL ? strtol(value->text, &end, 10) : -1;
    bool fine = end != NULL && end != value->text && (*end == '\0' || strcmp(end, "B") == 0);
    for (size_t i = 0; fine && allowed[i] != 0; i++)
        if (number == allowed[i]) {
            *bytes = allowed[i];
            return 0;
        }
    return document_refuse(document, value->line, "expected %s: none, %dB, %dB or %dB", key,
                           allowed[0], allowed[1], allowed[2]);
}

static int read_map_exprs(const struct document *document, const struct value *map, const char *key,
                          struct tensor_map *into, const struct expr **exprs)
{
    const struct value *value = value_get(map, key);
    size_t count = 0;
    if (value == NULL)
        return 0;
    if (document_exprs(document, value, key, TENSOR_MAP_RANK, exprs, NULL, &count) != 0)
        return -1;
    if (into->rank == 0)
        into->rank = count;
    if (count == 0 || count != into->rank)
        return document_refuse(document, value->line,
                               "expected as many numbers in %s as in box: 1 to %d", key,
                               TENSOR_MAP_RANK);
    return 0;
}

static int read_map(struct candidate_reading *reading, const struct value *value,
                    struct tensor_map *map)
{
    static const char *const keys[] = {"tensor",  "box", "shape", "strides",
                                       "swizzle", "l2",  "type",  NULL};
    static const char *const compiled[] = {"tensor", "box", "shape", NULL};
    const struct language *language = reading->candidate->language;
    bool fixes = language != NULL && language->fixes_block;
    static const int swizzles[] = {32, 64, 128, 0}, promotions[] = {64, 128, 256, 0};
    const struct document *document = &reading->document;
    if (value_check_keys(value, document->name, fixes ? compiled : keys, document->err) != 0)
        return -1;
    map->tensor = value_text(value, "tensor", NULL);
    const struct tensor_spec *spec =
        map->tensor == NULL
            ? NULL
            : candidate_find_tensor(reading->problem, reading->candidate, map->tensor, NULL);
    if (spec == NULL)
        return document_refuse(document, value->line,
                               "expected tensor: the name of a tensor or a workspace");
    if (value_get(value, "box") == NULL)
        return document_refuse(document, value->line, "expected box: the extents of one tile");
    const struct value *type = value_get(value, "type");
    if (type != NULL && (type->kind != VALUE_TEXT || strcmp(type->text, "tf32") != 0))
        return document_refuse(document, type->line, "expected type: tf32, or none");
    if (type != NULL && spec->dtype != DTYPE_FLOAT32)
        return document_refuse(document, type->line,
                               "expected type: tf32 for float32 alone, and %s is %s", map->tensor,
                               dtype_name(spec->dtype));
    map->tf32 = type != NULL;
    if (read_map_exprs(document, value, "box", map, map->box) != 0 ||
        read_map_exprs(document, value, "shape", map, map->shape) != 0 ||
        read_map_exprs(document, value, "strides", map, map->strides) != 0 ||
        read_bytes(document, value, "swizzle", swizzles, &map->swizzle_bytes) != 0)
        return -1;
    if (map->shape[0] == NULL && map->rank != spec->rank)
        return document_refuse(document, value_get(value, "box")->line,
                               "expected as many numbers in box as %s has axes: %zu", map->tensor,
                               spec->rank);
    return read_bytes(document, value, "l2", promotions, &map->l2_bytes);
}

int candidate_read_maps(struct candidate_reading *reading, const struct value *map)
{
    struct candidate *candidate = reading->candidate;
    const struct document *document = &reading->document;
    int result = 0;
    if (map->kind != VALUE_MAP || map->count > TENSOR_MAPS_MAX)
        return document_refuse(document, map->line,
                               "expected tma: {NAME: {tensor, box, ...}}, at most %d of them",
                               TENSOR_MAPS_MAX);
    candidate_facts(reading, true);
    for (size_t i = 0; result == 0 && i < map->count; i++) {
        struct tensor_map *into = &candidate->maps[candidate->map_count];
        result =
            candidate_check_free(reading, map->key_lines[i], "a tensor map's name", map->keys[i]);
        if (result == 0)
            result = read_map(reading, map->items[i], into);
        into->name = map->keys[i];
        candidate->map_count++;
    }
    candidate_facts(reading, false);
    return result;
}

/* --- memset --- */

int candidate_read_memsets(struct candidate_reading *reading, const struct value *map)
{
    struct candidate *candidate = reading->candidate;
    const struct document *document = &reading->document;
    if (map->kind != VALUE_MAP || map->count > MEMSETS_MAX)
        return document_refuse(document, map->line,
                               "expected memset: {TENSOR: BYTE, ...}, at most %d of them",
                               MEMSETS_MAX);
    for (size_t i = 0; i < map->count; i++) {
        const struct value *byte = map->items[i];
        const char *name = map->keys[i];
        if (!candidate_is_output(reading->problem, name) &&
            !candidate_is_workspace(candidate, name))
            return document_refuse(document, map->key_lines[i],
                                   "expected an output or a workspace, not \"%.80s\"", name);
        if (byte->kind != VALUE_INT || byte->integer < 0 || byte->integer > 255)
            return document_refuse(document, byte->line, "expected a byte from 0 to 255 for %s",
                                   name);
        candidate->memsets[candidate->memset_count++] =
            (struct memset_spec){.tensor = name, .byte = (unsigned char)byte->integer};
    }
    return 0;
}
