#include "agents/prompt_private.h"

#include "base/value.h"

#include <string.h>

enum { REFERENCE_LEAST = 400 };

void prompt_signature(const struct problem *problem, struct buf *out)
{
    const char *comma = "";
    buf_add_text(out, "void kernel(");
    for (size_t i = 0; i < problem->input_count; i++, comma = ", ")
        buf_addf(out, "%sconst %s *%s", comma, dtype_c_type(problem->inputs[i].dtype),
                 problem->inputs[i].name);
    for (size_t i = 0; i < problem->output_count; i++, comma = ", ")
        buf_addf(out, "%s%s *%s", comma, dtype_c_type(problem->outputs[i].dtype),
                 problem->outputs[i].name);
    for (size_t i = 0; i < problem->dim_count; i++, comma = ", ")
        buf_addf(out, "%sint64_t %s", comma, problem->dims[i].name);
    buf_add_char(out, ')');
}

static void put_tensors(const char *kind, const struct tensor_spec *tensors, size_t count,
                        struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        buf_addf(out, "- %s %s: [", kind, tensors[i].name);
        for (size_t j = 0; j < tensors[i].rank; j++)
            buf_addf(out, "%s%s", j > 0 ? ", " : "", tensors[i].shape_text[j]);
        buf_addf(out, "] %s", dtype_name(tensors[i].dtype));
        if (tensors[i].low <= tensors[i].high)
            buf_addf(out, ", values in [%g, %g]", tensors[i].low, tensors[i].high);
        buf_add_char(out, '\n');
    }
}

static void put_shape(const struct names *shape, struct buf *out)
{
    for (size_t i = 0; i < shape->count; i++)
        buf_addf(out, "%s%s=%lld", i > 0 ? " " : "", shape->name[i], (long long)shape->number[i]);
}

static void put_definition(const struct prompt_context *context, struct buf *out)
{
    const struct problem *problem = context->problem;
    buf_addf(out, "%s: %s\n", problem->name,
             problem->description != NULL ? problem->description : "");
    put_tensors("input", problem->inputs, problem->input_count, out);
    put_tensors("output", problem->outputs, problem->output_count, out);
    buf_add_text(out, "- timed at ");
    put_shape(&problem->shapes[0], out);
    buf_add_text(out, "; also checked at");
    for (size_t i = 1; i < problem->shape_count; i++) {
        buf_add_text(out, i > 1 ? "; " : " ");
        put_shape(&problem->shapes[i], out);
    }
    buf_addf(out, "%s at shapes that are not told\n", problem->shape_count > 1 ? " and" : "");
    if (problem->tolerance_fixed)
        buf_addf(out, "- tolerance: rtol %g, atol %g\n", problem->rtol, problem->atol);
    else
        buf_addf(out,
                 "- tolerance: as accurate as an honest computation in %s; sums may be "
                 "reordered\n",
                 problem->precision != NULL ? problem->precision : "the given types");
    if (context->baseline_ns > 0)
        buf_addf(out, "- baseline %s: %.1f us\n", context->baseline, context->baseline_ns / 1e3);
    if (context->floor_ns > 0)
        buf_addf(out, "- no kernel on this machine can take less than about %.1f us\n",
                 context->floor_ns / 1e3);
}

void put_problem(const struct material *material, size_t most, struct buf *out)
{
    static const char before[] = "\nThe reference that defines it:\n";
    const char *reference = material->context->reference;
    size_t start = out->length;
    put_definition(material->context, out);
    size_t used = out->length - start + sizeof before;
    if (reference == NULL || *reference == '\0' || most < used + REFERENCE_LEAST)
        return;
    buf_add_text(out, before);
    prompt_fenced(reference, most - used, "... ", " ...", out);
}

/* ---- the machine, as lines of "key: value" ---- */

static void put_value(const struct value *value, int depth, struct buf *out)
{
    switch (value->kind) {
    case VALUE_TEXT:
        buf_addf(out, "%.800s", value->text);
        break;
    case VALUE_BOOL:
        buf_add_text(out, value->boolean ? "yes" : "no");
        break;
    case VALUE_INT:
        buf_addf(out, "%lld", (long long)value->integer);
        break;
    case VALUE_REAL:
        buf_addf(out, "%.4g", value->real);
        break;
    case VALUE_NULL:
        buf_add_text(out, "not known");
        break;
    default: /* a list or map inside: one line, as deep as it goes */
        for (size_t i = 0; i < value->count && depth < 4; i++) {
            if (i > 0)
                buf_add_text(out, ", ");
            if (value->kind == VALUE_MAP)
                buf_addf(out, "%s ", value->keys[i]);
            put_value(value->items[i], depth + 1, out);
        }
    }
}

static bool ends(const char *text, const char *tail)
{
    size_t length = strlen(text), more = strlen(tail);
    return length >= more && strcmp(text + length - more, tail) == 0;
}

static void put_fact(const char *key, const struct value *value, struct buf *out)
{
    /* What only says how it is measured here is of no use to who writes a kernel. */
    static const char *const ours[] = {"backend", "perf_counters", "sandbox", NULL};
    for (size_t i = 0; ours[i] != NULL; i++)
        if (strcmp(key, ours[i]) == 0)
            return;
    bool rate = value->kind == VALUE_REAL || value->kind == VALUE_INT;
    buf_addf(out, "- %s: ", key);
    if (rate && ends(key, "bytes_per_s"))
        buf_addf(out, "%.3g GB/s", value->real / 1e9);
    else if (rate && ends(key, "flops_per_s"))
        buf_addf(out, "%.4g Gflop/s", value->real / 1e9);
    else
        put_value(value, 0, out);
    buf_add_char(out, '\n');
}

static const struct value *object(struct arena *arena, const char *json)
{
    struct value *root;
    struct err ignored;
    if (json == NULL || value_parse_json(arena, "object", json, strlen(json), &root, &ignored) != 0)
        return NULL;
    return root->kind == VALUE_MAP ? root : NULL;
}

void put_device(const struct material *material, size_t most, struct buf *out)
{
    (void)most; /* short, and every line of it counts */
    struct arena *arena = arena_new();
    const struct value *device = object(arena, material->context->device);
    const struct value *facts = object(arena, material->context->facts);
    for (size_t i = 0; device != NULL && i < device->count; i++)
        put_fact(device->keys[i], device->items[i], out);
    for (size_t i = 0; facts != NULL && i < facts->count; i++)
        if (value_get(device, facts->keys[i]) == NULL)
            put_fact(facts->keys[i], facts->items[i], out);
    arena_free(arena);
}
