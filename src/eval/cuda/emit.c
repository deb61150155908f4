/* A kernel as a Python package for PyTorch: kernel.cu, its cubin where NVRTC is found, ModelNew or
 * run(), test.py. */
#include "eval/cuda/private.h"

#include "base/file.h"
#include "base/mem.h"
#include "eval/backend/build.h"
#include "eval/cuda/compile/compile.h"
#include "eval/cuda/compile/source.h"
#include "eval/cuda/target.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SOURCE_MOST = 8 << 20, HEADER_MOST = 1 << 16 };

/* ---- the source ---- */

static bool every_header(void *context, const char *name)
{
    (void)context, (void)name;
    return true; /* NVRTC says it where one is missing */
}

static int write_source(const struct emission *e, struct err *err)
{
    const struct candidate *candidate = e->candidate;
    BUF_LOCAL(prefix, HEADER_MOST);
    BUF_LOCAL(text, SOURCE_MOST);
    buf_addf(&text, "// %s\n", e->title);
    cuda_source_prefix(candidate->source, candidate->length, every_header, NULL, &prefix);
    cuda_source_unit(candidate, &e->tune, "kernel.cu", buf_text(&prefix), &text);
    return emit_write(e, "kernel.cu", &text, err);
}

/* What NVRTC lacks of C's headers. */
static int write_headers(const struct emission *e, struct err *err)
{
    size_t count;
    const char *const *names = cuda_source_header_names(&count);
    const char *const *texts = cuda_source_header_texts();
    MEM_LOCAL char *folder = file_join(e->folder, "include");
    int failed = file_make_dirs(folder, err);
    (void)chmod(folder, 0755);
    for (size_t i = 0; i < count && !failed; i++) {
        BUF_LOCAL(text, HEADER_MOST);
        buf_add_text(&text, texts[i]);
        failed = emit_write(e, arena_printf(e->arena, "include/%s", names[i]), &text, err);
    }
    return failed;
}

/* Its front matter is a text at its top, which Python reads over. */
static int write_triton(const struct emission *e, struct err *err)
{
    BUF_LOCAL(text, SOURCE_MOST);
    buf_add(&text, e->candidate->source, e->candidate->length);
    return emit_write(e, "source.py", &text, err);
}

/* ---- the cubin ---- */

/* Of the device that it was measured on. */
static const char *arch_of(const struct emission *e)
{
    const struct value *device = value_get(e->evaluation, "device");
    int64_t capability = value_int(value_get(device, "facts"), "compute_capability", 90);
    return arena_printf(e->arena, "sm_%" PRId64 "%s", capability, capability >= 90 ? "a" : "");
}

/* The candidate as FOLDER/kernel.ARCH.cubin. ERR_ENVIRONMENT: no NVRTC. */
static int write_cubin(const struct emission *e, const char *arch, struct err *err)
{
    struct build build;
    struct err ignored;
    char folder[] = "/tmp/twagent-emit-XXXXXX";
    if (!mkdtemp(folder))
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make %s", folder);
    int failed = cuda_build(e->arena, arch, e->problem, e->candidate, &e->tune, NULL, BUILD_FAST,
                            folder, &build, err);
    if (!failed)
        failed = build_run(&build.spec, err);
    if (failed && err->code == ERR_CHILD)
        failed =
            err_set(err, ERR_ENVIRONMENT, "it does not compile with the NVRTC that is found here");
    if (!failed)
        failed =
            emit_copy_file(e, build.artifact, arena_printf(e->arena, "kernel.%s.cubin", arch), err);
    (void)(file_remove_tree(folder, &ignored) == 0);
    return failed;
}

/* ---- the package ---- */

static void put_call(const struct emission *e, const char *name, struct buf *text)
{
    const struct problem *problem = e->problem;
    for (size_t i = 0; i < problem->output_count; i++)
        buf_addf(text, "%s%s", i ? ", " : "", problem->outputs[i].name);
    buf_addf(text, " = %s(", name);
    for (size_t i = 0; i < problem->input_count; i++)
        buf_addf(text, "%s%s", i ? ", " : "", problem->inputs[i].name);
    buf_add_text(text, ")");
}

