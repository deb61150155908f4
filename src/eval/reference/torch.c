/* eval/reference/torch: a PyTorch module in a Python child (libexec/reference_torch.py). Besides
 * what a numpy function's child does, it has two ways to be timed, as it is and compiled, and
 * inputs that are a module's parameters: those hold the module's own initial values in one
 * distribution of four, and other numbers of their scale in the rest. */
#include "eval/problem/torch.h"
#include "base/mem.h"
#include "base/quota.h"
#include "eval/reference/python_private.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { TORCH_TIMEOUT_MS = 300000 }; /* torch.compile takes its time */

static const char script[] = "libexec/reference_torch.py";

/* --- opening --- */

static void put_warm(const struct python *python, struct json *json)
{
    json_put_object(json, "warm");
    json_put_text(json, "baseline", python->compiled.baseline);
    json_put_array(json, "inputs");
    for (size_t i = 0; i < python->problem->input_count; i++) {
        const struct tensor_spec *tensor = &python->problem->inputs[i];
        json_object(json);
        json_put_array(json, "shape");
        for (size_t axis = 0; axis < tensor->rank; axis++)
            json_int(json, python->warms->inputs[i].extents[axis]);
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
    json_put_known(json, "bits", reference_bits(python->problem, PRECISION_SPEC));
    json_object_end(json);
}

static void put_binding(struct python *python, struct json *json)
{
    if (python->warms != NULL)
        put_warm(python, json);
    json_put_text(json, "device", python->device != NULL ? python->device->name : "cpu");
    json_put_bool(json, "or_cpu", python->device != NULL && python->device->or_cpu);
    json_put_text(json, "scratch", python->folder);
    json_put_raw(json, "binding", python->problem->torch->binding);
}

static void add_option(struct python *python, const char *option, const char *path)
{
    enum { MOST = sizeof python->extra / sizeof python->extra[0] };
    if (path == NULL || python->extra_count + 2 > MOST)
        return;
    python->extra[python->extra_count++] = option;
    python->extra[python->extra_count++] = path;
}

/* Device files; what is not there needs no rule. */
static void allow_devices(struct python *python)
{
    add_option(python, "--read", "/sys");
    for (const char *const *node = python->device->nodes; *node != NULL; node++)
        if (access(*node, F_OK) == 0)
            add_option(python, "--write", *node);
}

/* Into memory of ours: a draw must not wait for the child. */
static int read_initial(struct python *python, struct err *err)
{
    const struct problem *problem = python->problem;
    size_t offsets[INPUTS_MAX] = {0}, bytes[INPUTS_MAX] = {0}, end = 0, elements;
    int64_t extents[RANK_MAX];
    struct json json;
    python_begin(python, &json, "initial");
    json_put_array(&json, "outputs");
    for (size_t i = 0; i < problem->input_count; i++) {
        if (!problem->torch->inputs[i].initial)
            continue;
        if (tensor_extents(&problem->inputs[i], &problem->shapes[0], extents, &elements, err) != 0)
            return -1;
        bytes[i] = elements * dtype_bytes(problem->inputs[i].dtype);
        offsets[i] = end;
        end += (bytes[i] + 63) / 64 * 64;
        json_object(&json);
        json_put_text(&json, "name", problem->inputs[i].name);
        json_put_int(&json, "offset", (int64_t)offsets[i]);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_object_end(&json);
    if (end == 0)
        return 0;
    ARENA_LOCAL(arena);
    const struct value *answer;
    int status = python_make_room(python, end, err);
    if (status == 0)
        status = python_ask(python, TORCH_TIMEOUT_MS, arena, &answer, err);
    for (size_t i = 0; status == 0 && i < problem->input_count; i++)
        if (bytes[i] > 0) {
            mem_free(python->initial[i]); /* of a child that died */
            python->initial[i] = (unsigned char *)mem_alloc(bytes[i]);
            memcpy(python->initial[i], python->mapped + offsets[i], bytes[i]);
        }
    return status;
}

/* As large as it will be: the child's map of it is the device's, too, and dear to make anew. Not
 * where that is a part of the machine: such results are computed in slices (sets/memory.c). */
static int make_room_for_all(struct python *python, struct err *err)
{
    enum { PART = 16 };
    const struct problem *problem = python->problem;
    size_t bytes = 0, elements;
    int64_t extents[RANK_MAX];
    for (size_t i = 0; i < problem->output_count; i++) {
        if (tensor_extents(&problem->outputs[i], &problem->shapes[0], extents, &elements, err) != 0)
            return -1;
        bytes += (elements * sizeof(double) + 63) / 64 * 64;
    }
    return bytes > quota_memory() / PART ? 0 : python_make_room(python, bytes, err);
}

static int opened(struct python *python, struct err *err)
{
    const struct torch_device *device = python->device;
    const char *versions = python->reference.versions;
    python->eager.subject.device_clock = python->compiled.subject.device_clock =
        device != NULL && (!device->or_cpu || strstr(versions, "\"torch_device\"") != NULL);
    return make_room_for_all(python, err) != 0 ? -1 : read_initial(python, err);
}

/* --- inputs --- */

static void make_whole(enum dtype dtype, size_t count, void *values)
{
    for (size_t i = 0; i < count; i++)
        dtype_store(dtype, values, i, nearbyint(dtype_load(dtype, values, i)));
}

/* In every matrix of the last two axes. */
static void make_matrix(enum torch_structure structure, enum dtype dtype, size_t rank,
                        const struct placed *placed, void *values)
{
    size_t rows = (size_t)placed->extents[rank - 2], columns = (size_t)placed->extents[rank - 1];
    for (size_t base = 0; base < placed->elements; base += rows * columns)
        for (size_t i = 0; i < rows; i++)
            for (size_t j = 0; j < columns; j++) {
                size_t at = base + i * columns + j;
                if (structure == STRUCTURE_SYMMETRIC && j < i && rows == columns)
                    dtype_store(dtype, values, at,
                                dtype_load(dtype, values, base + j * columns + i));
                else if ((structure == STRUCTURE_UPPER && j < i) ||
                         (structure == STRUCTURE_LOWER && j > i))
                    dtype_store(dtype, values, at, 0.0);
            }
}

static void shape_input(const struct reference *reference, size_t input,
                        enum distribution distribution, const struct placed *placed, void *values)
{
    const struct python *python = (const struct python *)(const void *)reference;
    const struct tensor_spec *tensor = &python->problem->inputs[input];
    const struct torch_input *torch = &python->problem->torch->inputs[input];
    const unsigned char *initial = python->initial[input];
    if (initial != NULL && (distribution == DRAW_NORMAL || distribution == DRAW_GIVEN ||
                            torch->structure == STRUCTURE_GIVEN)) {
        memcpy(values, initial, placed->bytes);
        return;
    }
    if (torch->structure == STRUCTURE_WHOLE && dtype_is_float(tensor->dtype))
        make_whole(tensor->dtype, placed->elements, values);
    else if (torch->structure >= STRUCTURE_UPPER && torch->structure <= STRUCTURE_SYMMETRIC &&
             tensor->rank >= 2)
        make_matrix(torch->structure, tensor->dtype, tensor->rank, placed, values);
}

/* get_inputs makes all of them, whatever the shape asked for: what is very large would take too
 * long. */
static bool is_given(const struct problem *problem)
{
    static const size_t bytes_most = (size_t)256 << 20;
    size_t bytes = 0, elements;
    int64_t extents[RANK_MAX];
    struct err ignored;
    for (size_t i = 0; i < problem->input_count; i++) {
        if (tensor_extents(&problem->inputs[i], &problem->shapes[0], extents, &elements,
                           &ignored) != 0)
            return false;
        bytes += elements * dtype_bytes(problem->inputs[i].dtype);
    }
    return bytes <= bytes_most;
}

static size_t put_places(const struct python *python, const struct layout *layout,
                         size_t offsets[INPUTS_MAX], struct json *json)
{
    const struct problem *problem = python->problem;
    size_t end = 0;
    json_put_array(json, "outputs");
    for (size_t i = 0; i < problem->input_count; i++) {
        if (problem->torch->inputs[i].initial)
            continue;
        offsets[i] = end;
        end += (layout->inputs[i].bytes + 63) / 64 * 64;
        python_put_place(json, problem->inputs[i].name, offsets[i], problem->inputs[i].rank,
                         layout->inputs[i].extents);
    }
    json_array_end(json);
    return end;
}

/* `repeat`: of what has fewer rows than asked for the same ones again. */
static int ask_given(struct python *python, const struct layout *layout, uint64_t seed, bool repeat,
                     size_t offsets[INPUTS_MAX], struct err *err)
{
    struct json json;
    const struct value *answer;
    if (python_ensure(python, err) != 0)
        return -1;
    python_begin(python, &json, "given");
    json_put_int(&json, "seed", (int64_t)(seed >> 2));
    json_put_bool(&json, "repeat", repeat);
    size_t bytes = put_places(python, layout, offsets, &json);
    json_object_end(&json);
    ARENA_LOCAL(arena);
    if (python_make_room(python, bytes, err) != 0)
        return -1;
    return python_ask(python, TORCH_TIMEOUT_MS, arena, &answer, err);
}

static int draw_given(struct reference *reference, const struct layout *layout, uint64_t seed,
                      unsigned char *const *values, struct err *err)
{
    struct python *python = python_of(reference);
    size_t offsets[INPUTS_MAX] = {0};
    if (!is_given(python->problem))
        return err_set(err, ERR_UNSUPPORTED, "its inputs are large");
    int status = ask_given(python, layout, seed, false, offsets, err);
    for (size_t i = 0; status == 0 && i < python->problem->input_count; i++)
        if (!python->problem->torch->inputs[i].initial)
            memcpy(values[i], python->mapped + offsets[i], layout->inputs[i].bytes);
    return status;
}

/* Infinities are where the file has them, and nowhere else. */
static void keep_infinities(enum dtype dtype, size_t count, const void *given, void *values)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(dtype_load(dtype, given, i)))
            dtype_store(dtype, values, i, dtype_load(dtype, given, i));
}

