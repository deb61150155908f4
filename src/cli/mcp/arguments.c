/* A client's arguments are read by the schema that it was shown. What becomes a word of the command
 * line stands behind "--", or in one word with its option's name, so that none can be an option. */
#include "cli/mcp/arguments.h"

#include "base/file.h"
#include "base/mem.h"
#include "cli/options/settings.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS_MOST = 40, WORD_MOST = 4096, SOURCE_MOST = 1 << 20, NAME_MOST = 64 };

/* ---- the arguments that are no options ---- */

enum argument_kind {
    A_PROBLEM, /* a shipped name, or a path in the folder */
    A_KERNEL,  /* `source`, or `file` */
    A_TUNED,   /* the same, or a candidate's `id`; none: the starts */
    A_ID,
    A_FOLDER, /* a path in the folder, to be made */
    A_WORDS
};

static const struct positional {
    const char *name;
    enum argument_kind kind;
    const char *help;
} positionals[] = {
    {"problem", A_PROBLEM,
     "a shipped one's name, or the path of a folder, spec.yaml or PyTorch file; "
     "matmul@M=256,K=64: another size"},
    {"kernel", A_KERNEL, NULL},
    {"tuned", A_TUNED, NULL},
    {"id", A_ID,
     "of a candidate (r3-c17), idea (r3-i12) or run (r3); for a kernel also a problem: its best"},
    {"other", A_ID, "another candidate's id"},
    {"run", A_ID, "a run's id (r3)"},
    {"folder", A_FOLDER, "a new folder's path"},
    {"words", A_WORDS, "what to look for"},
    {"result", A_ID, "its id, as `more` says"},
    {"part", A_ID, "a name in more.parts"},
};

static const struct positional *positional_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof positionals / sizeof positionals[0]; i++)
        if (strlen(positionals[i].name) == length &&
            strncmp(positionals[i].name, name, length) == 0)
            return &positionals[i];
    return NULL;
}

/* The next name in a list; false at its end. */
static bool next_name(const char **at, const char **name, size_t *length, bool *optional)
{
    *at += strspn(*at, " ");
    *name = *at;
    *length = strcspn(*at, " ?");
    *at += *length;
    *optional = **at == '?';
    *at += *optional;
    return *length > 0;
}

static const struct option *option_of(const struct agent_tool *tool, const char *name,
                                      size_t length)
{
    for (size_t i = 0; i < settings_table.count; i++) {
        const struct option *option = &settings_table.options[i];
        if (option->commands & tool->bit && strlen(option->name) == length &&
            strncmp(option->name, name, length) == 0)
            return option;
    }
    return NULL;
}

/* "budget-time" -> "budget_time" */
static const char *argument_name(const struct option *option, char name[NAME_MOST])
{
    snprintf(name, NAME_MOST, "%s", option->name);
    for (char *at = name; *at; at++)
        *at = *at == '-' ? '_' : *at;
    return name;
}

/* ---- the schema ---- */

static void put_property(struct json *json, const char *name, const char *type, const char *help)
{
    json_put_object(json, name);
    json_put_text(json, "type", type);
    if (help != NULL)
        json_put_text(json, "description", help);
}

