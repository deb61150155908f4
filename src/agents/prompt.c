#include "agents/prompt.h"

#include "agents/template.h"
#include "base/value.h"

#include <stdio.h>
#include <string.h>

enum { SYSTEM, IDEAS, IMPLEMENT, REPAIR, FORMAT, TEMPLATES };

static const char *const slots[TEMPLATES][10] = {
    [SYSTEM] = {"backend", NULL},
    [IDEAS] = {"count", "problem", "device", "parents", "history", NULL},
    [IMPLEMENT] = {"idea", "problem", "device", "parent", "profile", "history", "format", NULL},
    [REPAIR] = {"idea", "failure", "diagnostics", "source", "problem", "device", "format", NULL},
    [FORMAT] = {"signature", NULL}};

struct prompts {
    const char *backend;
    struct template *templates[TEMPLATES];
};

int prompts_load(struct arena *arena, const char *backend, struct prompts **prompts,
                 struct err *err)
{
    struct prompts *loaded = ARENA_NEW(arena, struct prompts);
    const char *const files[TEMPLATES] = {[SYSTEM] = "system.txt",
                                          [IDEAS] = "idea.txt",
                                          [IMPLEMENT] = "implement.txt",
                                          [REPAIR] = "repair.txt",
                                          [FORMAT] = arena_printf(arena, "format-%s.txt", backend)};
    loaded->backend = arena_strdup(arena, backend);
    for (size_t i = 0; i < TEMPLATES; i++)
        if (template_load(arena, files[i], slots[i], &loaded->templates[i], err) != 0)
            return -1;
    *prompts = loaded;
    return 0;
}

/* ---- the problem ---- */

void prompt_signature(const struct problem *problem, struct buf *out)
{
    buf_add_text(out, "void kernel(");
    for (size_t i = 0; i < problem->input_count; i++)
        buf_addf(out, "const %s *%s, ", dtype_c_type(problem->inputs[i].dtype),
                 problem->inputs[i].name);
    for (size_t i = 0; i < problem->output_count; i++)
        buf_addf(out, "%s *%s, ", dtype_c_type(problem->outputs[i].dtype),
                 problem->outputs[i].name);
    for (size_t i = 0; i < problem->dim_count; i++)
        buf_addf(out, "%sint64_t %s", i > 0 ? ", " : "", problem->dims[i].name);
    buf_add_char(out, ')');
}

static void put_tensors(const char *kind, const struct tensor_spec *tensors, size_t count,
                        struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        buf_addf(out, "- %s %s: [", kind, tensors[i].name);
        for (size_t j = 0; j < tensors[i].rank; j++)
            buf_addf(out, "%s%s", j > 0 ? ", " : "", tensors[i].shape_text[j]);
        buf_addf(out, "] %s", dtype_name(tensors[i].dtype));
        if (tensors[i].low <= tensors[i].high)
            buf_addf(out, ", values in [%g, %g]", tensors[i].low, tensors[i].high);
        buf_add_char(out, '\n');
    }
}

static void put_shape(const struct names *shape, struct buf *out)
{
    for (size_t i = 0; i < shape->count; i++)
        buf_addf(out, "%s%s=%lld", i > 0 ? " " : "", shape->name[i], (long long)shape->number[i]);
}

static void put_problem(const struct prompt_context *context, struct buf *out)
{
    const struct problem *problem = context->problem;
    buf_addf(out, "%s: %s\n", problem->name,
             problem->description != NULL ? problem->description : "");
    put_tensors("input", problem->inputs, problem->input_count, out);
    put_tensors("output", problem->outputs, problem->output_count, out);
    buf_add_text(out, "- timed at ");
    put_shape(&problem->shapes[0], out);
    buf_add_text(out, "; also checked at");
    for (size_t i = 1; i < problem->shape_count; i++) {
        buf_add_text(out, i > 1 ? "; " : " ");
        put_shape(&problem->shapes[i], out);
    }
    buf_add_text(out, " and at shapes that are not told\n");
    if (problem->tolerance_fixed)
        buf_addf(out, "- tolerance: rtol %g, atol %g\n", problem->rtol, problem->atol);
    else
        buf_addf(out,
                 "- tolerance: as accurate as an honest computation in %s; sums may be "
                 "reordered\n",
                 problem->precision != NULL ? problem->precision : "the given types");
    if (context->baseline_ns > 0)
        buf_addf(out, "- baseline %s: %.1f us\n", context->baseline, context->baseline_ns / 1e3);
    if (context->floor_ns > 0)
        buf_addf(out, "- no kernel on this machine can take less than about %.1f us\n",
                 context->floor_ns / 1e3);
    if (context->reference != NULL && *context->reference != '\0')
        buf_addf(out, "\nThe reference that defines it:\n```\n%s\n```\n", context->reference);
}

