/* Loading, and what follows from a problem and numbers for its dims. */
#include "eval/problem/problem.h"

#include "base/file.h"
#include "base/mem.h"
#include "eval/problem/read.h"
#include "eval/problem/shipped.h"
#include "eval/problem/target.h"
#include "eval/problem/torch.h"

#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SPEC_BYTES_MOST = 256 * 1024, START_NAME_MOST = 255 };

/* Bounds that keep every later product of sizes inside 64 bits. */
static const int64_t dim_most = INT64_C(1) << 40;
static const int64_t elements_most = INT64_C(1) << 40;

static char *spec_in(const char *folder)
{
    static const char *const names[] = {"spec.yaml", "spec.yml"};
    for (size_t i = 0; i < 2; i++) {
        char *path = file_join(folder, names[i]);
        if (file_exists(path))
            return path;
        mem_free(path);
    }
    return NULL;
}

static char *find_shipped(const char *name)
{
    if (*name == '\0' || *name == '.' || strchr(name, '/') != NULL)
        return NULL;
    MEM_LOCAL char *relative = file_join("problems", name);
    MEM_LOCAL char *folder = file_data_path(relative);
    return folder != NULL ? spec_in(folder) : NULL;
}

/* A folder here goes before a shipped problem of the same name, if it holds a spec. */
static char *find_spec(const char *path, struct err *err)
{
    char *spec = NULL;
    if (file_is_dir(path))
        spec = spec_in(path);
    else if (file_exists(path))
        return mem_strdup(path);
    if (spec == NULL)
        spec = find_shipped(path);
    if (spec == NULL && file_is_dir(path))
        err_set(err, ERR_USAGE, "%.300s/spec.yaml:1: expected a file, found none", path);
    else if (spec == NULL)
        err_set(err, ERR_USAGE,
                "%.300s:1: expected a problem: a folder with spec.yaml, the file itself, the "
                "name of a shipped one, or a Python file with a PyTorch Model",
                path);
    return spec;
}

static int place(struct problem *problem, const char *spec, struct err *err)
{
    char real[PATH_MAX];
    if (realpath(spec, real) == NULL || !file_is_regular(real))
        return err_set(err, ERR_USAGE, "%.300s:1: expected a file that can be read", spec);
    problem->file = arena_strdup(problem->arena, real);
    char *slash = strrchr(real, '/');
    assert(slash != NULL);
    problem->folder =
        slash == real ? "/" : arena_strndup(problem->arena, real, (size_t)(slash - real));
    return 0;
}

static int load(struct problem *problem, const char *spec, struct err *err)
{
    struct reading reading = {
        .document = {.arena = problem->arena, .name = spec, .err = err},
        .problem = problem,
    };
    struct value *root;
    BUF_LOCAL(text, SPEC_BYTES_MOST);
    int result = place(problem, spec, err);
    if (result == 0 && file_read(problem->file, &text, err) != 0) {
        if (err != NULL)
            err->code = ERR_USAGE;
        result = err_wrap(err, "%.300s:1", spec);
    }
    if (result == 0)
        result = value_parse_yaml(problem->arena, spec, buf_text(&text), text.length, &root, err);
    if (result != 0)
        return -1;
    reading.root = root;
    return problem_read(&reading);
}

static bool is_python(const char *path)
{
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".py") == 0;
}

static int load_torch(struct problem *problem, const char *path, const char *python,
                      struct err *err)
{
    if (place(problem, path, err) != 0)
        return -1;
    if (problem_read_torch(problem, problem->file, python, err) == 0)
        return 0;
    BUF_LOCAL(text, 1 << 20);
    struct err ignored;
    if (err->code == ERR_ENVIRONMENT && file_read(path, &text, &ignored) == 0 &&
        !strstr(buf_text(&text), "torch"))
        return err_set(
            err, ERR_USAGE,
            "%s is no PyTorch module: it never says torch. A numpy function is a problem "
            "by a spec.yaml beside it: twagent problem new DIR writes both",
            path);
    return -1;
}

int problem_load(const char *path, struct problem **problem, struct err *err)
{
    return problem_load_with(path, NULL, problem, err);
}

