/* models.yaml and --model: entries, whose word counts, what is refused and with which words. */
#include "check.h"

#include "agents/llm/model.h"
#include "base/file.h"
#include "base/mem.h"

#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/twagent-model-XXXXXX";

static const char shipped[] = /* what the tests take for the shipped file */
    "models:\n"
    "  gpt-5: {provider: openai, prices: {prompt: 1, completion: 10}, context: 1000}\n"
    "  gpt-5-mini: {provider: openai, prices: {prompt: 0.25, completion: 2}, max_tokens: 100,\n"
    "               temperature: 0.3, weight: 4}\n"
    "  claude-x: {provider: anthropic, prices: {prompt: 3, completion: 15}}\n"
    "  gemini-x: {provider: gemini, model: gemini-x-001}\n";

static void put(const char *path, const char *text)
{
    struct err err;
    if (file_write(path, text, strlen(text), &err) != 0)
        fail_msg("%s", err.message);
}

static void set_keys(bool there)
{
    static const char *const variables[] = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY",
                                            "GOOGLE_API_KEY"};
    for (size_t i = 0; i < COUNT(variables); i++)
        if (there)
            setenv(variables[i], variables[i], 1); /* a key that tells whose it is */
        else
            unsetenv(variables[i]);
}

static struct catalogue *load(struct arena *arena, const char *personal)
{
    struct catalogue *catalogue;
    struct err err;
    if (personal != NULL)
        put("mine.yaml", personal);
    if (catalogue_load(arena, personal != NULL ? "mine.yaml" : NULL, &catalogue, &err) != 0)
        fail_msg("%s", err.message);
    return catalogue;
}

static const struct model_defaults none = {.temperature = -1};

/* ---- choices that hold ---- */

static const struct {
    const char *choice, *provider, *base_url; /* the choice, and what options say */
    const char *name, *is_provider, *wire, *url, *key;
    double prompt, weight;
} chosen[] = {
    {"gpt-5", NULL, NULL, "gpt-5", "openai", "gpt-5", "https://api.openai.com/v1", "OPENAI_API_KEY",
     1, 1},
    {"gpt-5", "anthropic", NULL, "gpt-5", "openai", "gpt-5", "https://api.openai.com/v1",
     "OPENAI_API_KEY", 1, 1},
    {"gpt-5-mini", NULL, NULL, "gpt-5-mini", "openai", "gpt-5-mini", "https://api.openai.com/v1",
     "OPENAI_API_KEY", 0.25, 4},
    {" gpt-5-mini@0.5 ", NULL, NULL, "gpt-5-mini", "openai", "gpt-5-mini",
     "https://api.openai.com/v1", "OPENAI_API_KEY", 0.25, 0.5},
    {"openai/gpt-5", NULL, NULL, "gpt-5", "openai", "gpt-5", "https://api.openai.com/v1",
     "OPENAI_API_KEY", 1, 1},
    {"gemini-x", NULL, NULL, "gemini-x", "gemini", "gemini-x-001",
     "https://generativelanguage.googleapis.com/v1beta", "GOOGLE_API_KEY", -1, 1},
    {"anthropic/claude-new", NULL, NULL, "anthropic/claude-new", "anthropic", "claude-new",
     "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", -1, 1},
    {"anthropic/gpt-5", NULL, NULL, "anthropic/gpt-5", "anthropic", "gpt-5",
     "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", -1, 1},
    {"unheard-of", "gemini", NULL, "unheard-of", "gemini", "unheard-of",
     "https://generativelanguage.googleapis.com/v1beta", "GOOGLE_API_KEY", -1, 1},
    {"meta-llama/Llama-3-70b", NULL, "http://h:1/v1", "meta-llama/Llama-3-70b", "openai",
     "meta-llama/Llama-3-70b", "http://h:1/v1", "OPENAI_API_KEY", -1, 1},
    {"meta-llama/Llama-3-70b", "openai", NULL, "meta-llama/Llama-3-70b", "openai",
     "meta-llama/Llama-3-70b", "https://api.openai.com/v1", "OPENAI_API_KEY", -1, 1},
    {"openai/openai/gpt-oss", NULL, "http://h:1/v1", "openai/openai/gpt-oss", "openai",
     "openai/gpt-oss", "http://h:1/v1", "OPENAI_API_KEY", -1, 1},
    {"claude-x", "openai", "http://h:1/v1", "claude-x", "anthropic", "claude-x",
     "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", 3, 1}, /* the address is OpenAI's kind */
    {"claude-x", "anthropic", "http://h:1", "claude-x", "anthropic", "claude-x", "http://h:1",
     "ANTHROPIC_API_KEY", 3, 1},
    {"local", NULL, "http://other:1", "local", "openai", "qwen:30b", "http://localhost:11434/v1",
     NULL, 0, 1},
    {"gateway", NULL, NULL, "gateway", "anthropic", "gateway", "https://gw/x", "OPENAI_API_KEY", -1,
     1},
    {"odd@2", NULL, NULL, "odd@2", "openai", "odd@2", "https://api.openai.com/v1", "OPENAI_API_KEY",
     -1, 1},
    {"odd@2@3", NULL, NULL, "odd@2", "openai", "odd@2", "https://api.openai.com/v1",
     "OPENAI_API_KEY", -1, 3},
    {"mailbox/in/out", NULL, NULL, "mailbox/in/out", "mailbox", "in/out", "", NULL, 0, 1},
    {"mailbox//abs@2", NULL, NULL, "mailbox//abs", "mailbox", "/abs", "", NULL, 0, 2},
    {"replay/r31", "openai", NULL, "replay/r31", "replay", "r31", "", NULL, 0, 1},
    {"gpt-5", "mailbox", NULL, "mailbox/gpt-5", "mailbox", "gpt-5", "", NULL, 0, 1},
    {"r7", "replay", NULL, "replay/r7", "replay", "r7", "", NULL, 0, 1},
};

