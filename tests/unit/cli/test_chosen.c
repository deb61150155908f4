#include "check.h"

#include "cli/run/chosen.h"

#include <unistd.h>

static int clean(void **state)
{
    static const char *const variables[] = {"OPENAI_API_KEY",   "ANTHROPIC_API_KEY",
                                            "TWAGENT_MODEL",    "TWAGENT_PROVIDER",
                                            "TWAGENT_BASE_URL", "TWAGENT_MODELS"};
    (void)state;
    for (size_t i = 0; i < COUNT(variables); i++)
        unsetenv(variables[i]);
    return chdir("/tmp");
}

static int choose(struct arena *arena, const char *line, struct chosen *chosen, struct err *err)
{
    struct settings settings = settings_of(arena, COMMAND_RUN, line);
    return chosen_from_settings(arena, &settings, chosen, err);
}

static int choose_again(struct arena *arena, const char *text, const char *line,
                        struct chosen *chosen, struct err *err)
{
    struct settings settings = settings_of(arena, COMMAND_RESUME, line);
    return chosen_again(arena, text, &settings, chosen, err);
}

static void nobody_is_asked_where_nobody_is_named(void **state)
{
    const char *none = "", *builtin = "--model|gpt-5-mini|--provider|builtin";
    struct chosen chosen;
    struct err err = {0};
    struct arena *arena = arena_new();
    (void)state;
    assert_int_equal(choose(arena, none, &chosen, &err), 0);
    assert_int_equal(chosen.ideas.count + chosen.code.count, 0);
    assert_string_equal(chosen.text, "{}");
    assert_int_equal(choose(arena, builtin, &chosen, &err), 0);
    assert_int_equal(chosen.ideas.count, 0);
    assert_int_equal(choose_again(arena, "{}", none, &chosen, &err), 0);
    assert_int_equal(chosen.ideas.count, 0);
    arena_free(arena);
}

static void what_does_not_go_together_is_usage(void **state)
{
    static const char *const lines[] = {"--provider|openai", "--provider|mailbox",
                                        "--idea-model|openai/a", "--code-model|openai/a",
                                        "--model|no-such-model"};
    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++) {
        struct chosen chosen;
        struct err err = {0};
        struct arena *arena = arena_new();
        assert_int_equal(choose(arena, lines[i], &chosen, &err), -1);
        assert_int_equal(err.code, ERR_USAGE);
        arena_free(arena);
    }
}

/* A choice is recorded as it was made and chooses the same again, wherever one stands. */
static void a_choice_chooses_the_same_again(void **state)
{
    const char *arguments = "--model|openai/a@2,openai/b|--code-model|openai/c|--base-url|http://"
                            "127.0.0.1:1/v1|--provider|openai|--temperature|0.5|--max-tokens|777";
    const char *none = "";
    struct chosen first, again;
    struct err err = {0};
    struct arena *arena = arena_new();
    (void)state;
    setenv("OPENAI_API_KEY", "sk-hidden", 1);
    assert_int_equal(choose(arena, arguments, &first, &err), 0);
    assert_int_equal(first.ideas.count, 2);
    assert_int_equal(first.code.count, 1);
    assert_null(strstr(first.text, "sk-hidden"));
    assert_int_equal(choose_again(arena, first.text, none, &again, &err), 0);
    assert_string_equal(again.text, first.text);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(again.ideas.items[i].name, first.ideas.items[i].name);
        assert_string_equal(again.ideas.items[i].base_url, "http://127.0.0.1:1/v1");
        assert_true(again.ideas.items[i].weight > 0);
        assert_int_equal(again.ideas.items[i].max_tokens, 777);
    }
    assert_true(again.ideas.items[0].temperature > 0.49);
    assert_string_equal(again.code.items[0].name, "openai/c");
    arena_free(arena);
}

/* Its address goes too: another model's key must not be sent to it. */
static void a_model_named_anew_takes_the_place_of_all(void **state)
{
    const char *first_line = "--model|a|--code-model|b|--base-url|http://x/v1|--provider|openai";
    const char *again_line = "--model|claude-sonnet-4-5";
    const char *url_line = "--base-url|http://y/v1";
    struct chosen chosen;
    struct err err = {0};
    struct arena *arena = arena_new();
    (void)state;
    setenv("OPENAI_API_KEY", "sk-hidden", 1);
    setenv("ANTHROPIC_API_KEY", "sk-hidden", 1);
    assert_int_equal(choose(arena, first_line, &chosen, &err), 0);
    const char *text = chosen.text;
    assert_int_equal(choose_again(arena, text, again_line, &chosen, &err), 0);
    assert_string_equal(chosen.ideas.items[0].name, "claude-sonnet-4-5");
    assert_string_equal(chosen.code.items[0].name, "claude-sonnet-4-5");
    assert_string_equal(chosen.code.items[0].provider, "anthropic");
    assert_null(strstr(chosen.code.items[0].base_url, "http://x"));
    assert_int_equal(choose_again(arena, text, url_line, &chosen, &err), 0);
    assert_null(strstr(chosen.text, "http://x"));
    arena_free(arena);
}

static void a_mailbox_is_found_from_everywhere(void **state)
{
    static const char *const lines[] = {"--provider|mailbox|--model|box@2,/other/box",
                                        "--model|mailbox/box@2, mailbox//other/box"};
    char here[256] = "";
    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    for (size_t i = 0; i < COUNT(lines); i++) {
        char expected[300];
        struct chosen chosen;
        struct err err = {0};
        struct arena *arena = arena_new();
        assert_int_equal(chdir(here), 0);
        assert_int_equal(choose(arena, lines[i], &chosen, &err), 0);
        const char *first = chosen.ideas.items[0].wire_name; /* a request is known by it */
        assert_int_equal(chdir("/"), 0);
        assert_int_equal(choose_again(arena, chosen.text, "", &chosen, &err), 0);
        snprintf(expected, sizeof expected, "%s/box", here);
        assert_string_equal(chosen.ideas.items[0].wire_name, first);
        assert_string_equal(chosen.ideas.items[0].source, expected);
        assert_string_equal(chosen.ideas.items[1].source, "/other/box");
        assert_true(chosen.ideas.items[0].weight > 1.9);
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nobody_is_asked_where_nobody_is_named, clean),
        cmocka_unit_test_setup(what_does_not_go_together_is_usage, clean),
        cmocka_unit_test_setup(a_choice_chooses_the_same_again, clean),
        cmocka_unit_test_setup(a_model_named_anew_takes_the_place_of_all, clean),
        cmocka_unit_test_setup(a_mailbox_is_found_from_everywhere, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
