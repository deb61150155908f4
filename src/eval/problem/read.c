/* The keys of spec.yaml, in the order in which they depend on each other: dims, tensors, work,
 * tolerance, code, shapes. */
#include "eval/problem/read.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static const char *const long_keys[] = {
    "name",      "family",   "description", "dims",   "inputs",    "outputs",    "reference",
    "baselines", "baseline", "flops",       "bytes",  "tolerance", "accuracy",   "precision",
    "reduction", "check",    "where",       "hidden", "sizes",     "non_finite", NULL};

static const char *const short_keys[] = {
    "name",      "family",    "description", "shape_a",   "shape_b", "dtype",
    "outputs",   "reference", "baselines",   "baseline",  "flops",   "bytes",
    "tolerance", "accuracy",  "precision",   "reduction", "check",   "where",
    "hidden",    "sizes",     "non_finite",  NULL};

static const char *const precisions[] = {"float64", "float32",  "tf32",
                                         "float16", "bfloat16", "int32"};

bool problem_has_dim(const struct problem *problem, const char *name)
{
    for (size_t i = 0; i < problem->dim_count; i++)
        if (strcmp(problem->dims[i].name, name) == 0)
            return true;
    return false;
}

static bool is_dim(void *context, const char *name)
{
    return problem_has_dim((const struct problem *)context, name);
}

static int read_text(struct reading *reading, const char *key, const char *fallback,
                     const char **text)
{
    const struct value *value = value_get(reading->root, key);
    *text = fallback;
    if (value == NULL)
        return 0;
    if (value->text == NULL || *value->text == '\0')
        return document_refuse(&reading->document, value->line, "expected a text for \"%s\"", key);
    *text = value->text;
    return 0;
}

/* The name becomes a folder, a key of the store and a word on the command line. */
static int read_name(struct reading *reading)
{
    struct problem *problem = reading->problem;
    const struct value *value = value_get(reading->root, "name");
    if (value == NULL)
        return document_refuse(&reading->document, 1, "expected the key \"name\"");
    if (read_text(reading, "name", "", &problem->name) != 0)
        return -1;
    bool fine = isalnum((unsigned char)problem->name[0]) && strlen(problem->name) <= 63;
    for (const char *at = problem->name; *at != '\0'; at++)
        fine = fine && (isalnum((unsigned char)*at) || strchr("_-.", *at) != NULL);
    if (!fine)
        return document_refuse(&reading->document, value->line,
                               "expected a name of letters, digits, \"_\", \"-\", \".\", "
                               "not \"%.80s\"",
                               problem->name);
    if (read_text(reading, "family", problem->name, &problem->family) != 0)
        return -1;
    return read_text(reading, "description", "", &problem->description);
}

static bool refers_to_dims(const struct expr *expr)
{
    int64_t number;
    struct names none = {0};
    return expr_eval(expr, expr_lookup_names, &none, &number, NULL) != 0;
}

static int read_dims(struct reading *reading)
{
    const struct document *document = &reading->document;
    struct problem *problem = reading->problem;
    const struct value *dims = value_get(reading->root, "dims");
    if (dims == NULL)
        return 0;
    if (dims->kind != VALUE_MAP)
        return document_refuse(document, dims->line, "expected dims: {NAME: NUMBER, ...}");
    for (size_t i = 0; i < dims->count; i++) {
        struct dim_spec *dim = &problem->dims[problem->dim_count];
        if (problem->dim_count == DIMS_MAX)
            return document_refuse(document, dims->items[i]->line, "expected at most %d dims",
                                   DIMS_MAX);
        if (document_check_name(document, dims->key_lines[i], "a dim's name", dims->keys[i]) != 0 ||
            document_expr(document, dims->items[i], &dim->value, &dim->value_text) != 0)
            return -1;
        dim->name = dims->keys[i];
        dim->derived = dims->items[i]->kind != VALUE_INT && refers_to_dims(dim->value);
        problem->dim_count++;
    }
    return 0;
}

