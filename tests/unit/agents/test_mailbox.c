/* Mailboxes: what is written, which answers are taken, and when. */
#include "completion_check.h"

#include "agents/llm/mailbox.h"
#include "base/value.h"

#include <sys/stat.h>

static char box[300]; /* the folder of the present test's mailbox */

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void path_of(const char *key, const char *ending, char path[400])
{
    snprintf(path, 400, "%s/%s.%s", box, key, ending);
}

static void answer(const char *key, const char *ending, const char *text)
{
    char path[400];
    path_of(key, ending, path);
    put(path, text);
}

static struct model mailbox(void)
{
    snprintf(box, sizeof box, "%.250s-box", folder);
    return (struct model){.name = "mailbox/box",
                          .provider = "mailbox",
                          .wire_name = "a-person",
                          .source = box,
                          .temperature = -1,
                          .prompt_price = -1,
                          .completion_price = -1,
                          .weight = 1};
}

/* ---- looks ---- */

static struct mail mail_of(const char *key, struct arena *arena)
{
    static const struct completion_request request = {.model = "m", .prompt = "?"};
    (void)mailbox();
    return (struct mail){.folder = box,
                         .key = key,
                         .purpose = "implement",
                         .asker = "r1-c1",
                         .request = &request,
                         .arena = arena};
}

/* A file that grows between two looks is left alone until it has been the same twice. */
static void test_half_written(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct mail mail = mail_of("k", arena);
    mailbox_post(&mail);
    assert_true(mail.posted);
    mailbox_look(&mail);
    assert_false(mail.seen);
    answer("k", "answer.txt", "");
    mailbox_look(&mail);
    assert_false(mail.seen); /* nothing is in it yet */
    static const char *const parts[] = {"one", "one two", "one two three"};
    for (size_t i = 0; i < COUNT(parts); i++) {
        answer("k", "answer.txt", parts[i]);
        mailbox_look(&mail);
        assert_true(mail.seen && !mail.taken);
    }
    mailbox_look(&mail);
    assert_true(mail.taken);
    assert_string_equal(mail.completion.text, "one two three");
    assert_int_equal(mail.completion.prompt_tokens, -1);
    arena_free(arena);
}

static const struct {
    const char *ending, *text, *expected; /* NULL: it is no answer */
    int64_t tokens;
} rows[] = {
    {"answer.txt", "plain words\n", "plain words\n", -1},
    {"answer.txt", "bad \xff\xfe bytes", "bad \xEF\xBF\xBD\xEF\xBF\xBD bytes", -1},
    {"answer.txt", "a \\u0041 stays as it is", "a \\u0041 stays as it is", -1},
    {"answer.json", "{\"text\": \"w\\u00f6rter\"}", "w\xC3\xB6rter", -1},
    {"answer.json", "{\"text\": \"x\", \"usage\": {\"completion_tokens\": 7}}", "x", 7},
    {"answer.json", "{\"text\": \"x\"", NULL, 0},
    {"answer.json", "{\"words\": \"x\"}", NULL, 0},
    {"answer.json", "[1]", NULL, 0},
};

static void test_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct arena *arena = arena_new();
        char key[8];
        snprintf(key, sizeof key, "k%zu", i);
        struct mail mail = mail_of(key, arena);
        mailbox_post(&mail);
        answer(key, rows[i].ending, rows[i].text);
        mailbox_look(&mail);
        mailbox_look(&mail);
        if (mail.taken != (rows[i].expected != NULL) ||
            (mail.err.code == ERR_NONE) != (rows[i].expected != NULL))
            fail_msg("row %zu: \"%s\"", i, mail.err.message);
        if (mail.taken) {
            assert_string_equal(mail.completion.text, rows[i].expected);
            assert_int_equal(mail.completion.completion_tokens, rows[i].tokens);
        }
        arena_free(arena);
    }
}

/* ---- with the engine ---- */

static void scene_fill(struct scene *scene, const struct model *model)
{
    for (size_t i = 0; i < scene->count; i++) {
        scene_ask(scene, i, model, "Write a \"kernel\".\n\tFast.");
        snprintf(scene->ids[i], sizeof scene->ids[i], "r1-c%zu", i + 1);
        scene->asks[i].purpose = "implement";
        scene->asks[i].request.system = "Be terse.";
        scene->asks[i].request.schema = "{\"type\":\"object\"}";
        scene->asks[i].request.json = true;
    }
    scene->act_after_ms = 20;
}

