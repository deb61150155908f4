/* What a WGSL text says of its bindings and constants, and the plan that comes of it: no library
 * and no adapter is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "eval/webgpu/plan.h"
#include "eval/webgpu/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char spec[] = "name: mm\ndims: {M: 100, N: 64}\n"
                           "inputs: {X: {shape: [M, N], dtype: float32}}\n"
                           "outputs: {Y: {shape: [M], dtype: float16}}\nreference: ref.py\n";
static const char front[] = "/*---\ntune: {WX: [16, 8]}\n"
                            "workspace: {W: {shape: [M, WX], dtype: float32}}\n"
                            "launch:\n  - {entry: main, grid: [\"ceil_div(N, WX)\", M]}\n"
                            "  - {entry: second, grid: [max_workgroups]}\n---*/\n";
static struct problem *problem;
static struct names facts;

static int make(const char *source, struct plan *plan, struct err *err)
{
    struct candidate *candidate;
    struct names tune;
    struct buf text;
    const struct call call = {.dim_count = 2, .dims = {7, 33}};
    buf_init(&text, 1 << 20);
    buf_addf(&text, "%s%s", front, source);
    int status = candidate_parse(problem, "k.wgsl", buf_text(&text), text.length, &candidate, err);
    buf_free(&text);
    if (status != 0)
        fail_msg("%s", err->message);
    tune_at(candidate, 0, &tune);
    const struct program program = {problem, candidate, &tune, NULL};
    status = plan_program(&program, plan, err);
    if (status == 0)
        status = plan_call(&program, &facts, &call, plan, err);
    candidate_free(candidate);
    return status;
}

static void test_plan(void **unused)
{
    static struct plan plan;
    struct err err = {0};
    (void)unused;
    assert_int_equal(make("enable f16; override WX: u32; @id(3) override own: f32 = 1.0;\n"
                          "/* @group(0) @binding(8) var<storage> no: f32; /* nested */ */\n"
                          "// @group(0) @binding(8) var<storage> neither: f32;\n"
                          "@binding(5u) @group(0) var<storage,read_write> Y: array<f16>;\n"
                          "@group(0) @binding(0x2) var < storage , read > X : array<f32>;\n"
                          "@group(0) @binding(1) var<uniform> dims: Dims;\n"
                          "@group(0) @binding(3) var<storage, read_write> W: array<f32>;\n",
                          &plan, &err),
                     0);
    assert_int_equal(plan.binding_count, 4);
    assert_int_equal(plan.bindings[0].binding, 5);
    assert_int_equal(plan.bindings[0].kind, PLAN_OUTPUT);
    assert_int_equal(plan.bindings[0].tensor, 1);
    assert_int_equal(plan.bindings[1].binding, 2);
    assert_int_equal(plan.bindings[1].kind, PLAN_INPUT);
    assert_int_equal(plan.bindings[2].kind, PLAN_DIMS);
    assert_int_equal(plan.bindings[3].tensor, 2);
    assert_int_equal(plan.constant_count, 1);
    assert_string_equal(plan.constants[0].name, "WX");
    assert_true(plan.constants[0].number > 15.5 && plan.constants[0].number < 16.5);
    assert_true(plan.f16 && !plan.subgroups && !plan.measures_arrays);
    assert_int_equal(plan.pass_count, 2);
    assert_int_equal(plan.passes[0].groups[0], 3);
    assert_int_equal(plan.passes[0].groups[1], 7);
    assert_int_equal(plan.passes[0].groups[2], 1);
    assert_int_equal(plan.passes[1].groups[0], 65535);
    assert_int_equal(plan.tensor_bytes[0], 4 * 7 * 33);
    assert_int_equal(plan.tensor_bytes[1], 2 * 7);
    assert_int_equal(plan.tensor_bytes[2], 4 * 7 * 16);
}

static void compiled(const char *name, const char *more, const char *source, bool browser,
                     const char *expected)
{
    struct candidate *candidate;
    struct err err = {0};
    struct buf text, out;
    buf_init(&text, 4096);
    buf_init(&out, 4096);
    buf_addf(&text, "/*---\nlaunch: [{entry: main, grid: M}]\n%s---*/\n%s", more, source);
    if (candidate_parse(problem, "k.wgsl", buf_text(&text), text.length, &candidate, &err) != 0)
        fail_msg("%s: %s", name, err.message);
    wgsl_compiled(candidate, browser, &out);
    const char *behind = strstr(buf_text(&out), "---*/\n");
    assert_non_null(behind);
    if (strcmp(expected, behind + 6) != 0)
        fail_msg("%s: \"%s\"", name, behind + 6);
    candidate_free(candidate);
    buf_free(&text);
    buf_free(&out);
}

/* Naga knows subgroups, but not the line that asks for them; lines stay where they are. */
static void test_enable(void **unused)
{
    static struct plan plan;
    struct err err = {0};
    (void)unused;
    compiled("naga", "", "enable subgroups;\nfn", false, "                 \nfn");
    compiled("browser", "", "enable subgroups;\nfn", true, "enable subgroups;\nfn");
    compiled("both", "", "// enable subgroups;\nenable f16,\nsubgroups;fn", false,
             "// enable subgroups;\nenable f16;           \n          fn");
    compiled("neither", "", "enable f16; fn", false, "enable f16; fn");
    compiled("required", "requires: [subgroups]\n", "fn", false, "fn");
    assert_int_equal(make("enable f16, subgroups;\n", &plan, &err), 0);
    assert_true(plan.f16 && plan.subgroups);
}