static const char personal[] =
    "models:\n"
    "  local:\n"
    "    provider: openai\n"
    "    url: http://localhost:11434/v1\n"
    "    key: none\n"
    "    model: qwen:30b\n"
    "    prices: {prompt: 0, completion: 0}\n"
    "  gateway: {provider: anthropic, url: \"https://gw/x\", key: OPENAI_API_KEY}\n"
    "  odd@2: {provider: openai}\n";

static void check_chosen(size_t row, struct arena *arena, const struct catalogue *catalogue)
{
    struct model_defaults defaults = none;
    defaults.provider = chosen[row].provider;
    defaults.base_url = chosen[row].base_url;
    struct models models;
    struct err err;
    if (models_choose(arena, catalogue, chosen[row].choice, &defaults, &models, &err) != 0)
        fail_msg("%s: %s", chosen[row].choice, err.message);
    assert_int_equal(models.count, 1);
    const struct model *model = &models.items[0];
    bool offline = strcmp(chosen[row].url, "") == 0;
    if (strcmp(model->name, chosen[row].name) != 0 ||
        strcmp(model->provider, chosen[row].is_provider) != 0 ||
        strcmp(model->wire_name, chosen[row].wire) != 0 ||
        strcmp(model->base_url, chosen[row].url) != 0 || (model->codec == NULL) != offline ||
        (offline && strcmp(model->source, chosen[row].wire) != 0))
        fail_msg("%s: %s %s %s %s", chosen[row].choice, model->name, model->provider,
                 model->wire_name, model->base_url);
    if (chosen[row].key == NULL ? model->key != NULL
                                : model->key == NULL || strcmp(model->key, chosen[row].key) != 0)
        fail_msg("%s: key %s", chosen[row].choice, model->key != NULL ? model->key : "none");
    assert_float_equal(model->prompt_price, chosen[row].prompt, 0);
    assert_float_equal(model->weight, chosen[row].weight, 0);
    assert_non_null(model->where);
}

static void test_chosen(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    const struct catalogue *catalogue = load(arena, personal);
    set_keys(true);
    for (size_t i = 0; i < COUNT(chosen); i++)
        check_chosen(i, arena, catalogue);
    arena_free(arena);
}

static void test_several(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    const struct catalogue *catalogue = load(arena, personal);
    struct model_defaults defaults = {.temperature = 0.9, .max_tokens = 500};
    struct models models;
    struct err err;
    set_keys(true);
    assert_int_equal(models_choose(arena, catalogue, "gpt-5@2, claude-x ,gpt-5-mini@1,local",
                                   &defaults, &models, &err),
                     0);
    assert_int_equal(models.count, 4);
    assert_float_equal(models.items[0].temperature, 0.9, 0);
    assert_int_equal(models.items[0].max_tokens, 500);
    assert_int_equal(models.items[0].context_tokens, 1000);
    assert_non_null(strstr(models.items[0].where, "models.yaml:2"));
    assert_int_equal(models.items[1].max_tokens, 500);
    assert_float_equal(models.items[2].temperature, 0.3, 0); /* its own */
    assert_int_equal(models.items[2].max_tokens, 100);       /* its own is the most */
    assert_string_equal(models.items[3].where, "mine.yaml:2");
    /* Anthropic's API needs a limit: it is known, so that a reservation can count with it. */
    assert_int_equal(models_choose(arena, catalogue, "claude-x,gpt-5", &none, &models, &err), 0);
    assert_int_equal(models.items[0].max_tokens, codec_anthropic.max_tokens);
    assert_int_equal(models.items[1].max_tokens, 0);
    assert_float_equal(models.items[1].temperature, -1, 0);
    arena_free(arena);
}

