/* A launch plan's numbers: grids, blocks, arguments, tensor maps, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/mem.h"
#include "eval/cuda/run/plan.h"
#include "eval/cuda/run/variants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char spec[] = "name: mm\ndims: {M: 100, N: 64, K: 32}\n"
                           "inputs: {A: {shape: [M, K], dtype: float32}, "
                           "B: {shape: [K, N], dtype: float16}}\n"
                           "outputs: {C: {shape: [M, N], dtype: float32}}\nreference: ref.py\n";

static struct problem *problem;
static struct names facts;

static int make(const char *front, int64_t k, struct plan *plan, struct err *err)
{
    struct candidate *candidate;
    struct names tune;
    struct buf text;
    const struct call call = {.dim_count = 3, .dims = {100, 64, k}};
    buf_init(&text, 4096);
    buf_addf(&text, "/*---\n%s---*/\n", front);
    int parsed = candidate_parse(problem, "k.cu", buf_text(&text), text.length, &candidate, err);
    buf_free(&text);
    if (parsed != 0)
        fail_msg("%s", err->message);
    tune_at(candidate, 0, &tune);
    const struct program program = {problem, candidate, &tune, NULL};
    int status = plan_make(&program, &facts, &call, plan, err);
    candidate_free(candidate);
    return status;
}

static void test_numbers(void **unused)
{
    static struct plan plan;
    struct err err = {0};
    (void)unused;
    assert_int_equal(
        make("tune: {T: [16, 8]}\nworkspace: {W: {shape: [M, T], dtype: float32}}\n"
             "memset: {W: 255, C: 0}\nlaunch:\n"
             "  - {entry: mm, grid: \"ceil_div(N, T), ceil_div(M, T)\", block: \"T, T\","
             " shared: 8*T*T, cluster: 2, args: [A, W, C, M, K, 4096, -3, 0x10]}\n"
             "  - {entry: end, grid: 2*sm_count, block: 32, shared: 4*33, cooperative: true}\n",
             32, &plan, &err),
        0);
    assert_int_equal(plan.launch_count, 2);
    const struct plan_launch *first = &plan.launches[0];
    assert_string_equal(first->entry, "mm");
    assert_int_equal(first->grid[0], 4);
    assert_int_equal(first->grid[1], 7);
    assert_int_equal(first->grid[2], 1);
    assert_int_equal(first->block[1], 16);
    assert_int_equal(first->shared_bytes, 2048);
    assert_int_equal(plan.launches[1].shared_bytes, 144); /* in whole vectors */
    assert_int_equal(first->cluster[0], 2);
    assert_int_equal(first->args[0].index, 0);
    assert_int_equal(first->args[1].index, 3); /* inputs, outputs, workspaces */
    assert_int_equal(first->args[2].index, 2);
    assert_int_equal(first->args[3].kind, PLAN_NUMBER);
    assert_int_equal(first->args[4].number, 32);
    assert_int_equal(first->args[5].kind, PLAN_NUMBER);
    assert_int_equal(first->args[5].number, 4096);
    assert_int_equal(first->args[6].number, -3);
    assert_int_equal(first->args[7].number, 16);
    assert_int_equal(plan.launches[1].grid[0], 264);
    assert_true(plan.launches[1].cooperative);
    assert_int_equal(plan.memsets[0].bytes, 100 * 16 * 4);
    assert_int_equal(plan.memsets[0].byte, 255);
}

/* ---- what a compile decides on ---- */

static int make_text(const char *text, const struct variants *variants, int64_t m, int64_t k,
                     struct plan *plan, struct err *err)
{
    struct candidate *candidate;
    struct names tune;
    const struct call call = {.dim_count = 3, .dims = {m, 64, k}};
    if (candidate_parse(problem, "k.py", text, strlen(text), &candidate, err) != 0)
        fail_msg("%s", err->message);
    tune_at(candidate, 0, &tune);
    const struct program program = {problem, candidate, &tune, NULL};
    int status = plan_make_of(&program, variants, &facts, &call, plan, err);
    candidate_free(candidate);
    return status;
}