static void put_source(struct json *json, bool id)
{
    put_property(json, "source", "string", "its text");
    json_object_end(json);
    put_property(json, "name", "string",
                 "with source: kernel.c (where absent), kernel.cc, kernel.cu: the language");
    json_object_end(json);
    put_property(json, "file", "string", "or a file's path");
    json_object_end(json);
    if (!id)
        return;
    put_property(json, "id", "string", "or a candidate's id (r3-c17)");
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
        {"tune", "numbers of its tune parameters (each one's first)"},
        {"effort", "final: as a champion"},
        {"baseline", "reference, or one of the problem's"},
        {"sanitize", "also under sanitizers (with effort final always)"},
        {"max-evaluations", "of points"},
        {"budget-time", "wall time: 90s, 10m, 8h"},
        {"budget-evaluations", NULL},
        {"budget-usd", "most that models may cost"},
        {"rounds", NULL},
        {"target", "end when so many times faster"},
        {"strategy", NULL},
        {"stable", "right and not slower at other sizes, too"},
        {"backend", NULL},
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
        if (positional->kind == A_KERNEL || positional->kind == A_TUNED) {
            put_source(json, positional->kind == A_TUNED);
            continue;
        }
        put_property(json, positional->name, "string", positional->help);
        json_object_end(json);
        if (!optional)
            json_text(&needed, positional->name);
    }
    for (at = tool->options; next_name(&at, &name, &length, &optional);)
        put_option(json, option_of(tool, name, length));
    if (tool->ways & TOOL_DETACHES) {
        put_property(json, "detach", "boolean",
                     "return at once, with the run's id: see status, stop");
        json_object_end(json);
    }
    json_object_end(json);
    json_array_end(&needed);
    if (required.length > 2)
        json_put_raw(json, "required", buf_text(&required));
    json_object_end(json);
}

/* ---- from arguments to words ---- */

struct reading {
    const struct agent_tool *tool;
    const struct agent_tool_place *place;
    const struct value *map;
    struct arena *arena;
    const char *words[WORDS_MOST];
    size_t count;
    struct err *err;
};

static int refuse(struct reading *reading, const char *name, const char *expected)
{
    return err_set(reading->err, ERR_USAGE, "%s: expected %s", name, expected);
}

/* NULL with the error where it is no text, or one that no word can be. */
static const char *read_text(struct reading *reading, const char *name, size_t most)
{
    const struct value *value = value_get(reading->map, name);
    if (!value || value->kind != VALUE_TEXT || value->length == 0 || value->length > most ||
        strlen(value->text) != value->length) {
        (void)refuse(reading, name,
                     value && value->kind == VALUE_TEXT && value->length > most
                         ? "a shorter text"
                         : "a text, and not an empty one");
        return NULL;
    }
    return value->text;
}

/* What is there, or (fresh) the folder in which it will be, is in the client's own folder: links
 * and ".." are followed first. */
static const char *read_path(struct reading *reading, const char *name, const char *text,
                             bool fresh)
{
    const char *root = reading->place->root;
    char real[PATH_MAX];
    if (!root) {
        (void)refuse(reading, name, "no path, since this server was started in /");
        return NULL;
    }
    const char *path = *text == '/' ? text : arena_printf(reading->arena, "%s/%s", root, text);
    char *copy = arena_strdup(reading->arena, path);
    size_t end = strlen(copy);
    while (fresh && end > 1 && copy[end - 1] == '/')
        copy[--end] = '\0';
    char *slash = fresh ? strrchr(copy, '/') : NULL;
    if (slash)
        *slash = '\0';
    size_t length = strlen(root);
    bool there = realpath(*copy ? copy : "/", real) != NULL;
    bool last_fits = !slash || (strcmp(slash + 1, "..") != 0 && strcmp(slash + 1, ".") != 0);
    if (!there || !last_fits || strncmp(real, root, length) != 0 ||
        (real[length] != '/' && real[length] != '\0')) {
        (void)err_set(reading->err, ERR_USAGE, "%s: %s \"%s\"%s%s", name,
                      there ? "expected a path in this server's folder, not" : "there is no", text,
                      there ? ": " : "", there ? root : "");
        return NULL;
    }
    return slash ? arena_printf(reading->arena, "%s/%s", real, slash + 1)
                 : arena_strdup(reading->arena, real);
}

static bool is_name(const char *text)
{
    if (!isalnum((unsigned char)*text) || strlen(text) >= NAME_MOST)
        return false;
    for (; *text; text++)
        if (!isalnum((unsigned char)*text) && !strchr("_-.", *text))
            return false;
    return true;
}

/* Without a "/" it is a shipped one's name or a file beside us; "@SIZE" is looked at by who loads
 * it. */
