/* `twagent acp [--boxed] PROGRAM ARGUMENT...`: a client of the Agent Client Protocol (version 1,
 * agentclientprotocol.com): starts a coding agent that speaks it on stdin and stdout, gives it what
 * stands on our stdin as one prompt in the folder that we stand in, with the server of the attempt,
 * and prints what it said and cost as one JSON object. The run that starts us sets the limits.
 *
 *   initialize -> session/new -> session/prompt -> its result
 *
 * The agent's requests are answered as they come: it may look and edit in the folder and call the
 * attempt's server. Commands it runs only in a sandbox. */
#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/value.h"
#include "cli/mcp/children.h"
#include "cli/options/command.h"
#include "process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MOST = 16 << 20, SAID_MOST = 4 << 20, TASK_MOST = 64 << 20, READ_BYTES = 64 << 10 };
enum { INITIALIZE, NEW_SESSION, PROMPT, STEPS };

struct acp {
    int to, from;
    bool boxed;
    char *folder;
    struct buf input, said, task;
    char *session;
    double dollars; /* by its own word; < 0: it said nothing */
    int step;       /* whose answer is awaited */
    const char *stop;
};

/* ---- what we say ---- */

static int say(struct acp *acp, struct buf *line, struct err *err)
{
    size_t done = 0;
    buf_add_char(line, '\n');
    while (done < line->length) {
        ssize_t put = write(acp->to, buf_text(line) + done, line->length - done);
        if (put < 0 && errno != EINTR)
            return err_set(err, ERR_CHILD, "the agent no longer reads");
        done += put > 0 ? (size_t)put : 0;
    }
    return 0;
}