/* ---- JSON objects as lines of "key: value" ---- */

static void put_value(const struct value *value, int depth, struct buf *out)
{
    switch (value->kind) {
    case VALUE_TEXT:
        buf_addf(out, "%.400s", value->text);
        break;
    case VALUE_BOOL:
        buf_add_text(out, value->boolean ? "yes" : "no");
        break;
    case VALUE_INT:
        buf_addf(out, "%lld", (long long)value->integer);
        break;
    case VALUE_REAL:
        buf_addf(out, "%.4g", value->real);
        break;
    case VALUE_NULL:
        buf_add_text(out, "not known");
        break;
    default: /* a list or map inside: one line, as deep as it goes */
        for (size_t i = 0; i < value->count && depth < 4; i++) {
            if (i > 0)
                buf_add_text(out, value->items[i]->kind == VALUE_MAP ? "\n  " : ", ");
            if (value->kind == VALUE_MAP)
                buf_addf(out, "%s ", value->keys[i]);
            put_value(value->items[i], depth + 1, out);
        }
    }
}

static void put_object(const char *json, struct buf *out)
{
    struct value *root;
    struct err ignored;
    if (json == NULL || *json == '\0')
        return;
    struct arena *arena = arena_new();
    if (value_parse_json(arena, "object", json, strlen(json), &root, &ignored) == 0 &&
        root->kind == VALUE_MAP) {
        for (size_t i = 0; i < root->count; i++) {
            buf_addf(out, "- %s: ", root->keys[i]);
            put_value(root->items[i], 0, out);
            buf_add_char(out, '\n');
        }
    }
    arena_free(arena);
}

/* ---- kernels, ideas, history ---- */

