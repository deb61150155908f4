#include "agents/llm/command.h"

#include "base/options.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LIMIT_MS = 10 * 60 * 1000,
    OUTPUT_BYTES = 4 << 20,
    OUTPUT_MOST = 64 << 20,
    SLOTS = 2,
    SLOTS_MOST = 256,
    RETRIES_MOST = 20,
    AGENT_LIMIT_MS = 30 * 60 * 1000,
    AGENT_EVALUATIONS = 20
};

struct reading {
    struct arena *arena;
    const char *path;
    const struct value *map;
    struct err *err;
};

static int refuse(const struct reading *reading, const struct value *value, const char *expected)
{
    return err_set(reading->err, ERR_USAGE, "%s:%d: expected %s", reading->path,
                   value ? value->line : reading->map->line, expected);
}

static int read_words(const struct reading *reading, const char *key, const char *expected,
                      const char *const **words)
{
    const struct value *list = value_get(reading->map, key);
    bool fits =
        list && list->kind == VALUE_LIST && list->count > 0 && list->count <= COMMAND_WORDS_MOST;
    for (size_t i = 0; fits && i < list->count; i++)
        fits = list->items[i]->text && strlen(list->items[i]->text) == list->items[i]->length &&
               (i > 0 || list->items[i]->length > 0);
    if (!fits)
        return refuse(reading, list, expected);
    const char **made = (const char **)arena_array(reading->arena, list->count + 1, sizeof *made);
    for (size_t i = 0; i < list->count; i++)
        made[i] = list->items[i]->text;
    *words = made;
    return 0;
}

static int read_number(const struct reading *reading, const char *key, int64_t least, int64_t most,
                       const char *expected, int64_t *number)
{
    const struct value *value = value_get(reading->map, key);
    if (!value)
        return 0;
    if (value->kind != VALUE_INT || value->integer < least || value->integer > most)
        return refuse(reading, value, expected);
    *number = value->integer;
    return 0;
}

/* A duration or a size, as options have them. */
static int read_measure(const struct reading *reading, const char *key, const char *expected,
                        int (*parse)(const char *, int64_t *, struct err *), int64_t most,
                        int64_t *number)
{
    const struct value *value = value_get(reading->map, key);
    struct err ignored;
    if (!value)
        return 0;
    if (!value->text || parse(value->text, number, &ignored) != 0 || *number < 1 || *number > most)
        return refuse(reading, value, expected);
    return 0;
}

static int read_sandbox(const struct reading *reading, struct command_model *command)
{
    static const char expected[] =
        "sandbox: false, true, or a list of the files and folders that it may read";
    const struct value *value = value_get(reading->map, "sandbox");
    if (!value)
        return 0;
    if (value->kind == VALUE_BOOL)
        command->sandboxed = value->boolean;
    else if (read_words(reading, "sandbox", expected, &command->reads) != 0)
        return -1;
    else
        command->sandboxed = true;
    return 0;
}

static int read_acp(const struct reading *reading, struct command_model *command)
{
    const struct value *value = value_get(reading->map, "acp");
    if (value && value->kind != VALUE_BOOL)
        return refuse(reading, value, "acp: true or false");
    command->acp = value && value->boolean;
    return 0;
}

/* {dollars: NAME, answer: NAME}: members of what it prints. */
static int read_members(const struct reading *reading, struct command_model *command)
{
    static const char *const keys[] = {"dollars", "answer", NULL};
    const struct value *map = value_get(reading->map, "json");
    if (!map)
        return 0;
    if (map->kind != VALUE_MAP)
        return refuse(reading, map, "json: {dollars: MEMBER, answer: MEMBER}");
    command->bill = value_text(map, "dollars", NULL);
    command->answer = value_text(map, "answer", NULL);
    return value_check_keys(map, reading->path, keys, reading->err);
}

int command_words(struct arena *arena, const char *path, const struct value *map, const char *key,
                  const char *const **words, struct err *err)
{
    const struct reading reading = {arena, path, map, err};
    return read_words(&reading, key, arena_printf(arena, "%s: [PROGRAM, ARGUMENT, ...]", key),
                      words);
}

int command_read(struct arena *arena, const char *path, const struct value *map, bool agent,
                 struct command_model *command, struct err *err)
{
    const struct reading reading = {arena, path, map, err};
    int64_t limit_ms = agent ? AGENT_LIMIT_MS : LIMIT_MS, output = OUTPUT_BYTES, slots = SLOTS;
    int64_t retries = agent ? 0 : -1, evaluations = AGENT_EVALUATIONS;
    *command = (struct command_model){.call_price = -1};
    if (read_words(&reading, "command", "command: [PROGRAM, ARGUMENT, ...]", &command->words) ||
        read_measure(&reading, "time_limit", "time_limit: a time, as 90s or 10m",
                     options_parse_duration, INT64_MAX, &limit_ms) ||
        read_measure(&reading, "output_limit", "output_limit: a size up to 64M, as 512K",
                     options_parse_size, OUTPUT_MOST, &output) ||
        read_number(&reading, "slots", 1, SLOTS_MOST, "slots: 1 to 256", &slots) ||
        read_number(&reading, "retries", 0, RETRIES_MOST, "retries: 0 to 20", &retries) ||
        (agent && read_number(&reading, "evaluations", 1, AGENT_EVALUATIONS_MOST,
                              "evaluations: 1 to 100", &evaluations)) ||
        read_acp(&reading, command) || read_sandbox(&reading, command) ||
        read_members(&reading, command))
        return -1;
    if (command->acp && !command->answer) { /* what `twagent acp` prints */
        command->bill = "total_cost_usd";
        command->answer = "result";
    }
    for (const char *const *word = command->words; *word; word++)
        command->by_file = command->by_file || strstr(*word, "{file}");
    command->limit_ms = (uint64_t)limit_ms;
    command->output_max = (size_t)output;
    command->slots = (unsigned)slots;
    command->retries = (int)retries;
    command->evaluations = agent ? evaluations : 0;
    return 0;
}

int command_find(struct arena *arena, const char *name, struct command_model *command,
                 struct err *err)
{
    const char *program = command->words[0], *path = getenv("PATH");
    if (strchr(program, '/')) {
        command->program = access(program, X_OK) == 0 ? realpath(program, NULL) : NULL;
        char *real = (char *)command->program;
        command->program = real ? arena_strdup(arena, real) : NULL;
        free(real);
    }
    while (!strchr(program, '/') && path && *path && !command->program) {
        size_t length = strcspn(path, ":");
        const char *at = arena_printf(arena, "%.*s/%s", (int)length, path, program);
        if (*at == '/' && access(at, X_OK) == 0)
            command->program = at;
        path += length + (path[length] == ':');
    }
    return command->program
               ? 0
               : err_set(err, ERR_ENVIRONMENT,
                         "%.80s: there is no program \"%.200s\" that can be run", name, program);
}
