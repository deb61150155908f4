#include "eval/cpu/source.h"

#include "eval/candidate/layout.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static void add_tensors(const struct tensor_spec *tensors, size_t count, bool input, bool named,
                        const char **gap, struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        buf_addf(out, "%s%s%s *", *gap, input ? "const " : "", dtype_c_type(tensors[i].dtype));
        if (named)
            buf_add_text(out, tensors[i].name);
        *gap = ", ";
    }
}

static void add_prototype(const struct problem *problem, const struct candidate *candidate,
                          bool named, struct buf *out)
{
    const char *gap = "";
    buf_add_text(out, "void kernel(");
    add_tensors(problem->inputs, problem->input_count, true, named, &gap, out);
    add_tensors(problem->outputs, problem->output_count, false, named, &gap, out);
    if (candidate != NULL)
        add_tensors(candidate->workspaces, candidate->workspace_count, false, named, &gap, out);
    for (size_t i = 0; i < problem->dim_count; i++) {
        buf_addf(out, "%sint64_t", gap);
        if (named)
            buf_addf(out, " %s", problem->dims[i].name);
        gap = ", ";
    }
    buf_add_char(out, ')');
}

void source_signature(const struct problem *problem, const struct candidate *candidate,
                      struct buf *out)
{
    add_prototype(problem, candidate, true, out);
}

static void add_argument(const struct tensor_spec *tensor, bool input, size_t index,
                         struct buf *out)
{
    buf_addf(out, "%s(%s%s *)twagent_pointers[%zu]", index > 0 ? ", " : "", input ? "const " : "",
             dtype_c_type(tensor->dtype), index);
}

/* Names of its own, so that a macro of the candidate's does not meet them by chance. */
static void add_shim(const struct source *source, struct buf *out)
{
    const struct problem *problem = source->problem;
    size_t index = 0;
    buf_addf(out, "\n#line 1 \"shim\"\n%s__attribute__((visibility(\"default\")))\n",
             source->cplusplus ? "extern \"C\" " : "");
    buf_add_text(out,
                 "void twagent_entry(void **twagent_pointers, const int64_t *twagent_dims);\n"
                 "void twagent_entry(void **twagent_pointers, const int64_t *twagent_dims)\n{\n"
                 "    kernel(");
    for (size_t i = 0; i < problem->input_count; i++)
        add_argument(&problem->inputs[i], true, index++, out);
    for (size_t i = 0; i < problem->output_count; i++)
        add_argument(&problem->outputs[i], false, index++, out);
    for (size_t i = 0; source->candidate != NULL && i < source->candidate->workspace_count; i++)
        add_argument(&source->candidate->workspaces[i], false, index++, out);
    for (size_t i = 0; i < problem->dim_count; i++)
        buf_addf(out, "%stwagent_dims[%zu]", index + i > 0 ? ", " : "", i);
    buf_add_text(out, ");\n}\n");
}

void source_unit(const struct source *source, struct buf *out)
{
    buf_addf(out, "#line 1 \"prologue\"\n#include <stddef.h>\n#include <stdint.h>\n%s",
             source->cplusplus ? "extern \"C\" " : "");
    add_prototype(source->problem, source->candidate, false, out);
    buf_add_text(out, ";\n");
    for (size_t i = 0; source->tune != NULL && i < source->tune->count; i++)
        buf_addf(out, "#define %s %" PRId64 "\n", source->tune->name[i], source->tune->number[i]);
    buf_addf(out, "#line 1 \"%s\"\n", source->name);
    buf_add(out, source->text, source->length);
    add_shim(source, out);
}

/* ---- the sanitized program ---- */

/* An expression over dims and tune parameters as C: every name gets "t_" before it, so that none
 * is a keyword or somebody's macro. The grammar's operators mean the same in C. */
static void add_expression(const char *text, struct buf *out)
{
    buf_add_text(out, "(int64_t)(");
    while (*text != '\0') {
        if (isalpha((unsigned char)*text) || *text == '_') {
            size_t length = 1;
            while (isalnum((unsigned char)text[length]) || text[length] == '_')
                length++;
            buf_addf(out, "t_%.*s", (int)length, text);
            text += length;
        } else if (isdigit((unsigned char)*text)) {
            size_t length = strspn(text, "0123456789");
            buf_addf(out, "INT64_C(%.*s)", (int)length, text);
            text += length;
        } else {
            buf_add_char(out, *text++);
        }
    }
    buf_add_char(out, ')');
}

static void add_case(const struct tensor_spec *tensor, size_t index, struct buf *out)
{
    buf_addf(out, "    case %zu: return (size_t)(%zu", index, dtype_bytes(tensor->dtype));
    for (size_t i = 0; i < tensor->rank; i++) {
        buf_add_text(out, " * ");
        add_expression(tensor->shape_text[i], out);
    }
    buf_add_text(out, ");\n");
}