/* A fence longer than any run of marks inside keeps a source from closing it. */
static void put_source(const char *source, struct buf *out)
{
    size_t longest = 2, run = 0;
    for (const char *at = source; *at != '\0'; at++) {
        run = *at == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    char fence[64];
    size_t width = longest + 1 < sizeof fence ? longest + 1 : sizeof fence - 1;
    memset(fence, '`', width);
    fence[width] = '\0';
    size_t length = strlen(source);
    buf_addf(out, "%s\n%s%s%s\n", fence, source,
             length > 0 && source[length - 1] != '\n' ? "\n" : "", fence);
}

static void put_times(const struct prompt_kernel *kernel, struct buf *out)
{
    if (kernel->time_ns > 0)
        buf_addf(out, "%.1f us, %.3fx the baseline (95 %%: %.3f to %.3f)", kernel->time_ns / 1e3,
                 kernel->speedup, kernel->speedup_low, kernel->speedup_high);
    else
        buf_add_text(out, "not measured yet");
}

static void put_kernel(const struct prompt_kernel *kernel, struct buf *out)
{
    buf_addf(out, "%s (%s): ", kernel->id, kernel->name);
    put_times(kernel, out);
    buf_add_char(out, '\n');
    if (kernel->tune != NULL && *kernel->tune != '\0' && strcmp(kernel->tune, "{}") != 0)
        buf_addf(out, "with %s\n", kernel->tune);
    put_source(kernel->source != NULL ? kernel->source : "", out);
}

static void put_idea(const struct idea *idea, struct buf *out)
{
    buf_addf(out, "%s (%s)\n%s\n", idea->title, idea->category, idea->why);
}

static void put_history(const struct prompt_attempt *history, size_t count, struct buf *out)
{
    if (count == 0)
        buf_add_text(out, "Nothing yet.\n");
    for (size_t i = 0; i < count; i++) {
        const struct prompt_attempt *tried = &history[i];
        buf_addf(out, "- %s [%s] %s: %s", tried->id, tried->category, tried->title, tried->state);
        if (tried->over_parent > 0)
            buf_addf(out, ", %.3fx its parent", tried->over_parent);
        if (tried->speedup > 0)
            buf_addf(out, ", %.3fx the baseline", tried->speedup);
        if (tried->reason != NULL && *tried->reason != '\0')
            buf_addf(out, " (%.200s)", tried->reason);
        buf_add_char(out, '\n');
    }
}

/* ---- prompts ---- */

enum { TEXTS_MAX = 8 };

struct filling { /* the texts of one prompt's slots */
    struct buf bufs[TEXTS_MAX];
    struct slot_text texts[TEXTS_MAX];
    size_t count;
};

static struct buf *filling_slot(struct filling *filling, const char *slot)
{
    struct buf *text = &filling->bufs[filling->count];
    buf_init(text, PROMPT_BYTES_MAX);
    filling->texts[filling->count++].slot = slot;
    return text;
}

static void filling_render(struct filling *filling, const struct template *template,
                           struct buf *out)
{
    for (size_t i = 0; i < filling->count; i++)
        filling->texts[i].text = buf_text(&filling->bufs[i]);
    template_render(template, filling->texts, filling->count, out);
    for (size_t i = 0; i < filling->count; i++)
        buf_free(&filling->bufs[i]);
}

static void fill_common(struct filling *filling, const struct prompt_context *context)
{
    put_problem(context, filling_slot(filling, "problem"));
    struct buf *device = filling_slot(filling, "device");
    put_object(context->device, device);
    put_object(context->facts, device);
}

static void fill_format(struct filling *filling, const struct prompts *prompts,
                        const struct prompt_context *context)
{
    struct filling inner = {.count = 0};
    prompt_signature(context->problem, filling_slot(&inner, "signature"));
    filling_render(&inner, prompts->templates[FORMAT], filling_slot(filling, "format"));
}

void prompt_system(const struct prompts *prompts, struct buf *out)
{
    struct filling filling = {.count = 0};
    buf_add_text(filling_slot(&filling, "backend"), prompts->backend);
    filling_render(&filling, prompts->templates[SYSTEM], out);
}

void prompt_ideas(const struct prompts *prompts, const struct prompt_context *context,
                  const struct prompt_kernel *parents, size_t parent_count,
                  const struct prompt_attempt *history, size_t history_count, int64_t count,
                  unsigned shrink, struct buf *out)
{
    (void)shrink;
    struct filling filling = {.count = 0};
    fill_common(&filling, context);
    struct buf *text = filling_slot(&filling, "parents");
    for (size_t i = 0; i < parent_count; i++) {
        put_kernel(&parents[i], text);
        put_object(parents[i].metrics, text);
        buf_add_char(text, '\n');
    }
    put_history(history, history_count, filling_slot(&filling, "history"));
    buf_addf(filling_slot(&filling, "count"), "%lld", (long long)count);
    filling_render(&filling, prompts->templates[IDEAS], out);
}

void prompt_implement(const struct prompts *prompts, const struct prompt_context *context,
                      const struct prompt_kernel *parent, const struct idea *idea,
                      const struct prompt_attempt *history, size_t history_count, unsigned shrink,
                      struct buf *out)
{
    (void)shrink;
    struct filling filling = {.count = 0};
    fill_common(&filling, context);
    fill_format(&filling, prompts, context);
    put_idea(idea, filling_slot(&filling, "idea"));
    put_kernel(parent, filling_slot(&filling, "parent"));
    struct buf *profile = filling_slot(&filling, "profile");
    put_object(parent->metrics, profile);
    if (profile->length == 0)
        buf_add_text(profile, "Not known yet.\n");
    put_history(history, history_count, filling_slot(&filling, "history"));
    filling_render(&filling, prompts->templates[IMPLEMENT], out);
}

void prompt_repair(const struct prompts *prompts, const struct prompt_context *context,
                   const struct idea *idea, const char *source, const char *failure,
                   const char *diagnostics, unsigned shrink, struct buf *out)
{
    (void)shrink;
    struct filling filling = {.count = 0};
    fill_common(&filling, context);
    fill_format(&filling, prompts, context);
    put_idea(idea, filling_slot(&filling, "idea"));
    buf_add_text(filling_slot(&filling, "failure"), failure);
    buf_add_text(filling_slot(&filling, "diagnostics"), diagnostics);
    put_source(source, filling_slot(&filling, "source"));
    filling_render(&filling, prompts->templates[REPAIR], out);
}
