/* Every kind of prompt, for every language of every backend: no slot is left, and what only other
 * hardware has is not spoken of. With TWAGENT_SHOW_PROMPTS they are printed, for who reads them. */
#include "check.h"

#include "agents/prompt/prompt.h"
#include "base/buf.h"

#include <stdio.h>

static const char *const backends[] = {"cpu", "cuda", "webgpu"};
static const struct idea idea = {.title = "Pack B", .category = "memory", .why = "It is strided."};
static const struct prompt_kernel kernel = {.id = "r1-c1", .name = "a", .source = "int x;\n"};

struct kind {
    const char *name;
    enum prompt_agent agent;
};

static const struct kind kinds[] = {{"ideas", PROMPT_IDEAS},
                                    {"values", PROMPT_IDEAS},
                                    {"implement", PROMPT_IMPLEMENT},
                                    {"operate", PROMPT_OPERATE},
                                    {"repair", PROMPT_REPAIR}};

static void put(const struct prompts *prompts, const struct prompt_context *context, size_t kind,
                struct buf *out)
{
    prompt_system_for(prompts, kinds[kind].agent, out);
    buf_add_char(out, '\n');
    switch (kind) {
    case 0:
        prompt_ideas(prompts, context, &kernel, 1, NULL, 0, 3, 0, out);
        break;
    case 1:
        prompt_values(prompts, context, &kernel, NULL, 0, 3, 0, out);
        break;
    case 2:
        prompt_implement(prompts, context, &kernel, &idea, NULL, 0, 0, out);
        break;
    case 3:
        prompt_operate(prompts, context, &kernel, &idea, NULL, 0, 0, out);
        break;
    default:
        prompt_repair(prompts, context, &idea, "int x;\n", PROMPT_NOT_COMPILED, "x.c:1: error: y",
                      "- it did not compile: z; then \"A header.\"\n", 0, out);
    }
}

static void look_at(const struct prompts *prompts, const struct prompt_context *context,
                    const char *backend)
{
    static const char *const of_gpus[] = {"tensor core", "tensor-core",   "bf16", "tf32",
                                          "wgmma",       "shared memory", "warp"};
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        BUF_LOCAL(text, PROMPT_BYTES_MAX);
        put(prompts, context, kind, &text);
        const char *said = buf_text(&text);
        if (getenv("TWAGENT_SHOW_PROMPTS") != NULL)
            printf("======== %s, %s, %s\n%s\n", backend, context->language->name, kinds[kind].name,
                   said);
        if (strstr(said, "{{") != NULL)
            fail_msg("%s, %s: a slot is left: %.60s", backend, kinds[kind].name,
                     strstr(said, "{{"));
        assert_null(strstr(said, "(null)"));
        assert_non_null(strstr(said, "hardware"));
        for (size_t i = 0; i < COUNT(of_gpus) && strcmp(backend, "cpu") == 0; i++)
            if (strstr(said, of_gpus[i]) != NULL)
                fail_msg("a %s prompt for a CPU speaks of \"%s\"", kinds[kind].name, of_gpus[i]);
    }
}

static void every_prompt_is_filled(void **state)
{
    (void)state;
    struct err err;
    struct arena *arena = arena_new();
    struct problem *problem;
    setenv("TWAGENT_DATA", TEST_SOURCE_DIR, 1);
    assert_int_equal(
        problem_load(TEST_SOURCE_DIR "/tests/unit/agents/golden/scale", &problem, &err), 0);
    for (size_t i = 0; i < COUNT(backends); i++) {
        struct prompts *prompts;
        const struct target *target = target_find(backends[i]);
        assert_non_null(target);
        assert_int_equal(prompts_load(arena, backends[i], &prompts, &err), 0);
        for (size_t k = 0; target->languages[k] != NULL; k++) {
            const struct prompt_context context = {
                .problem = problem, .language = target->languages[k], .baseline = "reference"};
            look_at(prompts, &context, backends[i]);
        }
    }
    problem_free(problem);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_prompt_is_filled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
