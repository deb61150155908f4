#include "agents/llm/catalogue.h"
#include "agents/llm/command.h"
#include "agents/llm/key_command.h"
#include "agents/llm/providers/batch.h"
#include "agents/llm/providers/request.h"
#include "loop/http.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/value.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES_MAX = 1000, FILE_BYTES_MAX = 1 << 20, TOKENS_MAX = 100000000 };

static const int64_t LONGEST_MS = INT64_C(30) * 24 * 60 * 60 * 1000;

struct reading {
    struct arena *arena;
    const char *path;
    struct err *err;
};

static int refuse(const struct reading *reading, int line, const char *format, ...)
    PRINTF_LIKE(3, 4);

static int refuse(const struct reading *reading, int line, const char *format, ...)
{
    char text[360];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return err_set(reading->err, ERR_USAGE, "%s:%d: expected %s", reading->path, line, text);
}

/* A text of at least one byte; absent leaves *text alone. Numbers are texts too: a model may be
 * called 7. */
static int read_text(const struct reading *reading, const struct value *map, const char *key,
                     const char **text)
{
    const struct value *value = value_get(map, key);
    if (value == NULL)
        return 0;
    if (value->text == NULL || *value->text == '\0')
        return refuse(reading, value->line, "a text for \"%s\"", key);
    for (const char *at = value->text; *at != '\0'; at++)
        if (iscntrl((unsigned char)*at))
            return refuse(reading, value->line, "a text on one line for \"%s\"", key);
    *text = value->text;
    return 0;
}

static int read_real(const struct reading *reading, const struct value *map, const char *key,
                     double least, double most, double *number)
{
    const struct value *value = value_get(map, key);
    if (value == NULL)
        return 0;
    bool is_number = value->kind == VALUE_INT || value->kind == VALUE_REAL;
    if (!is_number || !isfinite(value->real) || value->real < least || value->real > most)
        return refuse(reading, value->line, "a number from %g to %g for \"%s\"", least, most, key);
    *number = value->real;
    return 0;
}

static int read_tokens(const struct reading *reading, const struct value *map, const char *key,
                       int64_t *tokens)
{
    const struct value *value = value_get(map, key);
    if (value == NULL)
        return 0;
    if (value->kind != VALUE_INT || value->integer < 1 || value->integer > TOKENS_MAX)
        return refuse(reading, value->line, "a number of tokens, 1 to %d, for \"%s\"", TOKENS_MAX,
                      key);
    *tokens = value->integer;
    return 0;
}

static int read_prices(const struct reading *reading, const struct value *map, struct model *model)
{
    static const char *const keys[] = {"prompt", "completion", "cached", "written", NULL};
    const struct value *prices = value_get(map, "prices");
    if (prices == NULL)
        return 0;
    if (prices->kind != VALUE_MAP || value_get(prices, "prompt") == NULL ||
        value_get(prices, "completion") == NULL)
        return refuse(reading, prices->line,
                      "prices: {prompt: ..., completion: ...}, US dollars a million tokens");
    if (value_check_keys(prices, reading->path, keys, reading->err) != 0 ||
        read_real(reading, prices, "prompt", 0, 1e6, &model->prompt_price) != 0 ||
        read_real(reading, prices, "cached", 0, 1e6, &model->cached_price) != 0 ||
        read_real(reading, prices, "written", 0, 1e6, &model->written_price) != 0)
        return -1;
    return read_real(reading, prices, "completion", 0, 1e6, &model->completion_price);
}

static int read_time(const struct reading *reading, const struct value *map, const char *key,
                     uint64_t *ms)
{
    const struct value *value = value_get(map, key);
    struct err ignored;
    int64_t number = (int64_t)*ms;
    if (value != NULL &&
        (value->text == NULL || options_parse_duration(value->text, &number, &ignored) != 0 ||
         number < 1 || number > LONGEST_MS))
        return refuse(reading, value->line, "%s: a time from 1ms to 30 days, as 90s or 2h", key);
    *ms = (uint64_t)number;
    return 0;
}

