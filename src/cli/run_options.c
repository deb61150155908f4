#include "cli/run_options.h"

#include "base/buf.h"
#include "cli/settings.h"

#include <string.h>

/* Where a record's key is not the option's name with other dashes. */
static const struct {
    const char *option, *key;
    double scale; /* record's number over the option's */
} renamed[] = {{"budget-time", "budget_ms", 1},        {"budget-usd", "budget_micro_dollars", 1e6},
               {"mailbox-wait", "mailbox_ms", 1},      {"first-byte-limit", "first_byte_ms", 1},
               {"silence-limit", "silence_ms", 1},     {"answer-limit", "answer_ms", 1},
               {"call-timeout", "call_timeout_ms", 1}, {"time-budget", "time_budget_ms", 1}};

static const struct value *recorded(const struct value *root, const struct option *option,
                                    double *scale)
{
    char key[64];
    *scale = 1;
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
        if (strcmp(renamed[i].option, option->name) == 0) {
            *scale = renamed[i].scale;
            return value_get(root, renamed[i].key);
        }
    size_t length = strlen(option->name);
    if (length >= sizeof key)
        return NULL;
    for (size_t i = 0; i <= length; i++)
        key[i] = (char)(option->name[i] == '-' ? '_' : option->name[i]);
    return value_get(root, key);
}

/* Puts the record's value where the option's would be; false where the record has none. */
static bool take(const struct value *root, const struct option *option, struct settings *settings)
{
    double scale;
    const struct value *value = recorded(root, option, &scale);
    char *at = (char *)settings + option->offset;
    if (!value || value->kind == VALUE_NULL)
        return false;
    double real = value->kind == VALUE_INT ? (double)value->integer : value->real;
    switch (option->type) {
    case OPTION_BOOL:
        *(bool *)at = value->kind == VALUE_BOOL && value->boolean;
        return value->kind == VALUE_BOOL;
    case OPTION_REAL:
        *(double *)(void *)at = real / scale;
        return value->kind == VALUE_INT || value->kind == VALUE_REAL;
    case OPTION_TEXT:
    case OPTION_CHOICE:
        *(const char **)(void *)at = value->kind == VALUE_TEXT ? value->text : NULL;
        return value->kind == VALUE_TEXT;
    default:
        *(int64_t *)(void *)at = value->integer;
        return value->kind == VALUE_INT;
    }
}

/* The value as the configuration would have it; "" where none is set. */
static const char *shown(struct arena *arena, const struct option *option,
                         const struct settings *settings)
{
    const struct option_table one = {option, 1};
    const enum option_origin origin = ORIGIN_DEFAULT;
    struct buf text;
    buf_init(&text, 1 << 18);
    options_show(&one, settings, &origin, COMMAND_ALL, &text);
    char *line = arena_strdup(arena, buf_text(&text)), *end = line + strlen(line);
    buf_free(&text);
    if (*line == '#')
        return "";
    line += strlen(option->name) + 2;
    for (size_t i = 0; i < 2; i++) /* the origin's # , and what lies before it */
        while (end > line && (i == 0 ? end[0] != '#' : end[-1] == ' '))
            end--;
    *end = '\0';
    return line;
}

const char *const *run_options(struct arena *arena, const struct run_record *run, size_t *count)
{
    struct settings defaults = {0}, settings;
    struct value *root;
    enum option_origin *origins = arena_array(arena, settings_table.count, sizeof *origins);
    const char **lines = arena_array(arena, settings_table.count + 1, sizeof *lines);
    struct err ignored;
    *count = 0;
    if (options_defaults(&settings_table, &defaults, origins, arena, &ignored) ||
        value_parse_json(arena, run->id, run->options, strlen(run->options), &root, &ignored))
        return lines;
    settings = defaults;
    for (size_t i = 0; i < settings_table.count; i++) {
        const struct option *option = &settings_table.options[i];
        bool takes = (option->commands & COMMAND_RUN) != 0 && strcmp(option->name, "problem") != 0;
        if (!takes || !take(root, option, &settings))
            continue;
        const char *now = shown(arena, option, &settings), *was = shown(arena, option, &defaults);
        if (strcmp(now, was) == 0)
            continue;
        if (option->type == OPTION_BOOL)
            lines[(*count)++] =
                arena_printf(arena, "--%s%s", strcmp(now, "false") == 0 ? "no-" : "", option->name);
        else
            lines[(*count)++] = arena_printf(arena, "--%s %s", option->name, now);
    }
    return lines;
}

const char *run_options_line(struct arena *arena, const struct run_record *run)
{
    struct buf text;
    size_t count;
    const char *const *lines = run_options(arena, run, &count);
    buf_init(&text, 1 << 18);
    for (size_t i = 0; i < count; i++)
        buf_addf(&text, "%s%s", i ? " " : "", lines[i]);
    if (count == 0)
        buf_add_text(&text, "all defaults");
    const char *copy = arena_strdup(arena, buf_text(&text));
    buf_free(&text);
    return copy;
}
