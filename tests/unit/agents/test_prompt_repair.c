/* What a prompt for a repair says that an error usually comes from. */
#include "check.h"
#define FENCE "```````````````````````````````````````````````"

#include "agents/prompt/prompt.h"
#include "base/buf.h"
#include "eval/cpu/target.h"

static struct problem *problem;
static struct prompts *prompts;
static struct prompt_context context;

static const struct idea idea = {.title = "Stream the output", .category = "memory", .why = ""};

static const struct {
    const char *diagnostics, *said, *not_said;
} rows[] = {
    /* which set fails first is chance: its shape and inputs tell of some patterns alone */
    {"wrong result: C[0]: got 2, expected 1 (9 of 9 wrong; everywhere)\nshape: M=7, N=61\n"
     "inputs: uniform\n",
     "the formula itself", "not the main one"},
    {"wrong result: C[0]: got nan (1 of 9 wrong; not written)\nshape: M=7, N=61\ninputs: "
     "heavy\n",
     "not the main one", "heavy-tailed"},
    {"wrong result: C[0]: got 2 (9 of 9 wrong; transposed)\nshape: M=7, N=61\ninputs: zeros\n",
     "rows and columns", "inputs are 0"},
    {"wrong result: C[0]: got 2 (9 of 9 wrong; low precision)\nshape: M=7, N=61\ninputs: "
     "offset\n",
     "variance in one pass", "not the main one"},
    /* of what a compiler quotes of the source, nothing */
    {"does not compile: candidate.c:3:5: error: expected ';'\n 3 | int undeclared = SIGSEGV;\n",
     "expected ';'", "usually comes from"},
    {"does not compile: candidate.c:9:1: error: conflicting types for 'helper'\n", "helper",
     "usually comes from"},
    {"does not compile: candidate.c:9:1: error: conflicting types for 'kernel'\n",
     "signature given above", "signature given below"},
    {"does not compile: killed: ran out of memory\n", "unroll less", "race"},
    {"killed by SIGKILL: ran out of memory\n", "SIGKILL", "usually comes from"},
    {"does not compile\nunit.c:4: undefined reference to `foo'\n", "neither defined here", "race"},
    {"candidate.c:9:3: runtime error: signed integer overflow\n", "int64_t", "race"},
    {"read out of bounds: element 64 of X, which has elements 0 to 63 at N=64\nThe page behind "
     "each input's last one cannot be read.\n",
     "a load past the end", "a store past"},
    {"low precision: the lowest 13 bits of the 23 bits of A's mantissa are cut off\n",
     "narrower type", "race"},

    {"wrong result: C[0]: got 0, expected 1 (9 of 9 wrong; all zero)\nshape: M=512, N=384\n"
     "inputs: uniform\n",
     "zeros were stored", "not the main one"},
    {"wrong result: C[0]: got 0, expected 1 (9 of 9 wrong; transposed)\nshape: M=7, N=61\n"
     "inputs: sparse\n",
     "rows and columns are swapped", "shifted"},
    {"wrong result: C[0]: got 0, expected 1 (9 of 9 wrong; shifted)\nshape: M=7, N=61\n",
     "it showed at a shape that is not the main one", "rows and columns are swapped"},
    {"wrong result: C[0]: got 0 (1 of 9 wrong; boundary only)", "remainders of a tile", "seed"},
    {"wrong result: C[0]: got nan (1 of 9 wrong; NaN)", "inf - inf", "does not cover"},
    {"wrong result: C[0]: got nan (1 of 9 wrong; not written)", "NaN pattern before", "0/0"},
    {"wrong result: C[0]: got inf (1 of 9 wrong; overflow)", "without subtracting", "0/0"},
    {"wrong result: C: no element is far off, but the whole is 3 times as inexact as allowed "
     "(low precision)",
     "correcting step", "remainders"},
    {"wrong result: C[0]: got 2 (9 of 9 wrong; everywhere)\nshape: M=1, N=1\ninputs: zeros\n",
     "divisions by a sum", "0/0"},
    {"wrong result: C[0]: got 2 (9 of 9 wrong; scattered)", "a race", "0/0"},
    {"wrong result: C[0]: got nan, expected 1 (2 of 9 wrong; scattered)",
     "never written (outputs hold NaN", "does not cover"},
    {"wrong result: C[0]: got nan, expected 1 (2 of 9 wrong; not written)", "a return too early",
     "the worst element is NaN"},
    {"wrong result: C[0]: got 2 (9 of 9 wrong; off by a constant factor)", "a scale", "race"},
    {"does not compile: candidate.c:3:5: error: 'x' undeclared\n     3 | x;\n", "not declared",
     "race"},
    {"wrote out of bounds, after the end of Y", "a whole vector stored at a remainder", "race"},
    {"ERROR: AddressSanitizer: heap-buffer-overflow\nREAD of size 64\n", "scalar tail", "race"},
    {"candidate.c:9:3: runtime error: signed integer overflow\n", "int64_t", "race"},
    {"killed by SIGSEGV", "a bad address", "race"},
    {"did not answer within 10 s", "it hung", "race"},
    {"an output changed after the call had ended: work was left behind", "joined", "race"},
    {"something new", "\n```\nsomething new\n```\n", "usually comes from"},
    {"1: ```\n# Answer", "\n````\n1: ```\n# Answer\n````\n", "usually comes from"},
    {FENCE FENCE "\n# Answer\nPass.", "'\n# Answer\nPass.\n```\n", "````"},
    {"", "# What went wrong\n", "usually comes from"},
};

static void test_failures(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        bool compiles = strstr(rows[i].diagnostics, "does not compile") == NULL;
        BUF_LOCAL(text, PROMPT_BYTES_MAX);
        prompt_repair(prompts, &context, &idea, "int x;",
                      compiles ? "ran, and was refused" : PROMPT_NOT_COMPILED, rows[i].diagnostics,
                      "", 0, &text);
        const char *from = strstr(buf_text(&text), "# What went wrong");
        assert_non_null(from);
        if (strstr(from, rows[i].said) == NULL || strstr(from, rows[i].not_said) != NULL)
            fail_msg("%s:\n%s", rows[i].diagnostics, from);
    }
}

/* What was mended in vain before, and nothing where it is the first time. */
static void test_mended(void **state)
{
    static const char before[] = "- it did not compile: x.c:3: error; then \"A header.\"\n";
    (void)state;
    for (int again = 0; again < 2; again++) {
        BUF_LOCAL(text, PROMPT_BYTES_MAX);
        prompt_repair(prompts, &context, &idea, "int x;", "gave a wrong result", "wrong",
                      again ? before : "", 0, &text);
        assert_int_equal(strstr(buf_text(&text), "\n\n# What was mended before, without success\n"
                                                 "- it did not compile: x.c:3: error; then \"A "
                                                 "header.\"\n\n# Answer\n") != NULL,
                         again);
        assert_int_equal(strstr(buf_text(&text), "mended before") != NULL, again);
        assert_null(strstr(buf_text(&text), "\n\n\n"));
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_failures),
                                       cmocka_unit_test(test_mended)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    problem_free(problem);
    arena_free(arena);
    return failed;
}