/* Whether to ask a provider to keep what prompts share; others keep it by themselves. */
static int read_cache(const struct reading *reading, const struct value *map, struct model *model)
{
    const struct value *said = value_get(map, "cache");
    bool asks = model->codec == &codec_anthropic;
    model->cache = asks ? "5m" : NULL;
    if (said == NULL)
        return 0;
    if (!asks || read_text(reading, map, "cache", &model->cache) != 0 ||
        (strcmp(model->cache, "5m") != 0 && strcmp(model->cache, "1h") != 0 &&
         strcmp(model->cache, "off") != 0))
        return refuse(reading, said->line, "cache: 5m, 1h or off, of a provider: anthropic");
    if (strcmp(model->cache, "off") == 0)
        model->cache = NULL;
    return 0;
}

/* Half the price is what all three take. What Gemini's cache gives costs as much as ever:
 * https://ai.google.dev/gemini-api/docs/batch-api */
static void halve_prices(struct model *model)
{
    double *const prices[] = {&model->prompt_price, &model->completion_price, &model->written_price,
                              &model->cached_price};
    size_t count = sizeof prices / sizeof *prices;
    for (size_t i = 0; i < count - (model->codec == &codec_gemini); i++)
        if (*prices[i] > 0)
            *prices[i] /= 2;
}

static int read_batch(const struct reading *reading, const struct value *map, struct model *model)
{
    static const char *const keys[] = {"gather", "poll", "wait", NULL};
    static const char expected[] =
        "batch: true, false, or {gather: TIME, poll: TIME, wait: TIME}, of openai, responses, "
        "anthropic and Gemini's own API";
    const struct value *said = value_get(map, "batch");
    if (said == NULL || (said->kind == VALUE_BOOL && !said->boolean))
        return 0;
    bool vertex = model->base_url != NULL && strstr(model->base_url, "/publishers/") != NULL;
    if ((said->kind != VALUE_MAP && said->kind != VALUE_BOOL) || vertex ||
        batch_format_of(model->codec) == NULL)
        return refuse(reading, said->line, "%s", expected);
    struct batch_terms *terms = ARENA_NEW(reading->arena, struct batch_terms);
    *terms = (struct batch_terms){
        .gather_ms = 10 * 1000, .poll_ms = 2 * 60 * 1000, .wait_ms = 25 * 60 * 60 * 1000ULL};
    if (said->kind == VALUE_MAP &&
        (value_check_keys(said, reading->path, keys, reading->err) != 0 ||
         read_time(reading, said, "gather", &terms->gather_ms) != 0 ||
         read_time(reading, said, "poll", &terms->poll_ms) != 0 ||
         read_time(reading, said, "wait", &terms->wait_ms) != 0))
        return -1;
    model->batch = terms;
    halve_prices(model);
    return 0;
}

/* What providers have beside what all have: thinking, its effort, a tier, routing. */
static int read_body(const struct reading *reading, const struct value *map, struct model *model)
{
    const struct value *body = value_get(map, "body");
    if (body == NULL)
        return 0;
    if (body->kind != VALUE_MAP)
        return refuse(reading, body->line, "body: {FIELD: VALUE, ...}, of the provider's requests");
    for (size_t i = 0; i < body->count; i++)
        if (request_has(body->keys[i]))
            return refuse(
                reading, body->key_lines[i],
                "body: fields that requests do not have by themselves, and \"%.60s\" is one",
                body->keys[i]);
    model->body = body;
    return 0;
}

static bool is_variable(const char *text)
{
    bool fine = isalpha((unsigned char)*text) || *text == '_';
    for (const char *at = text; *at != '\0'; at++)
        fine = fine && (isupper((unsigned char)*at) || isdigit((unsigned char)*at) || *at == '_');
    return fine;
}

static bool is_url(const char *url)
{
    const char *host = strncmp(url, "https://", 8) == 0  ? url + 8
                       : strncmp(url, "http://", 7) == 0 ? url + 7
                                                         : "";
    return *host != '\0' && *host != '/' && strpbrk(host, " ?#@") == NULL;
}

