/* A PyTorch module as a problem, without PyTorch: fake_torch.py takes the interpreter's part. What
 * is read from a description, what is remembered of it, what is drawn, and the wire. */
#include "eval/cuda/cuda.h"
#include "eval/problem/torch.h"
#include "eval/reference/reference.h"
#include "eval/webgpu/webgpu.h"

#include "eval/candidate/shipped_start.h"
#include "fake_backend.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

enum { X, LABELS, SIGNS, U, S, W, T, INPUTS };

struct fixture {
    struct folder folder;
    char file[128];
    struct problem *problem;
    struct arena *arena;
    struct lane_facts lane;
    struct region region;
    struct layout layout;
    struct call call;
    struct reference *reference;
    struct err err;
};

/* `first` is the file's first line, by which the fake knows what to do. */
static int load(struct fixture *fixture, const char *first)
{
    *fixture = (struct fixture){.arena = arena_new()};
    folder_make(&fixture->folder);
    setenv("XDG_CACHE_HOME", fixture->folder.path, 1);
    folder_put(&fixture->folder, "7_fake.py", first);
    snprintf(fixture->file, sizeof fixture->file, "%s/7_fake.py", fixture->folder.path);
    return problem_load(fixture->file, &fixture->problem, &fixture->err);
}

static int open_reference_on(struct fixture *fixture, const struct torch_device *device)
{
    fixture->lane.core_count = 1;
    if (layout_make(fixture->problem, &fixture->problem->shapes[0], NULL, NULL, 0, &fixture->layout,
                    &fixture->err) != 0 ||
        region_open(fixture->layout.inputs_bytes, fixture->layout.outputs_bytes, &fixture->region,
                    &fixture->err) != 0)
        return -1;
    call_make(&fixture->layout, 0, 5000, &fixture->call);
    if (reference_open_torch(fixture->problem, &fixture->lane, &fixture->region, device,
                             fixture->folder.path, fixture->arena, &fixture->reference,
                             &fixture->err) != 0)
        return -1;
    return reference_ready(fixture->reference, &fixture->err);
}

static int open_reference(struct fixture *fixture)
{
    return open_reference_on(fixture, NULL);
}

static void end(struct fixture *fixture)
{
    reference_close(fixture->reference);
    if (fixture->region.inputs != NULL)
        region_close(&fixture->region);
    problem_free(fixture->problem);
    arena_free(fixture->arena);
    folder_remove(&fixture->folder);
}

static void test_description(void **state)
{
    struct fixture fixture;
    (void)state;
    assert_int_equal(load(&fixture, "# fine\n"), 0);
    const struct problem *problem = fixture.problem;
    assert_string_equal(problem->name, "7_fake");
    assert_string_equal(problem->file, fixture.file);
    assert_string_equal(problem->reference_file, fixture.file);
    assert_string_equal(problem->folder, fixture.folder.path);
    assert_int_equal(problem->reference_kind, REFERENCE_TORCH);
    assert_string_equal(problem->baseline, "eager");
    assert_int_equal(problem->baseline_count, 1);
    assert_string_equal(problem->baselines[0].name, "compile");
    assert_null(problem->baselines[0].file);
    assert_int_equal(problem->input_count, INPUTS);
    assert_int_equal(problem->shape_count, 3);
    assert_string_equal(problem->torch->binding, "{\"marker\":17}");
    assert_string_equal(problem->torch->notes, "t is a table; more");
    static const enum torch_structure structures[INPUTS] = {
        [LABELS] = STRUCTURE_WHOLE, [SIGNS] = STRUCTURE_WHOLE, [U] = STRUCTURE_UPPER,
        [S] = STRUCTURE_SYMMETRIC,  [T] = STRUCTURE_GIVEN,
    };
    for (size_t i = 0; i < INPUTS; i++) {
        assert_int_equal(problem->torch->inputs[i].structure, structures[i]);
        assert_int_equal(problem->torch->inputs[i].initial, i == W || i == T);
    }
    char starts[128];
    const char *found[2];
    struct err err;
    snprintf(starts, sizeof starts, "%s/7_fake.starts/cpu", fixture.folder.path);
    assert_int_equal(file_make_dirs(starts, &err), 0);
    folder_put(&fixture.folder, "7_fake.starts/cpu/one.c", "");
    assert_int_equal(problem_starts(problem, "cpu", found, 2), 1);
    struct problem *sized;
    char at[160];
    snprintf(at, sizeof at, "%s@B=16", fixture.file);
    assert_int_equal(problem_load(at, &sized, &err), 0);
    assert_string_equal(problem_starts_folder(sized, "cpu"), starts);
    problem_free(sized);
    end(&fixture);
}