/* ---- choices that are refused ---- */

static const struct {
    const char *choice, *provider;
    enum err_code code;
    const char *word;
} refused[] = {
    {NULL, NULL, ERR_USAGE, "NAME"},
    {"", "mailbox", ERR_USAGE, "folder"},
    {"", "replay", ERR_USAGE, "run"},
    {"gpt-5,", NULL, ERR_USAGE, "each place"},
    {",gpt-5", NULL, ERR_USAGE, "each place"},
    {" ", NULL, ERR_USAGE, "each place"},
    {"@2", NULL, ERR_USAGE, "each place"},
    {"gpt-5@", NULL, ERR_USAGE, "weight"},
    {"gpt-5@0", NULL, ERR_USAGE, "weight"},
    {"gpt-5@-1", NULL, ERR_USAGE, "weight"},
    {"gpt-5@nan", NULL, ERR_USAGE, "weight"},
    {"gpt-5@inf", NULL, ERR_USAGE, "weight"},
    {"gpt-5@2x", NULL, ERR_USAGE, "weight"},
    {"claude-3@20240229", "anthropic", ERR_USAGE, "entry in models.yaml"},
    {"gpt-5-mni", NULL, ERR_USAGE, "\"gpt-5-mini\""},
    {"gpt-5-mni", "builtin", ERR_USAGE, "\"gpt-5-mini\""},
    {"something/else-entirely", NULL, ERR_USAGE, "PROVIDER/NAME"},
    {"openai/", NULL, ERR_USAGE, "openai/NAME"},
    {"mailbox/", NULL, ERR_USAGE, "mailbox/FOLDER"},
    {"replay/", NULL, ERR_USAGE, "replay/RUN"},
    {"replay/latest", NULL, ERR_USAGE, "replay/r3"},
    {"replay/r", NULL, ERR_USAGE, "replay/r3"},
    {"replay/r3x", NULL, ERR_USAGE, "replay/r3"},
    {"gpt-5", "opena", ERR_USAGE, "--provider"},
    {"gpt-5", NULL, ERR_ENVIRONMENT, "OPENAI_API_KEY"},
    {"gateway", NULL, ERR_ENVIRONMENT, "mine.yaml:8"},
    {"local,claude-x", NULL, ERR_ENVIRONMENT, "ANTHROPIC_API_KEY"},
};

static void test_refused(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    const struct catalogue *catalogue = load(arena, personal);
    set_keys(false);
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct model_defaults defaults = none;
        defaults.provider = refused[i].provider;
        struct models models;
        struct err err = {0};
        set_keys(refused[i].code != ERR_ENVIRONMENT);
        int status = models_choose(arena, catalogue, refused[i].choice, &defaults, &models, &err);
        if (status == 0 || err.code != refused[i].code || !strstr(err.message, refused[i].word))
            fail_msg("row %zu: %d %s", i, (int)err.code, err.message);
    }
    struct model_defaults defaults = {.temperature = -1, .base_url = "http://localhost:1/v1"};
    struct models models;
    struct err err;
    assert_int_equal(models_choose(arena, catalogue, "gpt-5", &defaults, &models, &err), 0);
    assert_null(models.items[0].key); /* a server of one's own may need none */
    static const char *const others[] = {"claude-x", "gemini-x", "gpt-5,gemini/new"};
    for (size_t i = 0; i < COUNT(others); i++) { /* which would not have gone there */
        assert_int_equal(models_choose(arena, catalogue, others[i], &defaults, &models, &err), -1);
        assert_non_null(strstr(err.message, "--provider "));
    }
    char many[1000] = "local";
    for (int i = 0; i < 64; i++)
        strcat(many, ",local");
    assert_int_equal(models_choose(arena, catalogue, many, &none, &models, &err), -1);
    assert_non_null(strstr(err.message, "at most 64"));
    arena_free(arena);
}