static int make_compiled(const struct variants *variants, int64_t m, struct plan *plan,
                         struct err *err)
{
    return make_text("\"\"\"---\nlaunch:\n"
                     "  - {entry: mm, grid: \"ceil_div(M, 16), 2\", args: [A, C, M, K]}\n"
                     "  - {entry: mm, grid: 3, args: [C, M]}\n---\"\"\"\n@triton.jit\n",
                     variants, m, 32, plan, err);
}

static struct variants some_variants(void)
{
    struct variants variants = {.launch_count = 2};
    struct kernel *first = variants.launches[0].variants;
    variants.launches[0].count = 3;
    first[0] = (struct kernel){.known = {0, 0, KNOWN_16, KNOWN_16},
                               .threads = 128,
                               .shared_bytes = 64,
                               .cluster = 2,
                               .scratch_bytes = 256,
                               .scratch_align = 128};
    first[1] = (struct kernel){
        .known = {0, 0, KNOWN_ONE, KNOWN_16}, .threads = 64, .cluster = 1, .offset = 16};
    first[2] = (struct kernel){.threads = 32, .cluster = 1, .offset = 32};
    variants.launches[1].count = 1;
    variants.launches[1].variants[0] = (struct kernel){
        .threads = 96, .cluster = 1, .scratch_bytes = 100, .scratch_align = 4096, .offset = 48};
    return variants;
}

/* Multiples of 16: two blocks a program, and memory for each of them. One: folded, and no argument
 * any more. Neither: the variant for any numbers. */
static void test_compiled(void **unused)
{
    static struct plan plan;
    struct variants variants = some_variants();
    struct err err = {0};
    const struct plan_launch *first = &plan.launches[0], *second = &plan.launches[1];
    (void)unused;
    assert_int_equal(make_compiled(&variants, 96, &plan, &err), 0);
    assert_int_equal(first->grid[0], 12);
    assert_int_equal(first->grid[1], 2);
    assert_int_equal(first->cluster[0], 2);
    assert_int_equal(first->block[0], 128);
    assert_int_equal(first->shared_bytes, 64);
    assert_int_equal(first->arg_count, 6);
    assert_int_equal(first->args[4].kind, PLAN_SCRATCH);
    assert_int_equal(first->args[4].number, 0);
    assert_int_equal(first->args[5].kind, PLAN_NUMBER);
    assert_int_equal(first->args[5].number, 0);
    assert_int_equal(second->args[2].kind, PLAN_SCRATCH);
    assert_int_equal(second->args[2].number, 8192); /* behind 24 blocks of 256 bytes */
    assert_int_equal(second->image_at, 48);
    assert_int_equal(plan.scratch_bytes, 8192 + 300);
    assert_int_equal(make_compiled(&variants, 1, &plan, &err), 0);
    assert_int_equal(first->image_at, 16);
    assert_int_equal(first->arg_count, 5);
    assert_int_equal(first->args[2].number, 32);
    assert_int_equal(first->cluster[0], 0);
    assert_int_equal(make_compiled(&variants, 97, &plan, &err), 0);
    assert_int_equal(first->image_at, 32);
    assert_int_equal(first->args[3].number, 32);
}

static void test_compiled_refuses(void **unused)
{
    static struct plan plan;
    struct variants variants = some_variants();
    struct err err = {0};
    (void)unused;
    variants.launches[0].variants[2].shared_bytes = 300000;
    assert_int_equal(make_compiled(&variants, 97, &plan, &err), -1);
    assert_non_null(strstr(err.message, "mm: shared is 300000, expected 0 to 232448"));
    assert_int_equal(err.code, ERR_ROOM); /* a point of no space, not a wrong candidate */
    variants = some_variants();
    variants.launches[1].variants[0].scratch_bytes = 1 << 30;
    assert_int_equal(make_compiled(&variants, 97, &plan, &err), -1);
    assert_non_null(strstr(err.message, "mm: its tensor descriptors take more than 1024 MiB"));
    variants.launches[1].count = 0;
    assert_int_equal(make_compiled(&variants, 97, &plan, &err), -1);
    assert_non_null(strstr(err.message, "no variant of it"));
}