static size_t times_asked(const struct fixture *fixture)
{
    char path[128];
    struct buf text;
    snprintf(path, sizeof path, "%s/asked", fixture->folder.path);
    buf_init(&text, 100);
    assert_int_equal(file_read(path, &text, NULL), 0);
    size_t times = text.length;
    buf_free(&text);
    return times;
}

/* A description is asked for once, until the file is another; a refusal is not remembered. */
static void test_memory(void **state)
{
    struct fixture fixture;
    struct problem *again;
    (void)state;
    assert_int_equal(load(&fixture, "# fine\n"), 0);
    assert_int_equal(problem_load(fixture.file, &again, &fixture.err), 0);
    assert_int_equal(times_asked(&fixture), 1);
    assert_string_equal(again->torch->python.path, fixture.problem->torch->python.path);
    problem_free(again);
    folder_put(&fixture.folder, "7_fake.py", "# raises\n");
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(problem_load(fixture.file, &again, &fixture.err), -1);
    assert_int_equal(times_asked(&fixture), 3);
    end(&fixture);
}

static void test_what_is_said(void **state)
{
    static const struct {
        const char *first, *says;
        enum err_code code;
    } cases[] = {
        {"# raises\n", "7_fake.py: NameError: name 'y' is not defined (7_fake.py:3)", ERR_USAGE},
        {"# wrong spec\n", "expected a dtype for \"x\"", ERR_USAGE},
        {"# ends\n", "7_fake.py: the reference exited 3", ERR_CHILD},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture fixture;
        assert_int_equal(load(&fixture, cases[i].first), -1);
        if (strstr(fixture.err.message, cases[i].says) == NULL)
            fail_msg("%s", fixture.err.message);
        assert_int_equal(fixture.err.code, cases[i].code);
        end(&fixture);
    }
}

static void draw(const struct fixture *fixture, size_t input, enum distribution distribution,
                 float *values)
{
    const struct tensor_spec *tensor = &fixture->problem->inputs[input];
    const struct placed *placed = &fixture->layout.inputs[input];
    draw_fill(distribution, 5, tensor->dtype, placed->elements, 4, tensor->low, tensor->high,
              values);
    reference_shape_input(fixture->reference, input, distribution, placed, values);
}

static void test_draws(void **state)
{
    struct fixture fixture;
    float v[256];
    (void)state;
    assert_int_equal(load(&fixture, "# fine\n"), 0);
    if (open_reference(&fixture) != 0)
        fail_msg("%s", fixture.err.message);
    draw(&fixture, SIGNS, DRAW_NORMAL, v);
    for (size_t i = 0; i < 64; i++)
        assert_true(v[i] == rintf(v[i]) && fabsf(v[i]) <= 1.0f);
    draw(&fixture, U, DRAW_UNIFORM, v);
    assert_true(v[3] == 0.0f && v[6] == 0.0f && v[7] == 0.0f && v[1] != 0.0f && v[8] != 0.0f);
    draw(&fixture, S, DRAW_UNIFORM, v);
    for (size_t m = 0; m < 18; m += 9)
        assert_true(v[m + 1] == v[m + 3] && v[m + 2] == v[m + 6] && v[m + 5] == v[m + 7] &&
                    v[m + 1] != v[m + 2]);
    draw(&fixture, W, DRAW_NORMAL, v); /* the module's own */
    assert_true(v[0] == 0.25f && v[1] == -0.25f && v[2] == 0.5f && v[3] == -0.5f);
    draw(&fixture, W, DRAW_UNIFORM, v); /* others of the same scale */
    assert_true(v[0] != 0.25f && fabsf(v[0]) <= 0.5f && v[0] != v[1]);
    draw(&fixture, T, DRAW_UNIFORM, v); /* never others */
    assert_true(v[0] == 1.0f && v[3] == 4.0f);
    draw(&fixture, W, DRAW_GIVEN, v);
    assert_true(v[0] == 0.25f && v[3] == -0.5f);
    end(&fixture);
}

