/* A start's front matter speaks of dims and tensors by name, so that names are replaced there; what
 * follows is code. In C the shipped `kernel` stays as it is, behind one with the file's arguments.
 */
#include "eval/candidate/shipped_start.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/value.h"
#include "eval/candidate/candidate.h"
#include "eval/problem/shipped.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { SOURCE_MOST = 1 << 20 };

/* What stands for a name of theirs, or NULL. An expression is kept together. */
static const char *ours(const struct value *shipped, const char *name, size_t length, bool *simple)
{
    static const char *const kinds[] = {"tensors", "dims"};
    for (size_t k = 0; k < 2; k++) {
        const struct value *names = value_get(shipped, kinds[k]);
        for (size_t i = 0; names != NULL && i < names->count; i++)
            if (strlen(names->keys[i]) == length && memcmp(names->keys[i], name, length) == 0) {
                *simple = strpbrk(names->items[i]->text, "*+-/% ") == NULL;
                return names->items[i]->text;
            }
    }
    return NULL;
}

static void translate(const struct value *shipped, const char *text, size_t length, struct buf *out)
{
    const char *end = text + length;
    while (text < end) {
        const char *from = text;
        while (text < end && (isalnum((unsigned char)*text) || *text == '_'))
            text++;
        if (text == from) {
            buf_add_char(out, *text++);
            continue;
        }
        bool simple = true;
        const char *name = ours(shipped, from, (size_t)(text - from), &simple);
        if (name == NULL)
            buf_add(out, from, (size_t)(text - from));
        else
            buf_addf(out, simple ? "%s" : "(%s)", name);
    }
}

static void put_item(struct buf *out, size_t *count, const char *type, const char *name)
{
    buf_addf(out, "%s%s%s", (*count)++ > 0 ? ", " : "", type, name);
}

static void put_parameters(const char *qualifier, const struct tensor_spec *tensors, size_t length,
                           size_t *count, struct buf *out)
{
    for (size_t i = 0; i < length; i++) {
        char type[40];
        snprintf(type, sizeof type, "%s%s *", qualifier, dtype_c_type(tensors[i].dtype));
        put_item(out, count, type, tensors[i].name);
    }
}

/* ---- inputs that lie transposed in the definition ---- */

/* Where they are put as the shipped kernel wants them. */
static void put_workspaces(const struct problem *problem, const struct problem *theirs,
                           struct buf *out)
{
    buf_add_text(out, "workspace:\n");
    for (size_t i = 0; i < theirs->input_count; i++) {
        const struct tensor_spec *tensor = &theirs->inputs[i];
        if (!shipped_is_flipped(problem, tensor->name))
            continue;
        buf_addf(out, "  flipped_%s: {dtype: %s, shape: [", tensor->name,
                 dtype_name(tensor->dtype));
        for (size_t k = 0; k < tensor->rank; k++) {
            buf_add_text(out, k > 0 ? ", \"" : "\"");
            translate(shipped_of(problem), tensor->shape_text[k], strlen(tensor->shape_text[k]),
                      out);
            buf_add_char(out, '"');
        }
        buf_add_text(out, "]}\n");
    }
}

static void put_flip(const char *type, struct buf *out)
{
    buf_addf(
        out,
        "\n/* Every matrix of `from`, transposed: rows by columns in `to`. */\n"
        "static void flip_%s(const %s *from, %s *to, int64_t matrices, int64_t rows, "
        "int64_t columns)\n{\n"
        "#pragma omp parallel for collapse(2) if (matrices * rows * columns > 32768)\n"
        "    for (int64_t m = 0; m < matrices; m++)\n"
        "        for (int64_t first = 0; first < rows; first += 16)\n"
        "            for (int64_t j = 0; j < columns; j++)\n"
        "                for (int64_t i = first; i < rows && i < first + 16; i++)\n"
        "                    to[(m * rows + i) * columns + j] = from[(m * columns + j) * rows + "
        "i];\n}\n",
        type, type, type);
}

/* Each type's function once. */
static void put_flips(const struct problem *problem, const struct problem *theirs, struct buf *out)
{
    bool done[DTYPES] = {false};
    for (size_t i = 0; i < theirs->input_count; i++) {
        enum dtype dtype = theirs->inputs[i].dtype;
        if (shipped_is_flipped(problem, theirs->inputs[i].name) && !done[dtype])
            put_flip(dtype_c_type(dtype), out);
        done[dtype] = done[dtype] || shipped_is_flipped(problem, theirs->inputs[i].name);
    }
}

