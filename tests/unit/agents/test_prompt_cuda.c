/* What a model is told where the backend is CUDA, byte for byte (golden/cuda-*.txt): the form of a
 * candidate, a GPU's facts, a PyTorch module as the problem. And which code is taken of its answer.
 */
#include "golden.h"

#include "agents/ideas/extract.h"
#include "agents/prompt/prompt.h"
#include "eval/cuda/target.h"
#include "eval/problem/torch.h"

static const char description[] =
    "{\"spec\": \"{\\\"name\\\": \\\"1_Linear\\\", \\\"family\\\": \\\"linear\\\", "
    "\\\"description\\\": \\\"A linear layer and its activation; scale is always 0.5\\\", "
    "\\\"dims\\\": {\\\"B\\\": 4096}, \\\"hidden\\\": {\\\"B\\\": [1, 4096]}, \\\"check\\\": "
    "[{\\\"B\\\": 1}, {\\\"B\\\": 3}], \\\"inputs\\\": {\\\"x\\\": {\\\"shape\\\": [\\\"B\\\", "
    "\\\"512\\\"], \\\"dtype\\\": \\\"float32\\\"}, \\\"fc_weight\\\": {\\\"shape\\\": "
    "[\\\"256\\\", \\\"512\\\"], \\\"dtype\\\": \\\"float32\\\", \\\"range\\\": [-0.04, 0.04]}, "
    "\\\"mask\\\": {\\\"shape\\\": [\\\"256\\\"], \\\"dtype\\\": \\\"int32\\\"}}, "
    "\\\"outputs\\\": {\\\"out\\\": {\\\"shape\\\": [\\\"B\\\", \\\"256\\\"], \\\"dtype\\\": "
    "\\\"bfloat16\\\"}}, \\\"reference\\\": \\\"1_Linear.py\\\", \\\"flops\\\": "
    "\\\"262144*B\\\"}\", \"binding\": {}, \"draws\": {\"mask\": \"given\"}, \"initial\": "
    "[\"fc_weight\", \"mask\"], \"notes\": [\"scale is always 0.5\"]}";

static const char device[] =
    "{\"backend\": \"cuda\", \"gpu_index\": 0, \"gpu\": \"NVIDIA H100 80GB HBM3\", \"pci\": "
    "\"0000:1b:00.0\", \"memory_bytes\": 85899345920, \"driver_cuda\": 13000, \"facts\": "
    "{\"sm_count\": 132}, \"temperature_celsius\": 39, \"cores_used\": 16, \"copy_bytes_per_s\": "
    "3.01e12, \"read_bytes_per_s\": 3.1e12, \"flops_per_s\": 5.71e13, \"tf32_flops_per_s\": null, "
    "\"bf16_flops_per_s\": 9.72e14}";

static const char facts[] =
    "{\"compute_capability\": 90, \"sm_count\": 132, \"warp_size\": 32, \"l2_bytes\": 52428800, "
    "\"shared_bytes_optin\": 232448, \"registers_per_sm\": 65536}";

static const struct idea idea = {.title = "Tiles through TMA",
                                 .category = "asynchrony",
                                 .why = "Loads wait for each other.",
                                 .expected = 1.4,
                                 .parent = ""};

static struct fixture {
    struct arena *arena;
    struct problem problem;
    struct prompts *prompts;
    struct prompt_context context;
} the;

static int set_up(void **state)
{
    struct err err;
    (void)state;
    setenv("TWAGENT_DATA", TEST_SOURCE_DIR, 1);
    the.arena = arena_new();
    the.problem.arena = the.arena;
    if (problem_take_torch(&the.problem, TEST_SOURCE_DIR "/tests/unit/agents/golden/1_Linear.py",
                           description, strlen(description), &err) != 0 ||
        prompts_load(the.arena, "cuda", &the.prompts, &err) != 0)
        fail_msg("%s", err.message);
    the.context = (struct prompt_context){
        .problem = &the.problem,
        .reference = "class Model(nn.Module):\n    pass\n",
        .device = device,
        .facts = facts,
        .baseline = "eager",
        .baseline_ns = 250000,
        .work = {.flops = 1073741824, .flops_ns = 18800, .bytes = 1.1e7, .bytes_ns = 3500}};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_free(the.arena);
    return 0;
}

static void test_golden(void **state)
{
    (void)state;
    struct buf text;
    const struct prompt_kernel none = {.id = ""};
    buf_init(&text, PROMPT_BYTES_MAX);
    prompt_ideas(the.prompts, &the.context, NULL, 0, NULL, 0, 3, 0, &text);
    must_equal_file("cuda-ideas", &text);
    buf_init(&text, PROMPT_BYTES_MAX);
    prompt_implement(the.prompts, &the.context, &none, &idea, NULL, 0, 0, &text);
    must_equal_file("cuda-implement", &text);
    struct prompt_context triton = the.context;
    triton.language = &language_triton;
    buf_init(&text, PROMPT_BYTES_MAX);
    prompt_implement(the.prompts, &triton, &none, &idea, NULL, 0, 0, &text);
    must_equal_file("triton-implement", &text);
    buf_init(&text, PROMPT_BYTES_MAX);
    prompt_system_for(the.prompts, PROMPT_IMPLEMENT, &text);
    must_equal_file("cuda-system-implement", &text);
}

