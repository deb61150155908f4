#include "agents/llm/model.h"

#include "agents/llm/catalogue.h"
#include "agents/llm/command.h"
#include "agents/llm/key_command.h"
#include "agents/llm/keys.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/random.h"
#include "loop/http.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MODELS_MAX = 64 };
#define WEIGHT_MAX 1e6

struct choosing {
    struct arena *arena;
    const struct catalogue *catalogue;
    const struct model_defaults *defaults;
    struct err *err;
};

/* ---- one name ---- */

/* Asked through files or answered from a record: no address, no key, nothing to pay to us. */
static bool is_offline(const char *provider)
{
    return provider != NULL &&
           (strcmp(provider, "mailbox") == 0 || strcmp(provider, "replay") == 0);
}

static bool is_run(const char *text)
{
    size_t digits = *text == 'r' ? strspn(text + 1, "0123456789") : 0;
    return digits > 0 && text[1 + digits] == '\0';
}

static int choose_offline(const struct choosing *choosing, const char *provider, const char *source,
                          struct model *model)
{
    bool mailbox = strcmp(provider, "mailbox") == 0;
    if (*source == '\0')
        return err_set(choosing->err, ERR_USAGE, "--model: expected %s",
                       mailbox ? "mailbox/FOLDER" : "replay/RUN, such as replay/r3");
    if (!mailbox && !is_run(source))
        return err_set(choosing->err, ERR_USAGE,
                       "--model: expected replay/RUN, such as replay/r3, not \"%.80s\"", source);
    *model = (struct model){
        .name = arena_printf(choosing->arena, "%s/%s", provider, source),
        .provider = mailbox ? "mailbox" : "replay",
        .wire_name = source,
        .base_url = "",
        .source = source,
        .temperature = -1,
        .weight = 1,
        .where = "--model",
    };
    return 0;
}

/* A model that no file names: its prices are not known. */
static void choose_unlisted(const char *name, const char *wire_name, const struct codec *codec,
                            struct entry *entry)
{
    *entry = (struct entry){.model = {.name = name,
                                      .provider = codec->name,
                                      .wire_name = wire_name,
                                      .codec = codec,
                                      .key_variable = codec->key_variable,
                                      .temperature = -1,
                                      .prompt_price = -1,
                                      .completion_price = -1,
                                      .cached_price = -1,
                                      .written_price = -1,
                                      .cache = codec == &codec_anthropic ? "5m" : NULL,
                                      .weight = 1,
                                      .where = "--model"}};
}

static int refuse_unknown(const struct choosing *choosing, const char *name)
{
    const char *nearest = options_nearest(name, choosing->catalogue->names);
    if (nearest != NULL)
        return err_set(choosing->err, ERR_USAGE,
                       "--model: no model \"%.80s\"; did you mean \"%s\"? (PROVIDER/NAME asks for "
                       "one that models.yaml does not list)",
                       name, nearest);
    return err_set(choosing->err, ERR_USAGE,
                   "--model: no model \"%.80s\" in models.yaml; PROVIDER/NAME asks for one that it "
                   "does not list (openai, responses, anthropic, gemini, "
                   "mailbox/FOLDER, replay/RUN)",
                   name);
}

/* "gpt-5-mimi" beside "gpt-5-mini" is a slip; "gpt-4" beside "gpt-5" is another model. */
static bool is_slip(const char *name, const char *listed)
{
    while (listed != NULL && (*name != '\0' || *listed != '\0')) {
        name += strcspn(name, "0123456789");
        listed += strcspn(listed, "0123456789");
        if (*name != *listed)
            return false;
        name += *name != '\0';
        listed += *listed != '\0';
    }
    return listed != NULL;
}

