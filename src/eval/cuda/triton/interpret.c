/* Without a GPU: the small check shapes in Triton's interpreter, all in one child. Everything that
 * it is to read is laid out before it starts, and looked at when it has ended. */
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "eval/check/check.h"
#include "eval/cuda/run/plan.h"
#include "eval/cuda/triton/triton.h"
#include "eval/reference/reference.h"
#include "process/spawn.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ELEMENTS_MOST = 1 << 19, INTERPRET_MS = 120000, REQUEST_MOST = 1 << 20 };
static const double flops_most = 64e6;

struct one { /* check shape */
    const struct names *dims;
    struct layout layout;
    size_t inputs_at, outputs_at; /* in the region */
    struct call call;
    double *exact[OUTPUTS_MAX];
    struct bound bounds[OUTPUTS_MAX];
};

struct interpreting {
    struct arena *arena;
    const struct program *program;
    const struct names *facts;
    struct interpreted *told;
    size_t count, inputs_bytes, outputs_bytes;
    struct one *shapes;
    struct region region;
    struct reference *reference;
    struct lane_facts lane;
    uint64_t seed;
};

/* ---- which shapes, and where they lie ---- */

static bool is_small(const struct problem *problem, const struct names *dims,
                     const struct layout *layout)
{
    double flops = 0.0, bytes = 0.0;
    struct err ignored;
    size_t elements = 0;
    for (size_t i = 0; i < layout->input_count; i++)
        elements += layout->inputs[i].elements;
    for (size_t i = 0; i < layout->output_count; i++)
        elements += layout->outputs[i].elements;
    return elements <= ELEMENTS_MOST &&
           (problem_work(problem, dims, &flops, &bytes, &ignored) != 0 || flops <= flops_most);
}

static int choose(struct interpreting *in, struct err *err)
{
    const struct program *program = in->program;
    const struct problem *problem = program->problem;
    in->shapes = arena_array(in->arena, problem->shape_count, sizeof *in->shapes);
    for (size_t i = 0; i < problem->shape_count; i++) {
        struct one *one = &in->shapes[in->count];
        *one = (struct one){.dims = &problem->shapes[i],
                            .inputs_at = in->inputs_bytes,
                            .outputs_at = in->outputs_bytes};
        if (layout_make(problem, one->dims, program->candidate, program->tune, 0, &one->layout,
                        err) != 0) {
            in->told->wrong = arena_strdup(in->arena, err->message);
            return 0;
        }
        if (!is_small(problem, one->dims, &one->layout))
            continue;
        in->inputs_bytes += (one->layout.inputs_bytes + 4095) / 4096 * 4096;
        in->outputs_bytes += (one->layout.outputs_bytes + 4095) / 4096 * 4096;
        in->count++;
    }
    if (in->count + 1 < problem->shape_count) /* the first is the main shape */
        in->told->left_out = arena_printf(in->arena, "%zu check shapes are too large for it",
                                          problem->shape_count - 1 - in->count);
    return 0;
}

/* ---- what is right ---- */

static int expect(struct interpreting *in, struct one *one, struct err *err)
{
    const struct problem *problem = in->program->problem;
    const struct layout *layout = &one->layout;
    void *exact[OUTPUTS_MAX], *honest[OUTPUTS_MAX], *lower[OUTPUTS_MAX];
    call_make(layout, one->inputs_at, 0, &one->call);
    unsigned char *inputs[INPUTS_MAX];
    for (size_t i = 0; i < problem->input_count; i++) {
        const struct tensor_spec *spec = &problem->inputs[i];
        unsigned char *values = inputs[i] = in->region.inputs + one->call.offsets[i];
        draw_fill(DRAW_NORMAL, in->seed + i, spec->dtype, layout->inputs[i].elements,
                  spec->rank > 0 ? (size_t)layout->inputs[i].extents[spec->rank - 1] : 1, spec->low,
                  spec->high, values);
        reference_shape_input(in->reference, i, DRAW_NORMAL, &layout->inputs[i], values);
    }
    reference_draw_own(in->reference, layout, in->seed, inputs);
    for (size_t i = 0; i < problem->output_count; i++) {
        size_t count = layout->outputs[i].elements + 1;
        exact[i] = one->exact[i] = arena_array(in->arena, count, sizeof(double));
        honest[i] = arena_array(in->arena, count, sizeof(double));
        lower[i] = arena_array(in->arena, count, sizeof(double));
    }
    if (reference_compute(in->reference, layout, &one->call, PRECISION_EXACT, exact, err) != 0 ||
        reference_compute(in->reference, layout, &one->call, PRECISION_SPEC, honest, err) != 0)
        return -1;
    struct err ignored;
    bool has_lower =
        reference_compute(in->reference, layout, &one->call, PRECISION_LOWER, lower, &ignored) == 0;
    const struct sum sum = {.terms = problem_reduction(problem, one->dims), .cut = true};
    for (size_t i = 0; i < problem->output_count; i++) {
        const struct placed *placed = &layout->outputs[i];
        const struct tensor_spec *spec = &problem->outputs[i];
        size_t row = spec->rank > 0 ? (size_t)placed->extents[spec->rank - 1] : 1;
        bound_derive(problem, spec, placed->elements, row, &sum, one->exact[i], honest[i],
                     has_lower ? lower[i] : NULL, &one->bounds[i]);
    }
    return 0;
}

