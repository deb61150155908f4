/* Completions against the fake provider: what is retried and how often, what blocks the key, and
 * that an answer is in the store before its asker has it, and is never paid for twice. */
#include "completion_check.h"

#include "agents/llm/completion_private.h"

/* `count` asks in the same words of one model. */
static struct scene *scene_of(const struct model *model, size_t count, unsigned in_flight)
{
    struct scene *scene = scene_new(count);
    for (size_t i = 0; i < count; i++)
        scene_ask(scene, i, model, "hello");
    scene->spec.in_flight = in_flight;
    return scene;
}

static struct scene *run_at(const char *url, size_t count, unsigned in_flight)
{
    const struct model model = model_at(url, "good");
    struct scene *scene = scene_of(&model, count, in_flight);
    scene_run(scene);
    return scene;
}

static struct scene *run(const char *const *faults, const char *key, size_t count,
                         uint64_t cancel_after_ms, unsigned in_flight)
{
    struct provider provider = provider_start(faults, "good");
    const struct model model = model_at(provider.url, key);
    struct scene *scene = scene_of(&model, count, in_flight);
    scene->act_after_ms = cancel_after_ms;
    if (cancel_after_ms == 0)
        scene_leap_over(scene, faults[0]);
    scene_run(scene);
    provider_stop(&provider);
    return scene;
}

static const struct {
    const char *faults[FAULTS_MAX];
    const char *key;
    enum err_code code;
    enum fault fault;
    int64_t requests; /* so that retries do not multiply */
    bool blocked;
} rows[] = {
    {{NULL}, "good", ERR_NONE, FAULT_NONE, 1, false},
    {{"drip"}, "good", ERR_NONE, FAULT_NONE, 1, false},
    {{"hints"}, "good", ERR_NONE, FAULT_NONE, 1, false},
    {{"usage text=missing"}, "good", ERR_NONE, FAULT_NONE, 1, false},
    {{"status code=500", "status code=503"}, "good", ERR_NONE, FAULT_NONE, 3, false},
    {{"status code=408", "status code=409", "status code=529"}, "good", ERR_NONE, 0, 4, false},
    {{"status code=429 text=0", "status code=429"}, "good", ERR_NONE, FAULT_NONE, 3, false},
    {{"status code=429 times=0"}, "good", ERR_PROTOCOL, FAULT_LIMITED, 4, false},
    {{"status code=502 times=0"}, "good", ERR_PROTOCOL, FAULT_RETRY, 4, false},
    {{"reset after=0"}, "good", ERR_NONE, FAULT_NONE, 2, false},
    {{"reset after=300", "close after=400"}, "good", ERR_NONE, FAULT_NONE, 3, false},
    {{"reset after=300 times=0"}, "good", ERR_NETWORK, FAULT_RETRY, 4, false},
    {{"stall after=300"}, "good", ERR_NONE, FAULT_NONE, 2, false},
    {{"truncate", "truncate"}, "good", ERR_NONE, FAULT_NONE, 3, false},
    {{"truncate times=0"}, "good", ERR_PROTOCOL, FAULT_RETRY, 3, false},
    {{"garble times=0"}, "good", ERR_PROTOCOL, FAULT_RETRY, 3, false},
    {{"empty"}, "good", ERR_NONE, FAULT_NONE, 2, false},
    {{"empty times=0"}, "good", ERR_PROTOCOL, FAULT_EMPTY, 2, false},
    {{"null times=0"}, "good", ERR_PROTOCOL, FAULT_EMPTY, 2, false},
    {{"error code=503"}, "good", ERR_NONE, FAULT_NONE, 2, false},
    {{"error code=503 times=0"}, "good", ERR_PROTOCOL, FAULT_RETRY, 4, false},
    {{"error code=401"}, "good", ERR_PROTOCOL, FAULT_KEY, 1, true},
    {{"html"}, "good", ERR_PROTOCOL, FAULT_FATAL, 1, false},
    {{"bomb after=100000000"}, "good", ERR_LIMIT, FAULT_FATAL, 1, false},
    {{"status code=400"}, "good", ERR_PROTOCOL, FAULT_FATAL, 1, false},
    {{"status code=413"}, "good", ERR_PROTOCOL, FAULT_TOO_LONG, 1, false},
    {{"status code=302 text=http://127.0.0.1:1/"}, "good", ERR_PROTOCOL, FAULT_FATAL, 1, false},
    {{"status code=404"}, "good", ERR_PROTOCOL, FAULT_MODEL, 1, true},
    {{"status code=402"}, "good", ERR_PROTOCOL, FAULT_QUOTA, 1, true},
    {{"status code=429 kind=quota"}, "good", ERR_PROTOCOL, FAULT_QUOTA, 1, true},
    {{"refuse"}, "good", ERR_PROTOCOL, FAULT_REFUSED, 1, false},
    {{"refuse text=filter"}, "good", ERR_PROTOCOL, FAULT_REFUSED, 1, false},
    {{NULL}, "bad", ERR_PROTOCOL, FAULT_KEY, 1, true},
};

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct err err;
        struct scene *scene = run(rows[i].faults, rows[i].key, 1, 0, 0);
        const struct ask *ask = &scene->asks[0];
        if (ask->err.code != rows[i].code || ask->fault != rows[i].fault ||
            scene->totals.requests != rows[i].requests ||
            (scene->blocked.code != ERR_NONE) != rows[i].blocked)
            fail_msg("row %zu (%s): %s \"%s\", fault %d, %lld requests, blocked \"%s\"", i,
                     rows[i].faults[0], err_code_name(ask->err.code), ask->err.message,
                     (int)ask->fault, (long long)scene->totals.requests, scene->blocked.message);
        if (ask->err.code == ERR_NONE) {
            assert_true(strlen(ask->completion.text) >= 200);
            assert_string_equal(ask->completion.finish, "stop");
        }
        if (rows[i].faults[0] != NULL && strcmp(rows[i].faults[0], "html") == 0)
            assert_non_null(strstr(ask->err.message, "content-type"));
        assert_null(strstr(ask->err.message, "bad"));
        assert_int_equal(scene->totals.waiting, 0);
        scene_free(scene);
        assert_int_equal(file_remove_tree(folder, &err), 0);
    }
}

