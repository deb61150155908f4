/* Specs as they should be read, and each way to write one wrong with the line that it gets. */
#include "eval/problem/problem.h"

#include "folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct folder folder;

static const char conv_spec[] =
    "name: conv\n"
    "family: convolution\n"
    "dims: {H: 32, W: 20, R: 3, PAD: 1, STRIDE: 2,\n"
    "       OH: \"(H + 2*PAD - R) / STRIDE + 1\",\n"
    "       OW: (W + 2*PAD - R) / STRIDE + 1}\n"
    "inputs:\n"
    "  x: {shape: [H, W], dtype: float32}\n"
    "  w: {shape: [R, R], dtype: float32, range: [-1, 1.5]}\n"
    "outputs:\n"
    "  y: {shape: [OH, OW], dtype: float32}\n"
    "reference: ref_impl.py\n"
    "baselines: {naive: naive.c,\n"
    "  fast: {file: naive.c, libraries: openblas, env: {OMP_A: 1, MKL_B: x}}}\n"
    "baseline: naive\n"
    "flops: 2*OH*OW*R*R\n"
    "reduction: R*R\n"
    "accuracy: normwise\n"
    "precision: tf32\n"
    "where: PAD < R && H + 2*PAD >= R\n"
    "check:\n"
    "  - {H: 7, W: 9}\n"
    "  - {H: 5, W: 5, PAD: 0, STRIDE: 1}\n"
    "hidden: {R: [1, 5], PAD: [0, 2], STRIDE: [1, 3]}\n";

static int set_up(void **state)
{
    (void)state;
    folder_make(&folder);
    folder_put(&folder, "ref_impl.py", "def reference(x, w): return x\n");
    folder_put(&folder, "ref.c", "void kernel(void) {}\n");
    folder_put(&folder, "naive.c", "void kernel(void) {}\n");
    char pipe[4096];
    snprintf(pipe, sizeof pipe, "%s/pipe.c", folder.path);
    return mkfifo(pipe, 0600);
}

static int tear_down(void **state)
{
    (void)state;
    folder_remove(&folder);
    return 0;
}

static struct problem *load(const char *spec)
{
    struct problem *problem = NULL;
    struct err err;
    folder_put(&folder, "spec.yaml", spec);
    if (problem_load(folder.path, &problem, &err) != 0)
        fail_msg("%s", err.message);
    return problem;
}

static int64_t number(const struct names *names, const char *name)
{
    int64_t found = -1;
    assert_true(expr_lookup_names((void *)(uintptr_t)names, name, &found));
    return found;
}

static void test_long_form(void **state)
{
    (void)state;
    struct problem *p = load(conv_spec);
    assert_string_equal(p->name, "conv");
    assert_string_equal(p->family, "convolution");
    assert_int_equal(p->dim_count, 7);
    assert_false(p->dims[4].derived);
    assert_true(p->dims[5].derived && p->dims[6].derived);
    assert_int_equal(p->input_count, 2);
    assert_true(p->inputs[0].low > p->inputs[0].high);
    assert_true(p->inputs[1].low == -1.0 && p->inputs[1].high == 1.5);
    assert_int_equal(p->outputs[0].rank, 2);
    assert_string_equal(p->outputs[0].shape_text[1], "OW");
    assert_int_equal(p->reference_kind, REFERENCE_PYTHON);
    assert_string_equal(p->reference_function, "reference");
    assert_int_equal(p->baseline_count, 2);
    assert_string_equal(p->baselines[1].libraries, "openblas");
    assert_string_equal(p->baselines[1].env[0], "OMP_A=1");
    assert_string_equal(p->baselines[1].env[1], "MKL_B=x");
    assert_null(p->baselines[1].env[2]);
    assert_string_equal(p->baseline, "naive");
    assert_true(p->normwise && !p->tolerance_fixed);
    assert_string_equal(p->precision, "tf32");
    assert_int_equal(p->shape_count, 3);
    assert_int_equal(number(&p->shapes[0], "OH"), 16);
    assert_int_equal(number(&p->shapes[1], "OW"), 5);
    assert_int_equal(number(&p->shapes[2], "OH"), 3);
    problem_free(p);
}

