/* eval/reference/plain_c: a plain C function as the reference: built and run like a baseline, once
 * in the problem's types and, where the source says REAL, once more with REAL as double. The second
 * one has a region of its own, where every floating tensor is float64. */
#include "base/file.h"
#include "base/mem.h"
#include "eval/backend/build.h"
#include "eval/reference/private.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { SOURCE_MOST = 1 << 20 };

struct plain {
    struct reference reference;
    const struct problem *problem;
    const struct backend *backend;
    const struct lane_facts *lane;
    const struct region *region;
    struct arena *arena;
    const char *artifact, *wide_artifact; /* the second is NULL where there is no REAL */
    const char *sanitized; /* of integers without a range; NULL: not asked, or not here */
    struct problem wide;   /* the same with float64 for every floating type */
    struct region wide_region;
    struct subject *wide_subject;
};

static struct plain *plain_of(struct reference *reference)
{
    return (struct plain *)(void *)reference;
}

/* --- building --- */

static bool says_real(const char *text)
{
    for (const char *at = strstr(text, "REAL"); at != NULL; at = strstr(at + 4, "REAL")) {
        bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');
        bool ends = !(isalnum((unsigned char)at[4]) || at[4] == '_');
        if (begins && ends)
            return true;
    }
    return false;
}

static int build_one(struct plain *plain, const struct problem *problem, const char *text,
                     const char *type, const char *folder, const char *name, const char **artifact,
                     struct err *err)
{
    BUF_LOCAL(source, SOURCE_MOST + 4096);
    if (type != NULL)
        buf_addf(&source, "#define REAL %s\n", type);
    buf_addf(&source, "#line 1 \"reference.c\"\n%s", text);
    struct baseline_spec baseline = {.name = "reference",
                                     .file = arena_printf(plain->arena, "%s/%s.c", folder, name)};
    if (file_write(baseline.file, buf_text(&source), source.length, err) != 0 ||
        build_baseline(plain->backend, plain->lane, problem, &baseline, BUILD_FAST, folder, name,
                       plain->arena, artifact, err) != 0)
        return err_wrap(err, "reference");
    return 0;
}

static int build_both(struct plain *plain, const char *folder, struct err *err)
{
    BUF_LOCAL(text, SOURCE_MOST);
    int status = file_read(plain->problem->reference_file, &text, err);
    enum dtype dtype = problem_precise(plain->problem)->dtype;
    bool real = status == 0 && says_real(buf_text(&text)) &&
                (dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT64);
    if (status == 0)
        status =
            build_one(plain, plain->problem, buf_text(&text), real ? dtype_c_type(dtype) : NULL,
                      folder, "reference-spec", &plain->artifact, err);
    if (status == 0 && real)
        status = build_one(plain, &plain->wide, buf_text(&text), "double", folder,
                           "reference-exact", &plain->wide_artifact, err);
    return status;
}

/* What is asked is whether anything overflows, where integers are as large as their type holds. */
static void build_sanitized(struct plain *plain, const char *folder)
{
    const struct problem *problem = plain->problem;
    struct baseline_spec baseline = {
        .name = "reference", .file = arena_printf(plain->arena, "%s/reference-spec.c", folder)};
    bool asked = false;
    struct err ignored = {0};
    for (size_t i = 0; i < problem->input_count; i++)
        asked = asked || (!dtype_is_float(problem->inputs[i].dtype) &&
                          problem->inputs[i].low > problem->inputs[i].high);
    if (asked && plain->wide_artifact == NULL && plain->backend->sanitize != NULL &&
        build_baseline(plain->backend, plain->lane, problem, &baseline, BUILD_SANITIZED, folder,
                       "reference-sanitized", plain->arena, &plain->sanitized, &ignored) != 0)
        plain->sanitized = NULL;
}

/* --- computing --- */

static const struct program program; /* no candidate, no environment of its own */