static int open_reference(struct interpreting *in, const char *folder, struct err *err)
{
    const struct problem *problem = in->program->problem;
    const char *found;
    if (problem->reference_kind == REFERENCE_TORCH)
        return reference_open_torch(problem, &in->lane, &in->region, NULL, folder, in->arena,
                                    &in->reference, err);
    return reference_open(problem, &in->lane, &in->region, NULL, in->arena, &found, &in->reference,
                          err);
}

static void poison(struct interpreting *in, const struct one *one)
{
    const struct problem *problem = in->program->problem;
    memset(in->region.outputs + one->outputs_at, 0xa5, one->layout.outputs_bytes);
    for (size_t i = 0; i < problem->output_count; i++)
        draw_poison(in->seed + 99 + i, problem->outputs[i].dtype, one->layout.outputs[i].elements,
                    in->region.outputs + one->outputs_at + one->layout.outputs[i].offset);
}

/* ---- what is asked ---- */

/* What there is of a tensor map besides its memory; "shape" is absent where it must not be used. */
static int put_map(struct interpreting *in, const struct tensor_map *map,
                   const struct plan_map *made, struct json *json, struct err *err)
{
    int64_t box[TENSOR_MAP_RANK];
    if (triton_box(in->program, map, in->facts, box, err) != 0)
        return -1;
    json_put_array(json, "box");
    for (size_t i = 0; i < map->rank; i++)
        json_int(json, box[i]);
    json_array_end(json);
    if (made->rank == 0)
        return 0;
    json_put_array(json, "shape");
    for (size_t i = map->rank; i-- > 0;)
        json_int(json, (int64_t)made->extents[i]);
    json_array_end(json);
    json_put_array(json, "strides");
    for (size_t i = map->rank; i-- > 0;)
        json_int(json, (int64_t)(made->strides[i] / made->strides[0]));
    json_array_end(json);
    return 0;
}

static int put_arg(struct interpreting *in, const struct one *one, const struct plan *plan,
                   const struct plan_arg *arg, struct json *json, struct err *err)
{
    const struct program *program = in->program;
    const struct problem *problem = program->problem;
    const struct candidate *candidate = program->candidate;
    size_t index = arg->kind == PLAN_MAP ? plan->maps[arg->index].pointer : arg->index;
    if (arg->kind == PLAN_NUMBER) {
        json_int(json, arg->number);
        return 0;
    }
    bool input = index < problem->input_count;
    const struct tensor_spec *spec = candidate_tensor(problem, candidate, index);
    json_object(json);
    json_put_text(json, "dtype", triton_type(spec->dtype));
    json_put_text(json, "from", input ? "inputs" : "outputs");
    json_put_int(json, "offset",
                 (int64_t)(one->call.offsets[index] + (input ? 0 : one->outputs_at)));
    if (arg->kind == PLAN_MAP &&
        put_map(in, &candidate->maps[arg->index], &plan->maps[arg->index], json, err) != 0)
        return -1;
    json_object_end(json);
    return 0;
}