static void put_servers(struct acp *acp, struct json *json)
{
    const char *attempt = getenv("TWAGENT_ATTEMPT");
    json_put_text(json, "cwd", acp->folder);
    json_put_array(json, "mcpServers");
    if (attempt && *attempt) { /* none where ideas are asked for */
        json_object(json);
        json_put_text(json, "name", "twagent");
        json_put_text(json, "command", file_program_path());
        json_put_array(json, "args");
        json_text(json, "mcp");
        json_array_end(json);
        json_put_array(json, "env");
        json_object(json);
        json_put_text(json, "name", "TWAGENT_ATTEMPT");
        json_put_text(json, "value", attempt);
        json_object_end(json);
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_prompt(struct acp *acp, struct json *json)
{
    json_put_text(json, "sessionId", acp->session);
    json_put_array(json, "prompt");
    json_object(json);
    json_put_text(json, "type", "text");
    json_put_text(json, "text", buf_text(&acp->task));
    json_object_end(json);
    json_array_end(json);
}

static void put_client(struct json *json)
{
    json_put_int(json, "protocolVersion", 1);
    json_put_object(json, "clientCapabilities");
    json_put_object(json, "fs"); /* it has the folder itself */
    json_put_bool(json, "readTextFile", false);
    json_put_bool(json, "writeTextFile", false);
    json_object_end(json);
    json_put_bool(json, "terminal", false);
    json_object_end(json);
    json_put_object(json, "clientInfo");
    json_put_text(json, "name", "twagent");
    json_put_text(json, "version", TWAGENT_VERSION);
    json_object_end(json);
}

/* The request of the present step, whose number it has. */
static int ask(struct acp *acp, struct err *err)
{
    static const char *const methods[STEPS] = {"initialize", "session/new", "session/prompt"};
    JSON_LOCAL(json, line, 2 * TASK_MOST);
    json_object(&json);
    json_put_text(&json, "jsonrpc", "2.0");
    json_put_int(&json, "id", acp->step);
    json_put_text(&json, "method", methods[acp->step]);
    json_put_object(&json, "params");
    if (acp->step == INITIALIZE)
        put_client(&json);
    else if (acp->step == NEW_SESSION)
        put_servers(acp, &json);
    else
        put_prompt(acp, &json);
    json_object_end(&json);
    json_object_end(&json);
    return say(acp, &line, err);
}

/* ---- permissions ---- */

static bool is_inside(const struct acp *acp, const char *path)
{
    size_t length = strlen(acp->folder);
    if (strstr(path, ".."))
        return false;
    return *path != '/' || (strncmp(path, acp->folder, length) == 0 && path[length] == '/');
}

/* Looking, thinking, editing in the folder, and what has no kind of its own, as a server's tools.
 */
static bool may(const struct acp *acp, const struct value *call)
{
    static const char *const kinds[] = {"read", "search", "think", "edit", "other", ""};
    const struct value *locations = value_get(call, "locations");
    const char *kind = value_text(call, "kind", "");
    bool known = false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        known = known || strcmp(kind, kinds[i]) == 0;
    for (size_t i = 0; known && locations && i < locations->count; i++)
        known = is_inside(acp, value_text(locations->items[i], "path", "/"));
    return known || acp->boxed;
}

static const char *option_of_kind(const struct value *options, const char *kind)
{
    for (size_t i = 0; options && options->kind == VALUE_LIST && i < options->count; i++)
        if (strcmp(value_text(options->items[i], "kind", ""), kind) == 0)
            return value_text(options->items[i], "optionId", NULL);
    return NULL;
}

static void put_outcome(const struct acp *acp, const struct value *params, struct json *json)
{
    bool allowed = may(acp, value_get(params, "toolCall"));
    const struct value *options = value_get(params, "options");
    const char *id = option_of_kind(options, allowed ? "allow_once" : "reject_once");
    if (!id)
        id = option_of_kind(options, allowed ? "allow_always" : "reject_always");
    json_put_object(json, "result");
    json_put_object(json, "outcome");
    json_put_text(json, "outcome", id ? "selected" : "cancelled");
    if (id)
        json_put_text(json, "optionId", id);
    json_object_end(json);
    json_object_end(json);
}

/* ---- what it says ---- */

static void take_update(struct acp *acp, const struct value *update)
{
    const char *kind = value_text(update, "sessionUpdate", "");
    const struct value *cost = value_get(update, "cost");
    if (strcmp(kind, "agent_message_chunk") == 0)
        buf_add_text(&acp->said, value_text(value_get(update, "content"), "text", ""));
    else if (strcmp(kind, "usage_update") == 0 &&
             strcmp(value_text(cost, "currency", ""), "USD") == 0)
        acp->dollars = value_real(cost, "amount", acp->dollars); /* of the session so far */
}

static int take_request(struct acp *acp, const struct value *message, const char *method,
                        struct err *err)
{
    JSON_LOCAL(json, line, 1 << 16);
    json_object(&json);
    json_put_text(&json, "jsonrpc", "2.0");
    json_key(&json, "id");
    json_value(&json, value_get(message, "id"));
    if (strcmp(method, "session/request_permission") == 0) {
        put_outcome(acp, value_get(message, "params"), &json);
    } else {
        json_put_object(&json, "error");
        json_put_int(&json, "code", -32601);
        json_put_text(&json, "message", "this client has no such method");
        json_object_end(&json);
    }
    json_object_end(&json);
    return say(acp, &line, err);
}

/* Many say "Internal error", and what it was in `data`. */
static int refused(const struct value *error, struct err *err)
{
    enum { AUTH_REQUIRED = -32000 };
    const struct value *data = value_get(error, "data");
    const char *more =
        data && data->kind == VALUE_TEXT ? data->text : value_text(data, "details", "");
    return err_set(err, ERR_CHILD, "the agent refused: %.300s%s%.200s%s",
                   value_text(error, "message", "no reason"), *more ? ": " : "", more,
                   value_int(error, "code", 0) == AUTH_REQUIRED
                       ? ": start it by hand once, and sign in there"
                       : "");
}

static int take_answer(struct acp *acp, const struct value *message, struct err *err)
{
    const struct value *failed = value_get(message, "error"),
                       *result = value_get(message, "result");
    if (value_int(message, "id", -1) != acp->step)
        return 0;
    if (failed || !result)
        return refused(failed, err);
    if (acp->step == INITIALIZE && value_int(result, "protocolVersion", 0) != 1)
        return err_set(err, ERR_CHILD, "the agent speaks another version of ACP than 1");
    if (acp->step == NEW_SESSION) {
        acp->session = mem_strdup(value_text(result, "sessionId", ""));
        if (!*acp->session)
            return err_set(err, ERR_CHILD, "the agent opened no session");
    }
    if (acp->step == PROMPT)
        acp->stop = value_text(result, "stopReason", "end_turn");
    return ++acp->step < STEPS ? ask(acp, err) : 0;
}

static int take_line(struct acp *acp, struct arena *arena, const char *text, size_t length,
                     struct err *err)
{
    struct value *message = NULL;
    if (value_parse_json(arena, "message", text, length, &message, NULL) != 0 ||
        message->kind != VALUE_MAP)
        return 0; /* some print a banner first */
    const char *method = value_text(message, "method", NULL);
    if (!method)
        return take_answer(acp, message, err);
    if (value_get(message, "id"))
        return take_request(acp, message, method, err);
    if (strcmp(method, "session/update") == 0)
        take_update(acp, value_get(value_get(message, "params"), "update"));
    return 0;
}

/* The arena has what `stop` is in. */
static int converse(struct acp *acp, struct arena *arena, struct err *err)
{
    char bytes[READ_BYTES];
    if (ask(acp, err))
        return -1;
    while (acp->step < STEPS) {
        ssize_t got = read(acp->from, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return err_set(err, ERR_CHILD, "the agent ended before its answer");
        buf_add(&acp->input, bytes, (size_t)got);
        if (acp->input.dropped)
            return err_set(err, ERR_CHILD, "a message of more than %d bytes", LINE_MOST);
        const char *text = buf_text(&acp->input), *end;
        size_t begin = 0;
        while (acp->step < STEPS &&
               (end = memchr(text + begin, '\n', acp->input.length - begin)) != NULL) {
            size_t length = (size_t)(end - text) - begin;
            if (take_line(acp, arena, text + begin, length, err))
                return -1;
            begin += length + 1;
        }
        buf_consume(&acp->input, begin);
    }
    return 0;
}

/* ---- the whole ---- */

static int start(struct acp *acp, char **words, pid_t *pid, struct err *err)
{
    extern char **environ;
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0)
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "pipe");
    if (pipe2(from, O_CLOEXEC) != 0) {
        close(to[0]), close(to[1]);
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "pipe");
    }
    const struct spawn_spec spec = {.argv = (const char *const *)words,
                                    .env = (const char *const *)environ,
                                    .folder = acp->folder};
    int failed = spawn(&spec, (const int[]){to[0], from[1], STDERR_FILENO}, pid, NULL, err);
    close(to[0]), close(from[1]);
    acp->to = to[1];
    acp->from = from[0];
    return failed;
}