/* A token of a cloud ends within the hour; most last that long. */
static int read_key_command(const struct reading *reading, const struct value *map,
                            struct model *model)
{
    const struct value *said = value_get(map, "key_command");
    const struct value *lifetime = value_get(map, "key_lifetime");
    if (said == NULL)
        return lifetime != NULL ? refuse(reading, lifetime->line, "key_lifetime beside key_command")
                                : 0;
    struct key_command *command = ARENA_NEW(reading->arena, struct key_command);
    BUF_LOCAL(words, 1 << 16);
    command->arena = reading->arena;
    command->prefix = model->key_prefix;
    command->lifetime_ms = 45 * 60 * 1000;
    if (value_get(map, "key") != NULL)
        return refuse(reading, said->line, "one of key and key_command");
    if (command_words(reading->arena, reading->path, map, "key_command", &command->words,
                      reading->err) != 0 ||
        read_time(reading, map, "key_lifetime", &command->lifetime_ms) != 0)
        return -1;
    for (size_t i = 0; command->words[i]; i++)
        buf_addf(&words, "%s%s", i ? " " : "", command->words[i]);
    command->name = arena_strdup(reading->arena, buf_text(&words));
    model->key_command = command;
    return 0;
}

/* OpenAI's formats have it so anyway. */
static int read_key_as(const struct reading *reading, const struct value *map, struct model *model)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    const struct value *said = value_get(map, "key_as");
    const char *text = said != NULL && said->text != NULL ? said->text : "";
    if (strncmp(text, "aws4/", 5) == 0) {
        size_t region = strspn(text + 5, allowed), service = 0;
        if (region > 0 && text[5 + region] == '/')
            service = strspn(text + 5 + region + 1, allowed);
        if (service == 0 || text[5 + region + 1 + service] != '\0')
            return refuse(reading, said->line, "key_as: aws4/REGION/SERVICE");
        model->key_prefix = arena_printf(reading->arena, HTTP_SIGNS "%s ", text + 5);
    } else if (said != NULL && strcmp(text, "bearer") != 0) {
        return refuse(reading, said->line, "key_as: bearer or aws4/REGION/SERVICE");
    } else if (said != NULL) {
        bool other = model->codec == &codec_anthropic || model->codec == &codec_gemini;
        model->key_prefix = other ? "Bearer " : NULL;
    }
    return 0;
}

/* Where to ask, and with which key. A key goes nowhere that its entry does not name: at an address
 * of its own an entry says which one it takes. */
static int read_address(const struct reading *reading, int line, const struct value *map,
                        struct entry *entry)
{
    struct model *model = &entry->model;
    const char *key = NULL;
    if (read_text(reading, map, "url", &model->base_url) != 0 ||
        read_text(reading, map, "key", &key) != 0 || read_key_as(reading, map, model) != 0 ||
        read_key_command(reading, map, model) != 0)
        return -1;
    if (model->base_url != NULL && !is_url(model->base_url))
        return refuse(reading, value_get(map, "url")->line,
                      "url: http://HOST[:PORT][/PATH] or https://..., with no key in it");
    if (model->base_url != NULL && key == NULL && model->key_command == NULL)
        return refuse(reading, line, "the key \"key\" beside \"url\": a variable's name, or none");
    entry->keyless = (key != NULL && strcmp(key, "none") == 0) || model->key_command != NULL;
    /* What stands there may be a key itself, so it is not repeated. */
    if (key != NULL && !entry->keyless && !is_variable(key))
        return refuse(reading, value_get(map, "key")->line,
                      "key: the name of an environment variable (never a key itself), or none");
    model->key_variable = entry->keyless ? NULL : key != NULL ? key : model->codec->key_variable;
    return 0;
}

/* A program's price is that of a call; tokens, which it does not count, cost something only where
 * its entry says so. */