/* Whose models are called so. A provider answers 404 for what it has not, before a run begins. */
static const struct codec *codec_by_family(const struct choosing *choosing, const char *name)
{
    static const struct {
        const char *begin;
        const struct codec *codec;
    } families[] = {{"gpt-", &codec_openai},   {"chatgpt-", &codec_openai},
                    {"o1", &codec_openai},     {"o3", &codec_openai},
                    {"o4", &codec_openai},     {"claude-", &codec_anthropic},
                    {"gemini-", &codec_gemini}};
    if (is_slip(name, options_nearest(name, choosing->catalogue->names)))
        return NULL;
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strncmp(name, families[i].begin, strlen(families[i].begin)) == 0)
            return families[i].codec;
    return NULL;
}

/* The provider that a name without one belongs to, or NULL. */
static const struct codec *fallback_codec(const struct choosing *choosing, const char *name)
{
    const struct model_defaults *defaults = choosing->defaults;
    const struct codec *codec = defaults->provider != NULL ? codec_find(defaults->provider) : NULL;
    if (codec == NULL && defaults->base_url != NULL)
        codec = &codec_openai;
    return codec != NULL ? codec : codec_by_family(choosing, name);
}

/* What goes before a key, and what belongs to one that signs, by its usual names. */
static int finish_key(const struct choosing *choosing, struct model *model)
{
    static const char secret_name[] = "AWS_SECRET_ACCESS_KEY", token_name[] = "AWS_SESSION_TOKEN";
    const char *secret = NULL, *token = NULL, *file = choosing->defaults->env_file;
    if (strncmp(model->key_prefix, HTTP_SIGNS, strlen(HTTP_SIGNS)) != 0) {
        model->key = arena_printf(choosing->arena, "%s%s", model->key_prefix, model->key);
        return 0;
    }
    if (key_find(choosing->arena, secret_name, file, &secret, choosing->err) != 0 ||
        key_find(choosing->arena, token_name, file, &token, choosing->err) != 0)
        return -1;
    if (secret == NULL)
        return err_set(choosing->err, ERR_ENVIRONMENT, "%.80s (%s) signs with %s: set %s, too",
                       model->name, model->where, model->key_variable, secret_name);
    char *key = key_signing(model->key_prefix, model->key, secret, token);
    model->key = arena_strdup(choosing->arena, key);
    explicit_bzero(key, strlen(key));
    mem_free(key);
    return 0;
}

/* Fills in where and with which key. The address that options give is that of models which would
 * go to their provider; another provider's must not get it. */
static int settle_address(const struct choosing *choosing, const struct entry *entry,
                          struct model *model)
{
    const struct model_defaults *defaults = choosing->defaults;
    const struct codec *codec = model->codec;
    bool own_url = model->base_url != NULL;
    if (!own_url && defaults->base_url != NULL && defaults->provider == NULL &&
        codec != &codec_openai) /* sent to its provider in silence it would be what nobody asked */
        return err_set(choosing->err, ERR_USAGE,
                       "--base-url is the address of models in openai's format, and %.80s speaks "
                       "%s's: say --provider %s, or give it an entry with a url in models.yaml",
                       model->name, codec->name, codec->name);
    if (!own_url && defaults->base_url != NULL && fallback_codec(choosing, model->name) == codec) {
        model->base_url = arena_strdup(choosing->arena, defaults->base_url);
        own_url = true;
    }
    if (!own_url)
        model->base_url = codec->default_url;
    if (model->key_command != NULL)
        return key_command_first(model->key_command, choosing->err) != 0
                   ? err_wrap(choosing->err, "%.80s (%s)", model->name, model->where)
                   : 0;
    if (entry->keyless)
        return 0;
    if (key_find(choosing->arena, model->key_variable, defaults->env_file, &model->key,
                 choosing->err) != 0)
        return -1;
    if (model->key != NULL && model->key_prefix != NULL && finish_key(choosing, model) != 0)
        return -1;
    /* A server of one's own often needs none; one that a file gives a key to does. */
    bool needed = !own_url || entry->model.base_url != NULL;
    if (model->key == NULL && needed)
        return err_set(choosing->err, ERR_ENVIRONMENT,
                       "%.80s (%s) needs a key: set %s in the environment or in %s", model->name,
                       model->where, model->key_variable,
                       defaults->env_file != NULL ? defaults->env_file : ".env");
    return 0;
}