static void put_flip_call(const struct value *shipped, const struct tensor_spec *tensor,
                          struct buf *out)
{
    size_t rank = tensor->rank;
    buf_addf(out, "    flip_%s(%s, flipped_%s, 1", dtype_c_type(tensor->dtype),
             value_text(value_get(shipped, "tensors"), tensor->name, "NULL"), tensor->name);
    for (size_t k = 0; k < rank; k++) {
        buf_add_text(out, k + 2 < rank ? " * " : ", ");
        translate(shipped, tensor->shape_text[k], strlen(tensor->shape_text[k]), out);
    }
    buf_add_text(out, ");\n");
}

/* `kernel` with the file's arguments calls the shipped one with its own. */
static void put_kernel(const struct problem *problem, const struct problem *theirs,
                       const struct candidate *start, struct buf *out)
{
    const struct value *shipped = shipped_of(problem);
    const struct value *tensors = value_get(shipped, "tensors"), *dims = value_get(shipped, "dims");
    size_t count = 0;
    buf_add_text(out, "#undef kernel\n");
    put_flips(problem, theirs, out);
    buf_addf(out, "\n/* As %s is called. */\nvoid kernel(", problem->name);
    put_parameters("const ", problem->inputs, problem->input_count, &count, out);
    put_parameters("", problem->outputs, problem->output_count, &count, out);
    put_parameters("", start->workspaces, start->workspace_count, &count, out);
    for (size_t i = 0; i < theirs->input_count; i++)
        if (shipped_is_flipped(problem, theirs->inputs[i].name)) {
            put_item(out, &count, dtype_c_type(theirs->inputs[i].dtype), " *flipped_");
            buf_add_text(out, theirs->inputs[i].name);
        }
    for (size_t i = 0; i < problem->dim_count; i++)
        put_item(out, &count, "int64_t ", problem->dims[i].name);
    buf_add_text(out, ")\n{\n");
    for (size_t i = 0; i < theirs->input_count; i++)
        if (shipped_is_flipped(problem, theirs->inputs[i].name))
            put_flip_call(shipped, &theirs->inputs[i], out);
    buf_add_text(out, "    shipped_kernel(");
    count = 0;
    for (size_t i = 0; i < theirs->input_count; i++) {
        const char *name = theirs->inputs[i].name;
        bool flipped = shipped_is_flipped(problem, name);
        put_item(out, &count, flipped ? "flipped_" : "",
                 flipped ? name : value_text(tensors, name, "NULL"));
    }
    for (size_t i = 0; i < theirs->output_count; i++)
        put_item(out, &count, "", value_text(tensors, theirs->outputs[i].name, "NULL"));
    for (size_t i = 0; i < start->workspace_count; i++)
        put_item(out, &count, "", start->workspaces[i].name);
    for (size_t i = 0; i < theirs->dim_count; i++)
        put_item(out, &count, "", value_text(dims, theirs->dims[i].name, "0"));
    buf_add_text(out, ");\n}\n");
}

static int adapt(const struct problem *problem, const struct problem *theirs, const char *path,
                 const struct buf *source, struct buf *out, struct err *err)
{
    const struct language *language = language_of_file(path);
    const char *begin = language ? language->open : "/*---",
               *end = language ? language->close : "---*/";
    struct candidate *start;
    const struct value *shipped = shipped_of(problem);
    const char *text = buf_text(source), *stop = strstr(text, end);
    if (candidate_parse(theirs, path, text, source->length, &start, err) != 0)
        return -1;
    bool calls = start->launch_count == 0; /* a function, and not kernels that are launched */
    bool headed = strncmp(text, begin, strlen(begin)) == 0 && stop != NULL;
    if (shipped_is_flipped(problem, NULL) && (!calls || start->workspace_count > 0 || !headed)) {
        candidate_free(start);
        return err_set(err, ERR_USAGE,
                       "%s: an input of %s lies transposed, which this start cannot take", path,
                       problem->name);
    }
    if (headed) {
        translate(shipped, text, (size_t)(stop - text), out);
        if (shipped_is_flipped(problem, NULL))
            put_workspaces(problem, theirs, out);
        buf_add_text(out, end);
        text = stop + strlen(end);
    }
    if (calls)
        buf_addf(out, "\n/* A start of the shipped problem %s. */\n#define kernel shipped_kernel",
                 theirs->name);
    buf_add_text(out, text);
    if (calls)
        put_kernel(problem, theirs, start, out);
    candidate_free(start);
    return 0;
}

int shipped_read_start(const struct problem *problem, const char *path, struct buf *text,
                       struct err *err)
{
    MEM_LOCAL char *folder = shipped_folder(problem);
    struct problem *theirs;
    if (folder == NULL || strncmp(path, folder, strlen(folder)) != 0)
        return file_read(path, text, err);
    BUF_LOCAL(source, SOURCE_MOST);
    int status = problem_load(folder, &theirs, err);
    if (status == 0) {
        status = file_read(path, &source, err);
        if (status == 0)
            status = adapt(problem, theirs, path, &source, text, err);
        problem_free(theirs);
    }
    return status;
}