static int ensure(struct plain *plain, struct err *err)
{
    struct subject **subject = &plain->reference.subject;
    if (*subject != NULL) {
        (*subject)->ops->resume(*subject);
        return 0;
    }
    if (plain->backend->open(plain->lane, plain->region, plain->artifact, &program, false, subject,
                             err) != 0)
        return err_wrap(err, "reference");
    (*subject)->name = "reference";
    return 0;
}

static int run(struct subject **subject, const struct call *call, struct err *err)
{
    uint64_t elapsed_ns;
    struct call patient = *call;
    patient.timeout_ms = REFERENCE_TIMEOUT_MS;
    if (subject_call(*subject, &patient, &elapsed_ns, err) == 0)
        return 0;
    (*subject)->ops->close(*subject);
    *subject = NULL; /* a fresh one at the next call */
    return err_wrap(err, "reference");
}

/* One input as doubles, rounded to `bits` of mantissa where bits >= 0. */
static void widen(enum dtype dtype, const void *from, size_t count, int bits, double *to)
{
    dtype_to_double(dtype, from, count, to);
    for (size_t i = 0; bits >= 0 && i < count; i++) {
        int exponent;
        double fraction = frexp(to[i], &exponent);
        to[i] = ldexp(nearbyint(ldexp(fraction, bits + 1)), exponent - bits - 1);
    }
}

static int open_wide(struct plain *plain, const struct layout *layout, struct err *err)
{
    if (plain->wide_subject != NULL && layout->inputs_bytes <= plain->wide_region.inputs_bytes &&
        layout->outputs_bytes <= plain->wide_region.outputs_bytes)
        return 0;
    if (plain->wide_subject != NULL) {
        plain->wide_subject->ops->close(plain->wide_subject);
        plain->wide_subject = NULL;
    }
    if (plain->wide_region.inputs != NULL)
        region_close(&plain->wide_region);
    plain->wide_region = (struct region){0};
    if (region_open(layout->inputs_bytes, layout->outputs_bytes, &plain->wide_region, err) != 0)
        return -1;
    return plain->backend->open(plain->lane, &plain->wide_region, plain->wide_artifact, &program,
                                false, &plain->wide_subject, err);
}

static int compute_wide(struct plain *plain, const struct layout *layout, const struct call *call,
                        int bits, bool exact, void **out, struct err *err)
{
    const struct problem *problem = plain->problem;
    struct layout wide;
    struct call wide_call;
    if (layout_make(&plain->wide, &layout->dims, NULL, NULL, 0, &wide, err) != 0 ||
        open_wide(plain, &wide, err) != 0)
        return -1;
    call_make(&wide, 0, REFERENCE_TIMEOUT_MS, &wide_call);
    for (size_t i = 0; i < problem->input_count; i++) {
        const unsigned char *from = plain->region->inputs + call->offsets[i];
        unsigned char *to = plain->wide_region.inputs + wide.inputs[i].offset;
        if (dtype_is_float(problem->inputs[i].dtype))
            widen(problem->inputs[i].dtype, from, wide.inputs[i].elements, bits,
                  (double *)(void *)to);
        else
            memcpy(to, from, wide.inputs[i].bytes);
    }
    if (run(&plain->wide_subject, &wide_call, err) != 0)
        return -1;
    for (size_t i = 0; i < problem->output_count; i++) {
        const void *from = plain->wide_region.outputs + wide.outputs[i].offset;
        size_t count = wide.outputs[i].elements;
        if (!exact && dtype_is_float(problem->outputs[i].dtype))
            dtype_from_double(problem->outputs[i].dtype, (const double *)from, count, out[i]);
        else if (exact)
            dtype_to_double(plain->wide.outputs[i].dtype, from, count, (double *)out[i]);
        else
            memcpy(out[i], from, wide.outputs[i].bytes);
    }
    return 0;
}