/* What get_inputs gives comes from the file; a parameter's values do not. */
static void test_given_inputs(void **state)
{
    struct fixture fixture;
    unsigned char *values[INPUTS_MAX];
    (void)state;
    assert_int_equal(load(&fixture, "# fine\n"), 0);
    assert_int_equal(open_reference(&fixture), 0);
    for (size_t i = 0; i < fixture.problem->input_count; i++)
        values[i] = (unsigned char *)mem_alloc(fixture.layout.inputs[i].bytes);
    draw(&fixture, W, DRAW_UNIFORM, (float *)(void *)values[W]);
    float kept = ((float *)(void *)values[W])[2];
    reference_draw_given(fixture.reference, &fixture.layout, 7, values);
    for (size_t i = 0; i < 256; i++)
        assert_true(((float *)(void *)values[X])[i] == 0.75f);
    assert_int_equal(((int32_t *)(void *)values[X + 1])[63], 1);
    assert_true(((float *)(void *)values[W])[2] == kept);
    for (size_t i = 0; i < fixture.problem->input_count; i++)
        mem_free(values[i]);
    end(&fixture);
}

static void test_computing(void **state)
{
    struct fixture fixture;
    float x[256], w[4], got[256];
    double exact[256];
    void *spec_out[] = {got}, *exact_out[] = {exact};
    uint64_t elapsed_ns = 0;
    (void)state;
    assert_int_equal(load(&fixture, "# fine\n"), 0);
    assert_int_equal(open_reference(&fixture), 0);
    struct reference *reference = fixture.reference;
    draw(&fixture, X, DRAW_UNIFORM, x);
    draw(&fixture, W, DRAW_UNIFORM, w);
    memcpy(fixture.region.inputs + fixture.call.offsets[X], x, sizeof x);
    memcpy(fixture.region.inputs + fixture.call.offsets[W], w, sizeof w);
    assert_int_equal(reference_compute(reference, &fixture.layout, &fixture.call, PRECISION_EXACT,
                                       exact_out, &fixture.err),
                     0);
    assert_int_equal(reference_compute_baseline(reference, "compile", &fixture.layout,
                                                &fixture.call, spec_out, &fixture.err),
                     0);
    for (size_t i = 0; i < 256; i++) {
        assert_true(fabs(exact[i] - (double)x[i] * (double)w[i % 4]) < 1e-12);
        assert_true(fabs((double)got[i] - exact[i] - 1.0) < 1e-6); /* the fake's mark of it */
    }
    assert_null(reference_baseline(reference, "other"));
    struct subject *compiled = reference_baseline(reference, "compile");
    assert_int_equal(subject_call(compiled, &fixture.call, &elapsed_ns, &fixture.err), 0);
    compiled->ops->pause(compiled);
    struct subject *eager = reference_subject(reference);
    assert_int_equal(eager->pid, compiled->pid);
    assert_int_equal(subject_call(eager, &fixture.call, &elapsed_ns, &fixture.err), 0);
    assert_true(elapsed_ns > 0);
    assert_non_null(strstr(reference_versions(reference), "\"torch\":\"0.0\""));
    end(&fixture);
}