static void test_env_file(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    const struct catalogue *catalogue = load(arena, personal);
    struct model_defaults defaults = {.temperature = -1, .env_file = "keys.env"};
    struct models models;
    struct err err;
    set_keys(false);
    put("keys.env", "OPENAI_API_KEY=from-a-file\n");
    assert_int_equal(models_choose(arena, catalogue, "gpt-5", &defaults, &models, &err), 0);
    assert_string_equal(models.items[0].key, "from-a-file");
    assert_int_equal(models_choose(arena, catalogue, "claude-x", &defaults, &models, &err), -1);
    assert_non_null(strstr(err.message, "keys.env"));
    arena_free(arena);
}

/* ---- files ---- */

#define IN(entry) "models:\n  m: {" entry "}\n"

static const struct {
    const char *text, *message; /* message NULL: fine */
} files[] = {
    {"", NULL},
    {"# nothing\n", NULL},
    {"models:\n", NULL},
    {"models: {}\n", NULL},
    {IN("provider: openai, weight: 2"), NULL},
    {IN("provider: openai, model: 7"), NULL},
    {"- m\n", "mine.yaml:1: expected models:"},
    {"model:\n  m: {provider: openai}\n", "mine.yaml:1: "},
    {"models: [m]\n", "mine.yaml:1: expected models:"},
    {"models:\n  m: openai\n", "mine.yaml:2: expected m: {provider"},
    {"models:\n  m:\n", "mine.yaml:2: expected m: {provider"},
    {"models:\n  a b: {provider: openai}\n", "mine.yaml:2: expected a model's name"},
    {"models:\n  \"a,b\": {provider: openai}\n", "mine.yaml:2: expected a model's name"},
    {"models:\n  \"\": {provider: openai}\n", "mine.yaml:2: expected a model's name"},
    {"models:\n  m: {provider: openai}\n  m: {provider: openai}\n", "mine.yaml:3: "},
    {IN("model: x"),
     "mine.yaml:2: expected provider: openai, responses, anthropic, gemini, command or agent"},
    {IN("provider: opnai"),
     "mine.yaml:2: expected provider: openai, responses, anthropic, gemini, command or agent"},
    {IN("provider: mailbox"), "mine.yaml:2: expected provider"},
    {IN("provider: agent, command: [x], evaluations: 7, json: {dollars: cost, answer: text}"),
     NULL},
    {IN("provider: agent, command: [x], evaluations: 0"), "mine.yaml:2: expected evaluations: 1"},
    {IN("provider: agent, command: [x], json: cost"), "mine.yaml:2: expected json: {dollars"},
    {IN("provider: agent, command: [x], json: {cost: cost}"), "mine.yaml:2: "},
    {IN("provider: agent"), "mine.yaml:2: expected command: [PROGRAM"},
    {IN("provider: command, command: [x], evaluations: 7"), "mine.yaml:2: "},
    {IN("provider: openai, price: 1"), "mine.yaml:2: "},
    {IN("provider: openai, model: ''"), "mine.yaml:2: expected a text for \"model\""},
    {IN("provider: openai, model: [x]"), "mine.yaml:2: expected a text for \"model\""},
    {IN("provider: openai, prices: 3"), "mine.yaml:2: expected prices: {prompt"},
    {IN("provider: openai, prices: {prompt: 3}"), "mine.yaml:2: expected prices: {prompt"},
    {IN("provider: openai, prices: {prompt: 3, completion: 4, thought: 1}"), "mine.yaml:2: "},
    {IN("provider: openai, prices: {prompt: 3, completion: 4, cached: -1}"), "mine.yaml:2: "},
    {IN("provider: anthropic, cache: 1h, prices: {prompt: 3, completion: 4, cached: 1, written: "
        "6}"),
     NULL},
    {IN("provider: anthropic, cache: off"), NULL},
    {IN("provider: anthropic, cache: 2h"), "mine.yaml:2: expected cache: 5m, 1h or off"},
    {IN("provider: anthropic, cache: 7"), "mine.yaml:2: expected cache: "},
    {IN("provider: openai, cache: 5m"), "mine.yaml:2: expected cache: "},
    {IN("provider: openai, body: {reasoning_effort: high, service_tier: flex}"), NULL},
    {IN("provider: openai, body: high"), "mine.yaml:2: expected body: {FIELD"},
    {IN("provider: openai, body: {stream: false}"), "mine.yaml:2: expected body: fields that"},
    {IN("provider: gemini, body: {maxOutputTokens: 1}"), "mine.yaml:2: expected body: fields"},
    {IN("provider: openai, prices: {prompt: -3, completion: 4}"),
     "mine.yaml:2: expected a number from 0"},
    {IN("provider: openai, prices: {prompt: .nan, completion: 4}"),
     "mine.yaml:2: expected a number from 0"},
    {IN("provider: openai, prices: {prompt: 3, completion: free}"),
     "mine.yaml:2: expected a number from 0"},
    {IN("provider: openai, temperature: 3"), "mine.yaml:2: expected a number from 0 to 2"},
    {IN("provider: openai, max_tokens: 0"), "mine.yaml:2: expected a number of tokens"},
    {IN("provider: openai, max_tokens: 1.5"), "mine.yaml:2: expected a number of tokens"},
    {IN("provider: openai, context: -1"), "mine.yaml:2: expected a number of tokens"},
    {IN("provider: openai, reasoning: -1"), "mine.yaml:2: expected"},
    {IN("provider: openai, weight: 0"), "mine.yaml:2: expected a number from"},
    {IN("provider: openai, url: 'localhost:1', key: none"), "mine.yaml:2: expected url: http"},
    {IN("provider: openai, url: 'ftp://h', key: none"), "mine.yaml:2: expected url: http"},
    {IN("provider: openai, url: 'https://', key: none"), "mine.yaml:2: expected url: http"},
    {IN("provider: openai, url: 'https://h/v1?key=sk-secret', key: none"),
     "mine.yaml:2: expected url: http"},
    {IN("provider: openai, url: 'https://me:sk-secret@h/v1', key: none"),
     "mine.yaml:2: expected url: http"},
    {IN("provider: openai, url: 'http://h/v1'"), "mine.yaml:2: expected the key \"key\""},
    {IN("provider: openai, key: sk-secret"), "mine.yaml:2: expected key: the name of"},
    {IN("provider: openai, key: 7"), "mine.yaml:2: expected key: the name of"},
    {IN("provider: openai, key_command: gcloud"), "mine.yaml:2: expected key_command: [PROGRAM"},
    {IN("provider: openai, key_command: []"), "mine.yaml:2: expected key_command: [PROGRAM"},
    {IN("provider: openai, key: A, key_command: [a]"), "mine.yaml:2: expected one of key and"},
    {IN("provider: openai, key_lifetime: 1h"), "mine.yaml:2: expected key_lifetime beside"},
    {IN("provider: openai, key_command: [a], key_lifetime: soon"),
     "mine.yaml:2: expected key_lifetime: a time"},
    {IN("provider: gemini, key_as: header"),
     "mine.yaml:2: expected key_as: bearer or aws4/REGION/SERVICE"},
    {IN("provider: openai, key_as: aws4/eu-west-1"),
     "mine.yaml:2: expected key_as: aws4/REGION/SERVICE"},
    {IN("provider: openai, key_as: aws4/EU/x"),
     "mine.yaml:2: expected key_as: aws4/REGION/SERVICE"},
    {IN("provider: openai, batch: night"), "mine.yaml:2: expected batch: true, false"},
    {IN("provider: openai, batch: {pol: 1s}"), "mine.yaml:2: "},
    {IN("provider: openai, batch: {poll: 0}"), "mine.yaml:2: expected poll: a time"},
    {IN("provider: gemini, batch: true, key: A, url: 'https://h/v1/publishers/google'"),
     "mine.yaml:2: expected batch: true, false"},
    {"models:\n  m:\n    provider: openai\n\n    weight: no\n", "mine.yaml:5: "},
    {"models: {m: {provider: openai}\n", "mine.yaml:"},
};

