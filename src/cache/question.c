#include "cache/question.h"

#include "base/file.h"
#include "base/json.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MOST = 4 << 20, SHAPES_SHOWN = 6, OPERATION_MOST = 40, STEM_MOST = 160 };

/* ---- the text ---- */

/* What a device is, without what of it changes from one minute to the next. */
static bool moves(const char *key, const struct value *item)
{
    static const char *const keys[] = {"sm_clock_mhz",        "memory_clock_mhz",
                                       "temperature_celsius", "power_milliwatts",
                                       "clock_limits",        "ceilings_under_load"};
    size_t length = strlen(key), tail = strlen("_per_s");
    bool rate = length > tail && strcmp(key + length - tail, "_per_s") == 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        rate = rate || strcmp(key, keys[i]) == 0;
    return rate || item->kind == VALUE_REAL;
}

static void put_map(const char *name, const struct value *map, bool still, struct json *json)
{
    json_put_object(json, name);
    for (size_t i = 0; map && map->kind == VALUE_MAP && i < map->count; i++) {
        if (still && moves(map->keys[i], map->items[i]))
            continue;
        json_put_value(json, map->keys[i], map->items[i]);
    }
    json_object_end(json);
}

static int put_tensors(const char *name, const struct tensor_spec *tensors, size_t count,
                       const struct names *dims, struct json *json, struct err *err)
{
    int64_t extents[RANK_MAX];
    size_t elements;
    json_put_array(json, name);
    for (size_t i = 0; i < count; i++) {
        if (tensor_extents(&tensors[i], dims, extents, &elements, err))
            return -1;
        json_object(json);
        json_put_text(json, "name", tensors[i].name);
        json_put_text(json, "dtype", dtype_name(tensors[i].dtype));
        json_put_array(json, "shape");
        for (size_t k = 0; k < tensors[i].rank; k++)
            json_int(json, extents[k]);
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
    return 0;
}

/* ---- the name ---- */

static void put_plain(const char *text, size_t most, bool lower, struct buf *out)
{
    for (size_t i = 0; text[i] && i < most; i++) {
        unsigned char c = (unsigned char)text[i];
        buf_add_char(out, isalnum(c) ? (char)(lower ? tolower(c) : c) : '-');
    }
}

static int put_shapes(char mark, const struct tensor_spec *tensors, size_t count,
                      const struct names *dims, struct buf *out, struct err *err)
{
    int64_t extents[RANK_MAX];
    size_t elements;
    buf_addf(out, "_%c", mark);
    for (size_t i = 0; i < count && i < SHAPES_SHOWN; i++) {
        if (tensor_extents(&tensors[i], dims, extents, &elements, err))
            return -1;
        buf_add_text(out, i ? "_" : "");
        for (size_t k = 0; k < tensors[i].rank; k++)
            buf_addf(out, "%s%lld", k ? "x" : "", (long long)extents[k]);
        if (tensors[i].rank == 0)
            buf_add_text(out, "1");
    }
    if (count > SHAPES_SHOWN)
        buf_addf(out, "_and%zu", count - SHAPES_SHOWN);
    return 0;
}

static bool in_shape(const struct tensor_spec *tensors, size_t count, const char *dim)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < tensors[i].rank; k++)
            if (strcmp(tensors[i].shape_text[k], dim) == 0)
                return true;
    return false;
}

/* Numbers that no shape shows: a step, a padding. */
static void put_parameters(const struct problem *problem, const struct names *dims, struct buf *out)
{
    for (size_t i = 0; i < problem->dim_count; i++) {
        const struct dim_spec *dim = &problem->dims[i];
        int64_t number;
        if (dim->derived || in_shape(problem->inputs, problem->input_count, dim->name) ||
            in_shape(problem->outputs, problem->output_count, dim->name) ||
            !expr_lookup_names((void *)(uintptr_t)dims, dim->name, &number))
            continue;
        buf_add_char(out, '_');
        put_plain(dim->name, 16, true, out);
        buf_addf(out, "%lld", (long long)number);
    }
}

static int make_stem(const struct problem *problem, const char *key, struct buf *out,
                     struct err *err)
{
    const struct names *dims = &problem->shapes[0];
    BUF_LOCAL(shapes, STEM_MOST);
    put_plain(problem->name, OPERATION_MOST, false, out);
    if (put_shapes('i', problem->inputs, problem->input_count, dims, &shapes, err) ||
        put_shapes('o', problem->outputs, problem->output_count, dims, &shapes, err))
        return -1;
    put_parameters(problem, dims, &shapes);
    buf_add_text(out, buf_text(&shapes)); /* cut where there are many: the hash tells */
    buf_addf(out, "_h%.12s", key);
    return 0;
}

/* ---- all of it ---- */

static const char *hash_text(struct arena *arena, const char *text, size_t length)
{
    char hex[33];
    hash_format(hash_bytes(text, length), hex);
    return arena_strdup(arena, hex);
}

int question_make(struct arena *arena, const struct asked *asked, struct question *question,
                  struct err *err)
{
    const struct problem *problem = asked->problem;
    const struct names *dims = &problem->shapes[0];
    char hex[33];
    BUF_LOCAL(text, TEXT_MOST);
    BUF_LOCAL(stem, 256);
    struct json json = {.out = &text};
    json_object(&json);
    json_put_text(&json, "by", asked->by);
    json_put_text(&json, "problem", problem->name);
    hash_format(asked->definition, hex);
    json_put_text(&json, "definition", hex);
    json_put_names(&json, "dims", dims);
    if (put_tensors("inputs", problem->inputs, problem->input_count, dims, &json, err) ||
        put_tensors("outputs", problem->outputs, problem->output_count, dims, &json, err))
        return -1;
    json_put_text(&json, "machine", asked->machine);
    json_put_text(&json, "twagent", asked->twagent);
    json_put_raw(&json, "settings", asked->settings);
    if (asked->source) {
        json_put_text(&json, "file", asked->file);
        json_put_text(&json, "source", hash_text(arena, asked->source, strlen(asked->source)));
        json_put_raw(&json, "tune", asked->tune ? asked->tune : "null");
    }
    question->about = hash_text(arena, buf_text(&text), text.length);
    put_map("device", asked->device, true, &json);
    put_map("versions", asked->versions, false, &json);
    if (asked->compilers != NULL)
        json_put_raw(&json, "compilers", asked->compilers);
    json_object_end(&json);
    if (text.dropped)
        return err_set(err, ERR_LIMIT, "the question takes more than %d bytes", TEXT_MOST);
    question->key = hash_text(arena, buf_text(&text), text.length);
    if (make_stem(problem, question->key, &stem, err))
        return -1;
    question->text = buf_keep(&text, arena);
    question->stem = buf_keep(&stem, arena);
    return 0;
}

const char *question_machine(struct arena *arena)
{
    char name[256] = "";
    struct err ignored;
    BUF_LOCAL(text, 1024);
    if (file_read("/etc/machine-id", &text, &ignored))
        buf_reset(&text);
    if (gethostname(name, sizeof name - 1) == 0)
        buf_add_text(&text, name);
    return hash_text(arena, buf_text(&text), text.length);
}
