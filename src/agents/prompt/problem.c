#include "agents/prompt/private.h"

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

double prompt_noise(const struct prompt_context *context)
{
    return fmax(0.01, 3 * context->spread);
}

/* What speed-ups are against, and how much of one is noise. */
static void put_measure(const struct prompt_context *context, struct buf *out)
{
    if (context->baseline == NULL || *context->baseline == '\0')
        return;
    buf_addf(out, "- the baseline, which speed-ups are against: %s", context->baseline);
    if (context->baseline_ns > 0)
        buf_addf(out, ", %.1f us", context->baseline_ns / 1e3);
    buf_add_char(out, '\n');
    if (context->spread > 0)
        buf_addf(out,
                 "- noise: a kernel measured against itself strays by %.1f %% here; less than "
                 "%.1f %% is no difference\n",
                 100 * context->spread, 100 * prompt_noise(context));
}

static void put_floor(const struct prompt_context *context, struct buf *out)
{
    bool cached = context->memory_ns > context->floor_ns;
    if (!(context->floor_ns > 0))
        return;
    buf_addf(out, "- no kernel on this machine can take less than about %.1f us",
             context->floor_ns / 1e3);
    if (cached)
        buf_addf(out, " by its operations; its bytes take %.1f us but for what the caches hold",
                 context->memory_ns / 1e3);
    buf_addf(out, "%s\n",
             context->under_load ? "; these rates were measured under load, so that less may do"
                                 : "");
}

static void put_definition(const struct prompt_context *context, struct buf *out)
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
    put_measure(context, out);
    if (problem->torch != NULL)
        buf_add_text(out,
                     "- the reference is a PyTorch module: eager is it as it stands, compile is "
                     "torch.compile of it; the final measurement is against both\n");
    put_floor(context, out);
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