static int choose_listed(const struct choosing *choosing, const struct entry *entry,
                         struct model *model)
{
    *model = entry->model;
    if (model->command) {
        struct command_model *found = ARENA_NEW(choosing->arena, struct command_model);
        *found = *model->command;
        model->command = found;
        return command_find(choosing->arena, model->name, found, choosing->err);
    }
    return settle_address(choosing, entry, model);
}

/* NAME, PROVIDER/NAME, mailbox/FOLDER, replay/RUN. A slash may be part of an ordinary name. */
static int choose_name(const struct choosing *choosing, const char *name, struct model *model)
{
    const char *provider = choosing->defaults->provider;
    const struct entry *entry = catalogue_find(choosing->catalogue, name);
    const char *slash = strchr(name, '/');
    const char *after = slash != NULL ? slash + 1 : name;
    const char *prefix =
        slash != NULL ? arena_strndup(choosing->arena, name, (size_t)(slash - name)) : "";
    if (is_offline(prefix))
        return choose_offline(choosing, prefix, after, model);
    if (is_offline(provider))
        return choose_offline(choosing, provider, name, model);
    if (entry != NULL)
        return choose_listed(choosing, entry, model);
    const struct codec *codec = codec_find(prefix);
    const char *rest = codec != NULL ? after : name;
    if (codec != NULL && *rest == '\0')
        return err_set(choosing->err, ERR_USAGE, "--model: expected %s/NAME", prefix);
    entry = codec != NULL ? catalogue_find(choosing->catalogue, rest) : NULL;
    if (entry != NULL && entry->model.codec == codec)
        return choose_listed(choosing, entry, model);
    if (codec == NULL)
        codec = fallback_codec(choosing, name);
    if (codec == NULL || codec == &codec_command ||
        codec == &codec_agent) /* whose words only an entry can say */
        return refuse_unknown(choosing, name);
    struct entry unlisted;
    choose_unlisted(name, rest, codec, &unlisted);
    return choose_listed(choosing, &unlisted, model);
}

/* ---- the whole choice ---- */

/* An entry's own limit stands, and an option can only lower it. */
static void apply_defaults(const struct model_defaults *defaults, struct model *model)
{
    if (model->temperature < 0)
        model->temperature = defaults->temperature;
    if (model->max_tokens == 0 ||
        (defaults->max_tokens > 0 && defaults->max_tokens < model->max_tokens))
        model->max_tokens = defaults->max_tokens;
    if (model->max_tokens == 0 && model->codec != NULL)
        model->max_tokens = model->codec->max_tokens;
}

static char *trimmed(struct arena *arena, const char *text, size_t length)
{
    while (length > 0 && isspace((unsigned char)*text)) {
        text++;
        length--;
    }
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    return arena_strndup(arena, text, length);
}

/* NAME[@WEIGHT]. An "@" belongs to the name where an entry is called so. */
static int choose_item(const struct choosing *choosing, char *item, struct model *model)
{
    char *at = strrchr(item, '@'), *end;
    double weight = 0;
    if (catalogue_find(choosing->catalogue, item) == NULL && at != NULL) {
        weight = strtod(at + 1, &end);
        if (end == at + 1 || *end != '\0' || !(weight > 0) || weight > WEIGHT_MAX)
            return err_set(choosing->err, ERR_USAGE,
                           "--model: expected NAME@WEIGHT with a weight above 0 and at most %g, "
                           "not \"%.80s\" (a name with @ in it needs an entry in models.yaml)",
                           WEIGHT_MAX, item);
        *at = '\0';
    }
    if (*item == '\0')
        return err_set(choosing->err, ERR_USAGE,
                       "--model: expected NAME[@WEIGHT],..., with a name in each place");
    if (choose_name(choosing, item, model) != 0)
        return -1;
    if (weight > 0)
        model->weight = weight;
    apply_defaults(choosing->defaults, model);
    return 0;
}

