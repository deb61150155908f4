/* Requests that go together: the formats of the providers, and the engine against a fake of them:
 * one batch for all, what is billed, what is asked again, what a killed process leaves. */
#include "completion_check.h"

#include "agents/llm/completion_private.h"
#include "agents/llm/providers/batch.h"

#include <sys/prctl.h>

/* Long enough that all of a test's requests have come, on a busy machine, too. */
static const struct batch_terms terms = {.gather_ms = 150, .poll_ms = 10, .wait_ms = 600000};
static const struct batch_terms brief = {.gather_ms = 5, .poll_ms = 5, .wait_ms = 600000};

static const struct codec *const codecs[] = {&codec_openai, &codec_responses, &codec_anthropic,
                                             &codec_gemini};

static struct model model_of(const struct codec *codec, char *url)
{
    struct model model = model_at(url, "good");
    char *version = strstr(url, "/v1");
    if (version != NULL && (codec == &codec_anthropic || codec == &codec_gemini))
        *version = '\0';
    model.codec = codec;
    model.provider = codec->name;
    model.batch = &terms;
    model.prompt_price = 1;
    model.completion_price = 2;
    return model;
}

static struct scene *ask_many(const struct model *model, size_t count)
{
    static char prompts[ASKS_MAX][400];
    struct scene *scene = scene_new(count);
    scene->caps.tokens = 100000000;
    for (size_t i = 0; i < count; i++) {
        snprintf(prompts[i], sizeof prompts[i], "%0*zu", 20 + 20 * (int)i, i);
        scene_ask(scene, i, model, prompts[i]);
        scene->asks[i].request.max_tokens = 1000;
    }
    return scene;
}

static size_t answered(const struct scene *scene)
{
    size_t count = 0;
    for (size_t i = 0; i < scene->count; i++)
        count += scene->asks[i].err.code == ERR_NONE;
    return count;
}

/* ---- formats ---- */

static const struct value *parse(struct arena *arena, const char *text)
{
    struct value *root;
    assert_int_equal(value_parse_json(arena, "test", text, strlen(text), &root, NULL), 0);
    return root;
}