/* A file that computes what a shipped problem does begins with its starts, in its own names. */
static void test_shipped_starts(void **state)
{
    static const struct {
        const char *inputs, *output, *shipped, *call;
    } rows[] = {
        {"x: {shape: [B, 8, 512], dtype: float32}", "[B, 8, 512]",
         "{\"name\":\"softmax\",\"tensors\":{\"X\":\"x\",\"Y\":\"out\"},"
         "\"dims\":{\"M\":\"B*8\",\"N\":\"512\"}}",
         "shipped_kernel(x, out, B*8, 512);"},
        {"b: {shape: [96, 48], dtype: float32}, a: {shape: [B, 96], dtype: float32}", "[B, 48]",
         "{\"name\":\"matmul\",\"tensors\":{\"A\":\"a\",\"B\":\"b\",\"C\":\"out\"},"
         "\"dims\":{\"M\":\"B\",\"N\":\"48\",\"K\":\"96\"}}",
         "shipped_kernel(a, b, out, "},
        {"x: {shape: [B, 512], dtype: float32}, n_weight: {shape: [512], dtype: float32}, n_bias: "
         "{shape: [512], dtype: float32}",
         "[B, 512]",
         "{\"name\":\"layernorm\",\"tensors\":{\"X\":\"x\",\"gamma\":\"n_weight\","
         "\"beta\":\"n_bias\",\"Y\":\"out\"},\"dims\":{\"M\":\"B\",\"N\":\"512\"}}",
         "shipped_kernel(x, n_weight, n_bias, out, B, 512);"},
        /* Tensor maps of three axes, of tensors that have four. */
        {"q: {shape: [2, 4, 512, 64], dtype: float16}, k: {shape: [2, 4, 512, 64], dtype: "
         "float16}, "
         "v: {shape: [2, 4, 512, 64], dtype: float16}",
         "[2, 4, 512, 64]",
         "{\"name\":\"attention_fp16\",\"tensors\":{\"Q\":\"q\",\"K\":\"k\",\"V\":\"v\","
         "\"O\":\"out\"},\"dims\":{\"H\":\"8\",\"L\":\"512\",\"D\":\"64\"}}",
         NULL},
    };
    static const char *const backends[] = {"cpu", "cuda"};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture fixture;
        struct buf answer;
        assert_int_equal(load(&fixture, "# fine\n"), 0);
        struct problem *problem = ARENA_NEW(fixture.arena, struct problem);
        problem->arena = fixture.arena;
        buf_init(&answer, 1 << 14);
        buf_addf(
            &answer,
            "{\"spec\":\"name: file\\ndims: {B: 64}\\ninputs: {%s}\\noutputs: {out: {shape: %s, "
            "dtype: float32}}\\nreference: 7_fake.py\\ncheck: [{B: 2}]\\n\",\"shipped\":%s}",
            rows[i].inputs, rows[i].output, rows[i].shipped);
        if (problem_take_torch(problem, fixture.file, buf_text(&answer), answer.length,
                               &fixture.err) != 0)
            fail_msg("%s", fixture.err.message);
        buf_free(&answer);
        for (size_t b = rows[i].call == NULL; b < 2; b++) {
            const char *paths[32];
            size_t count = problem_starts(problem, backends[b], paths, 32);
            size_t fine = 0;
            for (size_t k = 0; k < count; k++) {
                struct buf text;
                struct candidate *start = NULL;
                buf_init(&text, 1 << 20);
                if (shipped_read_start(problem, paths[k], &text, &fixture.err) != 0)
                    fail_msg("%s: %s", paths[k], fixture.err.message);
                fine += candidate_parse(problem, paths[k], buf_text(&text), text.length, &start,
                                        &fixture.err) == 0;
                assert_true(b == 1 || strstr(buf_text(&text), rows[i].call) != NULL);
                candidate_free(start);
                buf_free(&text);
            }
            /* A launch is given dims, and no products of them: one start of softmax wants one. */
            assert_true(fine > 1 && (fine == count || (b == 1 && i == 0)));
        }
        end(&fixture);
    }
}

/* A lane's definition sees the lane's GPU alone: of those that the user shows, where he does. */
static void test_its_gpu(void **state)
{
    static const struct {
        const char *shown, *seen;
        int index;
    } rows[] = {{NULL, "\"visible\":\"0\"", 0},
                {NULL, "\"visible\":\"3\"", 3},
                {"5,7", "\"visible\":\"7\"", 1},
                {"GPU-ab,GPU-cd,2", "\"visible\":\"GPU-ab\"", 0}};
    struct fixture fixture;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(load(&fixture, "# fine\n"), 0);
        unsetenv("CUDA_VISIBLE_DEVICES");
        if (rows[i].shown != NULL)
            setenv("CUDA_VISIBLE_DEVICES", rows[i].shown, 1);
        fixture.lane.gpu_index = rows[i].index;
        if (open_reference_on(&fixture, backend_cuda.torch) != 0)
            fail_msg("%s", fixture.err.message);
        assert_non_null(strstr(reference_versions(fixture.reference), rows[i].seen));
        assert_true(reference_subject(fixture.reference)->device_clock);
        end(&fixture);
    }
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* On a GPU of its own what takes long to compile gets ready in a process beside the definition's,
 * which computes meanwhile; on the CPU it would take that one's cores. */