static int put_call(struct interpreting *in, const struct one *one, struct plan *plan,
                    struct json *json, struct err *err)
{
    const struct program *program = in->program;
    if (plan_make(program, in->facts, &one->call, plan, err) != 0)
        return -1;
    json_object(json);
    json_put_array(json, "memsets");
    for (size_t i = 0; i < plan->memset_count; i++) {
        json_object(json);
        json_put_int(json, "offset",
                     (int64_t)(one->call.offsets[plan->memsets[i].pointer] + one->outputs_at));
        json_put_int(json, "byte", plan->memsets[i].byte);
        json_put_int(json, "bytes", (int64_t)plan->memsets[i].bytes);
        json_object_end(json);
    }
    json_array_end(json);
    json_put_array(json, "launches");
    for (size_t i = 0; i < plan->launch_count; i++) {
        const struct launch *launch = &program->candidate->launches[i];
        struct names constants;
        if (triton_constants(program, launch, in->facts, &constants, err) != 0)
            return -1;
        json_object(json);
        json_put_text(json, "entry", launch->entry);
        json_put_names(json, "constexprs", &constants);
        json_put_array(json, "grid");
        for (int k = 0; k < 3; k++)
            json_int(json, plan->launches[i].grid[k]);
        json_array_end(json);
        json_put_array(json, "args");
        for (size_t k = 0; k < launch->arg_count; k++)
            if (put_arg(in, one, plan, &plan->launches[i].args[k], json, err) != 0)
                return -1;
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
    return 0;
}

static int write_request(struct interpreting *in, const char *folder, struct err *err)
{
    JSON_LOCAL(json, text, REQUEST_MOST);
    struct plan *plan = MEM_NEW(struct plan);
    int status = 0;
    json_object(&json);
    json_put_array(&json, "calls");
    for (size_t i = 0; status == 0 && i < in->count; i++)
        status = put_call(in, &in->shapes[i], plan, &json, err);
    json_array_end(&json);
    json_object_end(&json);
    mem_free(plan);
    if (status == 0 && text.dropped > 0)
        status = err_set(err, ERR_LIMIT, "there is too much to be interpreted");
    const char *path = arena_printf(in->arena, "%s/calls.json", folder);
    const char *source = arena_printf(in->arena, "%s/candidate.py", folder);
    const struct candidate *candidate = in->program->candidate;
    if (status == 0 && file_write(source, candidate->source, candidate->length, err) != 0)
        return -1;
    return status == 0 ? file_write(path, buf_text(&text), text.length, err) : -1;
}

/* ---- what came of it ---- */

static const char *words_of(struct interpreting *in, const struct names *dims)
{
    BUF_LOCAL(text, 1024);
    for (size_t i = 0; i < dims->count; i++)
        buf_addf(&text, "%s%s=%lld", i ? "," : "", dims->name[i], (long long)dims->number[i]);
    return buf_keep(&text, in->arena);
}

/* Nothing but outputs and workspaces may have been written to. */
static bool is_clean(const struct interpreting *in, const struct one *one)
{
    const unsigned char *bytes = in->region.outputs + one->outputs_at;
    const struct layout *layout = &one->layout;
    size_t at = 0;
    for (size_t i = 0; i <= layout->output_count + layout->workspace_count; i++) {
        const struct placed *placed = i < layout->output_count ? &layout->outputs[i]
                                      : i < layout->output_count + layout->workspace_count
                                          ? &layout->workspaces[i - layout->output_count]
                                          : NULL;
        size_t end = placed != NULL ? placed->offset : layout->outputs_bytes;
        for (; at < end; at++)
            if (bytes[at] != 0xa5)
                return false;
        at = placed != NULL ? placed->offset + placed->bytes : at;
    }
    return true;
}

static void judge(struct interpreting *in, const struct one *one)
{
    const struct problem *problem = in->program->problem;
    in->told->tried++;
    for (size_t i = 0; i < problem->output_count; i++) {
        const struct placed *placed = &one->layout.outputs[i];
        struct mismatch mismatch;
        BUF_LOCAL(text, 400);
        check_output(&problem->outputs[i], placed->extents, placed->elements, &one->bounds[i],
                     one->exact[i], in->region.outputs + one->outputs_at + placed->offset,
                     &mismatch);
        if (mismatch.passed)
            continue;
        mismatch_describe(&problem->outputs[i], placed->extents, &mismatch, &text);
        if (in->told->wrong == NULL)
            in->told->wrong =
                arena_printf(in->arena, "%s, at %s", buf_text(&text), words_of(in, one->dims));
        return;
    }
    if (is_clean(in, one))
        in->told->passed++;
    else if (in->told->wrong == NULL)
        in->told->wrong =
            arena_printf(in->arena, "wrote outside its outputs, at %s", words_of(in, one->dims));
}

static int run(struct interpreting *in, const char *folder, struct err *err)
{
    struct interpreter interpreter;
    const char *argv[TRITON_ARGS_MAX];
    BUF_LOCAL(said, 4096);
    BUF_LOCAL(errors, 16 << 10);
    BUF_LOCAL(words, 4096);
    if (triton_find(&interpreter, err) != 0)
        return -1;
    const char *script = triton_script(in->arena, "libexec/triton_interpret.py", err);
    if (script == NULL)
        return -1;
    size_t count = triton_command(in->arena, &interpreter, "sanitized", folder, NULL, script, argv);
    argv[count++] = arena_printf(in->arena, "%s/candidate.py", folder);
    argv[count++] = arena_printf(in->arena, "%s/calls.json", folder);
    argv[count] = NULL;
    static const char *const env[] = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8",
                                      "OPENBLAS_NUM_THREADS=1", "HOME=/nonexistent", NULL};
    const int fds[] = {in->region.inputs_read_fd, in->region.outputs_fd};
    const struct spawn_spec spec = {
        .argv = argv, .name = "triton", .env = env, .fds = fds, .fd_count = 2};
    struct err how = {0};
    int status = spawn_run(&spec, INTERPRET_MS, 0, &said, &errors, &how);
    if (status == 0)
        return 0;
    size_t done = 0;
    for (const char *at = buf_text(&said); *at != '\0'; at++)
        done += *at == '\n';
    const struct names *dims = in->shapes[done < in->count ? done : 0].dims;
    triton_diagnostics("candidate.py", buf_text(&errors), errors.length, &words);
    if (strstr(buf_text(&words), "NotImplementedError: ") != NULL) {
        in->told->left_out =
            arena_printf(in->arena, "what Triton's interpreter does not know: %.200s",
                         strstr(buf_text(&words), "NotImplementedError: ") + 21);
        in->count = done;
        return 0;
    }
    if (how.code == ERR_TIMEOUT) { /* which says something of this machine, too */
        in->told->left_out = arena_printf(in->arena, "from %s on it took more than %d s",
                                          words_of(in, dims), INTERPRET_MS / 1000);
        in->count = done;
        return 0;
    }
    in->told->wrong = arena_printf(in->arena, "the interpreter ended at %s: %.200s",
                                   words_of(in, dims), how.message);
    in->told->details =
        words.length > 0 ? buf_keep(&words, in->arena) : arena_strdup(in->arena, buf_text(&errors));
    return 0;
}