/* What is not known is left out, and nothing is left unfilled. */
static void test_bare(void **state)
{
    (void)state;
    const struct prompt_context bare = {.problem = &the.problem, .device = "{\"gpu\": \"X\"}"};
    struct buf text;
    buf_init(&text, PROMPT_BYTES_MAX);
    prompt_repair(the.prompts, &bare, &idea, "int x;", "did not compile", "", "", 0, &text);
    assert_non_null(strstr(buf_text(&text), "# Machine\n- X\n"));
    assert_null(strstr(buf_text(&text), "{{"));
    assert_null(strstr(buf_text(&text), "(null)"));
    assert_null(strstr(buf_text(&text), "\n\n\n"));
    buf_free(&text);
}

/* What providers are asked to keep: the same for another idea, parent and failure. */
static void test_shared(void **state)
{
    (void)state;
    struct buf one, other;
    const struct prompt_kernel none = {.id = ""}, some = {.id = "r1-c1", .source = "int y;"};
    buf_init(&one, PROMPT_BYTES_MAX);
    buf_init(&other, PROMPT_BYTES_MAX);
    prompt_implement(the.prompts, &the.context, &none, &idea, NULL, 0, 0, &one);
    prompt_implement(the.prompts, &the.context, &some, &idea, NULL, 0, 0, &other);
    size_t shared = prompt_shared(buf_text(&one));
    assert_true(shared > 0 && shared == prompt_shared(buf_text(&other)));
    assert_memory_equal(buf_text(&one), buf_text(&other), shared);
    assert_true(strncmp(buf_text(&one) + shared, "# ", 2) == 0);
    buf_reset(&one);
    prompt_repair(the.prompts, &the.context, &idea, "int x;", "did not compile", "", "", 0, &one);
    shared = prompt_shared(buf_text(&one));
    assert_null(memmem(buf_text(&one), shared, "did not", 7));
    assert_non_null(memmem(buf_text(&one), shared, "# Machine", 9));
    assert_int_equal(prompt_shared("# Machine, alone"), 0);
    buf_free(&one);
    buf_free(&other);
}

/* By what --language says; a backend of one language has no "both". */
static void test_languages(void **state)
{
    (void)state;
    const struct language *chosen[TARGET_FOLDERS_MAX];
    const struct target *cpu = target_find("cpu"), *cuda = target_find("cuda");
    assert_int_equal(target_choose(cuda, NULL, chosen), 1);
    assert_ptr_equal(chosen[0], &language_cuda);
    assert_int_equal(target_choose(cuda, "triton", chosen), 1);
    assert_ptr_equal(chosen[0], &language_triton);
    assert_int_equal(target_choose(cuda, "both", chosen), 2);
    assert_string_equal(language_folder(cuda, chosen[1]), "triton");
    assert_int_equal(target_choose(cuda, "wgsl", chosen), 0);
    assert_int_equal(target_choose(cpu, NULL, chosen), 1);
    assert_int_equal(target_choose(cpu, "both", chosen), 0);
    assert_string_equal(language_folder(cpu, cpu->languages[0]), "cpu");
}

static void test_code(void **state)
{
    (void)state;
    static const struct {
        const char *answer, *begins; /* NULL: an error */
    } rows[] = {
        {"Here:\n```cuda\n/*---\nlaunch: []\n---*/\n__global__ void a() {}\n```\nand the hot loop "
         "again:\n```\n__global__ void part() {}\n```\n",
         "/*---"},
        {"```\nint host;\n```\n```cpp\n__global__ void a() {}\n```\n", "__global__"},
        {"```cuda\n/*---\nlaunch: []\n---*/\n__global__ void a() {\n", NULL},
        {"/*---\nlaunch: []\n---*/\n__global__ void a() {}\n", "/*---"},
        {"I cannot.", NULL},
    };
    static const char triton[] =
        "```\n__global__ void a() {}\n```\n```python\n\"\"\"---\nlaunch: []\n"
        "---\"\"\"\n@triton.jit\ndef a(): pass\n```\n```\n@triton.jit\n```\n";
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *code;
        size_t length;
        struct err err;
        int status = extract_code(the.arena, rows[i].answer, EXTRACT_GPU, &code, &length, &err);
        assert_int_equal(status == 0, rows[i].begins != NULL);
        if (status == 0)
            assert_memory_equal(code, rows[i].begins, strlen(rows[i].begins));
    }
    const char *code;
    size_t length;
    struct err err;
    assert_int_equal(extract_code(the.arena, triton, EXTRACT_TRITON, &code, &length, &err), 0);
    assert_memory_equal(code, "\"\"\"---", 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden), cmocka_unit_test(test_bare), cmocka_unit_test(test_code),
        cmocka_unit_test(test_languages), cmocka_unit_test(test_shared)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
