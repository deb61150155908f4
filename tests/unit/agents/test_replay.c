/* Replays: the answers of a recorded run, by who asked; and records as they lie in the store. */
#include "completion_check.h"

#include "agents/llm/completion_record.h"
#include "base/value.h"

static const char *const names[] = {"c1", "c2", "round1.0"};

static void fill(struct scene *scene, const char *run, const struct model *model, const char *words)
{
    scene->run = run;
    for (size_t i = 0; i < COUNT(names); i++) {
        scene_ask(scene, i, model, words);
        snprintf(scene->ids[i], sizeof scene->ids[i], "%s-%s", run, names[i]);
        scene->asks[i].purpose = i == 2 ? "ideas" : "implement";
        scene->asks[i].step = i == 1 ? 4 : 0;
    }
}

static struct model replay_of(const char *run)
{
    return (struct model){.name = "replay/run",
                          .provider = "replay",
                          .wire_name = "run",
                          .source = run,
                          .temperature = -1,
                          .prompt_price = -1,
                          .completion_price = -1,
                          .weight = 1};
}

/* r2 asks in other words, and gets what r1 got; so does r3 from r2, which was itself a replay. */
static void test_replayed(void **state)
{
    (void)state;
    struct provider provider = provider_start(NULL, "good");
    const struct model model = model_at(provider.url, "good");
    const struct model of[] = {replay_of("r1"), replay_of("r2")};
    static const char *const runs[] = {"r2", "r3"};
    struct scene *first = scene_new(3);
    fill(first, "r1", &model, "hello");
    scene_run(first);
    provider_stop(&provider);
    for (size_t k = 0; k < 2; k++) {
        struct scene *scene = scene_new(3);
        fill(scene, runs[k], &of[k], k == 0 ? "other words" : "and others");
        scene_run(scene);
        for (size_t i = 0; i < 3; i++) {
            if (scene->asks[i].err.code != ERR_NONE)
                fail_msg("%s", scene->asks[i].err.message);
            assert_string_equal(scene->asks[i].completion.text, first->asks[i].completion.text);
        }
        assert_int_equal(scene->totals.requests, 0);
        scene_free(scene);
    }
    scene_free(first);
}

/* A run that was answered by the store, since an earlier one had asked the same, has those answers
 * as its own. */
static void test_adopted(void **state)
{
    (void)state;
    struct provider provider = provider_start(NULL, "good");
    const struct model model = model_at(provider.url, "good");
    const struct model of = replay_of("r2");
    static const char *const runs[] = {"r1", "r2", "r2"};
    for (size_t i = 0; i < 3; i++) {
        struct scene *scene = scene_new(3);
        fill(scene, runs[i], &model, "hello");
        scene_run(scene);
        assert_int_equal(scene->totals.requests, i == 0 ? 3 : 0);
        scene_free(scene);
    }
    provider_stop(&provider);
    struct scene *scene = scene_new(3);
    fill(scene, "r3", &of, "other words");
    scene_run(scene);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(scene->asks[i].err.code, ERR_NONE);
    scene_free(scene);
}

static void test_not_found(void **state)
{
    (void)state;
    const struct model of = replay_of("r1");
    struct scene *scene = scene_new(3);
    fill(scene, "r2", &of, "hello");
    scene_run(scene);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(scene->asks[i].err.code, ERR_NOT_FOUND);
    assert_non_null(strstr(scene->asks[1].err.message, "r1"));
    assert_non_null(strstr(scene->asks[1].err.message, "c2, implement 4"));
    scene_free(scene);
}

/* ---- records ---- */