bool problem_has_tensor(const struct problem *problem, const char *name)
{
    for (size_t i = 0; i < problem->input_count; i++)
        if (strcmp(problem->inputs[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < problem->output_count; i++)
        if (strcmp(problem->outputs[i].name, name) == 0)
            return true;
    return false;
}

int problem_read_tensors(struct reading *reading, const char *key, bool inputs)
{
    const struct document *document = &reading->document;
    struct problem *problem = reading->problem;
    const struct value *map = value_get(reading->root, key);
    size_t most = inputs ? INPUTS_MAX : OUTPUTS_MAX;
    if (map == NULL || map->kind != VALUE_MAP || map->count == 0 || map->count > most)
        return document_refuse(document, document_key_line(reading->root, key),
                               "expected %s: {NAME: {shape: [...], dtype: ...}}, 1 to %zu of them",
                               key, most);
    for (size_t i = 0; i < map->count; i++) {
        struct tensor_spec *tensor = inputs ? &problem->inputs[problem->input_count]
                                            : &problem->outputs[problem->output_count];
        const char *name = map->keys[i];
        if (problem_has_dim(problem, name) || problem_has_tensor(problem, name))
            return document_refuse(document, map->key_lines[i],
                                   "expected a name that is not taken, not \"%.80s\"", name);
        if (document_tensor(document, name, map->key_lines[i], map->items[i], inputs, tensor) != 0)
            return -1;
        *(inputs ? &problem->input_count : &problem->output_count) += 1;
    }
    return 0;
}

static int read_work(struct reading *reading)
{
    const struct value *flops = value_get(reading->root, "flops");
    const struct value *bytes = value_get(reading->root, "bytes");
    const struct value *reduction = value_get(reading->root, "reduction");
    if (reduction != NULL &&
        document_expr(&reading->document, reduction, &reading->problem->reduction, NULL))
        return -1;
    if (flops != NULL && document_expr(&reading->document, flops, &reading->problem->flops, NULL))
        return -1;
    if (bytes != NULL && document_expr(&reading->document, bytes, &reading->problem->bytes, NULL))
        return -1;
    return 0;
}

static int read_ratio(struct reading *reading, const struct value *map, const char *key,
                      double *ratio)
{
    const struct value *value = value_get(map, key);
    if (value == NULL)
        return 0;
    if ((value->kind != VALUE_INT && value->kind != VALUE_REAL) || !isfinite(value->real) ||
        value->real < 0.0)
        return document_refuse(&reading->document, value->line,
                               "expected a number that is not negative for \"%s\"", key);
    *ratio = value->real;
    return 0;
}

static int read_tolerance(struct reading *reading)
{
    static const char *const keys[] = {"rtol", "atol", NULL};
    const struct document *document = &reading->document;
    struct problem *problem = reading->problem;
    const struct value *tolerance = value_get(reading->root, "tolerance");
    if (tolerance == NULL ||
        (tolerance->kind == VALUE_TEXT && strcmp(tolerance->text, "auto") == 0))
        return 0;
    if (tolerance->kind != VALUE_MAP || tolerance->count == 0)
        return document_refuse(document, tolerance->line,
                               "expected tolerance: auto, or {rtol: NUMBER, atol: NUMBER}");
    if (value_check_keys(tolerance, document->name, keys, document->err) != 0)
        return -1;
    problem->tolerance_fixed = true;
    if (read_ratio(reading, tolerance, "rtol", &problem->rtol) != 0)
        return -1;
    return read_ratio(reading, tolerance, "atol", &problem->atol);
}

static int read_precision(struct reading *reading)
{
    const struct document *document = &reading->document;
    struct problem *problem = reading->problem;
    const char *accuracy;
    if (read_text(reading, "accuracy", "elementwise", &accuracy) != 0)
        return -1;
    problem->normwise = strcmp(accuracy, "normwise") == 0;
    if (!problem->normwise && strcmp(accuracy, "elementwise") != 0)
        return document_refuse(document, document_key_line(reading->root, "accuracy"),
                               "expected accuracy: elementwise or normwise, not \"%.80s\"",
                               accuracy);
    const char *fallback = dtype_name(problem_precise(problem)->dtype);
    if (read_text(reading, "precision", fallback, &problem->precision) != 0)
        return -1;
    if (strcmp(problem->precision, "strict") == 0) {
        problem->strict = true;
        problem->precision = fallback;
    }
    for (size_t i = 0; i < sizeof precisions / sizeof precisions[0]; i++)
        if (strcmp(precisions[i], problem->precision) == 0)
            return 0;
    return document_refuse(document, document_key_line(reading->root, "precision"),
                           "expected precision: strict, float64, float32, tf32, float16, "
                           "bfloat16 or int32, not \"%.80s\"",
                           problem->precision);
}

static int read_non_finite(struct reading *reading)
{
    const char *contract;
    if (read_text(reading, "non_finite", "", &contract) != 0)
        return -1;
    if (strcmp(contract, "propagate") == 0)
        reading->problem->non_finite = NON_FINITE_PROPAGATE;
    else if (strcmp(contract, "ignore") == 0)
        reading->problem->non_finite = NON_FINITE_IGNORE;
    else if (*contract != '\0' && strcmp(contract, "reference") != 0)
        return document_refuse(&reading->document, document_key_line(reading->root, "non_finite"),
                               "expected non_finite: reference, propagate or ignore, not \"%.80s\"",
                               contract);
    return 0;
}

int problem_read(struct reading *reading)
{
    struct document *document = &reading->document;
    document->known = is_dim;
    document->context = reading->problem;
    document->known_as = "a dim";
    if (reading->root->kind != VALUE_MAP)
        return document_refuse(document, reading->root->line,
                               "expected a map: name, dims, inputs, outputs, reference, ...");
    bool is_short = problem_is_short(reading->root);
    if (value_check_keys(reading->root, document->name, is_short ? short_keys : long_keys,
                         document->err) != 0 ||
        read_name(reading) != 0)
        return -1;
    if (is_short) {
        if (problem_read_short(reading) != 0)
            return -1;
    } else if (read_dims(reading) != 0 || problem_read_tensors(reading, "inputs", true) != 0 ||
               problem_read_tensors(reading, "outputs", false) != 0) {
        return -1;
    }
    if (read_work(reading) != 0 || read_tolerance(reading) != 0 || read_precision(reading) != 0 ||
        read_non_finite(reading) != 0 || problem_read_code(reading) != 0)
        return -1;
    return problem_read_shapes(reading);
}