/* The same map twice: each launch's own, cut as its compile has it, with extents and strides. */
static void test_compiled_maps(void **unused)
{
    static const char text[] =
        "\"\"\"---\ntma:\n  a: {tensor: A, box: [64, 128]}\nlaunch:\n"
        "  - {entry: mm, grid: 1, args: [M, a, C]}\n  - {entry: mm, grid: 1, args: [a, a, C]}\n"
        "---\"\"\"\n@triton.jit\n";
    static struct plan plan;
    struct variants variants = {.launch_count = 2};
    struct err err = {0};
    const struct plan_launch *first = &plan.launches[0];
    (void)unused;
    variants.launches[0].count = variants.launches[1].count = 1;
    variants.launches[0].variants[0] =
        (struct kernel){.threads = 64, .map_count = 1, .maps = {{2, {64, 32}, 3}}};
    variants.launches[1].variants[0] =
        (struct kernel){.threads = 64, .map_count = 2, .maps = {{2, {64, 8}, 2}, {2, {64, 16}, 1}}};
    variants.launches[0].variants[0].known[0] = KNOWN_ONE;
    assert_int_equal(make_text(text, &variants, 1, 32, &plan, &err), 0);
    assert_int_equal(plan.map_count, 3);
    assert_int_equal(plan.maps[0].box[0], 32);
    assert_int_equal(plan.maps[0].box[1], 64);
    assert_int_equal(plan.maps[0].swizzle, 3);
    assert_int_equal(plan.maps[1].box[0], 8);
    assert_int_equal(plan.maps[1].swizzle, 2);
    assert_int_equal(plan.maps[1].promotion, 2);
    assert_int_equal(plan.maps[2].box[0], 16);
    assert_int_equal(first->arg_count, 5 + 1 + SCRATCH_ARGS); /* M is one, and gone */
    assert_int_equal(first->args[0].kind, PLAN_MAP);
    assert_int_equal(first->args[1].number, 1);
    assert_int_equal(first->args[2].number, 32);
    assert_int_equal(first->args[3].number, 32);
    assert_int_equal(first->args[4].number, 1);
    assert_int_equal(first->args[5].kind, PLAN_POINTER);
    assert_int_equal(plan.launches[1].args[0].index, 1);
    assert_int_equal(plan.launches[1].args[5].index, 2);
    assert_int_equal(make_text(text, &variants, 1, 33, &plan, &err), 0);
    assert_int_equal(plan.maps[0].rank, 0); /* none for such rows; what comes along is the same */
    assert_int_equal(first->args[3].number, 33);
    variants.launches[1].variants[0].maps[0].rank = 1;
    assert_int_equal(make_text(text, &variants, 1, 32, &plan, &err), -1);
    assert_non_null(strstr(err.message, "a: its compile has a box of 1 axes"));
    variants.launches[1].variants[0].map_count = 0;
    assert_int_equal(make_text(text, &variants, 1, 32, &plan, &err), -1);
    assert_non_null(strstr(err.message, "mm: its compile knows of 0 tensor maps"));
}

