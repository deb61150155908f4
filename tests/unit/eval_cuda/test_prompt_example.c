/* The example that prompts show of a CUDA candidate: it parses, its plan holds for every shape of
 * the problem that it names, and it compiles where NVRTC is found. So does what the same page says
 * of tensor maps. */
#include "kit.h"

#include "eval/cuda/run/plan.h"

static char *page(struct kit *kit)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    if (file_read(TEST_SOURCE_DIR "/templates/format-cuda.txt", &text, &kit->err) != 0)
        fail_msg("%s", kit->err.message);
    char *copy = arena_strdup(kit->arena, buf_text(&text));
    buf_free(&text);
    return copy;
}

static char *example(struct kit *kit)
{
    char *begin = strstr(page(kit), "```cuda\n");
    assert_non_null(begin);
    begin += strlen("```cuda\n");
    char *end = strstr(begin, "\n```\n");
    assert_non_null(end);
    end[1] = '\0';
    return begin;
}

static void open_sum_rows(struct kit *kit)
{
    struct problem *problem;
    struct err err;
    if (problem_load(TEST_SOURCE_DIR "/problems/sum_rows", &problem, &err) != 0)
        fail_msg("%s", err.message);
    kit_open(kit, problem);
    kit->given = false;
}

static void test_plan(void **state)
{
    struct kit kit;
    struct names facts = {0};
    (void)state;
    open_sum_rows(&kit);
    kit_parse(&kit, example(&kit));
    assert_int_equal(names_set(&facts, "warp_size", 32, &kit.err), 0);
    const struct program program = {
        .problem = kit.problem, .candidate = kit.candidate, .tune = &kit.tune};
    for (size_t s = 0; s < kit.problem->shape_count; s++) {
        const struct names *shape = &kit.problem->shapes[s];
        struct call call = {.dim_count = (uint32_t)shape->count};
        struct plan plan;
        memcpy(call.dims, shape->number, shape->count * sizeof shape->number[0]);
        if (plan_make(&program, &facts, &call, &plan, &kit.err) != 0)
            fail_msg("%s", kit.err.message);
        assert_int_equal(plan.launch_count, 2);
        assert_int_equal(plan.launches[0].shared_bytes, 4 * plan.launches[0].block[0] / 32);
    }
    kit_close(&kit);
}

static void test_compiles(void **state)
{
    struct kit kit;
    (void)state;
    kit_need_nvrtc();
    open_sum_rows(&kit);
    if (kit_compile(&kit, example(&kit)) != 0)
        fail_msg("%s", buf_text(&kit.said));
    for (size_t i = 0; i < kit.report.entry_count; i++)
        assert_int_equal(kit.report.entries[i].spill_store_bytes, 0);
    kit_close(&kit);
}

/* The line of the page, put into a candidate of its own. */
static void test_tensor_map(void **state)
{
    struct kit kit;
    char text[4096];
    (void)state;
    open_sum_rows(&kit);
    const char *line = strstr(page(&kit), "    tile: {tensor: X");
    assert_non_null(line);
    snprintf(text, sizeof text,
             "/*---\ntune: {BM: [64]}\ntma:\n%.*s\nlaunch:\n  - {entry: k, grid: M, block: 128, "
             "args: [tile, y, M, N]}\n---*/\n#include <cuda.h>\nextern \"C\" __global__ void "
             "k(const __grid_constant__ CUtensorMap tile, float *y, long long M, long long N)\n"
             "{\n    if (threadIdx.x == 0)\n        y[blockIdx.x] = (float)(M + N);\n}\n",
             (int)strcspn(line, "#"), line);
    kit_parse(&kit, text);
    assert_int_equal(kit.candidate->map_count, 1);
    assert_int_equal(kit.candidate->maps[0].swizzle_bytes, 128);
    kit_close(&kit);
}

static void test_tensor_map_compiles(void **state)
{
    kit_need_nvrtc();
    struct kit kit;
    (void)state;
    open_sum_rows(&kit);
    if (kit_compile(&kit, "/*---\ntma: {tile: {tensor: X, box: [8, 32], swizzle: 128B}}\nlaunch:\n"
                          "  - {entry: k, grid: M, block: 128, args: [tile, y]}\n---*/\n"
                          "#include <cuda.h>\nextern \"C\" __global__ void k(const "
                          "__grid_constant__ CUtensorMap tile, float *y)\n{\n    y[blockIdx.x] = "
                          "(float)(unsigned long long)&tile;\n}\n") != 0)
        fail_msg("%s", buf_text(&kit.said));
    kit_close(&kit);
}

int main(int argc, char **argv)
{
    int code;
    if (kit_internal(argc, argv, &code))
        return code;
    setenv("TWAGENT_DATA", TEST_SOURCE_DIR, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_compiles),
        cmocka_unit_test(test_tensor_map),
        cmocka_unit_test(test_tensor_map_compiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