static void check_request(const char *key)
{
    char path[400];
    struct buf text;
    struct err err;
    struct value *root;
    struct arena *arena = arena_new();
    buf_init(&text, 1 << 20);
    path_of(key, "request.json", path);
    assert_int_equal(file_read(path, &text, &err), 0);
    assert_int_equal(value_parse_json(arena, "r", buf_text(&text), text.length, &root, &err), 0);
    assert_string_equal(value_text(root, "model", ""), "a-person");
    assert_string_equal(value_text(root, "system", ""), "Be terse.");
    assert_string_equal(value_text(root, "prompt", ""), "Write a \"kernel\".\n\tFast.");
    assert_string_equal(value_text(root, "purpose", ""), "implement");
    assert_memory_equal(value_text(root, "asker", ""), "r1-c", 4);
    assert_non_null(value_at(root, "schema.type"));
    path_of(key, "md", path);
    assert_true(file_exists(path));
    buf_free(&text);
    arena_free(arena);
}

static void answer_all_when_awaited(struct scene *scene, int times)
{
    struct completions_totals totals = completions_totals(scene->completions);
    char text[32];
    (void)times;
    if (totals.awaited != (int64_t)scene->count)
        return;
    assert_int_equal(totals.waiting, scene->count);
    for (size_t i = 0; i < scene->count; i++) {
        check_request(scene->asks[i].key);
        snprintf(text, sizeof text, "answer %zu", i);
        answer(scene->asks[i].key, "answer.txt", text);
    }
}

static void test_engine(void **state)
{
    (void)state;
    const struct model model = mailbox();
    struct scene *scene = scene_new(3);
    scene_fill(scene, &model);
    scene->act = answer_all_when_awaited;
    scene_run(scene);
    for (size_t i = 0; i < 3; i++) {
        char text[32];
        snprintf(text, sizeof text, "answer %zu", i);
        assert_int_equal(scene->asks[i].err.code, ERR_NONE);
        assert_string_equal(scene->asks[i].completion.text, text);
    }
    assert_int_equal(scene->totals.awaited, 0);
    assert_int_equal(scene->totals.answers, 3);
    scene_free(scene);
    scene = scene_new(3); /* the folder is not needed any more */
    struct err err;
    assert_int_equal(file_remove_tree(box, &err), 0);
    scene_fill(scene, &model);
    scene->act_after_ms = 0; /* nobody is cancelled for being late */
    scene_run(scene);
    assert_int_equal(scene->totals.from_store, 3);
    assert_false(file_is_dir(box));
    scene_free(scene);
}

static void cancel_when_awaited(struct scene *scene, int times)
{
    (void)times;
    if (completions_totals(scene->completions).awaited == (int64_t)scene->count)
        for (size_t i = 0; i < scene->count; i++)
            task_cancel(&scene->asks[i].task);
}

/* A run that stops with answers awaited, and one that finds them when it goes on; an answer that
 * is there is never counted among those that are awaited. */
static void never_awaited(struct scene *scene, int times)
{
    (void)times;
    assert_int_equal(completions_totals(scene->completions).awaited, 0);
}

static void test_resumed(void **state)
{
    (void)state;
    const struct model model = mailbox();
    struct scene *scene = scene_new(2);
    scene_fill(scene, &model);
    scene->act = cancel_when_awaited;
    scene_run(scene);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(scene->asks[i].err.code, ERR_CANCELLED);
        answer(scene->asks[i].key, "answer.json", "{\"text\": \"by hand\"}");
    }
    scene_free(scene);
    scene = scene_new(2);
    scene_fill(scene, &model);
    scene->act = never_awaited;
    scene_run(scene);
    assert_string_equal(scene->asks[1].completion.text, "by hand");
    scene_free(scene);
}

/* A folder that cannot be written is said, not waited for. */
static void test_no_folder(void **state)
{
    (void)state;
    const struct model model = mailbox();
    put(box, "in the way");
    struct scene *scene = scene_new(1);
    scene_fill(scene, &model);
    scene->act_after_ms = 0;
    scene_run(scene);
    assert_int_not_equal(scene->asks[0].err.code, ERR_NONE);
    assert_int_not_equal(scene->asks[0].err.code, ERR_CANCELLED);
    scene_free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {ENGINE_TEST(test_half_written), ENGINE_TEST(test_answers),
                                       ENGINE_TEST(test_engine), ENGINE_TEST(test_resumed),
                                       ENGINE_TEST(test_no_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