static const char *read_problem(struct reading *reading, const char *name)
{
    const char *text = read_text(reading, name, WORD_MOST);
    if (!text)
        return NULL;
    const char *at = strrchr(text, '@');
    size_t length = at ? (size_t)(at - text) : strlen(text);
    const char *path = arena_strndup(reading->arena, text, length);
    if (is_name(path) && !file_exists(path))
        return text;
    path = read_path(reading, name, path, false);
    return path ? arena_printf(reading->arena, "%s%s", path, at ? at : "") : NULL;
}

/* Its name can be guessed, and the folder that it is in may be everybody's. */
static int make_own(const char *folder, struct err *err)
{
    struct stat status;
    if (file_make_dirs(folder, err) != 0)
        return -1;
    if (lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
        (status.st_mode & (S_IWGRP | S_IWOTH)) == 0)
        return 0;
    return err_set(err, ERR_ENVIRONMENT, "%.200s is somebody else's", folder);
}

static const char *keep_source(struct reading *reading, const char *text)
{
    const char *name = "kernel.c";
    if (value_get(reading->map, "name") &&
        (!(name = read_text(reading, "name", NAME_MOST)) || !is_name(name))) {
        if (name)
            (void)refuse(reading, "name", "a file's name, as in kernel.cu");
        return NULL;
    }
    char *folder = arena_printf(reading->arena, "%s/XXXXXX", reading->place->folder);
    if (make_own(reading->place->folder, reading->err) != 0)
        return NULL;
    if (!mkdtemp(folder)) {
        (void)err_set(reading->err, ERR_ENVIRONMENT, "cannot make %s", folder);
        return NULL;
    }
    const char *path = arena_printf(reading->arena, "%s/%s", folder, name);
    return file_write(path, text, strlen(text), reading->err) == 0 ? path : NULL;
}

/* NULL without an error: none of them was said. */
static const char *read_kernel(struct reading *reading, bool may_be_id)
{
    bool source = value_get(reading->map, "source") != NULL;
    bool file = value_get(reading->map, "file") != NULL;
    bool id = may_be_id && value_get(reading->map, "id");
    const char *text;
    if (source + file + id > 1) {
        (void)refuse(reading, "source", "one of source, file and id");
        return NULL;
    }
    if (source)
        return (text = read_text(reading, "source", SOURCE_MOST)) ? keep_source(reading, text)
                                                                  : NULL;
    if (file)
        return (text = read_text(reading, "file", WORD_MOST))
                   ? read_path(reading, "file", text, false)
                   : NULL;
    if (id)
        return read_text(reading, "id", NAME_MOST);
    if (!may_be_id)
        (void)refuse(reading, "source", "the kernel's text (or file: its path)");
    return NULL;
}

static const char *read_id(struct reading *reading, const char *name)
{
    const char *text = read_text(reading, name, WORD_MOST);
    if (text && !is_name(text)) {
        (void)refuse(reading, name, "letters, digits and \"-\"");
        return NULL;
    }
    return text;
}

static const char *read_positional(struct reading *reading, const struct positional *positional)
{
    const char *text;
    switch (positional->kind) {
    case A_PROBLEM:
        return read_problem(reading, positional->name);
    case A_KERNEL:
    case A_TUNED:
        return read_kernel(reading, positional->kind == A_TUNED);
    case A_ID:
        return read_id(reading, positional->name);
    case A_FOLDER:
        return (text = read_text(reading, positional->name, WORD_MOST))
                   ? read_path(reading, positional->name, text, true)
                   : NULL;
    case A_WORDS:
        break;
    }
    return read_text(reading, positional->name, WORD_MOST);
}