static void test_numbers(void **state)
{
    struct problem *p = load(conv_spec);
    struct names given = {0}, dims;
    struct err err;
    double flops, bytes;
    int64_t extents[RANK_MAX];
    size_t elements;
    (void)state;
    assert_int_equal(names_set(&given, "H", 3, &err), 0);
    assert_int_equal(problem_dims(p, &given, &dims, &err), 0);
    assert_int_equal(number(&dims, "OH"), 2);
    assert_int_equal(tensor_extents(&p->outputs[0], &dims, extents, &elements, &err), 0);
    assert_int_equal(elements, 2 * 10);
    assert_int_equal(problem_work(p, &dims, &flops, &bytes, &err), 0);
    assert_true(flops == 2.0 * 2 * 10 * 9 && bytes == 4.0 * (3 * 20 + 9 + 20));
    assert_int_equal(problem_reduction(p, &dims), 9);
    assert_int_equal(problem_dims(p, &dims, &given, &err), 0); /* all of them again */
    assert_int_equal(names_set(&dims, "OH", 99, &err), 0);
    assert_int_equal(problem_dims(p, &dims, &given, &err), -1);
    given = (struct names){0};
    assert_int_equal(names_set(&given, "PAD", 3, &err), 0);
    assert_int_equal(problem_dims(p, &given, &dims, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    given = (struct names){0};
    assert_int_equal(names_set(&given, "Q", 3, &err), 0);
    assert_int_equal(problem_dims(p, &given, &dims, &err), -1);
    problem_free(p);
}

/* The same at the main shape, at each that is checked, and at each that is drawn. */
static void test_fixed_dims(void **state)
{
    static const char form[] =
        "name: p\ndims: {M: 8, D: 64, N: 7}\n"
        "inputs: {x: {shape: [M, D, N], dtype: float32}}\n"
        "outputs: {y: {shape: [M, D, N], dtype: float32}}\nreference: ref.c\n"
        "check:\n  - {M: 3, D: %d, N: 7}\nhidden: {M: [8, 8], D: [64, %d]}\n";
    static const struct {
        int check, high;
        size_t count;
    } rows[] = {{64, 64, 1}, {32, 64, 0}, {64, 65, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char spec[512];
        struct names fixed;
        snprintf(spec, sizeof spec, form, rows[i].check, rows[i].high);
        struct problem *p = load(spec);
        problem_fixed(p, &fixed);
        assert_int_equal(fixed.count, rows[i].count);
        if (fixed.count > 0)
            assert_int_equal(number(&fixed, "D"), 64);
        problem_free(p);
    }
}

static void test_hidden_shapes(void **state)
{
    struct problem *p = load(conv_spec);
    struct err err;
    int paddings[3] = {0}, odd = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct names dims, again;
        assert_int_equal(problem_draw_dims(p, seed, &dims, &err), 0);
        assert_int_equal(problem_draw_dims(p, seed, &again, &err), 0);
        assert_memory_equal(dims.number, again.number, dims.count * sizeof dims.number[0]);
        assert_int_equal(problem_dims(p, &dims, &again, &err), 0);
        int64_t height = number(&dims, "H");
        assert_true(height >= 1 && height <= 32 && number(&dims, "R") <= 5);
        paddings[number(&dims, "PAD")]++;
        odd += height % 2 != 0;
    }
    assert_true(paddings[0] > 0 && paddings[1] > 0 && paddings[2] > 0);
    assert_true(odd > 150);
    problem_free(p);
}

static void test_short_form(void **state)
{
    static const char spec[] = "name: matmul\nshape_a: [512, 256]\nshape_b: [256, 128]\n"
                               "dtype: float64\n";
    struct err err;
    struct names dims;
    (void)state;
    struct problem *p = load(spec);
    assert_int_equal(p->dim_count, 3);
    assert_int_equal(number(&p->shapes[0], "M"), 512);
    assert_int_equal(number(&p->shapes[0], "N"), 128);
    assert_int_equal(number(&p->shapes[0], "K"), 256);
    assert_string_equal(p->outputs[0].name, "C");
    assert_int_equal(p->outputs[0].dtype, DTYPE_FLOAT64);
    assert_null(p->reference_function);
    assert_non_null(p->flops);
    assert_int_equal(problem_draw_dims(p, 5, &dims, &err), 0);
    problem_free(p);
    p = load("name: add\nshape_a: [4, 8]\nshape_b: [4, 8]\n"
             "outputs: {C: {shape: [4, 8], dtype: float32}}\n");
    assert_int_equal(p->input_count, 2);
    assert_int_equal(p->dim_count, 0);
    assert_int_equal(problem_draw_dims(p, 5, &dims, &err), 0);
    problem_free(p);
}

/* Precision is the second output's, and so is the length of a sum: 64 terms, not 64 * 9. */
/* A group's sum has all of its numbers, whatever a row has; no sum has more than the input. */
static void test_longest_sum(void **state)
{
    (void)state;
    struct problem *p = load("name: p\ndims: {N: 4, C: 8, L: 100}\n"
                             "inputs: {X: {shape: [N, C, L], dtype: float32}}\n"
                             "outputs: {Y: {shape: [N, C, L], dtype: float32}}\n"
                             "reference: ref_impl.py\nflops: 8*N*C*L\nreduction: C*L\n");
    assert_int_equal(problem_reduction(p, &p->shapes[0]), 800);
    problem_free(p);
    p = load("name: p\ndims: {N: 4, C: 8, L: 100}\n"
             "inputs: {X: {shape: [N, C, L], dtype: float32}}\n"
             "outputs: {Y: {shape: [N, C, L], dtype: float32}}\n"
             "reference: ref_impl.py\nflops: 8*N*C*L\nreduction: 1000*C*L\n");
    assert_int_equal(problem_reduction(p, &p->shapes[0]), 3200);
    problem_free(p);
}

static void test_integers_first(void **state)
{
    (void)state;
    struct problem *p =
        load("name: p\ndims: {M: 4, N: 9, K: 64}\n"
             "inputs: {A: {shape: [M, K], dtype: float32}, B: {shape: [K, N], dtype: float32}}\n"
             "outputs: {I: {shape: [M], dtype: int32}, C: {shape: [M, N], dtype: float32}}\n"
             "reference: ref_impl.py\nflops: 2*M*N*K\n");
    assert_string_equal(p->precision, "float32");
    assert_int_equal(problem_reduction(p, &p->shapes[0]), 64);
    problem_free(p);
}

static void test_other_references(void **state)
{
    static const char form[] = "name: p\ndims: {N: 8}\ninputs: {x: {shape: [N], dtype: int32}}\n"
                               "outputs: {y: {shape: [], dtype: int32}}\nreference: %s\n";
    char spec[512];
    (void)state;
    snprintf(spec, sizeof spec, form, "ref_impl.py:other");
    struct problem *p = load(spec);
    assert_string_equal(p->reference_function, "other");
    assert_int_equal(p->outputs[0].rank, 0);
    assert_string_equal(p->precision, "int32");
    assert_false(p->strict);
    problem_free(p);
    snprintf(spec, sizeof spec, form, "ref.c\nprecision: strict");
    p = load(spec);
    assert_true(p->strict);
    assert_string_equal(p->precision, "int32");
    problem_free(p);
    snprintf(spec, sizeof spec, form, "ref.c");
    p = load(spec);
    assert_int_equal(p->reference_kind, REFERENCE_C);
    assert_string_equal(p->reference_function, "kernel");
    problem_free(p);
}

static void many_inputs(struct buf *spec, int count)
{
    buf_reset(spec);
    buf_add_text(spec,
                 "name: net\nreference: ref_impl.py\noutputs: {y: {shape: [4], dtype: float32}}\n"
                 "inputs:\n");
    for (int i = 0; i < count; i++)
        buf_addf(spec, "  w%d: {shape: [4], dtype: float32}\n", i);
}

/* A network's parameters are inputs. */
static void test_many_inputs(void **state)
{
    struct buf spec;
    struct problem *problem;
    struct err err = {0};
    (void)state;
    buf_init(&spec, 1 << 17);
    many_inputs(&spec, INPUTS_MAX);
    problem = load(buf_text(&spec));
    assert_int_equal(problem->input_count, 1024);
    problem_free(problem);
    many_inputs(&spec, INPUTS_MAX + 1);
    folder_put(&folder, "spec.yaml", buf_text(&spec));
    assert_int_equal(problem_load(folder.path, &problem, &err), -1);
    assert_non_null(strstr(err.message, "1 to 1024 of them"));
    buf_free(&spec);
}

static void test_starts(void **state)
{
    const char *paths[4];
    char path[256];
    struct err err;
    (void)state;
    struct problem *p = load(conv_spec);
    assert_int_equal(problem_starts(p, "cpu", paths, 4), 0);
    snprintf(path, sizeof path, "%s/starts/cpu", folder.path);
    assert_int_equal(file_make_dirs(path, &err), 0);
    folder_put(&folder, "starts/cpu/b.c", "");
    folder_put(&folder, "starts/cpu/a.cc", "");
    folder_put(&folder, "starts/cpu/notes.txt", "");
    assert_int_equal(problem_starts(p, "cpu", paths, 4), 2);
    assert_non_null(strstr(paths[0], "/starts/cpu/a.cc"));
    assert_int_equal(problem_starts(p, "cpu", paths, 1), 1);
    problem_free(p);
}

struct wrong {
    const char *spec, *message; /* message: what must stand in it */
};

#define HEAD  "name: p\ndims: {N: 8}\n"
#define X     "inputs: {x: {shape: [N], dtype: float32}}\n"
#define Y     "outputs: {y: {shape: [N], dtype: float32}}\n"
#define WHOLE HEAD X Y "reference: ref_impl.py\n"

static const struct wrong wrongs[] = {
    {"", "spec.yaml:1: expected a map"},
    {"[1]", "spec.yaml:1: expected a map"},
    {"name: p\ndims: {N: 8\n", "spec.yaml:"},
    {HEAD "imputs: {}\n", "spec.yaml:3: expected the key \"inputs\""},
    {"dims: {N: 8}\n" X Y, "expected the key \"name\""},
    {"name: a/b\n" X Y, "spec.yaml:1: expected a name"},
    {"name: p\ndims: [1]\n" X Y, "spec.yaml:2: expected dims"},
    {"name: p\ndims: {2N: 8}\n" X Y, "spec.yaml:2: expected a dim's name"},
    {"name: p\ndims: {int: 8}\n" X Y, "reserved word \"int\""},
    {"name: p\ndims: {N: M*2, M: 3}\n" X Y, "expected a dim, not \"M\""},
    {"name: p\ndims: {N: \"3 +\"}\n" X Y, "spec.yaml:2: column"},
    {"name: p\ndims: {N: 1.5}\n" X Y, "spec.yaml:2: column"},
    {"name: p\ndims: {N: [8]}\n" X Y, "expected a number or an expression"},
    {HEAD Y, "expected inputs:"},
    {HEAD X "reference: ref_impl.py\n", "expected outputs:"},
    {HEAD "inputs: {x: {dtype: float32}}\n" Y, "expected a shape for \"x\""},
    {HEAD "inputs: {x: {shape: [N]}}\n" Y, "expected a dtype for \"x\""},
    {HEAD "inputs: {x: {shape: [N], dtype: float8}}\n" Y, "spec.yaml:3: expected a dtype"},
    {HEAD "inputs: {x: {shape: [Q], dtype: float32}}\n" Y, "expected a dim, not \"Q\""},
    {HEAD "inputs: {x: {shape: [N], dtyp: float32}}\n" Y, "the key \"dtype\""},
    {HEAD "inputs: {x: {shape: [N], dtype: float32, range: [2, 1]}}\n" Y, "range: [low, high]"},
    {HEAD "inputs: {x: {shape: [N], dtype: float32, range: [-.inf, 1]}}\n" Y, "leave it out"},
    {HEAD X Y "non_finite: maybe\n", "expected non_finite: reference, propagate or ignore"},
    {HEAD "inputs: {N: {shape: [N], dtype: float32}}\n" Y, "not taken, not \"N\""},
    {HEAD X "outputs: {x: {shape: [N], dtype: float32}}\n", "not taken, not \"x\""},
    {HEAD "inputs: {x: {shape: [1,1,1,1,1,1,1,1,1], dtype: float32}}\n" Y, "at most 8"},
    {HEAD X Y "reference: gone.py\n", "spec.yaml:5: expected a file, found no \"gone.py\""},
    {HEAD X Y "reference: spec.yaml\n", "expected a reference in .py or .c"},
    {HEAD X Y "reference: ref_impl.py:a b\n", "expected FILE:FUNCTION"},
    {HEAD X Y "reference: ref.c:sum\n", "spec.yaml:5: expected a C reference's function"},
    {WHOLE "baselines: {fast: fast.c}\n", "found no \"fast.c\""},
    {WHOLE "baselines: {fast: pipe.c}\n", "found no \"pipe.c\""}, /* nobody writes there */
    {WHOLE "baselines: {reference: naive.c}\n", "the reference's own"},
    {WHOLE "baselines: {a b: naive.c}\n", "expected a baseline's name"},
    {WHOLE "baselines: {a: {file: naive.c, libraries: \"-lx;rm\"}}\n", "expected libraries"},
    {WHOLE "baselines: {a: {file: naive.c, env: {LD_PRELOAD: b.so}}}\n", "not LD_PRELOAD"},
    {WHOLE "baselines: {a: {file: naive.c, env: {OMP_TOOL_LIBRARIES: ./b.so}}}\n",
     "without a path"},
    {WHOLE "baseline: fast\n", "spec.yaml:6: expected baseline"},
    {WHOLE "flops: 2*Q\n", "spec.yaml:6: expected a dim, not \"Q\""},
    {WHOLE "flops: N / (N - 8)\n", "spec.yaml:6: flops: "},
    {WHOLE "reduction: 2*Q\n", "spec.yaml:6: expected a dim, not \"Q\""},
    {WHOLE "tolerance: {rtol: -1}\n", "spec.yaml:6: expected a number that is not negative"},
    {WHOLE "tolerance: loose\n", "expected tolerance: auto"},
    {WHOLE "accuracy: great\n", "expected accuracy"},
    {WHOLE "precision: float8\n", "expected precision"},
    {WHOLE "where: N > 100\n", "spec.yaml:2: expected dims that `where` allows"},
    {WHOLE "check: {N: 1}\n", "expected check: ["},
    {WHOLE "check:\n  - {N: 1}\n  - {Q: 1}\n", "spec.yaml:8: expected a dim, not \"Q\""},
    {WHOLE "check:\n  - {N: 0}\n", "spec.yaml:7: expected N from 1 to 2^40, not 0"},
    {WHOLE "check:\n  - {N: x}\n", "spec.yaml:7: expected a number for N"},
    {WHOLE "check:\n  - {N: 9000000000000}\n", "spec.yaml:7: expected N from 1 to 2^40"},
    {WHOLE "hidden: {N: [5, 2]}\n", "spec.yaml:6: expected N: [LOW, HIGH]"},
    {WHOLE "sizes: [1]\n", "spec.yaml:6: expected sizes: {"},
    {WHOLE "sizes: {big: {Q: 1}}\n", "spec.yaml:6: expected a dim, not \"Q\""},
    {WHOLE "sizes: {big: {N: 0}}\n", "spec.yaml:6: expected N from 1"},
    {WHOLE "sizes: {2: {N: 8}}\n", "spec.yaml:6: expected a size's name"},
    {WHOLE "hidden: {Q: [5, 2]}\n", "spec.yaml:6: expected a dim, not \"Q\""},
    {WHOLE "shape_c: [1]\n", "spec.yaml:6: expected one of the keys"},
    {"name: matmul\nshape_a: [4, 5]\nshape_b: [6, 7]\n", "spec.yaml:3: expected shape_b to begin"},
    {"name: matmul\nshape_a: [4, 5]\n", "expected shape_a: [M, K] and shape_b"},
    {"name: matmul\nshape_b: [4, 5]\n", "expected shape_a beside shape_b"},
    {"name: matmul\nshape_a: [4, -5]\nshape_b: [6, 7]\n", "spec.yaml:2: expected shape_a"},
    {"name: conv\nshape_a: [4, 5]\nshape_b: [6, 7]\n", "expected the key \"outputs\""},
    {"name: matmul\nshape_a: [4, 5]\nshape_b: [5, 7]\ndtype: float\n",
     "spec.yaml:4: expected dtype"},
};

static void test_wrong_specs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
        struct problem *problem = NULL;
        struct err err;
        folder_put(&folder, "spec.yaml", wrongs[i].spec);
        if (problem_load(folder.path, &problem, &err) == 0)
            fail_msg("loaded: %s", wrongs[i].spec);
        if (strstr(err.message, wrongs[i].message) == NULL)
            fail_msg("%s\ngot:    %s\nwanted: %s", wrongs[i].spec, err.message, wrongs[i].message);
        assert_int_equal(err.code, ERR_USAGE);
        assert_null(strchr(err.message, '\n'));
    }
    struct problem *problem = load(WHOLE); /* what the wrong ones differ from is right */
    problem_free(problem);
}

