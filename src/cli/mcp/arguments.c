/* A client's arguments are read by the schema that it was shown. What becomes a word of the command
 * line stands behind "--", or in one word with its option's name, so that none can be an option. */
#include "cli/mcp/arguments.h"

#include "base/file.h"
#include "base/mem.h"
#include "cli/mcp/names.h"
#include "cli/options/settings.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEVERAL_MOST = 6, WORDS_MOST = 40, WORD_MOST = 4096, SOURCE_MOST = 1 << 20 };

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
static const char *text_of(struct reading *reading, const char *name, const struct value *value,
                           size_t most)
{
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

static const char *read_text(struct reading *reading, const char *name, size_t most)
{
    return text_of(reading, name, value_get(reading->map, name), most);
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
static const char *problem_of(struct reading *reading, const char *name, const char *text)
{
    const char *at = strrchr(text, '@');
    size_t length = at ? (size_t)(at - text) : strlen(text);
    const char *path = arena_strndup(reading->arena, text, length);
    if (is_name(path) && !file_exists(path))
        return text;
    path = read_path(reading, name, path, false);
    return path ? arena_printf(reading->arena, "%s%s", path, at ? at : "") : NULL;
}

static const char *read_problem(struct reading *reading, const char *name)
{
    const char *text = read_text(reading, name, WORD_MOST);
    return text ? problem_of(reading, name, text) : NULL;
}

int agent_tool_problem(const struct agent_tool_place *place, const char *text, struct arena *arena,
                       const char **word, struct err *err)
{
    struct reading reading = {.place = place, .arena = arena, .err = err};
    *word = problem_of(&reading, "problem", text);
    return *word ? 0 : -1;
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

/* All words but the last; that one is returned. NULL with the error. */
static const char *read_several(struct reading *reading, const char *name, bool texts)
{
    const struct value *list = value_get(reading->map, name);
    const char *word = NULL;
    if (list->kind != VALUE_LIST || list->count == 0 || list->count > SEVERAL_MOST) {
        (void)refuse(reading, name, "a list of 1 to 6 texts");
        return NULL;
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct value *item = list->items[i];
        const char *text = text_of(reading, name, item, texts ? SOURCE_MOST : WORD_MOST);
        if (!text)
            return NULL;
        if (word)
            reading->words[reading->count++] = word;
        word = texts ? keep_source(reading, text) : read_path(reading, name, text, false);
        if (!word)
            return NULL;
    }
    return word;
}

/* NULL without an error: none of them was said. */
static const char *read_kernel(struct reading *reading, enum argument_kind kind)
{
    bool may_be_id = kind == A_TUNED;
    bool sources = kind == A_KERNELS && value_get(reading->map, "sources");
    bool files = kind == A_KERNELS && value_get(reading->map, "files");
    bool source = value_get(reading->map, "source") != NULL;
    bool file = value_get(reading->map, "file") != NULL;
    bool id = may_be_id && value_get(reading->map, "id");
    const char *text;
    if (source + file + id + sources + files > 1) {
        (void)refuse(reading, "source", "one of source, file and id, or of sources and files");
        return NULL;
    }
    if (sources || files)
        return read_several(reading, sources ? "sources" : "files", sources);
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

static const char *read_own(struct reading *reading, const struct positional *positional)
{
    bool number = positional->kind == A_NUMBER;
    const struct value *value = value_get(reading->map, positional->name);
    if (value->kind == (number ? VALUE_INT : VALUE_BOOL))
        return "";
    (void)refuse(reading, positional->name, number ? "a whole number" : "true or false");
    return NULL;
}

static const char *read_positional(struct reading *reading, const struct positional *positional)
{
    const char *text;
    switch (positional->kind) {
    case A_PROBLEM:
        return read_problem(reading, positional->name);
    case A_KERNEL:
    case A_KERNELS:
    case A_TUNED:
        return read_kernel(reading, positional->kind);
    case A_NUMBER:
    case A_FLAG:
        return read_own(reading, positional);
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
    if (text && strcmp(name, "against") == 0 && (!is_name(text) || file_exists(text)) &&
        !(text = read_path(reading, name, text, false)))
        return NULL; /* no id, but a file: one of the client's own */
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
        if (optional && !positional_is_kernel(positional->kind) &&
            !value_get(reading->map, positional->name))
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
    if (*detach && tool->ways & TOOL_DETACHES)
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