static void test_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(files); i++) {
        struct arena *arena = arena_new();
        struct catalogue *catalogue;
        struct err err = {0};
        put("mine.yaml", files[i].text);
        int status = catalogue_load(arena, "mine.yaml", &catalogue, &err);
        bool fits = files[i].message == NULL
                        ? status == 0
                        : status != 0 && strstr(err.message, files[i].message) == err.message;
        if (!fits || (status != 0 && err.code != ERR_USAGE))
            fail_msg("row %zu: %s", i, err.message);
        assert_null(strstr(err.message, "sk-secret"));
        arena_free(arena);
    }
    struct arena *arena = arena_new();
    struct catalogue *catalogue;
    struct err err = {0};
    assert_int_equal(catalogue_load(arena, "nowhere.yaml", &catalogue, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    arena_free(arena);
}

/* A person's entry takes the place of the shipped one, as a whole. */
static void test_over(void **state)
{
    (void)state;
    struct models models;
    struct err err;
    set_keys(true);
    struct arena *arena = arena_new();
    assert_int_equal(mkdir("config", 0700), 0);
    assert_int_equal(mkdir("config/twagent", 0700), 0);
    put("config/twagent/models.yaml", "models:\n\n  gpt-5: {provider: openai, model: other}\n");
    char path[200];
    snprintf(path, sizeof path, "%s/config", folder);
    setenv("XDG_CONFIG_HOME", path, 1);
    const struct catalogue *catalogue = load(arena, NULL);
    assert_int_equal(models_choose(arena, catalogue, "gpt-5,claude-x", &none, &models, &err), 0);
    assert_string_equal(models.items[0].wire_name, "other");
    assert_float_equal(models.items[0].prompt_price, -1, 0);
    assert_int_equal(models.items[0].context_tokens, 0);
    assert_non_null(strstr(models.items[0].where, "config/twagent/models.yaml:3"));
    assert_float_equal(models.items[1].prompt_price, 3, 0);
    setenv("XDG_CONFIG_HOME", folder, 1);
    arena_free(arena);
}

/* The file that ships: every entry can be chosen, has its prices and its limits. */
static void test_shipped(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt-5-mini", "claude-opus-5-5", "claude-sonnet-4-5",
                                        "gemini-3.8-flash"};
    struct arena *arena = arena_new();
    setenv("TWAGENT_DATA", TEST_SOURCE_DIR, 1);
    const struct catalogue *catalogue = load(arena, NULL);
    set_keys(true);
    for (size_t i = 0; i < COUNT(names); i++) {
        struct models models;
        struct err err;
        if (models_choose(arena, catalogue, names[i], &none, &models, &err) != 0)
            fail_msg("%s", err.message);
        const struct model *model = &models.items[0];
        assert_true(model->prompt_price > 0 && model->completion_price > model->prompt_price);
        assert_true(model->max_tokens > 0 && model->context_tokens > model->max_tokens);
    }
    setenv("TWAGENT_DATA", folder, 1);
    arena_free(arena);
}