/* What overflows has no number. Nothing else is computed than in the spec's own precision. */
static int compute_checked(struct plain *plain, const struct layout *layout,
                           const struct call *call, void **out, struct err *err)
{
    enum { REPORT_MOST = 4096 };
    const struct problem *problem = plain->problem;
    BUF_LOCAL(report, REPORT_MOST);
    if (plain->sanitized == NULL)
        return err_set(err, ERR_UNSUPPORTED, "what overflows in this C reference is not known");
    int status = plain->backend->sanitize(plain->lane, plain->region, plain->sanitized, &program,
                                          call, 1, false, &report, err);
    if (status < 0 && err->code != ERR_CHILD)
        return -1;
    if (status == 0)
        return plain->reference.ops->compute(&plain->reference, layout, call, PRECISION_EXACT, out,
                                             err);
    for (size_t i = 0; i < problem->output_count; i++)
        for (size_t k = 0; k < layout->outputs[i].elements; k++)
            ((double *)out[i])[k] = NAN;
    return 0;
}

static int compute(struct reference *reference, const struct layout *layout,
                   const struct call *call, enum reference_precision precision, void **out,
                   struct err *err)
{
    struct plain *plain = plain_of(reference);
    const struct problem *problem = plain->problem;
    bool exact = precision == PRECISION_EXACT;
    if (precision == PRECISION_WIDE)
        return compute_checked(plain, layout, call, out, err);
    if (plain->wide_artifact != NULL && precision != PRECISION_SPEC)
        return compute_wide(plain, layout, call, reference_bits(problem, precision), exact, out,
                            err);
    if (precision == PRECISION_LOWER)
        return err_set(err, ERR_UNSUPPORTED, "a C reference without REAL has one precision");
    if (ensure(plain, err) != 0 || run(&reference->subject, call, err) != 0)
        return -1;
    for (size_t i = 0; i < problem->output_count; i++) {
        enum dtype dtype = problem->outputs[i].dtype;
        const struct placed *placed = &layout->outputs[i];
        const void *from = plain->region->outputs + call->offsets[problem->input_count + i];
        if (exact)
            dtype_to_double(dtype, from, placed->elements, (double *)out[i]);
        else
            memcpy(out[i], from, placed->bytes);
    }
    return 0;
}

/* --- opening and closing --- */

static void plain_close(struct reference *reference)
{
    struct plain *plain = plain_of(reference);
    if (reference->subject != NULL)
        reference->subject->ops->close(reference->subject);
    if (plain->wide_subject != NULL)
        plain->wide_subject->ops->close(plain->wide_subject);
    if (plain->wide_region.inputs != NULL)
        region_close(&plain->wide_region);
    mem_free(plain);
}

int reference_open_c(const struct problem *problem, const struct backend *backend,
                     const struct lane_facts *lane, const struct region *region, const char *folder,
                     struct arena *arena, struct reference **reference, struct err *err)
{
    static const struct reference_ops ops = {.compute = compute, .close = plain_close};
    struct plain *plain = MEM_NEW(struct plain);
    plain->reference = (struct reference){.ops = &ops, .versions = "{}"};
    plain->problem = problem;
    plain->backend = backend;
    plain->lane = lane;
    plain->region = region;
    plain->arena = arena;
    plain->wide = *problem;
    for (size_t i = 0; i < problem->input_count; i++)
        if (dtype_is_float(problem->inputs[i].dtype))
            plain->wide.inputs[i].dtype = DTYPE_FLOAT64;
    for (size_t i = 0; i < problem->output_count; i++)
        if (dtype_is_float(problem->outputs[i].dtype))
            plain->wide.outputs[i].dtype = DTYPE_FLOAT64;
    if (build_both(plain, folder, err) != 0 || ensure(plain, err) != 0) {
        plain_close(&plain->reference);
        return -1;
    }
    build_sanitized(plain, folder);
    *reference = &plain->reference;
    return 0;
}
