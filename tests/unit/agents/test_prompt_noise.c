/* What a prompt says of gains where a machine is noisy, and of the definition's bytes and
 * operations. */
#include "check.h"

#include "agents/prompt/prompt.h"
#include "base/buf.h"
#include "base/mem.h"
#include "eval/cpu/target.h"

static struct problem *problem;
static struct prompts *prompts;
static struct prompt_context context;

static struct prompt_attempt tried(const char *id, const char *title, double over_parent)
{
    return (struct prompt_attempt){.id = id,
                                   .title = title,
                                   .category = "compute",
                                   .state = "kept",
                                   .reason = "",
                                   .speedup = 2,
                                   .time_ns = 1e5,
                                   .over_parent = over_parent};
}

/* `attempts` as a prompt for ideas tells them. */
static char *told(const struct prompt_attempt *attempts, size_t count)
{
    struct buf text;
    buf_init(&text, PROMPT_BYTES_MAX);
    prompt_ideas(prompts, &context, NULL, 0, attempts, count, 5, 0, &text);
    return buf_take(&text);
}

static void test_what_differs(void **state)
{
    const struct prompt_attempt attempts[] = {
        tried("r1-c1", "Much", 3), tried("r1-c2", "A little", 1.5), tried("r1-c3", "Less", 0.6),
        tried("r1-c4", "Far less", 0.3), tried("r1-c5", "Nothing", 1.005)};
    (void)state;
    context.spread = 0.4; /* 120 % is no difference */
    char *text = told(attempts, 5);
    const char *wins = strstr(text, "Faster than what they started from:\n- Much");
    assert_non_null(wins);
    const char *even = strstr(wins, "within the noise:\n");
    const char *slower = strstr(wins, "Right, but slower:\n- Far less");
    assert_true(even != NULL && slower > even);
    static const char *const within[] = {"- A little", "- Less", "- Nothing"};
    for (size_t i = 0; i < 3; i++) {
        const char *at = strstr(wins, within[i]);
        assert_true(at > even && at < slower);
    }
    assert_non_null(strstr(
        text, "- compute: 5 tried, 5 right, 1 faster than their parents, the best 3.0x, 3 within"));
    mem_free(text);
    context.spread = 0;
    text = told(attempts, 5);
    assert_non_null(strstr(text, "- compute: 5 tried, 5 right, 2 faster than their parents"));
    assert_non_null(strstr(text, "within the noise:\n- Nothing"));
    mem_free(text);
}

/* Bytes bound every kernel, operations are the definition's own. */
static void test_work(void **state)
{
    static const struct {
        struct prompt_work work;
        const char *said, *not_said;
    } rows[] = {
        {{.bytes = 12.6e6, .bytes_ns = 409600},
         "- its tensors have 12.6 MB: to move each once takes 409.6 us at this machine's measured "
         "rate; no kernel can take less\n",
         "flop"},
        {{.flops = 530841600, .flops_ns = 2375e3, .bytes = 12.6e6, .bytes_ns = 4e5, .cached = true},
         "- the definition does 531 Mflop, which take 2375.0 us at this machine's measured rate; "
         "algebra may need fewer\n",
         "no kernel"},
        {{.flops = 1e9}, "- the definition does 1 Gflop; algebra may need fewer\n", "us at"},
        {{.flops = 5, .flops_ns = 7e3, .under_load = true},
         "- other programs ran while these rates were measured: less may do\n",
         "no kernel"},
        {{.bytes = 1e6, .under_load = true}, "scale: ", "measured"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        context.work = rows[i].work;
        char *text = told(NULL, 0);
        assert_non_null(strstr(text, rows[i].said));
        assert_null(strstr(text, rows[i].not_said));
        mem_free(text);
    }
}

/* Of the machine's instruction sets those that compute with the problem's numbers. */
static void test_march(void **state)
{
    (void)state;
    context.device =
        "{\"cpu\": \"Abacus 9\", \"march\": \"-march=znver4 -mmmx -mavx512f -mavx512bf16 "
        "-mavx512fp16 -mamx-bf16 -mclflushopt -mfma -mtune=znver4\"}";
    char *text = told(NULL, 0);
    assert_non_null(strstr(text, "\n- march: -march=znver4 -mavx512f -mfma -mtune=znver4\n"));
    assert_null(strstr(text, "bf16"));
    mem_free(text);
    enum dtype was = problem->inputs[0].dtype;
    problem->inputs[0].dtype = DTYPE_BFLOAT16;
    text = told(NULL, 0);
    assert_non_null(strstr(text, "-mavx512f -mavx512bf16 -mavx512fp16 -mamx-bf16 -mfma"));
    mem_free(text);
    problem->inputs[0].dtype = was;
    context.device = NULL;
}

/* With --tuning 0 nobody else tries numbers. */
static void test_who_tunes(void **state)
{
    (void)state;
    for (int untuned = 0; untuned < 2; untuned++) {
        context.untuned = untuned;
        char *text = told(NULL, 0);
        assert_int_equal(strstr(text, "tunes them by measurement") == NULL, untuned);
        mem_free(text);
    }
}

int main(void)
{
    struct err err;
    struct arena *arena = arena_new();
    setenv("TWAGENT_DATA", TEST_SOURCE_DIR, 1);
    if (problem_load(TEST_SOURCE_DIR "/tests/unit/agents/golden/scale", &problem, &err) != 0 ||
        prompts_load(arena, "cpu", &prompts, &err) != 0)
        return 1;
    context = (struct prompt_context){.problem = problem};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_differs),
                                       cmocka_unit_test(test_who_tunes),
                                       cmocka_unit_test(test_work), cmocka_unit_test(test_march)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    problem_free(problem);
    arena_free(arena);
    return failed;
}