static void test_compiled_beside(void **state)
{
    struct fixture fixture;
    float x[256], w[4], got[256], beside_got[256];
    void *out[] = {got}, *beside_out[] = {beside_got};
    (void)state;
    assert_int_equal(load(&fixture, "# fine\n"), 0);
    assert_int_equal(open_reference(&fixture), 0);
    assert_null(reference_aside(fixture.reference, "compile", &fixture.layout));
    end(&fixture);
    assert_int_equal(load(&fixture, "# fine\n"), 0);
    folder_put(&fixture.folder, "slow", "");
    if (open_reference_on(&fixture, backend_cuda.torch) != 0)
        fail_msg("%s", fixture.err.message);
    draw(&fixture, X, DRAW_UNIFORM, x);
    draw(&fixture, W, DRAW_UNIFORM, w);
    memcpy(fixture.region.inputs + fixture.call.offsets[X], x, sizeof x);
    memcpy(fixture.region.inputs + fixture.call.offsets[W], w, sizeof w);
    assert_null(reference_aside(fixture.reference, "other", &fixture.layout));
    struct reference *beside = reference_aside(fixture.reference, "compile", &fixture.layout);
    assert_non_null(beside);
    assert_int_equal(reference_compute(fixture.reference, &fixture.layout, &fixture.call,
                                       PRECISION_SPEC, out, &fixture.err),
                     0);
    assert_true(reference_pending(beside)); /* until its file says so */
    char slow[300];
    snprintf(slow, sizeof slow, "%s/slow", fixture.folder.path);
    assert_int_equal(unlink(slow), 0);
    assert_int_equal(reference_compute_baseline(beside, "compile", &fixture.layout, &fixture.call,
                                                beside_out, &fixture.err),
                     0);
    assert_false(reference_pending(beside));
    assert_true(fabs((double)beside_got[0] - (double)got[0] - 2.0) < 1e-6); /* the fake's mark */
    assert_int_not_equal(reference_baseline(beside, "compile")->pid,
                         reference_subject(fixture.reference)->pid);
    reference_close(beside);
    end(&fixture);
}

/* An adapter's definition is computed where PyTorch has the GPU, too; else on the CPU, by its
 * clock. */
static void test_its_adapter(void **state)
{
    const struct torch_device *device = backend_webgpu.torch;
    struct fixture fixture;
    (void)state;
    assert_int_equal(load(&fixture, "# fine\n"), 0);
    assert_null(lane_torch(&fixture.lane, device));
    assert_ptr_equal(lane_torch(&fixture.lane, backend_cuda.torch), backend_cuda.torch);
    assert_int_equal(names_set(&fixture.lane.facts, "nvidia", 0, &fixture.err), 0);
    assert_null(lane_torch(&fixture.lane, device));
    fixture.lane.facts.number[0] = 1;
    assert_ptr_equal(lane_torch(&fixture.lane, device), device);
    if (open_reference_on(&fixture, device) != 0)
        fail_msg("%s", fixture.err.message);
    assert_false(reference_subject(fixture.reference)->device_clock);
    end(&fixture);
}

int main(int argc, char **argv)
{
    int code;
    if (fake_dispatch(argc, argv, &code))
        return code;
    setenv("TWAGENT_PYTHON", TEST_SOURCE_DIR "/tests/unit/eval/fake_torch.py", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_description),  cmocka_unit_test(test_memory),
        cmocka_unit_test(test_what_is_said), cmocka_unit_test(test_draws),
        cmocka_unit_test(test_computing),    cmocka_unit_test(test_its_gpu),
        cmocka_unit_test(test_its_adapter),  cmocka_unit_test(test_shipped_starts),
        cmocka_unit_test(test_given_inputs), cmocka_unit_test(test_compiled_beside),
    };
    return cmocka_run_group_tests_name("problem_torch", tests, NULL, NULL);
}