static int read_command_prices(const struct reading *reading, const struct value *map,
                               struct model *model, struct command_model *command)
{
    static const char *const keys[] = {"call", "prompt", "completion", NULL};
    const struct value *prices = value_get(map, "prices");
    if (prices == NULL)
        return 0;
    if (prices->kind != VALUE_MAP || value_get(prices, "call") == NULL)
        return refuse(reading, prices->line, "prices: {call: DOLLARS}");
    model->prompt_price = model->completion_price = 0;
    if (value_check_keys(prices, reading->path, keys, reading->err) != 0 ||
        read_real(reading, prices, "call", 0, 1e4, &command->call_price) != 0 ||
        read_real(reading, prices, "prompt", 0, 1e6, &model->prompt_price) != 0)
        return -1;
    return read_real(reading, prices, "completion", 0, 1e6, &model->completion_price);
}

static int read_command(const struct reading *reading, const struct value *map, struct entry *entry)
{
    static const char *const keys[] = {
        "provider", "command", "time_limit", "output_limit", "slots", "retries", "sandbox",
        "prices",   "context", "weight",     "json",         "acp",   NULL};
    static const char *const agent_keys[] = {
        "provider", "command", "time_limit", "output_limit", "slots",       "retries", "sandbox",
        "prices",   "context", "weight",     "json",         "evaluations", "acp",     NULL};
    struct model *model = &entry->model;
    struct command_model *command = ARENA_NEW(reading->arena, struct command_model);
    BUF_LOCAL(words, 1 << 16);
    bool agent = model->codec == &codec_agent;
    if (value_check_keys(map, reading->path, agent ? agent_keys : keys, reading->err) != 0 ||
        command_read(reading->arena, reading->path, map, agent, command, reading->err) != 0 ||
        read_command_prices(reading, map, model, command) != 0 ||
        read_tokens(reading, map, "context", &model->context_tokens) != 0)
        return -1;
    for (size_t i = 0; command->words[i]; i++) /* another command is another place to ask */
        buf_addf(&words, "%s%s", i ? " " : "", command->words[i]);
    model->base_url = arena_strdup(reading->arena, buf_text(&words));
    model->command = command;
    entry->keyless = true;
    return read_real(reading, map, "weight", 1e-6, 1e6, &model->weight);
}

static int read_entry(const struct reading *reading, const char *name, int line,
                      const struct value *map, struct entry *entry)
{
    static const char *const keys[] = {
        "provider",   "model",       "url",          "key",    "prices", "temperature",
        "max_tokens", "context",     "reasoning",    "weight", "cache",  "body",
        "batch",      "key_command", "key_lifetime", "key_as", NULL};
    struct model *model = &entry->model;
    if (map->kind != VALUE_MAP)
        return refuse(
            reading, map->line > 0 ? map->line : line,
            "%.80s: {provider: openai, responses, anthropic, gemini, command or agent, ...}", name);
    *entry = (struct entry){
        .model = {.name = name,
                  .wire_name = name,
                  .temperature = -1,
                  .prompt_price = -1,
                  .completion_price = -1,
                  .cached_price = -1,
                  .written_price = -1,
                  .weight = 1,
                  .where = arena_printf(reading->arena, "%s:%d", reading->path, line)}};
    if (read_text(reading, map, "provider", &model->provider) != 0)
        return -1;
    model->codec = model->provider != NULL ? codec_find(model->provider) : NULL;
    if (model->codec == NULL)
        return refuse(reading, model->provider != NULL ? value_get(map, "provider")->line : line,
                      "provider: openai, responses, anthropic, gemini, command or agent, for %.80s",
                      name);
    model->provider = model->codec->name;
    if (model->codec == &codec_command || model->codec == &codec_agent)
        return read_command(reading, map, entry);
    if (value_check_keys(map, reading->path, keys, reading->err) != 0)
        return -1;
    if (read_text(reading, map, "model", &model->wire_name) != 0 ||
        read_address(reading, line, map, entry) != 0 || read_prices(reading, map, model) != 0 ||
        read_cache(reading, map, model) != 0 || read_body(reading, map, model) != 0 ||
        read_batch(reading, map, model) != 0 ||
        read_real(reading, map, "temperature", 0, 2, &model->temperature) != 0 ||
        read_tokens(reading, map, "max_tokens", &model->max_tokens) != 0 ||
        read_tokens(reading, map, "context", &model->context_tokens) != 0 ||
        read_real(reading, map, "reasoning", 0, 1000, &model->reasoning) != 0)
        return -1;
    return read_real(reading, map, "weight", 1e-6, 1e6, &model->weight);
}

