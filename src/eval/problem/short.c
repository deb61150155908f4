/* The short form: name, shape_a, shape_b, dtype. For `matmul` the dims follow from the shapes; for
 * anything else the shapes are numbers, and the output's cannot be known from them, so that the
 * spec must say it. */
#include "eval/problem/read.h"

#include <string.h>

bool problem_is_short(const struct value *root)
{
    return value_get(root, "shape_a") != NULL || value_get(root, "shape_b") != NULL;
}

static int read_shape(struct reading *reading, const char *key, const struct value **shape)
{
    const struct value *value = value_get(reading->root, key);
    *shape = value;
    if (value == NULL)
        return 0;
    bool fine = value->kind == VALUE_LIST && value->count <= RANK_MAX;
    for (size_t i = 0; fine && i < value->count; i++)
        fine = value->items[i]->kind == VALUE_INT && value->items[i]->integer > 0;
    if (fine)
        return 0;
    return document_refuse(&reading->document, value->line,
                           "expected %s: [NUMBER, ...], at most %d positive numbers", key,
                           RANK_MAX);
}

/* `dims`: names to use instead of the numbers, or NULL. */
static int make_tensor(struct reading *reading, const char *name, enum dtype dtype,
                       const struct value *shape, const char *const *dims,
                       struct tensor_spec *tensor)
{
    *tensor = (struct tensor_spec){
        .name = name, .dtype = dtype, .rank = shape->count, .low = 1.0, .high = -1.0};
    for (size_t i = 0; i < shape->count; i++) {
        tensor->shape_text[i] = dims != NULL ? dims[i] : shape->items[i]->text;
        if (expr_parse(reading->problem->arena, tensor->shape_text[i], &tensor->shape[i],
                       reading->document.err) != 0)
            return err_wrap(reading->document.err, "%s:%d", reading->document.name, shape->line);
    }
    return 0;
}

static int add_dim(struct reading *reading, const char *name, const struct value *number)
{
    struct dim_spec *dim = &reading->problem->dims[reading->problem->dim_count++];
    dim->name = name;
    return document_expr(&reading->document, number, &dim->value, &dim->value_text);
}

static int read_matmul(struct reading *reading, const struct value *a, const struct value *b,
                       enum dtype dtype)
{
    static const char *const a_dims[] = {"M", "K"};
    static const char *const b_dims[] = {"K", "N"};
    static const char *const c_dims[] = {"M", "N"};
    struct problem *problem = reading->problem;
    if (b == NULL || a->count != 2 || b->count != 2)
        return document_refuse(&reading->document, b != NULL ? b->line : a->line,
                               "expected shape_a: [M, K] and shape_b: [K, N] for matmul");
    if (a->items[1]->integer != b->items[0]->integer)
        return document_refuse(&reading->document, b->line,
                               "expected shape_b to begin with shape_a's last number, %lld",
                               (long long)a->items[1]->integer);
    if (add_dim(reading, "M", a->items[0]) != 0 || add_dim(reading, "N", b->items[1]) != 0 ||
        add_dim(reading, "K", a->items[1]) != 0)
        return -1;
    problem->input_count = 2;
    problem->output_count = 1;
    if (make_tensor(reading, "A", dtype, a, a_dims, &problem->inputs[0]) != 0 ||
        make_tensor(reading, "B", dtype, b, b_dims, &problem->inputs[1]) != 0 ||
        make_tensor(reading, "C", dtype, a, c_dims, &problem->outputs[0]) != 0)
        return -1;
    return expr_parse(problem->arena, "2*M*N*K", &problem->flops, reading->document.err);
}

int problem_read_short(struct reading *reading)
{
    struct problem *problem = reading->problem;
    const struct document *document = &reading->document;
    const struct value *a, *b;
    const struct value *name = value_get(reading->root, "dtype");
    enum dtype dtype = DTYPE_FLOAT32;
    if (read_shape(reading, "shape_a", &a) != 0 || read_shape(reading, "shape_b", &b) != 0)
        return -1;
    if (a == NULL)
        return document_refuse(document, b->line, "expected shape_a beside shape_b");
    if (name != NULL && (name->text == NULL || !dtype_parse(name->text, &dtype)))
        return document_refuse(document, name->line,
                               "expected dtype: float32, float64, int32, float16 or bfloat16");
    if (strcmp(problem->name, "matmul") == 0 && value_get(reading->root, "outputs") == NULL)
        return read_matmul(reading, a, b, dtype);
    if (value_get(reading->root, "outputs") == NULL)
        return document_refuse(document, a->line,
                               "expected the key \"outputs\" too: only matmul's output follows "
                               "from shape_a and shape_b; add outputs: {C: {shape: [...], "
                               "dtype: %s}}",
                               dtype_name(dtype));
    if (make_tensor(reading, "A", dtype, a, NULL, &problem->inputs[problem->input_count++]) != 0)
        return -1;
    if (b != NULL &&
        make_tensor(reading, "B", dtype, b, NULL, &problem->inputs[problem->input_count++]) != 0)
        return -1;
    return problem_read_tensors(reading, "outputs", false);
}