static void test_record(void **state)
{
    (void)state;
    const struct completion_request request = {
        .model = "wire", .system = "s", .prompt = "p", .temperature = -1, .max_tokens = 9};
    const struct completion completion = {.text = (char[]){"words"},
                                          .prompt_tokens = 3,
                                          .completion_tokens = 4,
                                          .finish = "length",
                                          .model = "wire-1"};
    const struct completion_origin origin = {
        .use = {.run = "r3", .asker = "r3-c7", .purpose = "repair", .step = 2},
        .provider = "openai",
        .model = "mine",
        .sample = 5,
        .tries = 3,
        .cost_micro_dollars = 77};
    struct arena *arena = arena_new();
    struct completion read;
    struct value *root;
    struct buf text;
    struct err err;
    buf_init(&text, 1 << 16);
    completion_encode(&request, &completion, &origin, &text);
    assert_int_equal(completion_decode(arena, buf_text(&text), text.length, &read, &err), 0);
    assert_string_equal(read.text, "words");
    assert_string_equal(read.finish, "length");
    assert_int_equal(read.completion_tokens, 4);
    assert_int_equal(value_parse_json(arena, "r", buf_text(&text), text.length, &root, &err), 0);
    static const char *const texts[][2] = {{"run", "r3"},
                                           {"asker", "r3-c7"},
                                           {"purpose", "repair"},
                                           {"provider", "openai"},
                                           {"model", "mine"}};
    static const struct {
        const char *key;
        int64_t value;
    } numbers[] = {{"step", 2}, {"sample", 5}, {"tries", 3}, {"cost_micro_dollars", 77}};
    for (size_t i = 0; i < COUNT(texts); i++)
        assert_string_equal(value_text(root, texts[i][0], ""), texts[i][1]);
    for (size_t i = 0; i < COUNT(numbers); i++)
        assert_int_equal(value_int(root, numbers[i].key, -9), numbers[i].value);
    buf_free(&text);
    arena_free(arena);
}

/* As they were written before a record said whose it is; and what is none. */
static void test_old_record(void **state)
{
    (void)state;
    static const char old[] =
        "{\"purpose\":\"ideas\",\"sample\":1,\"tries\":1,\"request\":{\"model\":\"m\"},"
        "\"answer\":{\"text\":\"words\",\"finish\":\"stop\",\"model\":\"m\","
        "\"prompt_tokens\":1,\"completion_tokens\":2}}";
    const struct completion_use use = {.run = "r1", .asker = "r1-c1", .purpose = "x", .step = 0};
    struct arena *arena = arena_new();
    struct completion read;
    struct buf text, twice;
    struct err err;
    buf_init(&text, 1 << 16);
    buf_init(&twice, 1 << 16);
    assert_int_equal(completion_decode(arena, old, strlen(old), &read, &err), 0);
    assert_string_equal(read.text, "words");
    assert_true(completion_adopt(old, strlen(old), &use, &text));
    assert_int_equal(completion_decode(arena, buf_text(&text), text.length, &read, &err), 0);
    assert_string_equal(read.text, "words");
    assert_false(completion_adopt(buf_text(&text), text.length, &use, &twice)); /* it has it now */
    assert_false(completion_adopt("[1", 2, &use, &twice));
    assert_int_equal(completion_decode(arena, "{}", 2, &read, &err), -1);
    assert_int_equal(err.code, ERR_CORRUPT);
    buf_free(&text);
    buf_free(&twice);
    arena_free(arena);
}

/* What tells requests apart, and what does not. */
static void test_key(void **state)
{
    (void)state;
    const struct completion_request base = {.model = "m", .prompt = "p", .temperature = -1};
    struct completion_request other[] = {base, base, base, base, base, base};
    char one[33], two[33];
    other[0].model = "n";
    other[1].prompt = "q";
    other[2].temperature = 0.5;
    other[3].max_tokens = 7;
    other[4].json = true;
    other[5].schema = "{}";
    completion_key("openai", "here", &base, 0, one);
    completion_key("openai", "here", &base, 0, two);
    assert_string_equal(one, two);
    for (size_t i = 0; i < COUNT(other); i++) {
        completion_key("openai", "here", &other[i], 0, two);
        assert_string_not_equal(one, two);
    }
    completion_key("openai", "here", &base, 1, two);
    assert_string_not_equal(one, two);
    completion_key("openai", "there", &base, 0, two);
    assert_string_not_equal(one, two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_replayed),        ENGINE_TEST(test_adopted),
        ENGINE_TEST(test_not_found),       cmocka_unit_test(test_record),
        cmocka_unit_test(test_old_record), cmocka_unit_test(test_key)};
    setenv("no_proxy", "*", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