const struct entry *catalogue_find(const struct catalogue *catalogue, const char *name)
{
    for (size_t i = 0; i < catalogue->count; i++)
        if (strcmp(catalogue->names[i], name) == 0)
            return &catalogue->entries[i];
    return NULL;
}

/* Commas and a blank would split a choice, "@" begins a weight there. */
static bool is_name(const char *name)
{
    for (const char *at = name; *at != '\0'; at++)
        if (!isgraph((unsigned char)*at) || *at == ',')
            return false;
    return *name != '\0' && strlen(name) <= 200;
}

int catalogue_read(struct arena *arena, const char *path, const char *text, size_t length,
                   struct catalogue *catalogue, struct err *err)
{
    static const char *const keys[] = {"models", NULL};
    const struct reading reading = {arena, path, err};
    struct value *root;
    if (value_parse_yaml(arena, path, text, length, &root, err) != 0)
        return -1;
    if (root->kind == VALUE_NULL)
        return 0;
    if (root->kind != VALUE_MAP)
        return refuse(&reading, root->line, "models: {NAME: {provider: ..., ...}, ...}");
    if (value_check_keys(root, path, keys, err) != 0)
        return -1;
    const struct value *models = value_get(root, "models");
    if (models == NULL || models->kind == VALUE_NULL)
        return 0;
    if (models->kind != VALUE_MAP)
        return refuse(&reading, models->line, "models: {NAME: {provider: ..., ...}, ...}");
    for (size_t i = 0; i < models->count; i++) {
        const char *name = models->keys[i];
        int line = models->key_lines[i];
        if (!is_name(name))
            return refuse(&reading, line, "a model's name without blanks and commas");
        struct entry *entry = (struct entry *)catalogue_find(catalogue, name);
        if (entry == NULL && catalogue->count == ENTRIES_MAX)
            return refuse(&reading, line, "at most %d models", ENTRIES_MAX);
        if (entry == NULL)
            entry = &catalogue->entries[catalogue->count++];
        assert(entry != NULL);
        catalogue->names[entry - catalogue->entries] = name;
        if (read_entry(&reading, name, line, models->items[i], entry) != 0)
            return -1;
    }
    return 0;
}

static int read_file(struct arena *arena, const char *path, struct catalogue *catalogue,
                     struct err *err)
{
    BUF_LOCAL(text, FILE_BYTES_MAX);
    int status = file_read(path, &text, err);
    if (status != 0)
        err->code = ERR_USAGE;
    else
        status = catalogue_read(arena, path, buf_text(&text), text.length, catalogue, err);
    return status;
}

static const char *personal_file(struct arena *arena)
{
    MEM_LOCAL char *path = file_user_path("XDG_CONFIG_HOME", ".config", "twagent/models.yaml");
    return path != NULL && file_exists(path) ? arena_strdup(arena, path) : NULL;
}

int catalogue_load(struct arena *arena, const char *file, struct catalogue **catalogue,
                   struct err *err)
{
    struct catalogue *made = ARENA_NEW(arena, struct catalogue);
    made->entries = arena_array(arena, ENTRIES_MAX, sizeof *made->entries);
    made->names = arena_array(arena, ENTRIES_MAX + 1, sizeof *made->names);
    MEM_LOCAL char *shipped = file_data_path("models.yaml");
    int status = 0;
    if (shipped == NULL)
        status = err_set(err, ERR_ENVIRONMENT,
                         "models.yaml is missing beside the program; is it installed whole?");
    else
        status = read_file(arena, arena_strdup(arena, shipped), made, err);
    if (file == NULL)
        file = personal_file(arena);
    if (status == 0 && file != NULL)
        status = read_file(arena, arena_strdup(arena, file), made, err);
    *catalogue = made;
    return status;
}