static void test_sizes(void **state)
{
    (void)state;
    struct problem *p = NULL;
    struct err err;
    char path[4400], spec[4096];
    snprintf(spec, sizeof spec, "%ssizes: {cuda: {H: 640, W: 100}, odd: {H: 33}}\n", conv_spec);
    problem_free(load(spec));
    snprintf(path, sizeof path, "%s@cuda", folder.path);
    assert_int_equal(problem_load(path, &p, &err), 0);
    assert_int_equal(number(&p->shapes[0], "H"), 640);
    assert_int_equal(number(&p->shapes[0], "OW"), 50);
    assert_int_equal(number(&p->shapes[1], "H"), 7); /* check shapes are what they were */
    assert_true(problem_has_size(p, "odd") && !problem_has_size(p, "cpu"));
    snprintf(path, sizeof path, "%s", p->file); /* finds the same again */
    problem_free(p);
    assert_int_equal(problem_load(path, &p, &err), 0);
    assert_int_equal(number(&p->shapes[0], "H"), 640);
    problem_free(p);
    snprintf(path, sizeof path, "%s/spec.yaml@W=24,H=8", folder.path);
    assert_int_equal(problem_load(path, &p, &err), 0);
    assert_int_equal(number(&p->shapes[0], "OH"), 4);
    assert_int_equal(number(&p->shapes[0], "W"), 24);
    problem_free(p);
    snprintf(path, sizeof path, "%s@dims", folder.path);
    assert_int_equal(problem_load(path, &p, &err), 0);
    assert_int_equal(number(&p->shapes[0], "H"), 32);
    problem_free(p);
    static const char *const wrong[] = {"big", "H=", "H=8,,", "H=8;W=8", "X=8", "OH=4", "H=-8", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(path, sizeof path, "%s@%s", folder.path, wrong[i]);
        assert_int_equal(problem_load(path, &p, &err), -1);
    }
    assert_null(problem_size_of("/a@b/spec.yaml"));
}

