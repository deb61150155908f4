/* What a client is shown of a tool's arguments. */
#include "cli/mcp/arguments.h"
#include "cli/mcp/names.h"
#include "cli/options/settings.h"

#include <string.h>

static void put_property(struct json *json, const char *name, const char *type, const char *help)
{
    json_put_object(json, name);
    json_put_text(json, "type", type);
    if (help != NULL)
        json_put_text(json, "description", help);
}

static void put_list(struct json *json, const char *name, const char *help)
{
    put_property(json, name, "array", help);
    json_put_object(json, "items");
    json_put_text(json, "type", "string");
    json_object_end(json);
    json_object_end(json);
}

static void put_source(struct json *json, enum argument_kind kind)
{
    put_property(json, "source", "string", "its text");
    json_object_end(json);
    put_property(json, "name", "string", "kernel.cu: the language");
    json_object_end(json);
    put_property(json, "file", "string", "or a file's path");
    json_object_end(json);
    if (kind == A_KERNELS) {
        put_list(json, "sources", "or several texts");
        put_list(json, "files", "or paths");
    }
    if (kind != A_TUNED)
        return;
    put_property(json, "id", "string", "or a candidate's id");
    json_object_end(json);
}

static void put_choices(struct json *json, const char *choices)
{
    json_put_array(json, "enum");
    while (*choices) {
        size_t length = strcspn(choices, "|");
        json_text_n(json, choices, length);
        choices += length + (choices[length] == '|');
    }
    json_array_end(json);
}

/* What `--help` has the room for, and who calls tools has not. */
static const char *help_of(const struct option *option)
{
    static const struct {
        const char *name, *help;
    } brief[] = {
        {"tune", "A=1,B=2 (each one's first)"},
        {"effort", "final: as a champion"},
        {"baseline", "reference, or one of the problem's"},
        {"sanitize", "also under sanitizers (final: always)"},
        {"max-evaluations", "of points"},
        {"budget-time", "wall time: 90s, 10m, 8h"},
        {"budget-evaluations", NULL},
        {"budget-usd", "most that models may cost"},
        {"rounds", NULL},
        {"target", "end when so many times faster"},
        {"strategy", NULL},
        {"stable", "good at other sizes, too"},
        {"until", "no timing: is it right, does it compile"},
        {"against", "another kernel's file or id, timed in turns"},
        {"backend", NULL},
        {"unchecked-shapes", "also at sizes larger than checked"},
        {"to", "pytorch: CUDA; numpy, c: CPU; web: WGSL"},
        {"source", "return its source"},
        {"limit", "most passages"},
        {"tag", "only documents marked so"},
        {"family", "of problems"},
        {"wins", "only what was faster"},
        {"last", "the latest so many"},
    };
    for (size_t i = 0; i < sizeof brief / sizeof brief[0]; i++)
        if (strcmp(option->name, brief[i].name) == 0)
            return brief[i].help;
    return option->help;
}

static void put_option(struct json *json, const struct option *option)
{
    static const char *const types[] = {"boolean", "integer", "number", "string", "string",
                                        "string",  "string",  "string", "number"};
    char name[NAME_MOST];
    put_property(json, argument_name(option, name), types[option->type], help_of(option));
    if (option->type == OPTION_CHOICE || option->type == OPTION_ENUM)
        put_choices(json, option->choices);
    json_object_end(json);
}

void arguments_schema(const struct agent_tool *tool, struct json *json)
{
    const char *at = tool->positionals, *name;
    size_t length;
    bool optional;
    JSON_LOCAL(needed, required, 1024);
    json_array(&needed);
    json_object(json);
    json_put_text(json, "type", "object");
    json_put_object(json, "properties");
    while (next_name(&at, &name, &length, &optional)) {
        const struct positional *positional = positional_find(name, length);
        if (positional_is_kernel(positional->kind)) {
            put_source(json, positional->kind);
            continue;
        }
        put_property(json, positional->name,
                     positional->kind == A_NUMBER ? "integer"
                     : positional->kind == A_FLAG ? "boolean"
                                                  : "string",
                     positional->help);
        json_object_end(json);
        if (!optional)
            json_text(&needed, positional->name);
    }
    for (at = tool->options; next_name(&at, &name, &length, &optional);)
        put_option(json, option_of(tool, name, length));
    if (tool->ways & (TOOL_DETACHES | TOOL_APART)) {
        put_property(json, "detach", "boolean",
                     tool->ways & TOOL_APART ? "at once an id for wait" : "at once the run's id");
        json_object_end(json);
    }
    json_object_end(json);
    json_array_end(&needed);
    if (required.length > 2)
        json_put_raw(json, "required", buf_text(&required));
    json_object_end(json);
}
