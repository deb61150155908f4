#include "base/mem.h"
#include "base/options.h"
#include "base/options_parse.h"

#include <string.h>

struct scan {
    const struct option_table *table;
    void *target;
    enum option_origin *origins;
    struct arena *arena;
    uint32_t mask;
    int argc;
    char **argv;
    int at; /* the argument after the current one */
    struct err *err;
};

static bool has_name(const struct option *option, const char *name, size_t length)
{
    return strlen(option->name) == length && memcmp(option->name, name, length) == 0;
}

static bool has_letter(const struct option *option, const char *letter, size_t length)
{
    return length == 1 && option->letter != '\0' && option->letter == *letter;
}

/* An option of this command is preferred to one of the same name of another. */
static const struct option *find(const struct scan *scan, const char *name, size_t length,
                                 bool (*has)(const struct option *, const char *, size_t))
{
    const struct option *elsewhere = NULL;
    for (size_t i = 0; i < scan->table->count; i++) {
        const struct option *option = &scan->table->options[i];
        if (!has(option, name, length))
            continue;
        if (option->commands & scan->mask)
            return option;
        elsewhere = option;
    }
    return elsewhere;
}

static int refuse_unknown(const struct scan *scan, const char *name, size_t length)
{
    const struct option_table *table = scan->table;
    const char **names = (const char **)mem_array(table->count + 1, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++)
        if (table->options[i].commands & scan->mask)
            names[count++] = table->options[i].name;
    char *word = arena_strndup(scan->arena, name, length);
    const char *nearest = options_nearest(word, names);
    mem_free((void *)names);
    if (nearest != NULL)
        return err_set(scan->err, ERR_USAGE, "expected an option, not \"--%.80s\"; is it --%s?",
                       word, nearest);
    return err_set(scan->err, ERR_USAGE, "expected an option, not \"--%.80s\"; --help lists them",
                   word);
}

static int store(struct scan *scan, const struct option *option, const char *shown,
                 const char *text)
{
    if (option_store(option, scan->target, text, scan->arena, scan->err) != 0)
        return err_wrap(scan->err, "%s", shown);
    scan->origins[option - scan->table->options] = ORIGIN_COMMAND_LINE;
    return 0;
}

static int store_next(struct scan *scan, const struct option *option, const char *shown)
{
    if (scan->at == scan->argc)
        return err_set(scan->err, ERR_USAGE, "%s: expected %s after it, not the end", shown,
                       option_metavar(option));
    return store(scan, option, shown, scan->argv[scan->at++]);
}

static int refuse_elsewhere(struct scan *scan, const char *shown)
{
    return err_set(scan->err, ERR_USAGE, "expected an option of this command, not \"%s\"", shown);
}

/* --name, --name VALUE, --name=VALUE, --no-name */
static int take_long(struct scan *scan, const char *argument)
{
    const char *name = argument + 2;
    size_t length = strcspn(name, "=");
    const char *attached = name[length] == '=' ? name + length + 1 : NULL;
    const struct option *option = find(scan, name, length, has_name);
    bool negated = false;
    if (option == NULL && length > 3 && memcmp(name, "no-", 3) == 0) {
        option = find(scan, name + 3, length - 3, has_name);
        negated = option != NULL && option->type == OPTION_BOOL;
        if (!negated)
            option = NULL;
    }
    if (option == NULL)
        return refuse_unknown(scan, name, length);
    const char *shown = arena_strndup(scan->arena, argument, length + 2);
    if (!(option->commands & scan->mask))
        return refuse_elsewhere(scan, shown);
    if (negated && attached != NULL)
        return err_set(scan->err, ERR_USAGE, "%s: expected no value, not \"%.80s\"", shown,
                       attached);
    if (attached != NULL)
        return store(scan, option, shown, attached);
    if (option->type == OPTION_BOOL)
        return store(scan, option, shown, negated ? "false" : "true");
    return store_next(scan, option, shown);
}

/* -n VALUE, -nVALUE; letters of bools may stand together: -vq */
static int take_letters(struct scan *scan, const char *argument)
{
    for (const char *letter = argument + 1; *letter != '\0'; letter++) {
        const char *shown = arena_printf(scan->arena, "-%c", *letter);
        const struct option *option = find(scan, letter, 1, has_letter);
        if (option == NULL)
            return err_set(scan->err, ERR_USAGE,
                           "expected an option, not \"%.80s\"; --help lists them", argument);
        if (!(option->commands & scan->mask))
            return refuse_elsewhere(scan, shown);
        if (option->type != OPTION_BOOL)
            return letter[1] != '\0' ? store(scan, option, shown, letter + 1)
                                     : store_next(scan, option, shown);
        if (store(scan, option, shown, "true") != 0)
            return -1;
    }
    return 0;
}

int options_command_line(const struct option_table *table, void *target,
                         enum option_origin *origins, struct arena *arena, uint32_t mask, int argc,
                         char **argv, const char **positionals, size_t most, size_t *count,
                         struct err *err)
{
    struct scan scan = {.table = table,
                        .target = target,
                        .origins = origins,
                        .arena = arena,
                        .mask = mask,
                        .argc = argc,
                        .argv = argv,
                        .err = err};
    bool only_positionals = false;
    *count = 0;
    while (scan.at < argc) {
        const char *argument = argv[scan.at++];
        int result = 0;
        if (!only_positionals && strcmp(argument, "--") == 0) {
            only_positionals = true;
        } else if (!only_positionals && strncmp(argument, "--", 2) == 0) {
            result = take_long(&scan, argument);
        } else if (!only_positionals && argument[0] == '-' && argument[1] != '\0') {
            result = take_letters(&scan, argument);
        } else if (*count == most) {
            result = err_set(err, ERR_USAGE, "expected at most %zu argument%s, not \"%.80s\" too",
                             most, most == 1 ? "" : "s", argument);
        } else {
            positionals[(*count)++] = argument;
        }
        if (result != 0)
            return -1;
    }
    return 0;
}
