/* plan.json: what libexec/emit reads of a kernel. */
#include "eval/emit/emit.h"

#include "base/json.h"
#include "eval/problem/torch.h"

#include <stdlib.h>
#include <string.h>

enum { PLAN_MOST = 4 << 20 };

/* Names that Python takes for its own words. */
static const char *const python_words[] = {
    "False",    "None",   "True", "and",     "as",    "assert", "async",  "await", "def", "del",
    "elif",     "except", "exec", "finally", "from",  "global", "import", "in",    "is",  "lambda",
    "nonlocal", "not",    "or",   "pass",    "raise", "with",   "yield",  NULL};

static int check_names(const struct emission *e, struct err *err)
{
    for (size_t k = 0; python_words[k]; k++) {
        for (size_t i = 0; i < e->problem->dim_count; i++)
            if (strcmp(e->problem->dims[i].name, python_words[k]) == 0)
                return err_set(err, ERR_UNSUPPORTED, "a dim is called %s, a word of Python",
                               python_words[k]);
        for (size_t i = 0; i < e->tune.count; i++)
            if (strcmp(e->tune.name[i], python_words[k]) == 0)
                return err_set(err, ERR_UNSUPPORTED,
                               "a tune parameter is called %s, a word of "
                               "Python",
                               python_words[k]);
    }
    return 0;
}

static void put_python(const struct emission *e, struct json *json, const struct expr *expr)
{
    json_text(json, expr ? expr_to_python(e->arena, expr) : NULL);
}

static void put_expr(const struct emission *e, struct json *json, const char *key,
                     const struct expr *expr)
{
    json_key(json, key);
    put_python(e, json, expr);
}

void emit_put_dims(const struct emission *e, struct json *json, emit_expr *put)
{
    const struct problem *problem = e->problem;
    json_put_array(json, "dims");
    for (size_t i = 0; i < problem->dim_count; i++) {
        const struct dim_spec *dim = &problem->dims[i];
        struct names shape = problem->shapes[0];
        int64_t number = 0;
        (void)expr_lookup_names(&shape, dim->name, &number);
        json_object(json);
        json_put_text(json, "name", dim->name);
        json_key(json, "value");
        put(e, json, dim->derived ? dim->value : NULL);
        json_put_int(json, "default", number);
        json_object_end(json);
    }
    json_array_end(json);
}

void emit_put_limits(const struct emission *e, struct json *json, const char *key)
{
    if (e->checked_up_to.count > 0) {
        json_put_names(json, key, &e->checked_up_to);
    } else {
        json_key(json, key);
        json_null(json);
    }
}

static void put_exprs(const struct emission *e, struct json *json, const char *key,
                      const struct expr *const *exprs, size_t most, const char *otherwise)
{
    json_put_array(json, key);
    for (size_t i = 0; i < most && (exprs[i] || otherwise); i++)
        json_text(json, exprs[i] ? expr_to_python(e->arena, exprs[i]) : otherwise);
    json_array_end(json);
}

