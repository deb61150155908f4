/* Ideas as models write them, and the prompts that ask for them. */
#include "check.h"

#include "agents/ideas.h"
#include "agents/prompt.h"

static size_t parse(const char *text, struct idea *ideas, size_t most, struct arena *arena,
                    struct err *err)
{
    size_t count = 0;
    *err = (struct err){ERR_NONE, ""};
    return ideas_parse(arena, text, ideas, most, &count, err) == 0 ? count : 0;
}

static void test_parse(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct idea ideas[4];
    struct err err;
    assert_int_equal(
        parse("Sure:\n```json\n{\"ideas\": [{\"title\": \" Pack \\n B \", \"category\": \"Memory\","
              " \"why\": \"L1\", \"expected\": 1.3, \"parent\": \"r1-c2\"}]}\n```",
              ideas, 4, arena, &err),
        1);
    assert_string_equal(ideas[0].title, "Pack B");
    assert_string_equal(ideas[0].category, "memory");
    assert_string_equal(ideas[0].parent, "r1-c2");
    assert_true(ideas[0].expected > 1.29 && ideas[0].expected < 1.31);
    /* a bare list; the same title twice; no title; odd types; more than asked for */
    assert_int_equal(parse("[{\"title\":\"a-b\"},{\"title\":\"A  B!\"},{\"why\":\"x\"},7,"
                           "{\"title\":\"c\",\"category\":\"magic\",\"expected\":\"much\"},"
                           "{\"title\":\"d\",\"expected\":-1},{\"title\":\"e\"},{\"title\":\"f\"}]",
                           ideas, 4, arena, &err),
                     4);
    assert_string_equal(ideas[1].title, "c");
    assert_string_equal(ideas[1].category, "compute");
    assert_true(ideas[1].expected == 0 && ideas[2].expected == 0);
    assert_string_equal(ideas[3].title, "e");
    static const char *const bad[] = {"",
                                      "no",
                                      "{\"ideas\": []}",
                                      "{\"ideas\": \"x\"}",
                                      "{\"title\": \"a\"}",
                                      "{\"ideas\": [{\"title\": \"\"}]}",
                                      "{\"ideas\": [{\"title\": \"cut"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(parse(bad[i], ideas, 4, arena, &err), 0);
        assert_true(err.code == ERR_PARSE || err.code == ERR_NOT_FOUND);
    }
    arena_free(arena);
}

static char *text_of(struct buf *out)
{
    assert_int_equal(out->dropped, 0);
    assert_null(strstr(buf_text(out), "{{"));
    return buf_take(out);
}

static void must_hold(const char *text, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strstr(text, *words) == NULL)
            fail_msg("the prompt lacks \"%s\":\n%s", *words, text);
}

static void test_prompts(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct problem *problem;
    struct prompts *prompts;
    struct err err;
    struct buf out;
    setenv("TWAGENT_DATA", TEST_SOURCE_DIR, 1);
    if (problem_load(TEST_SOURCE_DIR "/problems/matmul", &problem, &err) != 0 ||
        prompts_load(arena, "cpu", &prompts, &err) != 0)
        fail_msg("%s", err.message);
    const struct prompt_context context = {.problem = problem,
                                           .reference = "def reference(A, B): return A @ B",
                                           .device = "{\"cpu\": \"Abacus 9\", \"cores\": 2}",
                                           .facts = "{\"l1_bytes\": 32768}",
                                           .baseline = "naive",
                                           .baseline_ns = 5e6,
                                           .floor_ns = 4e5};
    const struct prompt_kernel parent = {.id = "r1-c7",
                                         .name = "packed.c",
                                         .source = "/* ``` */ void kernel(void);",
                                         .tune = "{\"MR\":8}",
                                         .metrics = "{\"roofline\": {\"limit\": \"memory\"}}",
                                         .time_ns = 1e6,
                                         .speedup = 5,
                                         .speedup_low = 4.9,
                                         .speedup_high = 5.1};
    const struct prompt_attempt tried = {.id = "r1-c8",
                                         .title = "Prefetch B",
                                         .category = "memory",
                                         .state = "rejected",
                                         .reason = "wrong at M=1"};
    const struct idea idea = {.title = "Pack A too", .category = "memory", .why = "TLB misses"};

    buf_init(&out, PROMPT_BYTES_MAX);
    prompt_ideas(prompts, &context, &parent, 1, &tried, 1, 5, 0, &out);
    char *text = text_of(&out);
    must_hold(text, (const char *const[]){"Propose 5 different", "matmul", "[M, K] float32",
                                          "M=512 N=512 K=512", "Abacus 9", "l1_bytes: 32768",
                                          "r1-c7", "````\n/* ``` */ void", "limit memory",
                                          "Prefetch B: rejected (wrong at M=1)", "400.0 us",
                                          "def reference", NULL});
    free(text);

    prompt_implement(prompts, &context, &parent, &idea, &tried, 1, 0, &out);
    text = text_of(&out);
    must_hold(text, (const char *const[]){"Pack A too", "TLB misses",
                                          "void kernel(const float *A, const float *B, float *C, "
                                          "int64_t M, int64_t N, int64_t K)",
                                          "tune:", "{\"MR\":8}", "limit memory", NULL});
    free(text);

    prompt_repair(prompts, &context, &idea, "int x", "did not compile", "line 1: expected ;", 0,
                  &out);
    text = text_of(&out);
    must_hold(text, (const char *const[]){"did not compile", "line 1: expected ;", "int x",
                                          "Pack A too", "void kernel(", NULL});
    free(text);
    prompt_system(prompts, &out);
    text = text_of(&out);
    must_hold(text, (const char *const[]){"cpu", NULL});
    free(text);
    problem_free(problem);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_parse),
                                       cmocka_unit_test(test_prompts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