static void add_sizes(const struct source *source, struct buf *out)
{
    const struct problem *problem = source->problem;
    size_t index = 0;
    buf_add_text(out, "static size_t bytes_of(int tensor, const int64_t *dims)\n{\n");
    for (size_t i = 0; i < problem->dim_count; i++)
        buf_addf(out, "    const int64_t t_%s = dims[%zu]; (void)t_%s;\n", problem->dims[i].name, i,
                 problem->dims[i].name);
    for (size_t i = 0; source->tune != NULL && i < source->tune->count; i++)
        buf_addf(out, "    const int64_t t_%s = %" PRId64 "; (void)t_%s;\n", source->tune->name[i],
                 source->tune->number[i], source->tune->name[i]);
    buf_add_text(out, "    switch (tensor) {\n");
    for (size_t i = 0; i < problem->input_count; i++)
        add_case(&problem->inputs[i], index++, out);
    for (size_t i = 0; i < problem->output_count; i++)
        add_case(&problem->outputs[i], index++, out);
    for (size_t i = 0; source->candidate != NULL && i < source->candidate->workspace_count; i++)
        add_case(&source->candidate->workspaces[i], index++, out);
    buf_add_text(out, "    default: return 0;\n    }\n}\n\n");
}

static const char harness_head[] =
    "#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>\n"
    "#include <sys/stat.h>\n#include <unistd.h>\n\n"
    "static inline int64_t least(int64_t n, const int64_t *v)\n"
    "{ int64_t m = v[0]; for (int64_t i = 1; i < n; i++) m = v[i] < m ? v[i] : m; return m; }\n"
    "static inline int64_t most(int64_t n, const int64_t *v)\n"
    "{ int64_t m = v[0]; for (int64_t i = 1; i < n; i++) m = v[i] > m ? v[i] : m; return m; }\n"
    "static inline int64_t t_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }\n"
    "static inline int64_t t_round_up(int64_t a, int64_t b) { return (a + b - 1) / b * b; }\n"
    "static inline int64_t t_next_pow2(int64_t a)\n"
    "{ int64_t p = 1; while (p < a) p *= 2; return p; }\n"
    "#define COUNT(...) ((int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))\n"
    "#define t_min(...) least(COUNT(__VA_ARGS__), (const int64_t[]){__VA_ARGS__})\n"
    "#define t_max(...) most(COUNT(__VA_ARGS__), (const int64_t[]){__VA_ARGS__})\n\n";

/* LLVM's OpenMP runtime dies where it cannot make a file in /dev/shm: it gets memory instead. */
static const char harness_tail[] =
    "__attribute__((visibility(\"default\")))\n"
    "int shm_open(const char *name, int flags, mode_t mode)\n{\n"
    "    (void)flags;\n    (void)mode;\n    static int memory = -1;\n"
    "    if (memory < 0)\n        memory = memfd_create(name, 0);\n    return dup(memory);\n}\n\n"
    "static unsigned char *map(int fd, int protection)\n{\n"
    "    struct stat status;\n"
    "    if (fstat(fd, &status) != 0)\n        _exit(90);\n"
    "    void *memory = mmap(NULL, (size_t)status.st_size, protection, MAP_SHARED, fd, 0);\n"
    "    if (memory == MAP_FAILED)\n        _exit(91);\n"
    "    return (unsigned char *)memory;\n}\n\n"
    "int main(void)\n{\n"
    "    const uint64_t *numbers = (const uint64_t *)map(3, PROT_READ);\n"
    "    const int64_t *dims = (const int64_t *)numbers + POINTERS_MAX;\n"
    "    unsigned char *inputs = map(4, PROT_READ), *outputs = map(5, PROT_READ | PROT_WRITE);\n"
    "    const int code = (int)numbers[POINTERS_MAX + DIMS];\n"
    "    void *blocks[POINTERS_MAX];\n"
    "    for (int i = 0; i < TENSORS; i++) {\n"
    "        size_t bytes = bytes_of(i, dims), unit = i < INPUTS ? numbers[UNIT] : 1;\n"
    "        size_t whole = (bytes + unit - 1) / unit * unit;\n"
    "        if (posix_memalign(&blocks[i], 64, whole) != 0)\n            _exit(92);\n"
    "        memset(blocks[i], 0xff, whole);\n"
    "        memcpy(blocks[i], (i < INPUTS ? inputs : outputs) + numbers[i], bytes);\n"
    "    }\n"
    "    twagent_entry(blocks, dims);\n"
    "    for (int i = INPUTS; i < TENSORS; i++)\n"
    "        memcpy(outputs + numbers[i], blocks[i], bytes_of(i, dims));\n"
    "    _exit(code);\n}\n";

void source_harness(const struct source *source, struct buf *out)
{
    const struct problem *problem = source->problem;
    size_t workspaces = source->candidate != NULL ? source->candidate->workspace_count : 0;
    buf_add_text(out, harness_head);
    buf_addf(out, "%svoid twagent_entry(void **pointers, const int64_t *dims);\n",
             source->cplusplus ? "extern \"C\" " : "");
    buf_addf(out,
             "enum { INPUTS = %zu, TENSORS = %zu, POINTERS_MAX = %d, DIMS = %d,\n"
             "       UNIT = POINTERS_MAX + DIMS + 1 };\n\n",
             problem->input_count, problem->input_count + problem->output_count + workspaces,
             (int)CALL_POINTERS_MAX, (int)DIMS_MAX);
    add_sizes(source, out);
    buf_add_text(out, harness_tail);
}
