/* A CPU kernel as a folder of C, and as a numpy module. */
#include "eval/cpu/private.h"

#include "eval/cpu/source.h"
#include "eval/cpu/target.h"

#include <inttypes.h>
#include <string.h>

enum { TEXT_MOST = 8 << 20 };

static bool is_cxx(const struct emission *e)
{
    return e->candidate->language == &language_cxx;
}

static const char *file_name(const struct emission *e)
{
    return is_cxx(e) ? "kernel.cc" : "kernel.c";
}

/* ---- kernel.h, kernel.c, limits.c ---- */

static void put_tensors(const char *kind, const struct tensor_spec *tensors, size_t count,
                        struct buf *text)
{
    for (size_t i = 0; i < count; i++) {
        buf_addf(text, " *   %s: %s, %s [", tensors[i].name, kind, dtype_name(tensors[i].dtype));
        for (size_t k = 0; k < tensors[i].rank; k++)
            buf_addf(text, "%s%s", k ? ", " : "", tensors[i].shape_text[k]);
        buf_add_text(text, "]\n");
    }
}

static const struct tensor_spec *tensor_at(const struct emission *e, size_t index)
{
    const struct problem *problem = e->problem;
    if (index < problem->input_count)
        return &problem->inputs[index];
    index -= problem->input_count;
    return index < problem->output_count ? &problem->outputs[index]
                                         : &e->candidate->workspaces[index - problem->output_count];
}

static size_t tensor_count(const struct emission *e)
{
    return e->problem->input_count + e->problem->output_count + e->candidate->workspace_count;
}

/* That of `what`, a type and a name, in place of "void kernel". */
static void put_signature(const struct emission *e, const char *what, struct buf *text)
{
    BUF_LOCAL(signature, TEXT_MOST);
    source_signature(e->problem, e->candidate, &signature);
    buf_addf(text, "%s%s", what, strchr(buf_text(&signature), '('));
}

static int write_header(const struct emission *e, struct err *err)
{
    BUF_LOCAL(text, TEXT_MOST);
    buf_addf(&text,
             "/* %s\n *\n * Dense row-major tensors, aligned to 64 bytes, that do not overlap:\n",
             e->title);
    put_tensors("input", e->problem->inputs, e->problem->input_count, &text);
    put_tensors("output, written whole", e->problem->outputs, e->problem->output_count, &text);
    put_tensors("scratch memory", e->candidate->workspaces, e->candidate->workspace_count, &text);
    buf_add_text(&text, " * 16-bit floats travel as uint16_t. Uses OpenMP's threads.\n"
                        " * Returns 0");
    if (e->checked_up_to.count > 0)
        buf_addf(&text,
                 "; KERNEL_BEYOND, with nothing written, where a dim is larger than it was\n * "
                 "checked at: %s",
                 emit_limits_words(e));
    buf_add_text(&text, ". */\n#ifndef KERNEL_H\n#define KERNEL_H\n\n#include <stddef.h>\n"
                        "#include <stdint.h>\n\nenum { KERNEL_BEYOND = 1 };\n\n#ifdef __cplusplus\n"
                        "extern \"C\" {\n#endif\n\n");
    put_signature(e, "int kernel", &text);
    buf_add_text(&text, ";\n\n#ifdef __cplusplus\n}\n#endif\n#endif\n");
    return emit_write(e, "kernel.h", &text, err);
}

/* What stands in the candidate's place: it looks at the size first. */
static int write_limits(const struct emission *e, struct err *err)
{
    BUF_LOCAL(text, TEXT_MOST);
    buf_addf(&text,
             "/* %s */\n#include \"kernel.h\"\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
             e->title);
    put_signature(e, "void kernel_unchecked", &text);
    buf_add_text(&text, ";\n\n");
    put_signature(e, "int kernel", &text);
    buf_add_text(&text, "\n{\n");
    for (size_t i = 0; i < e->checked_up_to.count; i++)
        buf_addf(&text, "    if (%s > INT64_C(%" PRId64 "))\n        return KERNEL_BEYOND;\n",
                 e->checked_up_to.name[i], e->checked_up_to.number[i]);
    buf_add_text(&text, "    kernel_unchecked(");
    for (size_t i = 0; i < tensor_count(e); i++)
        buf_addf(&text, "%s%s", i > 0 ? ", " : "", tensor_at(e, i)->name);
    for (size_t i = 0; i < e->problem->dim_count; i++)
        buf_addf(&text, ", %s", e->problem->dims[i].name);
    buf_add_text(&text, ");\n    return 0;\n}\n\n#ifdef __cplusplus\n}\n#endif\n");
    return emit_write(e, "limits.c", &text, err);
}