static int interpret_in(struct interpreting *in, const char *folder, struct err *err)
{
    if (region_open(in->inputs_bytes, in->outputs_bytes, &in->region, err) != 0 ||
        open_reference(in, folder, err) != 0)
        return -1;
    for (size_t i = 0; i < in->count; i++) {
        if (expect(in, &in->shapes[i], err) != 0)
            return -1;
        poison(in, &in->shapes[i]);
    }
    if (write_request(in, folder, err) != 0) {
        if (err->code != ERR_LIMIT)
            return -1;
        in->told->wrong = arena_strdup(in->arena, err->message);
        return 0;
    }
    if (run(in, folder, err) != 0)
        return -1;
    for (size_t i = 0; in->told->details == NULL && i < in->count; i++)
        judge(in, &in->shapes[i]);
    return 0;
}

int triton_interpret(struct arena *arena, const struct program *program, const struct names *facts,
                     struct interpreted *interpreted, struct err *err)
{
    char folder[] = "/tmp/twagent-triton-XXXXXX";
    struct interpreting in = {.arena = arena,
                              .program = program,
                              .facts = facts,
                              .told = interpreted,
                              .seed = random_seed()};
    int core = sched_getcpu();
    *interpreted = (struct interpreted){.left_out = ""};
    in.lane.cores[0] = core > 0 ? core : 0;
    in.lane.core_count = 1;
    if (program->problem->reference_kind == REFERENCE_C) {
        interpreted->left_out = "a reference in C is not compared with yet";
        return 0;
    }
    if (choose(&in, err) != 0 || interpreted->wrong != NULL || in.count == 0)
        return interpreted->wrong != NULL || in.count == 0 ? 0 : -1;
    if (mkdtemp(folder) == NULL)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make %s", folder);
    int status = interpret_in(&in, folder, err);
    struct err ignored;
    reference_close(in.reference);
    if (in.region.inputs != NULL)
        region_close(&in.region);
    (void)(file_remove_tree(folder, &ignored) == 0);
    return status;
}