void emit_put_tensors(const struct emission *e, struct json *json, const char *key,
                      const struct tensor_spec *tensors, size_t count, emit_expr *put, bool ranged)
{
    json_put_array(json, key);
    for (size_t i = 0; i < count; i++) {
        bool bounded = tensors[i].low < tensors[i].high;
        json_object(json);
        json_put_text(json, "name", tensors[i].name);
        json_put_text(json, "dtype", dtype_name(tensors[i].dtype));
        json_put_array(json, "shape");
        for (size_t k = 0; k < tensors[i].rank; k++)
            put(e, json, tensors[i].shape[k]);
        json_array_end(json);
        if (bounded || ranged) {
            json_put_array(json, "range");
            json_real(json, bounded ? tensors[i].low : -1.0);
            json_real(json, bounded ? tensors[i].high : 1.0);
            json_array_end(json);
        }
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_tensors(const struct emission *e, struct json *json, const char *key,
                        const struct tensor_spec *tensors, size_t count)
{
    emit_put_tensors(e, json, key, tensors, count, put_python, false);
}

static void put_problem(const struct emission *e, struct json *json)
{
    const struct problem *problem = e->problem;
    emit_put_dims(e, json, put_python);
    put_expr(e, json, "where", problem->where);
    emit_put_limits(e, json, "checked_up_to");
    put_tensors(e, json, "inputs", problem->inputs, problem->input_count);
    put_tensors(e, json, "outputs", problem->outputs, problem->output_count);
    json_put_text(json, "reference", problem->reference_function);
    json_put_array(json, "checks");
    for (size_t i = 0; i < problem->shape_count; i++)
        json_names(json, &problem->shapes[i]);
    json_array_end(json);
    json_key(json, "binding");
    if (problem->torch)
        json_raw(json, problem->torch->binding);
    else
        json_null(json);
}

/* ---- how it is launched ---- */

static void put_maps(const struct emission *e, struct json *json)
{
    json_put_array(json, "maps");
    for (size_t i = 0; i < e->candidate->map_count; i++) {
        const struct tensor_map *map = &e->candidate->maps[i];
        int swizzle = 0, promotion = 0;
        for (int bytes = 32; map->swizzle_bytes >= bytes; bytes *= 2)
            swizzle++;
        for (int bytes = 64; map->l2_bytes >= bytes; bytes *= 2)
            promotion++;
        json_object(json);
        json_put_text(json, "name", map->name);
        json_put_text(json, "tensor", map->tensor);
        put_exprs(e, json, "shape", map->shape, map->shape[0] ? map->rank : 0, NULL);
        put_exprs(e, json, "box", map->box, map->rank, NULL);
        put_exprs(e, json, "strides", map->strides, map->rank, "1");
        json_put_int(json, "swizzle", swizzle);
        json_put_int(json, "promotion", promotion);
        json_put_bool(json, "tf32", map->tf32);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_launches(const struct emission *e, struct json *json)
{
    json_put_array(json, "launches");
    for (size_t i = 0; i < e->candidate->launch_count; i++) {
        const struct launch *launch = &e->candidate->launches[i];
        json_object(json);
        json_put_text(json, "entry", launch->entry);
        put_exprs(e, json, "grid", launch->grid, 3, NULL);
        put_exprs(e, json, "block", launch->block, 3, NULL);
        put_exprs(e, json, "cluster", launch->cluster, 3, NULL);
        put_expr(e, json, "shared", launch->shared_bytes);
        json_put_bool(json, "cooperative", launch->cooperative);
        json_put_object(json, "constexpr");
        for (size_t k = 0; k < launch->constant_count; k++)
            put_expr(e, json, launch->constants[k].name, launch->constants[k].value);
        json_object_end(json);
        json_put_array(json, "args");
        for (size_t k = 0; k < launch->arg_count; k++)
            json_text(json, launch->args[k]);
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
    json_put_array(json, "memsets");
    for (size_t i = 0; i < e->candidate->memset_count; i++) {
        json_object(json);
        json_put_text(json, "tensor", e->candidate->memsets[i].tensor);
        json_put_int(json, "byte", e->candidate->memsets[i].byte);
        json_object_end(json);
    }
    json_array_end(json);
}

int emit_plan(const struct emission *e, struct err *err)
{
    if (check_names(e, err))
        return -1;
    JSON_LOCAL(json, text, PLAN_MOST);
    json_object(&json);
    json_put_text(&json, "kernel", e->title);
    char identity[33];
    hash_format(candidate_identity(e->candidate, &e->tune), identity);
    json_put_text(&json, "id", arena_printf(e->arena, "%s_%.8s", e->problem->name, identity));
    put_problem(e, &json);
    put_tensors(e, &json, "workspaces", e->candidate->workspaces, e->candidate->workspace_count);
    json_put_names(&json, "tune", &e->tune);
    put_expr(e, &json, "tune_where", e->candidate->where);
    json_put_array(&json, "flags");
    for (size_t i = 0; i < e->candidate->flag_count; i++)
        json_text(&json, e->candidate->flags[i]);
    json_array_end(&json);
    put_maps(e, &json);
    put_launches(e, &json);
    json_object_end(&json);
    buf_add_char(&text, '\n');
    return emit_write(e, "plan.json", &text, err);
}
