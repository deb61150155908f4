/* twagent config: every setting with where it came from, the models that they choose, and which
 * keys are there. */
#include "agents/llm/key_command.h"
#include "agents/llm/keys.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/value.h"
#include "cli/options/command.h"
#include "cli/options/variables.h"
#include "cli/run/chosen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const key_variables[] = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY",
                                            "GOOGLE_API_KEY"};

/* ---- where a setting comes from ---- */

/* The configuration's root again, for its lines; NULL where there is none. */
static const struct value *read_file(struct arena *arena, const struct settings *settings)
{
    struct value *root = NULL;
    struct err ignored;
    BUF_LOCAL(text, 1 << 20);
    if (settings->file && file_read(settings->file, &text, &ignored) == 0 &&
        value_parse_yaml(arena, settings->file, buf_text(&text), text.length, &root, &ignored))
        root = NULL;
    return root && root->kind == VALUE_MAP ? root : NULL;
}

static const char *origin_words(struct arena *arena, const struct settings *settings,
                                const struct value *file, size_t i)
{
    const struct option *option = &settings_table.options[i];
    switch (settings->origins[i]) {
    case ORIGIN_FILE:
        for (size_t k = 0; file && file->key_lines && k < file->count; k++)
            if (strcmp(file->keys[k], option->name) == 0)
                return arena_printf(arena, "%s:%d", settings->file, file->key_lines[k]);
        return settings->file;
    case ORIGIN_ENVIRONMENT:
        return arena_printf(arena, "$%s", option->environment);
    case ORIGIN_COMMAND_LINE:
        return arena_printf(arena, "--%s", option->name);
    default:
        return "default";
    }
}

/* What a number stands for where it stands for no number: "no cap", as the option's own help has it
 * behind "0: "; NULL for any other. */
static const char *meaning(struct arena *arena, const struct option *option,
                           const struct settings *settings)
{
    const char *at = (const char *)settings + option->offset;
    bool real = option->type == OPTION_REAL;
    bool number = real || option->type == OPTION_INT || option->type == OPTION_DURATION ||
                  option->type == OPTION_SIZE || option->type == OPTION_DOLLARS;
    double value = !number ? 1
                   : real  ? *(const double *)(const void *)at
                           : (double)*(const int64_t *)(const void *)at;
    if (value > 0)
        return NULL;
    const char *text = strstr(option->help, value < 0 ? " -1: " : " 0: ");
    if (!text)
        return NULL;
    text = strchr(text, ':') + 2;
    size_t length = strcspn(text, ";(");
    while (length > 0 && text[length - 1] == ' ')
        length--;
    return arena_strndup(arena, text, length);
}

static void put_settings(struct arena *arena, const struct settings *settings, struct buf *out)
{
    const struct value *file = read_file(arena, settings);
    if (settings->file)
        buf_addf(out, "# read: %s\n", settings->file);
    for (size_t i = 0; i < settings_table.count; i++) {
        const struct option *option = &settings_table.options[i];
        const char *means = meaning(arena, option, settings);
        option_show(option, settings, out);
        buf_addf(out, "# %s%s%s\n", means ? means : "", means ? "; " : "",
                 origin_words(arena, settings, file, i));
    }
}

/* ---- who would be asked, and with which keys ---- */

static void put_models(const char *title, const struct models *models, struct buf *out)
{
    double total = 0;
    for (size_t i = 0; i < models->count; i++)
        total += models->items[i].weight;
    for (size_t i = 0; i < models->count; i++) {
        const struct model *m = &models->items[i];
        buf_addf(out, "# %-6s %s, %.0f %%: %s%s%s", i ? "" : title, m->name,
                 100 * m->weight / total, m->provider, m->base_url ? " " : "",
                 m->base_url ? m->base_url : "");
        if (m->source)
            buf_addf(out, ", %s", m->source);
        if (m->codec && m->prompt_price >= 0 && m->completion_price >= 0)
            buf_addf(out, ", $%g and $%g a million tokens", m->prompt_price, m->completion_price);
        else if (m->codec)
            buf_add_text(out, ", price not known");
        if (m->batch)
            buf_add_text(out, " in batches");
        if (m->codec && m->key_variable)
            buf_addf(out, ", %s %s", m->key_variable, m->key ? "set" : "not set");
        if (m->key_command)
            buf_addf(out, ", key by %s", m->key_command->name);
        buf_addf(out, "  (%s)\n", m->where ? m->where : "");
    }
}

static void put_asked(struct arena *arena, const struct settings *settings, struct buf *out)
{
    struct chosen chosen;
    struct err err = {0};
    buf_add_text(out, "\n# models that a run would ask\n");
    if (chosen_from_settings(arena, settings, &chosen, &err))
        buf_addf(out, "# cannot be chosen: %s\n", err.message);
    else if (chosen.ideas.count == 0)
        buf_add_text(out, "# none: the built-in proposer\n");
    put_models("ideas", &chosen.ideas, out);
    put_models("code", &chosen.code, out);
    buf_add_text(out, "\n# keys\n");
    for (size_t i = 0; i < sizeof key_variables / sizeof key_variables[0]; i++) {
        const char *key = NULL, *environment = getenv(key_variables[i]);
        struct err wrong = {0};
        bool there = environment && *environment;
        if (key_find(arena, key_variables[i], settings->env_file, &key, &wrong))
            buf_addf(out, "# %-18s %s\n", key_variables[i], wrong.message);
        else
            buf_addf(out, "# %-18s %s\n", key_variables[i],
                     !key    ? "not set"
                     : there ? "set, in the environment"
                             : arena_printf(arena, "set, in %s",
                                            settings->env_file ? settings->env_file : "./.env"));
    }
}

static void put_variables(struct buf *out)
{
    buf_add_text(out, "\n# other environment variables\n");
    for (size_t i = 0; i < variable_count; i++) {
        const char *value = getenv(variables[i].name);
        buf_addf(out, "# %-26s %s\n", variables[i].name, value ? value : "not set");
    }
}

/* ---- for programs ---- */

static void put_value(const struct option *option, const struct settings *settings,
                      struct json *json)
{
    const char *at = (const char *)settings + option->offset;
    if (option->type == OPTION_DOLLARS)
        json_real(json, (double)*(const int64_t *)(const void *)at / 1e6);
    else
        option_put_json(option, settings, json);
}

static void put_json(struct arena *arena, const struct settings *settings, struct buf *out)
{
    const struct value *file = read_file(arena, settings);
    struct chosen chosen;
    struct err err = {0};
    struct json json = {.out = out};
    json_object(&json);
    for (size_t i = 0; i < settings_table.count; i++) {
        json_put_object(&json, settings_table.options[i].name);
        json_key(&json, "value");
        put_value(&settings_table.options[i], settings, &json);
        json_put_text(&json, "origin", origin_words(arena, settings, file, i));
        json_object_end(&json);
    }
    json_key(&json, "choice");
    if (chosen_from_settings(arena, settings, &chosen, &err))
        json_null(&json);
    else
        json_raw(&json, chosen.text);
    json_object_end(&json);
    buf_add_char(out, '\n');
}

int command_config(const struct settings *settings, const char *const *arguments, size_t count)
{
    ARENA_LOCAL(arena);
    (void)arguments, (void)count;
    BUF_LOCAL(text, 1 << 20);
    if (settings->json) {
        put_json(arena, settings, &text);
    } else {
        put_settings(arena, settings, &text);
        put_asked(arena, settings, &text);
        put_variables(&text);
    }
    fputs(buf_text(&text), stdout);
    return 0;
}