static int write_readme(const struct emission *e, const char *arch, struct err *err)
{
    bool module = e->problem->torch != NULL, triton = e->candidate->language == &language_triton;
    BUF_LOCAL(text, HEADER_MOST);
    buf_addf(&text, "# %s\n\n%s\n\n", e->problem->name, e->title);
    buf_add_text(&text, triton
                            ? "Needs Python with torch and triton on an NVIDIA GPU.\n\n```python\n"
                            : "Needs Python with torch on an NVIDIA GPU, and nothing else.\n\n"
                              "```python\n");
    if (module) {
        buf_add_text(&text,
                     "from FOLDER import ModelNew      # the folder's name; beside your file\n"
                     "model = ModelNew(...).cuda()      # the original's arguments\n"
                     "model.load_state_dict(original.state_dict())\n"
                     "with torch.no_grad():\n    out = model(...)\n```\n\n");
        buf_add_text(
            &text,
            "`ModelNew` has the parameters and buffers of `reference.Model`. Where the kernel "
            "cannot\n"
            "take a call (gradients wanted, another device, dtype or shape, other constants, the\n"
            "other mode of a module whose outputs depend on it) the original's forward runs, with "
            "one\n"
            "warning that says why. Buffers that the original updates in training stay as they "
            "are.\n"
            "float32 means float32: tf32 is not used.\n\n");
    } else {
        buf_add_text(&text, "from FOLDER import run      # the folder's name; beside your file\n");
        put_call(e, "run", &text);
        buf_add_text(&text, "      # CUDA tensors in, new ones out; dims by name where shapes do "
                            "not say them\n```\n\n");
    }
    if (triton) {
        buf_add_text(
            &text,
            "`source.py` has the kernels, `plan.json` the numbers that were chosen and how "
            "they are launched.\nThe call is an operator of `torch.library` "
            "(`run.operator`), so that torch.compile and CUDA graphs\ntake it as it is. "
            "Triton compiles at the first call. `python3 test.py` checks it against\n"
            "`reference.py`; with TRITON_INTERPRET=1 on the CPU, too: M=9,N=33 behind it names "
            "small dims.\n`evidence.json` is how it was proved.\n");
        return emit_write(e, "README.md", &text, err);
    }
    buf_addf(
        &text,
        "It launches on the current stream and can be captured in a CUDA graph. "
        "`kernel.%s.cubin` is\nfor that architecture; elsewhere `kernel.cu` is compiled at the "
        "first call, with the NVRTC that\ntorch brings. `python3 test.py` checks it against "
        "`reference.py`. `evidence.json` is how it was\nproved.\n",
        arch);
    return emit_write(e, "README.md", &text, err);
}

/* What computes beyond the sizes that the kernel was checked at. A module has its own forward. */
static int copy_own_way(const struct emission *e, struct err *err)
{
    const char *library = arena_printf(e->arena, "%s/baselines/torch.py", e->problem->folder);
    if (emit_copy(e, "own_way.py", "own_way.py", err))
        return -1;
    return file_is_regular(library) ? emit_copy_file(e, library, "library.py", err) : 0;
}

static int copy_parts(const struct emission *e, struct err *err)
{
    bool module = e->problem->torch != NULL;
    bool python = module || e->problem->reference_kind == REFERENCE_PYTHON;
    const char *const parts[][2] = {
        {"shapes.py", "shapes.py"},
        {e->candidate->language == &language_triton ? "triton_kernel.py" : "torch_kernel.py",
         "kernel.py"},
        {module ? "torch_module.py" : "torch_function.py", "__init__.py"},
        {module ? "torch_test.py" : "torch_function_test.py", "test.py"}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (emit_copy(e, parts[i][0], parts[i][1], err))
            return -1;
    if (!module && copy_own_way(e, err))
        return -1;
    return python ? emit_copy_file(e, e->problem->reference_file, "reference.py", err) : 0;
}

static int emit(const struct emission *e, const char *form, const char **note, struct err *err)
{
    struct err missing = {0};
    const char *arch = arch_of(e);
    (void)form;
    if (e->candidate->language == &language_triton)
        return write_triton(e, err) || emit_plan(e, err) || copy_parts(e, err) ||
                       write_readme(e, arch, err)
                   ? -1
                   : 0;
    if (write_source(e, err) || write_headers(e, err) || emit_plan(e, err) || copy_parts(e, err) ||
        write_readme(e, arch, err))
        return -1;
    if (write_cubin(e, arch, &missing))
        *note = arena_printf(e->arena, "no cubin: %s; it is compiled where it is first called",
                             missing.message);
    return 0;
}

static const char *const forms[] = {"pytorch", NULL};
const struct emitter emitter_cuda = {forms, emit, "pytorch"};