/* "--name=value", or NULL with the error; whether the value is in range the command says. */
static const char *read_option(struct reading *reading, const struct option *option,
                               const char *name, const struct value *value)
{
    const char *text = value->kind == VALUE_TEXT ? read_text(reading, name, WORD_MOST) : NULL;
    switch (option->type) {
    case OPTION_BOOL:
        if (value->kind == VALUE_BOOL)
            return arena_printf(reading->arena, "--%s%s", value->boolean ? "" : "no-",
                                option->name);
        (void)refuse(reading, name, "true or false");
        return NULL;
    case OPTION_INT:
        if (value->kind == VALUE_INT)
            return arena_printf(reading->arena, "--%s=%lld", option->name,
                                (long long)value->integer);
        (void)refuse(reading, name, "a whole number");
        return NULL;
    case OPTION_REAL:
    case OPTION_DOLLARS:
        if (value->kind == VALUE_INT || value->kind == VALUE_REAL)
            return arena_printf(reading->arena, "--%s=%.12g", option->name, value->real);
        (void)refuse(reading, name, "a number");
        return NULL;
    default:
        if (text)
            return arena_printf(reading->arena, "--%s=%s", option->name, text);
        if (value->kind != VALUE_TEXT)
            (void)refuse(reading, name, "a text");
        return NULL;
    }
}

static int read_options(struct reading *reading)
{
    const char *at = reading->tool->options, *name;
    size_t length;
    bool optional;
    while (next_name(&at, &name, &length, &optional)) {
        const struct option *option = option_of(reading->tool, name, length);
        char called[NAME_MOST];
        const struct value *value = value_get(reading->map, argument_name(option, called));
        if (!value)
            continue;
        const char *word = read_option(reading, option, called, value);
        if (!word)
            return -1;
        reading->words[reading->count++] = word;
    }
    return 0;
}

static int read_positionals(struct reading *reading)
{
    const char *at = reading->tool->positionals, *name;
    size_t length;
    bool optional;
    reading->words[reading->count++] = "--";
    if (reading->tool->command[1]) /* a verb is the first positional */
        reading->words[reading->count++] = reading->tool->command[1];
    while (next_name(&at, &name, &length, &optional)) {
        const struct positional *positional = positional_find(name, length);
        bool whole = positional->kind != A_KERNEL && positional->kind != A_TUNED;
        if (optional && whole && !value_get(reading->map, positional->name))
            continue;
        const char *word = read_positional(reading, positional);
        if (word)
            reading->words[reading->count++] = word;
        else if (!optional || reading->err->code)
            return -1;
    }
    return 0;
}

static bool takes(const struct agent_tool *tool, const char *argument)
{
    BUF_LOCAL(text, 1 << 16);
    ARENA_LOCAL(arena);
    struct json json = {.out = &text};
    struct value *schema = NULL;
    arguments_schema(tool, &json);
    return value_parse_json(arena, "schema", buf_text(&text), text.length, &schema, NULL) == 0 &&
           value_get(value_get(schema, "properties"), argument) != NULL;
}

int agent_tool_words(const struct agent_tool *tool, const struct agent_tool_place *place,
                     const struct value *map, struct arena *arena, const char *const **words,
                     bool *detach, struct err *err)
{
    struct reading reading = {.tool = tool, .place = place, .map = map, .arena = arena, .err = err};
    const struct value *apart = value_get(map, "detach");
    for (size_t i = 0; map && i < map->count; i++)
        if (!takes(tool, map->keys[i]))
            return err_set(err, ERR_USAGE, "%s takes no argument \"%.60s\"", tool->name,
                           map->keys[i]);
    if (apart && apart->kind != VALUE_BOOL)
        return refuse(&reading, "detach", "true or false");
    *detach = apart && apart->boolean;
    reading.words[reading.count++] = file_program_path();
    if (*detach)
        reading.words[reading.count++] = "detached";
    else if ((tool->ways & ~(unsigned)TOOL_BOTH) == TOOL_READS && !value_bool(map, "source", false))
        reading.words[reading.count++] = "both";
    reading.words[reading.count++] = tool->command[0];
    reading.words[reading.count++] = "--json";
    if (tool->extra)
        reading.words[reading.count++] = tool->extra;
    if (read_options(&reading) || read_positionals(&reading))
        return -1;
    const char **kept = (const char **)arena_array(arena, reading.count + 1, sizeof *kept);
    memcpy(kept, reading.words, reading.count * sizeof *kept);
    *words = kept;
    return 0;
}