static int write_source(const struct emission *e, struct err *err)
{
    BUF_LOCAL(text, TEXT_MOST);
    buf_addf(&text,
             "/* %s */\n#include <stddef.h>\n#include <stdint.h>\n#define kernel "
             "kernel_unchecked /* limits.c has kernel() */\n%s",
             e->title, is_cxx(e) ? "extern \"C\" " : "");
    source_signature(e->problem, e->candidate, &text);
    buf_add_text(&text, ";\n");
    for (size_t i = 0; i < e->tune.count; i++)
        buf_addf(&text, "#define %s %" PRId64 "\n", e->tune.name[i], e->tune.number[i]);
    buf_add_char(&text, '\n');
    buf_add(&text, e->candidate->source, e->candidate->length);
    return emit_write(e, file_name(e), &text, err);
}

/* ---- how it is built ---- */

/* A definition in plain C that needs no library: what the kernel is tested against; NULL: none. */
static const char *plain_definition(const struct problem *problem)
{
    if (problem->reference_kind == REFERENCE_C)
        return problem->reference_file;
    for (size_t i = 0; i < problem->baseline_count; i++) {
        const struct baseline_spec *baseline = &problem->baselines[i];
        const char *dot = baseline->file ? strrchr(baseline->file, '.') : NULL;
        if (dot && strcmp(dot, ".c") == 0 && !baseline->libraries)
            return baseline->file;
    }
    return NULL;
}

/* A word of a shell's command line, quoted. */
static void add_quoted(struct buf *text, const char *word)
{
    buf_add_text(text, " '");
    for (; *word; word++)
        if (*word == '\'')
            buf_add_text(text, "'\\''");
        else
            buf_add_char(text, *word);
    buf_add_char(text, '\'');
}

static void put_flags(const struct emission *e, struct buf *text)
{
    buf_addf(text, " -O3 -march=native -fPIC -std=%s", is_cxx(e) ? "gnu++20" : "gnu17");
    for (size_t i = 0; i < e->candidate->flag_count; i++)
        add_quoted(text, e->candidate->flags[i]);
}

/* numpy's own arrays lie at multiples of 16 bytes or less: the same code once more, with moves that
 * take any address. Inline assembly may rely on more than its moves. */
static void put_anywhere(const struct emission *e, struct buf *text)
{
    buf_addf(text,
             "rm -f libanywhere.so # without it inputs are copied to where they are aligned\n"
             "if compile -dM -E -x c /dev/null | grep -q __AVX__ && compile -S -o aligned.s %s &&\n"
             "    ! sed -n '/#APP/,/#NO_APP/p' aligned.s | grep -q '(%%'; then\n"
             "    sed -E -f anywhere.sed aligned.s >anywhere.s\n"
             "    compile -c -o kernel.o anywhere.s && link libanywhere.so\n"
             "fi\nrm -f aligned.s anywhere.s\n",
             file_name(e));
}