static void test_tensor_maps(void **unused)
{
    static const char front[] = "tma:\n  a: {tensor: A, box: [64, 32], swizzle: 128B, type: tf32}\n"
                                "  b: {tensor: B, box: [16, 64], l2: 256B}\n"
                                "  flat: {tensor: C, shape: [M*N], box: [256]}\n"
                                "launch:\n  - {entry: mm, grid: 1, block: 1, args: [a, b, flat]}\n";
    static struct plan plan;
    struct err err = {0};
    (void)unused;
    assert_int_equal(make(front, 32, &plan, &err), 0);
    assert_int_equal(plan.map_count, 3);
    assert_int_equal(plan.maps[0].rank, 2);
    assert_int_equal(plan.maps[0].extents[0], 32); /* innermost first */
    assert_int_equal(plan.maps[0].extents[1], 100);
    assert_int_equal(plan.maps[0].strides[1], 128);
    assert_int_equal(plan.maps[0].box[1], 64);
    assert_int_equal(plan.maps[0].swizzle, 3);
    assert_int_equal(plan.maps[0].type, 11);
    assert_int_equal(plan.maps[1].type, 6);
    assert_int_equal(plan.maps[1].promotion, 3);
    assert_int_equal(plan.maps[2].extents[0], 6400);
    assert_int_equal(plan.launches[0].args[1].kind, PLAN_MAP);
    assert_int_equal(plan.launches[0].args[1].index, 1);
    assert_int_equal(make(front, 33, &plan, &err), 0);
    assert_int_equal(plan.maps[0].rank, 0); /* rows of 132 bytes: the hardware has no map */
    assert_int_equal(plan.maps[1].rank, 2);
    assert_int_equal(make("tma:\n  flat: {tensor: C, shape: [M*N+1], box: [256]}\n"
                          "launch:\n  - {entry: mm, grid: 1, block: 1, args: [flat]}\n",
                          32, &plan, &err),
                     -1);
    assert_string_equal(err.message, "flat: its shape is larger than C");
}

static void test_refuses(void **unused)
{
    static const struct {
        const char *plan, *says;
    } rows[] = {
        {"grid: K-32, block: 1", "mm: grid is 0, expected 1"},
        {"grid: 1, block: \"512, 4\"", "a block's threads has 2048, at most 1024"},
        {"grid: \"1, 65536\", block: 1", "mm: grid is 65536"},
        {"grid: 1, block: 1, shared: 300000", "mm: shared is 300000"},
        {"grid: 3, block: 1, cluster: 2", "no multiple of a cluster of 2"},
        {"grid: M/0, block: 1", "mm: grid: "},
        {"grid: registers_per_sm, block: 1", "mm: grid: "}, /* which this lane does not know */
    };
    static struct plan plan;
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct err err = {0};
        char front[300];
        snprintf(front, sizeof front, "launch:\n  - {entry: mm, %s}\n", rows[i].plan);
        assert_int_equal(make(front, 32, &plan, &err), -1);
        assert_int_equal(err.code, strstr(rows[i].plan, "shared") ? ERR_ROOM : ERR_LIMIT);
        if (strstr(err.message, rows[i].says) == NULL)
            fail_msg("%s: %s", rows[i].plan, err.message);
    }
}

int main(void)
{
    char folder[] = "/tmp/twagent-plan-XXXXXX";
    struct err err = {0};
    assert_non_null(mkdtemp(folder));
    char *path = file_join(folder, "spec.yaml"), *reference = file_join(folder, "ref.py");
    if (file_write(path, spec, sizeof spec - 1, &err) != 0 ||
        file_write(reference, "\n", 1, &err) != 0 || problem_load(folder, &problem, &err) != 0 ||
        names_set(&facts, "sm_count", 132, &err) != 0 ||
        names_set(&facts, "shared_bytes_optin", 232448, &err) != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),          cmocka_unit_test(test_compiled),
        cmocka_unit_test(test_compiled_refuses), cmocka_unit_test(test_compiled_maps),
        cmocka_unit_test(test_tensor_maps),      cmocka_unit_test(test_refuses)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    problem_free(problem);
    mem_free(path);
    mem_free(reference);
    return file_remove_tree(folder, &err) != 0 || failed;
}