/* What front matter asks for comes before all else, where the text does not. */
static void test_requires(void **unused)
{
    static const struct {
        const char *front, *says;
    } rows[] = {{"requires: [textures]\n", "expected a feature of: shader-f16 subgroups"},
                {"requires: subgroups\n", "expected requires: [FEATURE, ...]"},
                {"requires: [subgroup]\n", "expected a feature of: shader-f16 subgroups"}};
    struct candidate *candidate;
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err err = {0};
        char text[200];
        int length =
            snprintf(text, sizeof text,
                     "/*---\nlaunch: [{entry: main, grid: M}]\n%s---*/\n@compute", rows[i].front);
        assert_int_not_equal(
            candidate_parse(problem, "k.wgsl", text, (size_t)length, &candidate, &err), 0);
        if (strstr(err.message, rows[i].says) == NULL)
            fail_msg("%s", err.message);
    }
    static const char text[] =
        "/*---\nlaunch: [{entry: main, grid: M}]\nrequires: [subgroups, shader-f16]\n"
        "---*/\n@compute";
    struct err err = {0};
    struct buf out;
    buf_init(&out, 4096);
    assert_int_equal(candidate_parse(problem, "k.wgsl", text, sizeof text - 1, &candidate, &err),
                     0);
    wgsl_compiled(candidate, true, &out);
    assert_memory_equal(buf_text(&out), "enable f16; enable subgroups; /*---", 35);
    out.length = 0;
    wgsl_compiled(candidate, false, &out);
    assert_memory_equal(buf_text(&out), "enable f16; /*---", 17);
    static const char c[] = "/*---\nrequires: [subgroups]\n---*/\nvoid kernel() {}";
    candidate_free(candidate);
    buf_free(&out);
    assert_int_not_equal(candidate_parse(problem, "k.c", c, sizeof c - 1, &candidate, &err), 0);
    assert_non_null(strstr(err.message, "requires is for kernels in WGSL"));
}

static void test_refused(void **unused)
{
    static struct plan plan;
    static const struct {
        const char *source, *says;
    } rows[] = {
        {"@group(0) @binding(0) var<storage, read_write> X: array<f32>;",
         "expected var<storage, read> for the input X"},
        {"@group(1) @binding(0) var<storage, read> X: array<f32>;", "expected @group(0) for X"},
        {"\n@group(0) @binding(0) var<storage, read> Z: array<f32>;", "line 9: Z is no tensor"},
        {"@group(0) @binding(0) var<uniform> X: Dims;", "X is a uniform"},
        {"@group(0) @binding(0) var picture: texture_2d<f32>;", "neither textures nor samplers"},
        {"@group(0) @binding(0) var<private> X: f32;", "expected var<storage, ...>"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err err = {0};
        assert_int_equal(make(rows[i].source, &plan, &err), -1);
        assert_int_equal(err.code, ERR_LIMIT);
        if (strstr(err.message, rows[i].says) == NULL)
            fail_msg("%s: %s", rows[i].source, err.message);
    }
}

/* Cut anywhere, repeated, without an end: it is read to its end or refused, and no more. */
static void test_hostile(void **unused)
{
    static struct wgsl_source source;
    static const char text[] = "enable f16 @group(0) @binding(1) var<storage, read> X: array<f32>;"
                               " override W: u32 /* x /* y */";
    static const char *const repeated[] = {
        "@", "/*", "@group(", "override ", "enable ", "@group(0) @binding(0) var<storage> a:b;"};
    struct err err = {0};
    (void)unused;
    for (size_t i = 0; i <= sizeof text; i++)
        (void)!wgsl_read(text, i, &source, &err);
    for (size_t i = 0; i < sizeof repeated / sizeof repeated[0]; i++) {
        struct buf many;
        buf_init(&many, 1 << 20);
        while (many.length < 100000)
            buf_add_text(&many, repeated[i]);
        (void)!wgsl_read(buf_text(&many), many.length, &source, &err);
        assert_true(source.binding_count <= WGSL_BINDINGS_MOST);
        assert_true(source.override_count <= WGSL_OVERRIDES_MOST);
        buf_free(&many);
    }
}

int main(void)
{
    char folder[] = "/tmp/twagent-wgsl-XXXXXX";
    struct err err = {0};
    assert_non_null(mkdtemp(folder));
    char *path = file_join(folder, "spec.yaml"), *reference = file_join(folder, "ref.py");
    if (file_write(path, spec, sizeof spec - 1, &err) != 0 ||
        file_write(reference, "\n", 1, &err) != 0 || problem_load(folder, &problem, &err) != 0 ||
        names_set(&facts, "max_workgroups", 65535, &err) != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan), cmocka_unit_test(test_enable), cmocka_unit_test(test_requires),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_hostile)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    problem_free(problem);
    mem_free(path);
    mem_free(reference);
    return file_remove_tree(folder, &err) != 0 || failed;
}