/* A shell's script, since every machine with a compiler has one, and not every one has make. */
static int write_build(const struct emission *e, bool tested, bool numpy, struct err *err)
{
    bool clang = e->candidate->compiler && strcmp(e->candidate->compiler, "clang") == 0;
    const char *variable = is_cxx(e) ? "CXX" : "CC";
    BUF_LOCAL(text, TEXT_MOST);
    buf_addf(
        &text,
        "#!/bin/sh\n# sh build.sh: builds libkernel.so; sh build.sh test: and tests it.\n# %s\n"
        "set -e\ncd \"$(dirname \"$0\")\"\ndriver() { ${%s:-%s} -fopenmp \"$@\"; }\n"
        "compile() { driver",
        e->title, variable, is_cxx(e) ? (clang ? "clang++" : "g++") : (clang ? "clang" : "gcc"));
    put_flags(e, &text);
    /* A driver that is told -ffast-math as it links adds code that flushes denormals to zero in
     * whatever process loads the result. */
    buf_addf(
        &text,
        " \"$@\"; }\n"
        "link() { driver -shared -o \"$1\" kernel.o limits.o -lm; } # without the kernel's own "
        "flags: -ffast-math would flush its user's denormals\n"
        "driver -O2 -fPIC -c -o limits.o limits.c\n"
        "compile -c -o kernel.o %s\nlink libkernel.so\n",
        file_name(e));
    if (numpy)
        put_anywhere(e, &text);
    buf_add_text(&text, "rm -f kernel.o limits.o\n");
    buf_add_text(&text, "[ \"${1-}\" = test ] || exit 0\n");
    if (tested)
        buf_addf(&text,
                 "%s -O2 -std=gnu17 -Dkernel=reference_kernel -include stddef.h -include stdint.h "
                 "-c -o reference.o reference.c\n"
                 "%s -O2 -std=gnu17 -o test_kernel test.c reference.o ./libkernel.so -lm\n"
                 "./test_kernel\n",
                 clang ? "clang" : "gcc", clang ? "clang" : "gcc");
    if (numpy)
        buf_add_text(&text, "\"${PYTHON:-python3}\" test.py\n");
    if (!tested && !numpy)
        buf_add_text(&text, "echo 'skipped: no definition in C to test it against'\n");
    return emit_write(e, "build.sh", &text, err);
}

/* ---- test.c ---- */

static bool can_compare(const struct emission *e)
{
    for (size_t i = 0; i < e->problem->input_count + e->problem->output_count; i++)
        if (tensor_at(e, i)->dtype == DTYPE_FLOAT16 || tensor_at(e, i)->dtype == DTYPE_BFLOAT16)
            return false;
    return true;
}

static void put_call(const struct emission *e, const char *name, bool workspaces, struct buf *text)
{
    size_t most = tensor_count(e) - (workspaces ? 0 : e->candidate->workspace_count);
    buf_addf(text,
             "static void call_%s(void *const *p, const int64_t *d)\n{\n    (void)d;\n    %s(",
             name, name);
    for (size_t i = 0; i < most; i++)
        buf_addf(text, "%s(%s%s *)p[%zu]", i ? ", " : "",
                 i < e->problem->input_count ? "const " : "", dtype_c_type(tensor_at(e, i)->dtype),
                 i);
    for (size_t i = 0; i < e->problem->dim_count; i++)
        buf_addf(text, ", d[%zu]", i);
    buf_add_text(text, ");\n}\n\n");
}

static int put_shapes(const struct emission *e, struct buf *text, struct err *err)
{
    size_t tensors = tensor_count(e);
    buf_addf(text,
             "enum { INPUTS = %zu, OUTPUTS = %zu, TENSORS = %zu, DIMS = %zu };\n"
             "static const struct shape {\n    int64_t dims[DIMS + 1];\n    size_t "
             "elements[TENSORS];\n} shapes[] = {\n",
             e->problem->input_count, e->problem->output_count, tensors, e->problem->dim_count);
    for (size_t s = 0; s < e->problem->shape_count; s++) {
        struct names scope = e->problem->shapes[s];
        buf_add_text(text, "    {{");
        for (size_t i = 0; i < scope.count; i++)
            buf_addf(text, "%" PRId64 ", ", scope.number[i]);
        buf_add_text(text, "0}, {");
        for (size_t i = 0; i < e->tune.count; i++)
            if (names_set(&scope, e->tune.name[i], e->tune.number[i], err))
                return -1;
        for (size_t i = 0; i < tensors; i++) {
            int64_t extents[RANK_MAX];
            size_t elements;
            if (tensor_extents(tensor_at(e, i), &scope, extents, &elements, err))
                return -1;
            buf_addf(text, "%s%zu", i ? ", " : "", elements);
        }
        buf_add_text(text, "}},\n");
    }
    buf_add_text(text, "};\nstatic const struct tensor {\n    const char *name, *type;\n    size_t "
                       "bytes;\n    double low, high;\n} tensors[] = {\n");
    for (size_t i = 0; i < tensors; i++) {
        const struct tensor_spec *tensor = tensor_at(e, i);
        bool bounded = tensor->low < tensor->high;
        buf_addf(text, "    {\"%s\", \"%s\", %zu, %.17g, %.17g},\n", tensor->name,
                 dtype_name(tensor->dtype), dtype_bytes(tensor->dtype),
                 bounded ? tensor->low : -1.0, bounded ? tensor->high : 1.0);
    }
    buf_add_text(text, "};\n\n");
    return 0;
}