static int draw_own(struct reference *reference, const struct layout *layout, uint64_t seed,
                    unsigned char *const *values, struct err *err)
{
    struct python *python = python_of(reference);
    const struct problem *problem = python->problem;
    size_t offsets[INPUTS_MAX] = {0}, owned = 0;
    for (size_t i = 0; i < problem->input_count; i++)
        owned += problem->torch->inputs[i].structure >= STRUCTURE_OWN;
    if (owned == 0)
        return 0;
    int status = ask_given(python, layout, seed, true, offsets, err);
    for (size_t i = 0; status == 0 && i < problem->input_count; i++) {
        const unsigned char *given = python->mapped + offsets[i];
        if (problem->torch->inputs[i].structure == STRUCTURE_OWN)
            memcpy(values[i], given, layout->inputs[i].bytes);
        else if (problem->torch->inputs[i].structure == STRUCTURE_MASK)
            keep_infinities(problem->inputs[i].dtype, layout->inputs[i].elements, given, values[i]);
    }
    return status;
}

static bool is_apart(const struct python *python)
{
    return python->device != NULL && !python->device->or_cpu;
}

/* On the CPU it would be in the way of whatever comes next there. */
static int draw_ahead(struct reference *reference, const uint64_t *seeds, size_t count,
                      struct err *err)
{
    struct python *python = python_of(reference);
    struct json json;
    const struct value *answer;
    if (!is_apart(python) || !is_given(python->problem))
        return -1;
    if (python_ensure(python, err) != 0)
        return -1;
    python_begin(python, &json, "ahead");
    json_put_array(&json, "seeds");
    for (size_t i = 0; i < count; i++)
        json_int(&json, (int64_t)(seeds[i] >> 2));
    json_array_end(&json);
    json_object_end(&json);
    ARENA_LOCAL(arena);
    return python_ask(python, TORCH_TIMEOUT_MS, arena, &answer, err);
}