static void test_paths(void **state)
{
    struct problem *problem = NULL;
    struct err err;
    char path[256];
    (void)state;
    folder_put(&folder, "spec.yaml", WHOLE);
    snprintf(path, sizeof path, "%s/spec.yaml", folder.path);
    assert_int_equal(problem_load(path, &problem, &err), 0);
    assert_string_equal(problem->file, path);
    assert_string_equal(problem->folder, folder.path);
    problem_free(problem);
    assert_int_equal(problem_load("no-such-problem", &problem, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_int_equal(problem_load("../../etc", &problem, NULL), -1);
    assert_int_equal(problem_load("", &problem, &err), -1);
    problem_free(NULL);
}

/* The unit that a spec's types and precision allow, where its rate is known. */
static void test_rate(void **state)
{
    static const struct unit_rates rates = {.flops = 57, .tf32 = 487, .bf16 = 973, .fp16 = 970};
    static const struct {
        const char *name;
        double rate;
    } of[] = {{"matmul", 57}, {"matmul_tf32", 487}, {"matmul_bf16", 973}, {"matmul_fp16", 970}};
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        struct problem *problem;
        struct err err = {0};
        assert_int_equal(problem_load(of[i].name, &problem, &err), 0);
        assert_true(problem_rate(problem, &rates) == of[i].rate);
        problem_free(problem);
    }
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(test_long_form),   WITH_FOLDER(test_numbers),
        WITH_FOLDER(test_fixed_dims),  WITH_FOLDER(test_hidden_shapes),
        WITH_FOLDER(test_short_form),  WITH_FOLDER(test_other_references),
        WITH_FOLDER(test_starts),      WITH_FOLDER(test_many_inputs),
        WITH_FOLDER(test_wrong_specs), WITH_FOLDER(test_paths),
        WITH_FOLDER(test_sizes),       cmocka_unit_test(test_rate),
        WITH_FOLDER(test_longest_sum), WITH_FOLDER(test_integers_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