/* ---- arithmetic ---- */

static void test_pick(void **state)
{
    (void)state;
    const struct model items[] = {{.name = "a", .weight = 1}, {.name = "b", .weight = 3}};
    const struct models models = {items, 2}, one = {items, 1};
    int counts[2] = {0};
    for (uint64_t i = 0; i < 4000; i++) {
        const struct model *model = models_pick(&models, i);
        assert_ptr_equal(model, models_pick(&models, i));
        counts[model - items]++;
        assert_ptr_equal(models_pick(&one, i), items);
    }
    assert_in_range(counts[1], 2850, 3150);
    assert_non_null(models_pick(&models, UINT64_MAX));
}

static void test_cost(void **state)
{
    (void)state;
    struct model model = {.prompt_price = 0.25, .completion_price = 2};
    assert_int_equal(model_cost(&model, 1000, 100), 450);
    assert_int_equal(model_cost(&model, 1, 0), 1); /* rounded up */
    assert_int_equal(model_cost(&model, 0, 0), 0);
    assert_int_equal(model_cost(&model, -1, -1), 0);
    assert_int_equal(model_cost(&model, 1000000, 1000000), 2250000);
    model.prompt_price = 0.07;
    assert_int_equal(model_cost(&model, 100, 0), 7); /* 7.000000000000001 in doubles */
    assert_int_equal(model_cost(&model, INT64_MAX, INT64_MAX), INT64_MAX);
    model.completion_price = -1;
    assert_int_equal(model_cost(&model, 1, 1), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chosen),  cmocka_unit_test(test_several),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_env_file),
        cmocka_unit_test(test_files),   cmocka_unit_test(test_over),
        cmocka_unit_test(test_shipped), cmocka_unit_test(test_pick),
        cmocka_unit_test(test_cost)};
    if (mkdtemp(folder) == NULL || chdir(folder) != 0)
        return 1;
    setenv("TWAGENT_DATA", folder, 1);
    setenv("XDG_CONFIG_HOME", folder, 1);
    struct err err;
    if (file_write("models.yaml", shipped, strlen(shipped), &err) != 0)
        return 1;
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    return chdir("/") != 0 || file_remove_tree(folder, &err) != 0 ? 1 : failures;
}