int problem_load_with(const char *path, const char *python, struct problem **problem,
                      struct err *err)
{
    struct err mine; /* the readers build on the message, so that there must be one */
    const char *size = file_exists(path) ? NULL : problem_size_of(path);
    MEM_LOCAL char *plain = mem_strdup(path);
    if (size != NULL)
        plain[size - path] = '\0';
    MEM_LOCAL char *spec = find_spec(plain, &mine);
    int result = -1;
    if (spec != NULL) {
        struct arena *arena = arena_new();
        struct problem *loaded = ARENA_NEW(arena, struct problem);
        loaded->arena = arena;
        loaded->shipped = ARENA_NEW(arena, struct shipped);
        result =
            is_python(spec) ? load_torch(loaded, spec, python, &mine) : load(loaded, spec, &mine);
        if (result == 0 && size != NULL)
            result = problem_resize(loaded, size + 1, &mine);
        if (result == 0)
            *problem = loaded;
        else
            arena_free(arena);
    }
    if (result != 0 && err != NULL)
        *err = mine;
    return result;
}

void problem_free(struct problem *problem)
{
    if (problem != NULL)
        arena_free(problem->arena);
}

static int refuse_unknown(const struct problem *problem, const struct names *given, struct err *err)
{
    for (size_t i = 0; given != NULL && i < given->count; i++) {
        bool known = false;
        for (size_t d = 0; d < problem->dim_count && !known; d++)
            known = strcmp(problem->dims[d].name, given->name[i]) == 0;
        if (!known)
            return err_set(err, ERR_USAGE, "expected a dim of %s, not \"%.80s\"", problem->name,
                           given->name[i]);
    }
    return 0;
}

static int number_of(const struct dim_spec *dim, const struct names *given, struct names *dims,
                     int64_t *number, struct err *err)
{
    int64_t wanted;
    bool is_given =
        given != NULL && expr_lookup_names((void *)(uintptr_t)given, dim->name, &wanted);
    if (is_given && !dim->derived) {
        *number = wanted;
        return 0;
    }
    if (expr_eval(dim->value, expr_lookup_names, dims, number, err) != 0)
        return err_wrap(err, "dim %s", dim->name);
    if (is_given && wanted != *number)
        return err_set(err, ERR_USAGE,
                       "expected %s = %lld, as it follows from other dims, not %lld", dim->name,
                       (long long)*number, (long long)wanted);
    return 0;
}

/* `where` may allow a dim of 0 (a padding); without it all are positive. */
static int check_dims(const struct problem *problem, struct names *dims, struct err *err)
{
    int64_t least = problem->where == NULL ? 1 : 0, truth = 1, extents[RANK_MAX];
    size_t elements;
    for (size_t i = 0; i < dims->count; i++)
        if (dims->number[i] < least || dims->number[i] > dim_most)
            return err_set(err, ERR_USAGE, "expected %s from %lld to 2^40, not %lld", dims->name[i],
                           (long long)least, (long long)dims->number[i]);
    if (problem->where != NULL &&
        expr_eval(problem->where, expr_lookup_names, dims, &truth, err) != 0)
        return err_wrap(err, "where");
    if (truth == 0)
        return err_set(err, ERR_USAGE, "expected dims that `where` allows");
    for (size_t i = 0; i < problem->input_count; i++)
        if (tensor_extents(&problem->inputs[i], dims, extents, &elements, err) != 0)
            return -1;
    for (size_t i = 0; i < problem->output_count; i++)
        if (tensor_extents(&problem->outputs[i], dims, extents, &elements, err) != 0)
            return -1;
    return 0;
}

int problem_dims(const struct problem *problem, const struct names *given, struct names *dims,
                 struct err *err)
{
    struct names computed = {0};
    if (refuse_unknown(problem, given, err) != 0)
        return -1;
    for (size_t i = 0; i < problem->dim_count; i++) {
        const struct dim_spec *dim = &problem->dims[i];
        int64_t number;
        if (number_of(dim, given, &computed, &number, err) != 0 ||
            names_set(&computed, dim->name, number, err) != 0)
            return -1;
    }
    if (check_dims(problem, &computed, err) != 0)
        return -1;
    *dims = computed;
    return 0;
}