/* What changes from kernel to kernel is test.c, what does not test_common.h. */
static int write_test(const struct emission *e, struct err *err)
{
    BUF_LOCAL(text, TEXT_MOST);
    buf_addf(&text,
             "/* %s\n * The kernel against reference.c, at the shapes that it was checked on. */\n"
             "#include \"kernel.h\"\n\n#include <math.h>\n#include <stdio.h>\n#include "
             "<stdlib.h>\n#include <string.h>\n\n#define kernel reference_kernel\n",
             e->title);
    source_signature(e->problem, NULL, &text);
    buf_add_text(&text, ";\n#undef kernel\n\n");
    put_call(e, "kernel", true, &text);
    put_call(e, "reference_kernel", false, &text);
    int failed = put_shapes(e, &text, err);
    buf_add_text(&text, "#include \"test_common.h\"\n");
    if (!failed)
        failed = emit_write(e, "test.c", &text, err) ||
                 emit_copy(e, "c_test.h", "test_common.h", err) ||
                 emit_copy_file(e, plain_definition(e->problem), "reference.c", err);
    return failed ? -1 : 0;
}

/* ---- all of it ---- */

static int write_readme(const struct emission *e, bool numpy, struct err *err)
{
    BUF_LOCAL(text, TEXT_MOST);
    buf_addf(&text,
             "# %s\n\n%s\n\n`sh build.sh` builds `libkernel.so` from `%s` for the machine that it "
             "runs on; "
             "`kernel.h` declares\nits one function. `sh build.sh test` checks it. `evidence.json` "
             "is how "
             "it was proved.\n",
             e->problem->name, e->title, file_name(e));
    if (numpy)
        buf_add_text(
            &text,
            "\n```python\nfrom FOLDER import empty, kernel   # this folder's name; the one above "
            "it on "
            "sys.path\n```\n\nIt needs numpy and, once, a C compiler. Arrays in, new arrays out, "
            "or "
            "written to `out=`; dims that no shape says are given\nby name. Another dtype is a "
            "TypeError. `empty(shape, dtype)` is an array that the kernel reads fastest.\n");
    return emit_write(e, "README.md", &text, err);
}

static int write_numpy(const struct emission *e, struct err *err)
{
    if (emit_plan(e, err) || emit_copy(e, "shapes.py", "shapes.py", err) ||
        emit_copy(e, "numpy_kernel.py", "kernel.py", err) ||
        emit_copy(e, "own_way.py", "own_way.py", err) ||
        emit_copy(e, "numpy_module.py", "__init__.py", err) ||
        emit_copy(e, "anywhere.sed", "anywhere.sed", err) ||
        emit_copy(e, "numpy_test.py", "test.py", err))
        return -1;
    return e->problem->reference_kind == REFERENCE_PYTHON
               ? emit_copy_file(e, e->problem->reference_file, "reference.py", err)
               : 0;
}

static int emit(const struct emission *e, const char *form, const char **note, struct err *err)
{
    bool numpy = strcmp(form, "numpy") == 0;
    (void)note;
    bool tested = plain_definition(e->problem) && can_compare(e);
    if (write_header(e, err) || write_source(e, err) || write_limits(e, err) ||
        write_build(e, tested, numpy, err) || (tested && write_test(e, err)) ||
        write_readme(e, numpy, err))
        return -1;
    return numpy ? write_numpy(e, err) : 0;
}

static const char *const forms[] = {"numpy", "c", NULL};
const struct emitter emitter_cpu = {forms, emit, "numpy"};
