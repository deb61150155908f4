#include "agents/prompt/private.h"

#include "base/digits.h"
#include "eval/check/check.h"
#include "eval/problem/torch.h"

#include <math.h>
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

/* As device code spells it; 16-bit types by their headers' names. */
static const char *device_type(enum dtype dtype)
{
    return dtype == DTYPE_FLOAT16    ? "__half"
           : dtype == DTYPE_BFLOAT16 ? "__nv_bfloat16"
           : dtype == DTYPE_INT32    ? "int"
                                     : dtype_c_type(dtype);
}

static void put_arguments(const char *kind, const struct tensor_spec *tensors, size_t count,
                          const char **comma, struct buf *out)
{
    for (size_t i = 0; i < count; i++, *comma = ", ")
        buf_addf(out, "%s%s%s *%s", *comma, kind, device_type(tensors[i].dtype), tensors[i].name);
}

void prompt_arguments(const struct problem *problem, struct buf *out)
{
    const char *comma = "";
    put_arguments("const ", problem->inputs, problem->input_count, &comma, out);
    put_arguments("", problem->outputs, problem->output_count, &comma, out);
    for (size_t i = 0; i < problem->dim_count; i++, comma = ", ")
        buf_addf(out, "%slong long %s", comma, problem->dims[i].name);
}

void prompt_parameters(const struct problem *problem, struct buf *out)
{
    const char *comma = "";
    for (size_t i = 0; i < problem->input_count; i++, comma = ", ")
        buf_addf(out, "%s%s: %s pointer", comma, problem->inputs[i].name,
                 dtype_name(problem->inputs[i].dtype));
    for (size_t i = 0; i < problem->output_count; i++, comma = ", ")
        buf_addf(out, "%s%s: %s pointer", comma, problem->outputs[i].name,
                 dtype_name(problem->outputs[i].dtype));
    for (size_t i = 0; i < problem->dim_count; i++, comma = ", ")
        buf_addf(out, "%s%s: number", comma, problem->dims[i].name);
}

static void put_bindings(const char *access, const struct tensor_spec *tensors, size_t count,
                         size_t *binding, struct buf *out)
{
    for (size_t i = 0; i < count; i++)
        buf_addf(out, "@group(0) @binding(%zu) var<storage, %s> %s: array<%s>;\n  ", (*binding)++,
                 access, tensors[i].name,
                 tensors[i].dtype == DTYPE_FLOAT16 ? "f16"
                 : tensors[i].dtype == DTYPE_INT32 ? "i32"
                                                   : "f32");
}

void prompt_bindings(const struct problem *problem, struct buf *out)
{
    size_t binding = 0;
    put_bindings("read", problem->inputs, problem->input_count, &binding, out);
    put_bindings("read_write", problem->outputs, problem->output_count, &binding, out);
    buf_addf(out, "@group(0) @binding(%zu) var<uniform> dims: Dims;\n  struct Dims { ", binding);
    for (size_t i = 0; i < problem->dim_count; i++)
        buf_addf(out, "%s%s: u32", i > 0 ? ", " : "", problem->dims[i].name);
    buf_add_text(out, " }");
}

/* What a drawing of a PyTorch module's input keeps: a kernel may rely on it. */
static void put_kept(const struct torch_input *input, struct buf *out)
{
    static const char *const words[STRUCTURES] = {[STRUCTURE_WHOLE] = ", whole numbers",
                                                  [STRUCTURE_UPPER] = ", zero below the diagonal",
                                                  [STRUCTURE_LOWER] = ", zero above the diagonal",
                                                  [STRUCTURE_SYMMETRIC] = ", symmetric",
                                                  [STRUCTURE_GIVEN] =
                                                      ", always the module's own numbers"};
    if (input->initial)
        buf_add_text(out, ", a parameter or buffer of the module");
    if (words[input->structure] != NULL)
        buf_add_text(out, words[input->structure]);
}

/* `torch`: of inputs of a PyTorch module; or NULL. */
static void put_tensors(const char *kind, const struct tensor_spec *tensors, size_t count,
                        const struct problem_torch *torch, struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        buf_addf(out, "- %s %s: [", kind, tensors[i].name);
        for (size_t j = 0; j < tensors[i].rank; j++)
            buf_addf(out, "%s%s", j > 0 ? ", " : "", tensors[i].shape_text[j]);
        buf_addf(out, "] %s", dtype_name(tensors[i].dtype));
        if (tensors[i].low <= tensors[i].high)
            buf_addf(out, ", values in [%g, %g]", tensors[i].low, tensors[i].high);
        if (torch != NULL)
            put_kept(&torch->inputs[i], out);
        buf_add_char(out, '\n');
    }
}

static void put_shape(const struct names *shape, struct buf *out)
{
    for (size_t i = 0; i < shape->count; i++)
        buf_addf(out, "%s%s=%lld", i > 0 ? " " : "", shape->name[i], (long long)shape->number[i]);
}

