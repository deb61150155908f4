#include "cli/print/run_options.h"

#include "base/buf.h"
#include "cli/options/settings.h"

#include <string.h>

/* The value as the configuration would have it; "" where none is set. */
static const char *shown(struct arena *arena, const struct option *option,
                         const struct settings *settings)
{
    BUF_LOCAL(text, 1 << 18);
    (void)option_write_yaml(option, settings, &text);
    return buf_keep(&text, arena);
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
    if (options_decode(&settings_table, &settings, origins, arena, root, &ignored))
        return lines;
    unsigned of = settings.search.kernel ? COMMAND_TUNE : COMMAND_RUN;
    for (size_t i = 0; i < settings_table.count; i++) {
        const struct option *option = &settings_table.options[i];
        if (of == COMMAND_TUNE && strcmp(option->name, "budget-evaluations") == 0)
            lines[(*count)++] = arena_printf(arena, "--max-evaluations %lld",
                                             (long long)settings.search.budget_evaluations);
        if (!(option->commands & of)) /* what a tune fixes is nobody's choice */
            continue;
        const char *now = shown(arena, option, &settings), *was = shown(arena, option, &defaults);
        if (strcmp(now, was) == 0 || strcmp(option->name, "problem") == 0)
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
    size_t count;
    const char *const *lines = run_options(arena, run, &count);
    BUF_LOCAL(text, 1 << 18);
    for (size_t i = 0; i < count; i++)
        buf_addf(&text, "%s%s", i ? " " : "", lines[i]);
    if (count == 0)
        buf_add_text(&text, "all defaults");
    return buf_keep(&text, arena);
}

/* `stopped` says which: "budget: 40 evaluations", "budget: a time of 0:25", "budget: $2.00, ...".
 */
const char *run_options_larger(struct arena *arena, const struct run_record *run)
{
    static const struct {
        const char *word, *option;
    } caps[] = {{"evaluation", "budget-evaluations"},
                {" time ", "budget-time"},
                {"$", "budget-usd"},
                {"", "budget-tokens"}};
    struct settings twice = {0};
    struct value *root;
    struct err ignored;
    size_t cap = 0;
    while (!strstr(run->stopped, caps[cap].word))
        cap++;
    const struct option *option = settings_table.options;
    while (strcmp(option->name, caps[cap].option) != 0)
        option++;
    if (value_parse_json(arena, run->id, run->options, strlen(run->options), &root, &ignored))
        return "";
    int64_t *field = (int64_t *)(void *)((char *)&twice + option->offset);
    *field = 2 * value_int(root, option->record, 0);
    return arena_printf(arena, "--%s %s", option->name, shown(arena, option, &twice));
}