static void test_put(void **state)
{
    (void)state;
    const struct completion_request request = {
        .model = "m", .prompt = "a \"b\"\n", .temperature = -1};
    const struct batch_item items[] = {{"id-1", &request}, {"id-2", &request}};
    static const char *const wanted[] = {
        "{\"custom_id\":\"id-1\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":{"
        "\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a \\\"b\\\"\\n\"}]}}\n",
        "\"url\":\"/v1/responses\",\"body\":{\"model\":\"m\",\"input\":\"a \\\"b\\\"\\n\","
        "\"store\":false}}\n",
        "{\"requests\":[{\"custom_id\":\"id-1\",\"params\":{\"model\":\"m\",\"max_tokens\":32000,"
        "\"messages\":[{\"role\":\"user\",\"content\":\"a \\\"b\\\"\\n\"}]}},{\"custom_id\"",
        "{\"batch\":{\"displayName\":\"ours\",\"inputConfig\":{\"requests\":{\"requests\":["
        "{\"request\":{\"contents\""};
    for (size_t i = 0; i < COUNT(codecs); i++) {
        ARENA_LOCAL(arena);
        BUF_LOCAL(body, 1 << 20);
        const struct batch_place place = {codecs[i], "http://h/v1", "key", "m", "ours"};
        batch_format_of(codecs[i])->put(arena, &place, items, 2, &body);
        if (strstr(buf_text(&body), wanted[i]) == NULL)
            fail_msg("%s: %s", codecs[i]->name, buf_text(&body));
        assert_null(strstr(buf_text(&body), "stream"));
        assert_null(strstr(buf_text(&body), "\"key\":\"key\""));
    }
}

static void test_calls(void **state)
{
    (void)state;
    ARENA_LOCAL(arena);
    static const struct {
        int codec;
        enum batch_step step;
        const char *what, *method, *url;
    } rows[] = {
        {0, BATCH_UPLOAD, NULL, "POST", "http://h/v1/files"},
        {0, BATCH_CREATE, NULL, "POST", "http://h/v1/batches"},
        {0, BATCH_LOOK, "b1", "GET", "http://h/v1/batches/b1"},
        {0, BATCH_FETCH, "f1", "GET", "http://h/v1/files/f1/content"},
        {1, BATCH_CANCEL, "b1", "POST", "http://h/v1/batches/b1/cancel"},
        {1, BATCH_LIST, NULL, "GET", "http://h/v1/batches?limit=100"},
        {2, BATCH_CREATE, NULL, "POST", "http://h/v1/messages/batches"},
        {2, BATCH_FETCH, "b1", "GET", "http://h/v1/messages/batches/b1/results"},
        {2, BATCH_CANCEL, "b1", "POST", "http://h/v1/messages/batches/b1/cancel"},
        {3, BATCH_CREATE, NULL, "POST", "http://h/v1beta/models/m:batchGenerateContent"},
        {3, BATCH_LOOK, "batches/7", "GET", "http://h/v1beta/batches/7"},
        {3, BATCH_CANCEL, "batches/7", "POST", "http://h/v1beta/batches/7:cancel"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct batch_place place = {codecs[rows[i].codec],
                                          rows[i].codec < 2 ? "http://h/v1/" : "http://h", "secret",
                                          "m", "ours"};
        struct batch_call call = batch_call_of(arena, &place, rows[i].step, rows[i].what);
        assert_string_equal(call.method, rows[i].method);
        assert_string_equal(call.url, rows[i].url);
        assert_non_null(strstr(call.headers[0], "secret"));
    }
}

static void test_views(void **state)
{
    (void)state;
    static const struct {
        int codec;
        const char *text;
        bool fits, ended;
        const char *left;
        enum fault fault;
        int64_t done;
    } rows[] = {
        {0, "{\"id\":\"batch_1\",\"status\":\"validating\"}", true, false, NULL, 0, 0},
        {0,
         "{\"id\":\"batch_1\",\"status\":\"in_progress\",\"output_file_id\":null,"
         "\"request_counts\":{\"total\":9,\"completed\":3,\"failed\":1}}",
         true, false, NULL, 0, 4},
        {0, "{\"id\":\"batch_1\",\"status\":\"finalizing\"}", true, false, NULL, 0, 0},
        {0, "{\"id\":\"batch_1\",\"status\":\"completed\",\"output_file_id\":\"file-1\"}", true,
         true, NULL, 0, 0},
        {0, "{\"id\":\"batch_1\",\"status\":\"expired\"}", true, true, "expired", 0, 0},
        {0, "{\"id\":\"batch_1\",\"status\":\"cancelled\"}", true, true, "cancelled", 0, 0},
        {0,
         "{\"id\":\"batch_1\",\"status\":\"failed\",\"errors\":{\"data\":[{\"code\":"
         "\"token_limit_exceeded\",\"message\":\"Enqueued token limit reached\"}]}}",
         true, true, NULL, FAULT_LIMITED, 0},
        {0, "{\"id\":\"batch_1\",\"status\":\"failed\",\"errors\":null}", true, true, NULL,
         FAULT_FATAL, 0},
        {0, "{\"id\":\"../files\",\"status\":\"completed\"}", false, false, NULL, 0, 0},
        {0, "{\"id\":\"batch_1\",\"status\":\"completed\",\"output_file_id\":\"x?y\"}", false,
         false, NULL, 0, 0},
        {0, "{\"status\":\"completed\"}", false, false, NULL, 0, 0},
        {2,
         "{\"id\":\"msgbatch_1\",\"processing_status\":\"canceling\",\"request_counts\":"
         "{\"processing\":3,\"succeeded\":2,\"errored\":1}}",
         true, false, NULL, 0, 3},
        {2,
         "{\"id\":\"msgbatch_1\",\"processing_status\":\"ended\",\"results_url\":"
         "\"http://elsewhere/\"}",
         true, true, NULL, 0, 0},
        {3,
         "{\"name\":\"batches/1\",\"metadata\":{\"state\":\"BATCH_STATE_PENDING\",\"batchStats\":"
         "{\"requestCount\":\"9\",\"successfulRequestCount\":\"4\"}}}",
         true, false, NULL, 0, 4},
        {3, "{\"name\":\"batches/1\",\"metadata\":{\"state\":\"JOB_STATE_EXPIRED\"}}", true, true,
         "expired", 0, 0},
        {3,
         "{\"name\":\"batches/1\",\"metadata\":{\"state\":\"BATCH_STATE_FAILED\"},\"error\":"
         "{\"code\":400,\"message\":\"API key expired\"}}",
         true, true, NULL, FAULT_KEY, 0},
        {3, "{\"name\":\"models/1\",\"metadata\":{\"state\":\"BATCH_STATE_PENDING\"}}", false,
         false, NULL, 0, 0},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        ARENA_LOCAL(arena);
        struct batch_view view;
        struct err err;
        const struct batch_place place = {.codec = codecs[rows[i].codec], .name = "ours"};
        bool fits = batch_read_view(arena, &place, parse(arena, rows[i].text), &view, &err) == 0;
        assert_int_equal(fits, rows[i].fits);
        if (!fits)
            continue;
        assert_int_equal(view.ended, rows[i].ended);
        assert_int_equal(view.fault, rows[i].fault);
        assert_int_equal(view.done, rows[i].done);
        assert_string_equal(view.left ? view.left : "", rows[i].left ? rows[i].left : "");
        /* The key goes to no address that an answer names. */
        assert_string_equal(view.sources[0] && rows[i].codec == 2 ? view.sources[0] : "msgbatch_1",
                            "msgbatch_1");
    }
}

static void test_results(void **state)
{
    (void)state;
    static const struct {
        int codec;
        const char *text, *id;
        bool answer;
        enum fault fault;
        const char *reason;
    } rows[] = {
        {0, "{\"custom_id\":\"a\",\"response\":{\"status_code\":200,\"body\":{}},\"error\":null}",
         "a", true, FAULT_NONE, NULL},
        {0,
         "{\"custom_id\":\"a\",\"response\":{\"status_code\":400,\"body\":{\"error\":{\"code\":"
         "\"context_length_exceeded\",\"message\":\"too long\"}}}}",
         "a", false, FAULT_TOO_LONG, "too long"},
        {0, "{\"custom_id\":\"a\",\"response\":null,\"error\":{\"code\":\"batch_expired\"}}", "a",
         false, FAULT_NONE, "expired"},
        {0, "{\"custom_id\":\"a\"}", "a", false, FAULT_NONE, NULL},
        {2, "{\"custom_id\":\"a\",\"result\":{\"type\":\"succeeded\",\"message\":{}}}", "a", true,
         FAULT_NONE, NULL},
        {2,
         "{\"custom_id\":\"a\",\"result\":{\"type\":\"errored\",\"error\":{\"type\":\"error\","
         "\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}}}",
         "a", false, FAULT_RETRY, "busy"},
        {2, "{\"custom_id\":\"a\",\"result\":{\"type\":\"expired\"}}", "a", false, FAULT_NONE,
         "expired"},
        {3, "{\"response\":{\"candidates\":[]},\"metadata\":{\"key\":\"a\"}}", "a", true,
         FAULT_NONE, NULL},
        {3, "{\"error\":{\"code\":8,\"message\":\"slow\"},\"metadata\":{\"key\":\"a\"}}", "a",
         false, FAULT_LIMITED, "slow"},
        {3, "{\"error\":{\"code\":3,\"message\":\"bad\"},\"metadata\":{\"key\":\"a\"}}", "a", false,
         FAULT_FATAL, "bad"},
        {3, "{\"metadata\":7}", "", false, FAULT_NONE, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        ARENA_LOCAL(arena);
        struct batch_result result = {.id = ""};
        batch_format_of(codecs[rows[i].codec])->result(arena, parse(arena, rows[i].text), &result);
        assert_string_equal(result.id, rows[i].id);
        assert_int_equal(result.answer != NULL, rows[i].answer);
        assert_int_equal(result.fault, rows[i].fault);
        assert_string_equal(result.reason ? result.reason : "",
                            rows[i].reason ? rows[i].reason : "");
    }
}

/* ---- the engine ---- */

static void test_together(void **state)
{
    (void)state;
    struct provider provider = provider_start(NULL, "good");
    for (size_t i = 0; i < COUNT(codecs); i++) {
        char url[64];
        memcpy(url, provider.url, sizeof url);
        const struct model model = model_of(codecs[i], url);
        struct scene *scene = ask_many(&model, 5);
        scene->run = (const char *const[]){"r1", "r2", "r3", "r4"}[i];
        scene_run(scene);
        assert_int_equal(answered(scene), 5);
        assert_int_equal(scene->totals.requests, 5);
        for (size_t k = 1; k < 5; k++) /* to each its own: the longer prompt has more tokens */
            assert_true(scene->asks[k].completion.prompt_tokens >
                        scene->asks[k - 1].completion.prompt_tokens);
        assert_int_equal(scene->spent.settled, 5);
        assert_int_equal(scene->spent.charged + scene->spent.released, 0);
        assert_int_equal(scene->spent.reserved_tokens, 0);
        scene_free(scene);
    }
    provider_stop(&provider);
}

/* What of five requests comes back wrong. How many go together depends on the disk, so what happens
 * to whole batches is told less exactly. */
static const struct {
    const char *faults[FAULTS_MAX];
    size_t answered;
    int64_t requests; /* 0: as many as it takes */
    int64_t charged;  /* < 0: at least one */
    enum fault fault; /* of those that are not answered */
} rows[] = {
    {{"status code=500"}, 5, 6, 0, 0},
    {{"status code=400"}, 4, 5, 0, FAULT_FATAL},
    {{"status code=429", "status code=413"}, 4, 6, 0, FAULT_TOO_LONG},
    {{"refuse"}, 4, 5, 0, FAULT_REFUSED},
    {{"stall"}, 5, 6, 0, 0},
    {{"reset"}, 5, 6, 1, 0}, /* it ended without a word of one: that may be billed */
    {{"truncate", "empty"}, 5, 7, 1, 0},
    {{"@create status code=503 times=2"}, 5, 0, 0, 0},
    {{"@create status code=429 text=0"}, 5, 0, 0, 0},
    {{"@create status code=401 times=0"}, 0, 0, 0, FAULT_KEY},
    {{"@create status code=400 times=0"}, 0, 5, 0, FAULT_FATAL},
    {{"@upload status code=500"}, 5, 0, 0, 0},
    {{"@create close after=0"}, 5, 5, 0, 0}, /* made, and found by its name */
    {{"@create close after=0", "@list status code=500"}, 5, 5, 0, 0},
    {{"@create reset after=0"}, 5, 0, 0, 0}, /* never made */
    {{"@look status code=500 times=3", "@look status code=429 text=0", "@look reset after=0"},
     5,
     5,
     0,
     0},
    {{"@look truncate", "@fetch status code=503"}, 5, 5, 0, 0},
    {{"@look status code=404"}, 5, 0, -1, 0}, /* it is gone */
    {{"@end error code=500"}, 5, 0, 0, 0},
};

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct provider provider = provider_start(rows[i].faults, "good");
        struct model model = model_of(&codec_openai, provider.url);
        model.batch = &brief;
        struct scene *scene = ask_many(&model, 5);
        scene_run(scene);
        provider_stop(&provider);
        bool fits = answered(scene) == rows[i].answered &&
                    (rows[i].requests == 0 || scene->totals.requests == rows[i].requests) &&
                    (rows[i].charged < 0 ? scene->spent.charged > 0
                                         : scene->spent.charged == rows[i].charged) &&
                    scene->spent.reserved_tokens == 0;
        for (size_t k = 0; k < 5; k++)
            fits = fits &&
                   (scene->asks[k].err.code == ERR_NONE || scene->asks[k].fault == rows[i].fault);
        if (!fits)
            fail_msg("row %zu (%s): %zu answered, %lld requests, %lld charged, %lld reserved: %s",
                     i, rows[i].faults[0], answered(scene), (long long)scene->totals.requests,
                     (long long)scene->spent.charged, (long long)scene->spent.reserved_tokens,
                     scene->asks[0].err.message);
        scene_free(scene);
        tear_down(NULL);
        set_up(NULL);
    }
}

/* Anthropic tells no batch's name: what was not heard of is charged, and asked anew. */
static void test_unheard(void **state)
{
    (void)state;
    const char *const faults[] = {"@create close after=0", NULL};
    struct provider provider = provider_start(faults, "good");
    const struct model model = model_of(&codec_anthropic, provider.url);
    struct scene *scene = ask_many(&model, 3);
    scene_run(scene);
    provider_stop(&provider);
    assert_int_equal(answered(scene), 3);
    assert_true(scene->spent.charged > 0);
    assert_int_equal(scene->spent.settled, 3);
    scene_free(scene);
}

/* Once the provider has the batch all asks are cancelled. */
static void cancel_made(struct scene *scene, int times)
{
    BUF_LOCAL(words, 1000);
    (void)times;
    completions_say_batches(scene->completions, &words);
    bool made = completions_totals(scene->completions).requests == (int64_t)scene->count &&
                strstr(buf_text(&words), " for ") == NULL;
    for (size_t i = 0; made && i < scene->count; i++)
        task_cancel(&scene->asks[i].task);
}

/* One that is stopped cancels its batch, and takes what was done. */
static void test_stopped(void **state)
{
    (void)state;
    const char *const faults[] = {"@end stall", NULL};
    for (size_t i = 0; i < COUNT(codecs); i++) {
        struct provider provider = provider_start(faults, "good");
        const struct model model = model_of(codecs[i], provider.url);
        struct scene *scene = ask_many(&model, 4);
        scene->act = cancel_made;
        scene->act_after_ms = 10;
        scene_run(scene);
        provider_stop(&provider);
        assert_true(answered(scene) >= 2); /* of each batch half */
        assert_int_equal(scene->spent.settled, answered(scene));
        assert_int_equal(scene->spent.settled + scene->spent.released, 4);
        assert_int_equal(scene->spent.reserved_tokens, 0);
        scene_free(scene);
        tear_down(NULL);
        set_up(NULL);
    }
}

/* ---- what models.yaml says ---- */

/* Half the price, but for what Gemini's cache gives; a cloud's token is a command's. */
static void test_terms(void **state)
{
    (void)state;
    static const char text[] =
        "models:\n"
        "  night: {provider: gemini, key: none, url: 'http://h', batch: true,\n"
        "          prices: {prompt: 3, completion: 5, cached: 1}}\n"
        "  cloud: {provider: gemini, url: 'http://h', key_as: bearer,\n"
        "          key_command: [echo, token], key_lifetime: 2m}\n";
    ARENA_LOCAL(arena);
    const struct model_defaults none = {.temperature = -1};
    struct catalogue *catalogue;
    struct models models;
    struct err err;
    const char *file = arena_printf(arena, "%s.yaml", folder);
    assert_int_equal(file_write(file, text, sizeof text - 1, &err), 0);
    assert_int_equal(catalogue_load(arena, file, &catalogue, &err), 0);
    assert_int_equal(models_choose(arena, catalogue, "night,cloud", &none, &models, &err), 0);
    const struct model *night = &models.items[0], *cloud = &models.items[1];
    assert_int_equal(night->batch->wait_ms, 25 * 3600 * 1000);
    assert_true(night->prompt_price == 1.5 && night->completion_price == 2.5);
    assert_true(night->cached_price == 1 && night->written_price < 0);
    assert_string_equal(model_key(cloud), "Bearer token");
    assert_int_equal(cloud->key_command->lifetime_ms, 120000);
    assert_null(cloud->batch);
    assert_null(model_key(night));
}

/* ---- a kill ---- */

static bool find_id(void *context, const char *key, const char *text, size_t length)
{
    ARENA_LOCAL(arena);
    struct value *root;
    size_t *named = context;
    if (value_parse_json(arena, key, text, length, &root, NULL) == 0 &&
        value_text(root, "id", NULL) != NULL)
        *named += value_get(root, "requests")->count;
    return true;
}

/* Until the store has the batches of all by their ids. */
static void run_and_die(const struct model *model)
{
    size_t named = 0;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct scene *scene = ask_many(model, 4);
        scene_run(scene);
        _exit(0);
    }
    while (named < 4) {
        struct store *store;
        struct err err;
        usleep(5000);
        assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
        if (store_open(folder, false, true, &store, &err) != 0)
            continue;
        named = 0;
        (void)!store_scan(store, STORE_FACTS, "batch/r1/", find_id, &named, &err);
        store_close(store);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void test_killed(void **state)
{
    (void)state;
    const char *const faults[] = {"@look status code=503 times=200", NULL};
    for (size_t i = 0; i < COUNT(codecs); i++) {
        struct provider provider = provider_start(faults, "good");
        const struct model model = model_of(codecs[i], provider.url);
        run_and_die(&model);
        struct scene *scene = ask_many(&model, 4);
        scene_run(scene);
        provider_stop(&provider);
        assert_int_equal(answered(scene), 4);
        assert_int_equal(scene->totals.requests, 0); /* it was made before */
        assert_int_equal(scene->spent.settled, 4);
        assert_int_equal(scene->spent.charged, 0);
        assert_int_equal(scene->spent.reserved_tokens, 0);
        scene_free(scene);
        scene = ask_many(&model, 4); /* and nothing of it is left */
        scene_run(scene);
        assert_int_equal(scene->totals.from_store, 4);
        scene_free(scene);
        tear_down(NULL);
        set_up(NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put),     cmocka_unit_test(test_calls), cmocka_unit_test(test_views),
        cmocka_unit_test(test_results), ENGINE_TEST(test_together),   ENGINE_TEST(test_faults),
        ENGINE_TEST(test_unheard),      ENGINE_TEST(test_stopped),    ENGINE_TEST(test_killed),
        ENGINE_TEST(test_terms),
    };
    setenv("no_proxy", "*", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