/* As the check will have it where rounding alone errs: check.h has the formula. */
static void put_tolerance(const struct problem *problem, struct buf *out)
{
    if (problem->tolerance_fixed) {
        buf_addf(out, "- tolerance: |got - exact| <= %g + %g |exact|\n", problem->atol,
                 problem->rtol);
        return;
    }
    buf_addf(out,
             "- tolerance: as accurate as an honest computation in %s; sums may be reordered\n",
             problem->precision != NULL ? problem->precision : "the given types");
    size_t reduction = problem_reduction(problem, &problem->shapes[0]);
    for (size_t i = 0; i < problem->output_count; i++) {
        struct bound bound;
        if (!dtype_is_float(problem->outputs[i].dtype)) {
            buf_addf(out, "  %s: exactly equal\n", problem->outputs[i].name);
            continue;
        }
        bound_usual(problem, &problem->outputs[i], reduction, &bound);
        buf_addf(out,
                 "  %s: about %.2g of max(|exact|, %s) for each element, and %.2g of its norm "
                 "(L2), at the timed shape\n",
                 problem->outputs[i].name, bound.element,
                 bound.normwise ? "the tensor's rms" : "its row's rms", bound.norm);
    }
}

static void put_non_finite(const struct problem *problem, const struct target *target,
                           struct buf *out)
{
    if (!problem_is_spoiled(problem) || target->finite_only)
        buf_add_text(out, "- no input is NaN or infinite in any check\n");
    else
        buf_add_text(out,
                     "- inputs may hold NaN and infinities: where the reference gives NaN, +inf, "
                     "-inf or a finite number for them, so must the kernel (a > b ? a : b and "
                     "fmaxf lose a NaN); sums of products may give NaN for an infinity\n");
}

double prompt_noise(const struct prompt_context *context)
{
    return fmax(0.01, 3 * context->spread);
}

const char *prompt_digits(const struct prompt_context *context, double number, char text[32])
{
    double by = 1 + prompt_noise(context);
    return digits_of(number, number / by, number * by, text);
}

/* What speed-ups are against, and how much of one is noise. */
static void put_measure(const struct prompt_context *context, struct buf *out)
{
    if (context->baseline == NULL || *context->baseline == '\0')
        return;
    buf_addf(out, "- the baseline, which speed-ups are against: %s", context->baseline);
    char time[32];
    if (context->baseline_ns > 0)
        buf_addf(out, ", %s us", prompt_digits(context, context->baseline_ns / 1e3, time));
    buf_add_char(out, '\n');
    double least = 1 + prompt_noise(context);
    if (context->spread > 0)
        buf_addf(out,
                 "- noise: a kernel measured against itself strays by %.2g %% here; two times that "
                 "differ by less than %.4gx are equal\n",
                 100 * context->spread, least);
}

/* 268435456 -> "268 M" */
static void put_amount(double amount, struct buf *out)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    size_t unit = 0;
    for (; unit + 1 < sizeof prefixes / sizeof prefixes[0] && amount >= 999.5; unit++)
        amount /= 1000;
    buf_addf(out, "%.3g %s", amount, prefixes[unit]);
}

/* Bytes bound every kernel; operations are those of the definition, which algebra may need fewer
 * of. */
static void put_work(const struct prompt_work *work, struct buf *out)
{
    if (work->bytes > 0 && work->bytes_ns > 0) {
        buf_add_text(out, "- its tensors have ");
        put_amount(work->bytes, out);
        buf_addf(out, "B: to move each once takes %.1f us at this machine's measured rate%s\n",
                 work->bytes_ns / 1e3,
                 work->cached ? ", less where the caches hold them" : "; no kernel can take less");
    }
    if (work->flops > 0) {
        buf_add_text(out, "- the definition does ");
        put_amount(work->flops, out);
        buf_add_text(out, "flop");
        if (work->flops_ns > 0)
            buf_addf(out, ", which take %.1f us at this machine's measured rate",
                     work->flops_ns / 1e3);
        buf_add_text(out, "; algebra may need fewer\n");
    }
    if (work->under_load && (work->bytes_ns > 0 || work->flops_ns > 0))
        buf_add_text(out, "- other programs ran while these rates were measured: less may do\n");
}

static void put_definition(const struct prompt_context *context, const struct target *target,
                           struct buf *out)
{
    const struct problem *problem = context->problem;
    buf_addf(out, "%s: %s\n", problem->name,
             problem->description != NULL ? problem->description : "");
    put_tensors("input", problem->inputs, problem->input_count, problem->torch, out);
    put_tensors("output", problem->outputs, problem->output_count, NULL, out);
    buf_add_text(out, "- timed at ");
    put_shape(&problem->shapes[0], out);
    buf_add_text(out, "; also checked at");
    for (size_t i = 1; i < problem->shape_count; i++) {
        buf_add_text(out, i > 1 ? "; " : " ");
        put_shape(&problem->shapes[i], out);
    }
    buf_addf(out, "%s at shapes that are not told\n", problem->shape_count > 1 ? " and" : "");
    put_tolerance(problem, out);
    put_non_finite(problem, target, out);
    put_measure(context, out);
    if (problem->torch != NULL)
        buf_add_text(out,
                     "- the reference is a PyTorch module: eager is it as it stands, compile is "
                     "torch.compile of it; the final measurement is against both\n");
    put_work(&context->work, out);
}

void put_problem(const struct material *material, size_t most, struct buf *out)
{
    static const char before[] = "\nThe reference that defines it:\n";
    const char *reference = material->context->reference;
    size_t start = out->length;
    put_definition(material->context, material->prompts->target, out);
    size_t used = out->length - start + sizeof before;
    if (reference == NULL || *reference == '\0' || most < used + REFERENCE_LEAST)
        return;
    buf_add_text(out, before);
    prompt_fenced(reference, most - used, "... ", " ...", out);
}