int tensor_extents(const struct tensor_spec *tensor, const struct names *dims,
                   int64_t extents[RANK_MAX], size_t *elements, struct err *err)
{
    int64_t product = 1;
    for (size_t i = 0; i < tensor->rank; i++) {
        void *context = (void *)(uintptr_t)dims; /* the look-up only reads */
        if (expr_eval(tensor->shape[i], expr_lookup_names, context, &extents[i], err) != 0)
            return err_wrap(err, "shape of %s", tensor->name);
        if (extents[i] < 1)
            return err_set(err, ERR_USAGE, "expected %s of %s to be at least 1, not %lld",
                           tensor->shape_text[i], tensor->name, (long long)extents[i]);
        if (__builtin_mul_overflow(product, extents[i], &product) || product > elements_most)
            return err_set(err, ERR_USAGE, "expected at most 2^40 elements in %s", tensor->name);
    }
    for (size_t i = tensor->rank; i < RANK_MAX; i++)
        extents[i] = 1;
    *elements = (size_t)product;
    return 0;
}

static int add_bytes(const struct tensor_spec *tensors, size_t count, const struct names *dims,
                     double *bytes, struct err *err)
{
    int64_t extents[RANK_MAX];
    size_t elements = 0;
    for (size_t i = 0; i < count; i++) {
        if (tensor_extents(&tensors[i], dims, extents, &elements, err) != 0)
            return -1;
        *bytes += (double)elements * (double)dtype_bytes(tensors[i].dtype);
    }
    return 0;
}

double problem_rate(const struct problem *problem, const struct unit_rates *rates)
{
    double rate = rates->flops;
    for (size_t i = 0; i < problem->input_count; i++) {
        if (problem->inputs[i].dtype == DTYPE_FLOAT16)
            rate = fmax(rate, rates->fp16);
        if (problem->inputs[i].dtype == DTYPE_BFLOAT16)
            rate = fmax(rate, rates->bf16);
    }
    bool tf32 = problem->precision != NULL && strcmp(problem->precision, "tf32") == 0;
    return tf32 ? fmax(rate, rates->tf32) : rate;
}

int problem_work(const struct problem *problem, const struct names *dims, double *flops,
                 double *bytes, struct err *err)
{
    void *context = (void *)(uintptr_t)dims;
    int64_t number = 0;
    if (problem->flops != NULL &&
        expr_eval(problem->flops, expr_lookup_names, context, &number, err) != 0)
        return err_wrap(err, "flops");
    *flops = (double)number;
    *bytes = 0.0;
    if (problem->bytes != NULL) {
        if (expr_eval(problem->bytes, expr_lookup_names, context, &number, err) != 0)
            return err_wrap(err, "bytes");
        *bytes = (double)number;
        return 0;
    }
    if (add_bytes(problem->inputs, problem->input_count, dims, bytes, err) != 0)
        return -1;
    return add_bytes(problem->outputs, problem->output_count, dims, bytes, err);
}

const struct tensor_spec *problem_precise(const struct problem *problem)
{
    for (size_t i = 0; i < problem->output_count; i++)
        if (dtype_is_float(problem->outputs[i].dtype))
            return &problem->outputs[i];
    return &problem->outputs[0];
}

static double largest_input(const struct problem *problem, const struct names *dims)
{
    int64_t extents[RANK_MAX];
    double largest = 1.0;
    size_t elements = 0;
    struct err ignored;
    for (size_t i = 0; i < problem->input_count; i++)
        if (tensor_extents(&problem->inputs[i], dims, extents, &elements, &ignored) == 0)
            largest = fmax(largest, (double)elements);
    return largest;
}