static void print_answer(const struct acp *acp)
{
    JSON_LOCAL(json, text, 2 * SAID_MOST);
    json_object(&json);
    json_put_text(&json, "result", buf_text(&acp->said));
    json_put_text(&json, "stop_reason", acp->stop);
    if (acp->dollars >= 0)
        json_put_real(&json, "total_cost_usd", acp->dollars);
    json_object_end(&json);
    printf("%s\n", buf_text(&text));
}

/* By its descriptor: in a sandbox it has no path. */
static int read_task(struct acp *acp, struct err *err)
{
    char bytes[READ_BYTES];
    ssize_t got;
    while ((got = read(STDIN_FILENO, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR))
        buf_add(&acp->task, bytes, got > 0 ? (size_t)got : 0);
    return got < 0 ? err_set_errno(err, ERR_IO, errno, "the task") : 0;
}

static int run(struct acp *acp, char **words, struct err *err)
{
    ARENA_LOCAL(arena);
    pid_t pid = -1;
    if (read_task(acp, err) || start(acp, words, &pid, err))
        return -1;
    int failed = converse(acp, arena, err);
    close(acp->to), close(acp->from);
    (void)spawn_kill(pid); /* it stays for the next prompt, and there is none */
    if (!failed)
        print_answer(acp);
    return failed;
}

int acp_main(int argc, char **argv)
{
    struct acp acp = {.dollars = -1, .folder = getcwd(NULL, 0)};
    struct err err = {0};
    signal(SIGPIPE, SIG_IGN);
    acp.boxed = argc > 0 && strcmp(argv[0], "--boxed") == 0;
    buf_init(&acp.input, LINE_MOST);
    buf_init(&acp.said, SAID_MOST);
    buf_init(&acp.task, TASK_MOST);
    char **words = argv + acp.boxed;
    int failed = argc - acp.boxed < 1 || !acp.folder
                     ? err_set(&err, ERR_USAGE, "usage: twagent acp PROGRAM ARGUMENT...")
                     : run(&acp, words, &err);
    buf_free(&acp.input);
    buf_free(&acp.said);
    buf_free(&acp.task);
    mem_free(acp.session);
    free(acp.folder);
    int code = failed ? command_fail(&err) : 0;
    if (acp.boxed && fflush(stdout) == 0)
        _exit(code); /* a build with a leak detector would trace itself at exit, which is refused */
    return code;
}
