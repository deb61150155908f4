#include "cli/run/chosen.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/value.h"
#include "cli/docs/docs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what is chosen ---- */

static bool is(const char *text, const char *word)
{
    return text && strcmp(text, word) == 0;
}

static bool says_nothing(const char *text)
{
    return !text || !*text;
}

static int check(const struct settings *s, struct err *err)
{
    bool none = says_nothing(s->model);
    if (none && says_nothing(s->idea_model) != says_nothing(s->code_model))
        return err_set(err, ERR_USAGE, "--%s-model needs --%s-model or --model beside it",
                       s->idea_model ? "idea" : "code", s->idea_model ? "code" : "idea");
    if (none && says_nothing(s->idea_model) && s->provider)
        return err_set(err, ERR_USAGE, "--provider %s needs --model %s", s->provider,
                       is(s->provider, "mailbox")  ? "FOLDER"
                       : is(s->provider, "replay") ? "RUN"
                                                   : "NAME");
    return 0;
}

/* A path as it is from everywhere, since a resume may stand elsewhere. */
static const char *absolute(struct arena *arena, const char *path)
{
    char *real = path ? realpath(path, NULL) : NULL;
    const char *result = real ? arena_strdup(arena, real) : path;
    free(real);
    return result;
}

/* The same for the folders of mailboxes in a choice of models. */
static const char *absolute_choice(struct arena *arena, const char *choice, bool mailboxes)
{
    char here[4096];
    if (says_nothing(choice) || !getcwd(here, sizeof here))
        return choice;
    BUF_LOCAL(text, 1 << 16);
    for (const char *item = choice; *item;) {
        static const char prefix[] = "mailbox/";
        size_t length = strcspn(item, ","), skip = strlen(prefix);
        bool named = strncmp(item, prefix, skip) == 0;
        const char *path = named ? item + skip : item;
        if (named)
            buf_add_text(&text, prefix);
        if ((named || mailboxes) && *path != '/')
            buf_addf(&text, "%s/", here);
        buf_add(&text, path, (size_t)(item + length - path));
        if (item[length])
            buf_add_char(&text, ',');
        item += length + (item[length] != '\0');
    }
    return buf_keep(&text, arena);
}

static bool asks_nobody(const struct settings *s)
{
    bool none =
        says_nothing(s->model) && says_nothing(s->idea_model) && says_nothing(s->code_model);
    return is(s->provider, "builtin") || (none && !s->provider);
}

/* What is recorded is what is chosen by, so that a resume asks under the same names. */
static struct settings from_everywhere(struct arena *arena, const struct settings *settings)
{
    struct settings s = *settings;
    bool mailboxes = is(s.provider, "mailbox");
    s.model = absolute_choice(arena, s.model, mailboxes);
    s.idea_model = absolute_choice(arena, s.idea_model, mailboxes);
    s.code_model = absolute_choice(arena, s.code_model, mailboxes);
    s.models = absolute(arena, s.models);
    s.env_file = absolute(arena, s.env_file ? s.env_file : "./.env");
    if (!settings->env_file && *s.env_file != '/')
        s.env_file = NULL; /* there is none */
    return s;
}

static const char *encode(struct arena *arena, const struct settings *s)
{
    JSON_LOCAL(json, text, 1 << 20);
    json_object(&json);
    if (!asks_nobody(s)) {
        json_put_text(&json, "model", s->model);
        json_put_text(&json, "idea_model", s->idea_model);
        json_put_text(&json, "code_model", s->code_model);
        json_put_text(&json, "embedding_model", s->embedding_model);
        json_put_text(&json, "provider", s->provider);
        json_put_text(&json, "base_url", s->base_url);
        json_put_text(&json, "models", s->models);
        json_put_text(&json, "env_file", s->env_file);
        json_put_real(&json, "temperature", s->temperature);
        json_put_int(&json, "max_tokens", s->max_tokens);
    }
    json_object_end(&json);
    return buf_keep(&text, arena);
}

int chosen_from_settings(struct arena *arena, const struct settings *settings,
                         struct chosen *chosen, struct err *err)
{
    const struct settings here = from_everywhere(arena, settings), *s = &here;
    const struct model_defaults defaults = {.provider = s->provider,
                                            .base_url = s->base_url,
                                            .temperature = s->temperature,
                                            .max_tokens = s->max_tokens,
                                            .env_file = s->env_file};
    struct catalogue *catalogue;
    *chosen = (struct chosen){.text = encode(arena, s)};
    if (asks_nobody(s))
        return 0;
    if (check(s, err) || catalogue_load(arena, s->models, &catalogue, err))
        return -1;
    const char *ideas = says_nothing(s->idea_model) ? s->model : s->idea_model;
    const char *code = says_nothing(s->code_model) ? s->model : s->code_model;
    if (models_choose(arena, catalogue, ideas, &defaults, &chosen->ideas, err) ||
        models_choose(arena, catalogue, code, &defaults, &chosen->code, err) ||
        docs_run_embedder(s, arena, &chosen->embedding, &chosen->embedding_note, err))
        return -1;
    return 0;
}

/* ---- and again ---- */

static const struct {
    const char *key;
    size_t offset;
    bool names; /* says who is asked: goes where the command line names somebody else */
} texts[] = {{"model", offsetof(struct settings, model), true},
             {"idea_model", offsetof(struct settings, idea_model), true},
             {"code_model", offsetof(struct settings, code_model), true},
             {"provider", offsetof(struct settings, provider), true},
             {"base_url", offsetof(struct settings, base_url), true},
             {"embedding_model", offsetof(struct settings, embedding_model), false},
             {"models", offsetof(struct settings, models), false},
             {"env_file", offsetof(struct settings, env_file), false}};

static bool names_somebody(const struct settings *settings)
{
    for (size_t i = 0; i < 4; i++)
        if (settings_given(settings, texts[i].offset))
            return true;
    return false;
}

int chosen_again(struct arena *arena, const char *text, const struct settings *settings,
                 struct chosen *chosen, struct err *err)
{
    struct value *root;
    struct settings s = *settings;
    if (value_parse_json(arena, "choice", text, strlen(text), &root, err))
        return -1;
    bool anew = names_somebody(settings);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char **field = (const char **)(void *)((char *)&s + texts[i].offset);
        if (settings_given(settings, texts[i].offset))
            continue;
        *field = anew && texts[i].names ? NULL : value_text(root, texts[i].key, NULL);
    }
    if (s.env_file && !settings_given(settings, offsetof(struct settings, env_file)) &&
        !file_exists(s.env_file))
        s.env_file = NULL; /* keys may be in the environment by now */
    s.temperature = value_real(root, "temperature", -1);
    s.max_tokens = value_int(root, "max_tokens", 0);
    return chosen_from_settings(arena, &s, chosen, err);
}