int models_choose(struct arena *arena, const struct catalogue *catalogue, const char *choice,
                  const struct model_defaults *defaults, struct models *models, struct err *err)
{
    const struct choosing choosing = {arena, catalogue, defaults, err};
    struct model *items = arena_array(arena, MODELS_MAX, sizeof *items);
    size_t count = 0;
    if (defaults->provider != NULL && strcmp(defaults->provider, "builtin") != 0 &&
        !is_offline(defaults->provider) && codec_find(defaults->provider) == NULL)
        return err_set(
            err, ERR_USAGE,
            "--provider: expected openai, responses, anthropic, gemini, mailbox or replay, "
            "not \"%.80s\"",
            defaults->provider);
    if (choice == NULL || *choice == '\0')
        return err_set(err, ERR_USAGE, "--model: expected NAME[@WEIGHT],...%s",
                       is_offline(defaults->provider) ? ": the mailbox's folder, or the run to "
                                                        "replay"
                                                      : "");
    for (const char *from = choice; from != NULL;) {
        const char *comma = strchr(from, ',');
        size_t length = comma != NULL ? (size_t)(comma - from) : strlen(from);
        if (count == MODELS_MAX)
            return err_set(err, ERR_USAGE, "--model: expected at most %d models", MODELS_MAX);
        if (choose_item(&choosing, trimmed(arena, from, length), &items[count++]) != 0)
            return -1;
        from = comma != NULL ? comma + 1 : NULL;
    }
    *models = (struct models){.items = items, .count = count};
    return 0;
}

const struct model *models_pick(const struct models *models, uint64_t number)
{
    double total = 0;
    for (size_t i = 0; i < models->count; i++)
        total += models->items[i].weight;
    struct random random; /* so that 1, 2, 3... are spread as well as hashes are */
    random_init(&random, number);
    double at = random_unit(&random) * total;
    for (size_t i = 0; i + 1 < models->count; i++) {
        at -= models->items[i].weight;
        if (at < 0)
            return &models->items[i];
    }
    return &models->items[models->count - 1];
}

int64_t model_cost_most(const struct model *model, int64_t prompt_tokens, int64_t completion_tokens)
{
    struct model dearest = *model;
    if (model->written_price > model->prompt_price)
        dearest.prompt_price = model->written_price;
    return model_cost(&dearest, prompt_tokens, completion_tokens);
}

int64_t model_cache_saved(const struct model *model, const struct completion *completion)
{
    int64_t cached = completion->cached_tokens, written = completion->written_tokens;
    int64_t prompt = completion->prompt_tokens;
    if (model->prompt_price < 0 || cached < 0 || written < 0 || prompt <= 0 || cached > prompt ||
        written > prompt - cached)
        return 0;
    double saved = 0;
    if (model->cached_price >= 0)
        saved += (double)cached * (model->prompt_price - model->cached_price);
    if (model->written_price >= 0)
        saved -= (double)written * (model->written_price - model->prompt_price);
    return saved < 9.2e18 ? (int64_t)floor(saved) : 0;
}

int64_t model_cost(const struct model *model, int64_t prompt_tokens, int64_t completion_tokens)
{
    if (model->prompt_price < 0 || model->completion_price < 0)
        return -1;
    double prompt = prompt_tokens > 0 ? (double)prompt_tokens : 0;
    double completion = completion_tokens > 0 ? (double)completion_tokens : 0;
    double call = model->command ? 1e6 * model->command->call_price : 0;
    double cost = call + prompt * model->prompt_price + completion * model->completion_price;
    /* What doubles add in their last places is no micro-dollar. */
    cost = ceil(cost * (1 - 1e-12));
    return cost < 9.2e18 ? (int64_t)cost : INT64_MAX;
}
