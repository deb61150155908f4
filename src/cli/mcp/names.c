#include "cli/mcp/names.h"

#include "cli/options/settings.h"

#include <stdio.h>
#include <string.h>

static const struct positional positionals[] = {
    {"problem", A_PROBLEM, "name or path; @M=256,K=64: another size"},
    {"kernel", A_KERNEL, NULL},
    {"kernels", A_KERNELS, NULL},
    {"tuned", A_TUNED, NULL},
    {"id", A_ID, "r3-c17, r3-i12 (idea), r3 (run), a problem (its best)"},
    {"other", A_ID, "another candidate's id"},
    {"run", A_ID, "a run's id (r3)"},
    {"folder", A_FOLDER, "a new folder's path"},
    {"words", A_WORDS, "what to look for"},
    {"result", A_ID, "its id, as `more` says"},
    {"part", A_ID, "a name in more.parts"},
    {"call", A_ID, "its id (c1)"},
    {"seconds", A_NUMBER, "to wait, at most (30)"},
    {"cancel", A_FLAG, "end it"},
};

const struct positional *positional_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof positionals / sizeof positionals[0]; i++)
        if (strlen(positionals[i].name) == length &&
            strncmp(positionals[i].name, name, length) == 0)
            return &positionals[i];
    return NULL;
}

bool positional_is_kernel(enum argument_kind kind)
{
    return kind == A_KERNEL || kind == A_KERNELS || kind == A_TUNED;
}

bool next_name(const char **at, const char **name, size_t *length, bool *optional)
{
    *at += strspn(*at, " ");
    *name = *at;
    *length = strcspn(*at, " ?");
    *at += *length;
    *optional = **at == '?';
    *at += *optional;
    return *length > 0;
}

const struct option *option_of(const struct agent_tool *tool, const char *name, size_t length)
{
    for (size_t i = 0; i < settings_table.count; i++) {
        const struct option *option = &settings_table.options[i];
        if (option->commands & tool->bit && strlen(option->name) == length &&
            strncmp(option->name, name, length) == 0)
            return option;
    }
    return NULL;
}

const char *argument_name(const struct option *option, char name[NAME_MOST])
{
    snprintf(name, NAME_MOST, "%s", option->name);
    for (char *at = name; *at; at++)
        *at = *at == '-' ? '_' : *at;
    return name;
}