/* --- computing --- */

static struct subject *baseline(struct reference *reference, const char *name)
{
    struct python *python = python_of(reference);
    return strcmp(name, "compile") == 0 ? &python->compiled.subject : NULL;
}

static void torch_close(struct reference *reference)
{
    struct python *python = python_of(reference);
    for (size_t i = 0; i < INPUTS_MAX; i++)
        mem_free(python->initial[i]);
    python_close(reference);
}

static int open_new(const struct python *like, const struct layout *warms,
                    struct reference **reference, struct err *err);

/* On a device of its own: on the CPU it would take the cores from whoever is measured there. */
static struct reference *aside(struct reference *reference, const char *name,
                               const struct layout *layout, struct err *err)
{
    const struct python *first = python_of(reference);
    struct reference *beside = NULL;
    if (!is_apart(first) || strcmp(name, first->compiled.baseline) != 0)
        return NULL;
    interpreter_fill(&first->interpreter); /* in vain for this one: for those that come */
    return open_new(first, layout, &beside, err) == 0 ? beside : NULL;
}

static int open_new(const struct python *like, const struct layout *warms,
                    struct reference **reference, struct err *err)
{
    static const struct reference_ops ops = {.compute = python_compute,
                                             .aside = aside,
                                             .close = torch_close,
                                             .baseline = baseline,
                                             .compute_baseline = python_compute_baseline,
                                             .shape_input = shape_input,
                                             .draw_given = draw_given,
                                             .draw_own = draw_own,
                                             .draw_ahead = draw_ahead,
                                             .pending = python_pending,
                                             .ready = python_ready};
    const struct torch_device *device = like->device;
    struct python *python =
        python_new(like->problem, like->lane, like->region, like->arena, &ops, script);
    python->eager.subject.name = "eager";
    python->device = device;
    python->folder = like->folder;
    python->warms = warms;
    python->open_more = put_binding;
    python->opened = opened;
    python->start_timeout_ms = TORCH_TIMEOUT_MS;
    python->interpreter = like->problem->torch->python;
    add_option(python, "--write", like->folder);
    add_option(python, "--read", "/dev/urandom"); /* PyTorch's generators open it */
    if (device != NULL) {
        allow_devices(python);
        python->env = device->env(like->arena, like->lane->gpu_index);
    }
    if (python_usable(python, script, err) == 0 && python_start(python, err) == 0) {
        *reference = &python->reference;
        return 0;
    }
    torch_close(&python->reference);
    return -1;
}

int reference_open_torch(const struct problem *problem, const struct lane_facts *lane,
                         const struct region *region, const struct torch_device *device,
                         const char *folder, struct arena *arena, struct reference **reference,
                         struct err *err)
{
    const struct python like = {.problem = problem,
                                .lane = lane,
                                .region = region,
                                .arena = arena,
                                .device = device,
                                .folder = folder};
    return open_new(&like, NULL, reference, err);
}