/* Two operations a term, and the inputs' share of an output element. */
static double terms_by_work(const struct problem *problem, const struct names *dims,
                            double *row /* where the operation keeps its shape; else 1 */)
{
    int64_t extents[RANK_MAX];
    double flops = 0.0, bytes = 0.0, terms = 1.0, largest = largest_input(problem, dims);
    size_t outputs = 0;
    const struct tensor_spec *output = problem_precise(problem);
    struct err ignored;
    *row = 1.0;
    if (tensor_extents(output, dims, extents, &outputs, &ignored) != 0 || outputs == 0)
        return 1.0;
    if (problem_work(problem, dims, &flops, &bytes, &ignored) == 0 && flops > 0.0)
        terms = fmax(terms, flops / (2.0 * (double)outputs));
    if (output->rank > 0 && largest >= (double)outputs)
        *row = (double)extents[output->rank - 1];
    return fmax(terms, largest / (double)outputs);
}

size_t problem_products(const struct problem *problem, const struct names *dims)
{
    double row;
    return problem->flops != NULL ? (size_t)terms_by_work(problem, dims, &row) : 0;
}

/* As the spec says; 0: it does not. */
static double own_reduction(const struct problem *problem, const struct names *dims)
{
    int64_t number = 0;
    struct err ignored;
    bool known =
        problem->reduction != NULL && expr_eval(problem->reduction, expr_lookup_names,
                                                (void *)(uintptr_t)dims, &number, &ignored) == 0;
    return known && number > 0 ? (double)number : 0.0;
}

/* What operations and shapes tell is a guess: of a norm's group, whose sum has all of its numbers,
 * they tell a row. No sum has more terms than the work, or an input's numbers. */
size_t problem_reduction(const struct problem *problem, const struct names *dims)
{
    double row, told = terms_by_work(problem, dims, &row);
    double own = own_reduction(problem, dims);
    told = fmax(told, row);
    return (size_t)(own > 0.0 ? fmin(own, fmax(told, largest_input(problem, dims))) : told);
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

const char *problem_starts_folder(const struct problem *problem, const char *backend)
{
    const char *own = "";
    if (problem->torch != NULL) { /* a folder holds many such files: NAME.py has NAME.starts */
        own = strrchr(problem->file, '/') + 1;
        const char *size = is_python(own) ? NULL : problem_size_of(own);
        size_t length = size != NULL ? (size_t)(size - own) : strlen(own);
        own = arena_strndup(problem->arena, own, length - strlen("py"));
    }
    return arena_printf(problem->arena, "%s/%sstarts/%s", problem->folder, own, backend);
}

/* `functions`: those alone that are called as a function is, and need no launch plan. */
static size_t list_starts(const struct problem *problem, const char *folder, bool functions,
                          const char **paths, size_t most)
{
    DIR *entries = opendir(folder);
    size_t count = 0, capacity = 0;
    const char **found = NULL;
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        const struct language *language = language_of_file(entry->d_name);
        if (language == NULL || entry->d_name[0] == '.' || (functions && language->plan))
            continue;
        if (count == capacity) {
            capacity = capacity == 0 ? 16 : capacity * 2;
            found = (const char **)mem_resize(found, capacity * sizeof *found);
        }
        const char *path = arena_printf(problem->arena, "%s/%s", folder, entry->d_name);
        if (file_is_regular(path))
            found[count++] = path;
    }
    if (entries != NULL)
        closedir(entries);
    if (count > 0)
        qsort(found, count, sizeof *found, compare_texts);
    if (count > most)
        count = most;
    if (count > 0)
        memcpy(paths, found, count * sizeof *paths);
    mem_free(found);
    return count;
}

size_t problem_starts(const struct problem *problem, const char *backend, const char **paths,
                      size_t most)
{
    size_t count =
        list_starts(problem, problem_starts_folder(problem, backend), false, paths, most);
    const char *shipped = count == 0 ? shipped_starts_folder(problem, backend) : NULL;
    return shipped != NULL
               ? list_starts(problem, shipped, shipped_is_flipped(problem, NULL), paths, most)
               : count;
}

const char *problem_definition(const struct problem *problem)
{
    const char *file = problem->reference_file;
    if (!file || problem->reference_kind == REFERENCE_TORCH)
        return "";
    const char *slash = strrchr(file, '/');
    return problem->reference_kind == REFERENCE_PYTHON ? "numpy" : slash ? slash + 1 : file;
}