/* What was cut off is an answer: its asker asks for more room. */
static void test_length(void **state)
{
    (void)state;
    static const char *const faults[] = {"length", NULL};
    struct scene *scene = run(faults, "good", 1, 0, 0);
    assert_int_equal(scene->asks[0].err.code, ERR_NONE);
    assert_string_equal(scene->asks[0].completion.finish, "length");
    assert_int_equal(scene->totals.requests, 1);
    scene_free(scene);
}

/* The second run, of another process as it were, finds every answer: no request is sent. */
static void test_stored(void **state)
{
    (void)state;
    struct provider provider = provider_start(NULL, "good");
    struct scene *first = run_at(provider.url, 5, 2);
    struct scene *second = run_at(provider.url, 6, 2);
    assert_int_equal(first->totals.requests, 5);
    assert_int_equal(second->totals.requests, 1);
    assert_int_equal(second->totals.from_store, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(first->asks[i].completion.text, second->asks[i].completion.text);
    scene_free(first);
    scene_free(second);
    /* With another field the same words are another request. */
    struct arena *arena = arena_new();
    struct value *body;
    assert_int_equal(value_parse_json(arena, "", "{\"service_tier\":\"flex\"}", 23, &body, NULL),
                     0);
    struct model model = model_at(provider.url, "good");
    model.body = body;
    struct scene *third = scene_new(1);
    scene_ask(third, 0, &model, "hello");
    scene_run(third);
    assert_int_equal(third->totals.requests, 1);
    assert_int_equal(third->asks[0].err.code, ERR_NONE);
    scene_free(third);
    arena_free(arena);
    provider_stop(&provider);
}

/* A refusal is never asked for again in the same words, and still is one. */
static void test_refused(void **state)
{
    (void)state;
    static const char *const faults[] = {"refuse", NULL};
    struct provider provider = provider_start(faults, "good");
    struct scene *first = run_at(provider.url, 1, 0);
    struct scene *second = run_at(provider.url, 1, 0);
    assert_int_equal(first->totals.requests, 1);
    assert_int_equal(second->totals.requests, 0);
    assert_int_equal(second->asks[0].fault, FAULT_REFUSED);
    assert_int_equal(second->asks[0].err.code, ERR_PROTOCOL);
    assert_true(second->asks[0].from_store);
    scene_free(first);
    scene_free(second);
    provider_stop(&provider);
}

/* A connection that was kept alive and is dead costs one try that nobody counts. */
static void test_dead_connection(void **state)
{
    (void)state;
    static const char *const faults[] = {"dead", NULL};
    struct provider provider = provider_start(faults, "good");
    struct scene *scene = scene_new(2);
    const struct model model = model_at(provider.url, "good");
    struct retry_policy once = quick;
    once.tries = 1;
    scene->spec.policy = &once;
    scene->spec.in_flight = 1;
    scene_ask(scene, 0, &model, "hello");
    scene_ask(scene, 1, &model, "hello");
    scene_run(scene);
    assert_int_equal(scene->asks[0].err.code, ERR_NONE);
    if (scene->asks[1].err.code != ERR_NONE)
        fail_msg("%s", scene->asks[1].err.message);
    scene_free(scene);
    provider_stop(&provider);
}

static void test_cancel(void **state)
{
    (void)state;
    static const char *const faults[] = {"stall after=300 times=0", NULL};
    struct scene *scene = run(faults, "good", 4, 30, 2);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(scene->asks[i].err.code, ERR_CANCELLED);
    scene_free(scene);
}

/* A provider's message may quote the key it was sent, more than once. */
static void test_key_is_hidden(void **state)
{
    (void)state;
    const struct model model = {.key = "sk-secret"};
    struct err err;
    err_set(&err, ERR_PROTOCOL, "no such key: sk-secret, sk-secret!");
    ask_hide_key(&model, &err);
    assert_string_equal(err.message, "no such key: *********, *********!");
}

/* ---- keys that a command prints ---- */

static void note_key(void *context, const struct event *event)
{
    bool *leaked = context;
    *leaked = *leaked || strstr(event->message, "good") != NULL || strstr(event->message, "bad");
}

/* `first` and `then`: what it prints; how often it ran. */
static int run_key_command(const char *first, const char *then, bool old, enum err_code code)
{
    ARENA_LOCAL(arena);
    struct err err;
    bool leaked = false;
    const char *count = arena_printf(arena, "%s.count", folder);
    const char *script = arena_printf(
        arena, "echo x >> %s; [ $(wc -l < %s) = 1 ] && echo '%s' || %s", count, count, first, then);
    const char *words[] = {"sh", "-c", script, NULL};
    struct key_command command = {
        .words = words, .name = "sh", .arena = arena, .lifetime_ms = 10000};
    struct provider provider = provider_start(NULL, "good");
    struct model model = model_at(provider.url, NULL);
    struct scene *scene = scene_new(2);
    model.key_command = &command;
    assert_int_equal(key_command_first(&command, &err), 0);
    command.got_ns = old ? 0 : command.got_ns;
    for (size_t i = 0; i < scene->count; i++)
        scene_ask(scene, i, &model, "hello");
    log_add_sink(note_key, &leaked, LOG_DEBUG);
    scene_run(scene);
    log_remove_sink(note_key, &leaked);
    provider_stop(&provider);
    assert_int_equal(scene->asks[0].err.code, code);
    assert_int_equal(scene->asks[1].err.code, code);
    assert_false(leaked);
    scene_free(scene);
    BUF_LOCAL(text, 1000);
    assert_int_equal(file_read(count, &text, &err), 0);
    return (int)text.length / 2;
}

static void test_key_command(void **state)
{
    (void)state;
    assert_int_equal(run_key_command("bad", "echo '  good '", false, ERR_NONE), 2);
    tear_down(NULL);
    set_up(NULL); /* too old already when it is used */
    assert_int_equal(run_key_command("bad", "echo good", true, ERR_NONE), 2);
    tear_down(NULL);
    set_up(NULL); /* the old one is all there is */
    assert_int_equal(run_key_command("bad", "exit 3", false, ERR_PROTOCOL), 2);
    tear_down(NULL);
    set_up(NULL);
    assert_int_equal(run_key_command("good", "exit 3", false, ERR_NONE), 1);
}

static void test_key_command_fails(void **state)
{
    (void)state;
    static const struct {
        const char *script, *words;
    } commands[] = {{"echo half a key; exit 0", "no key on one line"},
                    {"echo secret; echo who are you >&2; exit 3", "who are you"},
                    {"true", "no key on one line"},
                    {NULL, "no program"}};
    for (size_t i = 0; i < COUNT(commands); i++) {
        ARENA_LOCAL(arena);
        struct err err;
        const char *words[] = {"sh", "-c", commands[i].script, NULL};
        const char *none[] = {"no-such-program-here", NULL};
        struct key_command command = {.words = commands[i].script ? words : none, .arena = arena};
        assert_int_equal(key_command_first(&command, &err), -1);
        assert_int_equal(err.code, ERR_ENVIRONMENT);
        assert_non_null(strstr(err.message, commands[i].words));
        assert_null(strstr(err.message, "secret"));
        assert_null(strstr(err.message, "half"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {ENGINE_TEST(test_faults),
                                       ENGINE_TEST(test_length),
                                       ENGINE_TEST(test_stored),
                                       ENGINE_TEST(test_refused),
                                       ENGINE_TEST(test_dead_connection),
                                       ENGINE_TEST(test_key_command),
                                       cmocka_unit_test(test_key_command_fails),
                                       ENGINE_TEST(test_cancel),
                                       cmocka_unit_test(test_key_is_hidden)};
    setenv("no_proxy", "*", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
