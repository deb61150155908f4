#include "agents/llm/key_command.h"

#include "agents/llm/command.h"
#include "agents/llm/model.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/value.h"
#include "loop/http.h"
#include "process/spawn.h"

#include <ctype.h>
#include <string.h>

enum { LIMIT_MS = 20 * 1000, KEY_MOST = 16 << 10, SAID_MOST = 4 << 10, LAST_WORDS = 160 };

/* ---- one run ---- */

char *key_signing(const char *prefix, const char *id, const char *secret, const char *token)
{
    BUF_LOCAL(key, KEY_MOST + 200);
    buf_addf(&key, "%s%s:%s", prefix, id, secret);
    if (token != NULL && *token != '\0')
        buf_addf(&key, ":%s", token);
    return buf_take(&key);
}

/* As the cloud's own programs print credentials for others: an object. */
static char *credentials_of(const char *prefix, const char *text, size_t length)
{
    ARENA_LOCAL(arena);
    struct value *said = NULL;
    if (value_parse_json(arena, "credentials", text, length, &said, NULL) != 0)
        return NULL;
    const char *id = value_text(said, "AccessKeyId", NULL);
    const char *secret = value_text(said, "SecretAccessKey", NULL);
    return id == NULL || secret == NULL
               ? NULL
               : key_signing(prefix, id, secret, value_text(said, "SessionToken", NULL));
}

/* Without the blanks around it; NULL where it could not stand in a header. */
static char *key_of(const struct key_command *command, const struct buf *printed)
{
    const char *from = buf_text(printed), *end = from + printed->length;
    const char *prefix = command->prefix != NULL ? command->prefix : "";
    while (from < end && isspace((unsigned char)*from))
        from++;
    while (end > from && isspace((unsigned char)end[-1]))
        end--;
    if (strncmp(prefix, HTTP_SIGNS, strlen(HTTP_SIGNS)) == 0 && *from == '{')
        return credentials_of(prefix, from, (size_t)(end - from));
    for (const char *at = from; at < end; at++)
        if (!isgraph((unsigned char)*at))
            return NULL;
    if (from == end || printed->dropped > 0)
        return NULL;
    BUF_LOCAL(key, KEY_MOST + 16);
    buf_addf(&key, "%s%.*s", prefix, (int)(end - from), from);
    return buf_take(&key);
}

/* What it printed is no part of any message: it may be half a key. */
char *key_command_run(const struct key_command *command, struct err *err)
{
    extern char **environ;
    const char *words[COMMAND_WORDS_MOST + 1] = {command->program};
    struct err failed = {0};
    BUF_LOCAL(printed, KEY_MOST);
    BUF_LOCAL(said, SAID_MOST);
    for (size_t i = 1; command->words[i] != NULL; i++)
        words[i] = command->words[i];
    const struct spawn_spec spec = {
        .argv = words, .name = command->words[0], .env = (const char *const *)environ};
    int status = spawn_run(&spec, LIMIT_MS, 0, &printed, &said, &failed);
    char *key = status == 0 ? key_of(command, &printed) : NULL;
    if (printed.data != NULL)
        explicit_bzero(printed.data, printed.length);
    if (key != NULL)
        return key;
    size_t length = said.length, from = length > LAST_WORDS ? length - LAST_WORDS : 0;
    err_set(err, ERR_ENVIRONMENT, "key_command: %s%s%s",
            status == 0 ? "it printed no key on one line" : failed.message,
            status != 0 && length > 0 ? ": " : "", status != 0 ? buf_text(&said) + from : "");
    err_one_line(err->message);
    return NULL;
}

void key_command_take(struct key_command *command, char *key)
{
    command->before = command->key;
    command->key = arena_strdup(command->arena, key);
    explicit_bzero(key, strlen(key));
    mem_free(key);
    command->got_ns = clock_now_ns();
    command->refused = false;
}

int key_command_first(struct key_command *command, struct err *err)
{
    struct command_model found = {.words = command->words};
    if (command->key != NULL)
        return 0;
    if (command->program == NULL) {
        if (command_find(command->arena, "key_command", &found, err) != 0)
            return -1;
        command->program = found.program;
    }
    char *key = key_command_run(command, err);
    if (key == NULL)
        return -1;
    key_command_take(command, key);
    return 0;
}

/* ---- whose it is ---- */

const char *model_key(const struct model *model)
{
    return model->key_command != NULL ? model->key_command->key : model->key;
}

static void hide_part(const char *part, size_t length, char *text)
{
    for (char *at = text; length > 0 && (at = memmem(at, strlen(at), part, length)) != NULL;
         at += length)
        memset(at, '*', length);
}

static void hide(const char *key, char *text)
{
    const char *blank = key != NULL ? strrchr(key, ' ') : NULL; /* behind the prefix */
    if (key == NULL)
        return;
    bool signs = strncmp(key, HTTP_SIGNS, strlen(HTTP_SIGNS)) == 0;
    key = blank != NULL ? blank + 1 : key;
    hide_part(key, strlen(key), text);
    for (size_t length; signs && *key != '\0'; key += length + (key[length] == ':')) {
        length = strcspn(key, ":");
        hide_part(key, length, text);
    }
}

void model_hide_key(const struct model *model, char *text)
{
    hide(model_key(model), text);
    if (model->key_command != NULL)
        hide(model->key_command->before, text);
}

bool key_was_refused(const struct model *model)
{
    if (model->key_command != NULL)
        model->key_command->refused = true;
    return model->key_command != NULL;
}
