/* Requests that go together, against a fake provider: one batch for all, what is billed, what is
 * asked again, what a killed process leaves. */
#include "completion_check.h"

#include "agents/llm/completion_batch.h"

#include <sys/prctl.h>

/* Long enough that all of a test's requests have come, on a busy machine, too. */
static const struct batch_terms terms = {.gather_ms = 150, .poll_ms = 10, .wait_ms = 600000};
/* Ever longer ones: however late it is killed, a process has not come to its end. */
static const struct batch_terms long_rests = {
    .gather_ms = 150, .poll_ms = 3600000, .wait_ms = 36000000};
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

/* Stopped while its answers are being stored: they stay answers. */
static void cancel_answered(struct scene *scene, int times)
{
    (void)times;
    for (size_t i = 0;
         scene->asks[0].member != NULL && scene->asks[0].member->ended && i < scene->count; i++)
        task_cancel(&scene->asks[i].task);
}

static void test_stopped_late(void **state)
{
    (void)state;
    struct provider provider = provider_start(NULL, "good");
    const struct model model = model_of(&codec_anthropic, provider.url);
    struct scene *scene = ask_many(&model, ASKS_MAX);
    scene->act = cancel_answered;
    scene->act_after_ms = 1;
    scene_run(scene);
    provider_stop(&provider);
    assert_true(answered(scene) > 0);
    assert_int_equal(scene->spent.charged + scene->spent.reserved_tokens, 0);
    scene_free(scene);
}

/* One that takes too long is cancelled; what it has not answered is asked again. */
static void test_late(void **state)
{
    (void)state;
    const struct batch_terms short_wait = {.gather_ms = 150, .poll_ms = 10, .wait_ms = 1};
    const char *const faults[] = {"@end stall times=0", NULL};
    struct provider provider = provider_start(faults, "good");
    struct model model = model_of(&codec_openai, provider.url);
    model.batch = &short_wait;
    struct scene *scene = ask_many(&model, 4);
    scene_run(scene);
    provider_stop(&provider);
    assert_int_equal(answered(scene), 4);
    assert_true(scene->totals.requests > 4);
    assert_int_equal(scene->spent.settled, 4);
    assert_int_equal(scene->spent.charged + scene->spent.reserved_tokens, 0);
    scene_free(scene);
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
    static const char *const faults[] = {"@look status code=503 times=20", NULL};
    for (size_t i = 0; i < COUNT(codecs); i++) {
        struct provider provider = provider_start(faults, "good");
        struct model model = model_of(codecs[i], provider.url);
        model.batch = &long_rests;
        run_and_die(&model);
        model.batch = &terms;
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
        ENGINE_TEST(test_together), ENGINE_TEST(test_faults), ENGINE_TEST(test_unheard),
        ENGINE_TEST(test_stopped),  ENGINE_TEST(test_late),   ENGINE_TEST(test_stopped_late),
        ENGINE_TEST(test_killed),   ENGINE_TEST(test_terms),
    };
    setenv("no_proxy", "*", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
