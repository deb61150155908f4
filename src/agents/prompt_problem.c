#include "agents/prompt_private.h"

#include "eval/problem_torch.h"

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
    if (problem->tolerance_fixed)
        buf_addf(out, "- tolerance: rtol %g, atol %g\n", problem->rtol, problem->atol);
    else
        buf_addf(out,
                 "- tolerance: as accurate as an honest computation in %s; sums may be "
                 "reordered\n",
                 problem->precision != NULL ? problem->precision : "the given types");
    if (context->baseline_ns > 0)
        buf_addf(out, "- baseline %s: %.1f us\n", context->baseline, context->baseline_ns / 1e3);
    if (problem->torch != NULL)
        buf_add_text(out,
                     "- the reference is a PyTorch module: eager is it as it stands, compile is "
                     "torch.compile of it; the final measurement is against both\n");
    if (context->floor_ns > 0)
        buf_addf(out, "- no kernel on this machine can take less than about %.1f us\n",
                 context->floor_ns / 1e3);
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
