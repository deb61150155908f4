/* twagent mcp: tools, documents and prompts for a coding agent, on stdin and stdout. */
#include "mcp/mcp.h"

#include "base/file.h"
#include "base/mem.h"
#include "cli/mcp/documents.h"
#include "cli/mcp/results.h"
#include "cli/mcp/tools.h"
#include "cli/options/command.h"
#include "loop/loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    APART_KEPT = MCP_CALLS_MOST,
    WAIT_S = 30,
    WAIT_MOST_S = 600,
    ANSWER_MOST = 8 << 20,
    DOCUMENT_MS = 120000
};

struct site {
    struct agent_tool_place place;
    struct results *results;
    unsigned apart;               /* calls that were answered at once so far */
    char *kept_apart[APART_KEPT]; /* what came of the last of them, JSON; NULL: not yet */
};

struct answer { /* of a call, in its arena */
    const struct agent_tool *tool;
    const struct value *arguments;
    const char *name, *text, *refusal;
};

/* ---- lists ---- */

static void list(void *context, enum mcp_kind kind, struct json *json)
{
    const struct site *site = context;
    bool attempt = site->place.attempt;
    if (kind == MCP_RESOURCE)
        documents_list(json);
    else if (kind == MCP_PROMPT)
        prompts_list(json);
    for (size_t i = 0; kind == MCP_TOOL && i < agent_tool_count; i++)
        if (agent_tool_is_for(&agent_tools[i], attempt))
            agent_tool_describe(&agent_tools[i], json);
}

static void templates(void *context, struct json *json)
{
    (void)context;
    documents_templates(json);
}

/* ---- calls ---- */

static void begin_apart(struct site *site, struct mcp_call *call)
{
    call->apart = ++site->apart;
    char **slot = &site->kept_apart[call->apart % APART_KEPT];
    mem_free(*slot);
    *slot = NULL;
}

/* "c3" -> 3; 0: no call that is or was apart, of those that are kept. */
static unsigned apart_number(const struct site *site, const char *id)
{
    char *end = NULL;
    unsigned long number = *id == 'c' ? strtoul(id + 1, &end, 10) : 0;
    bool is = end && *end == '\0' && number >= 1 && number <= site->apart &&
              number + APART_KEPT > site->apart;
    return is ? (unsigned)number : 0;
}

static void begin_wait(const struct site *site, const struct value *arguments,
                       struct mcp_call *call, struct answer *answer)
{
    const char *id = value_text(arguments, "call", "");
    int64_t seconds = value_int(arguments, "seconds", WAIT_S);
    call->awaits = apart_number(site, id);
    call->ends = value_bool(arguments, "cancel", false);
    call->timeout_ms = 1000 * (uint64_t)(seconds < 0             ? 0
                                         : seconds > WAIT_MOST_S ? WAIT_MOST_S
                                                                 : seconds);
    if (!call->awaits)
        answer->refusal = arena_printf(call->arena,
                                       "no call \"%.40s\" was detached: evaluate, profile and "
                                       "problem_check with detach say their id",
                                       id);
}

/* What an agent said wrong is a result, so that it reads why and mends it. */
static int begin_tool(struct site *site, const char *name, const struct value *arguments,
                      struct mcp_call *call, struct answer *answer, struct err *err)
{
    const char *const *words = NULL;
    bool detach = false;
    answer->tool = agent_tool_find(name, site->place.attempt);
    if (!answer->tool)
        return err_set(err, ERR_NOT_FOUND, "there is no tool \"%.100s\"", name);
    if (agent_tool_words(answer->tool, &site->place, arguments, call->arena, &words, &detach,
                         err)) {
        answer->refusal = arena_strdup(call->arena, err->message);
        return 0;
    }
    if (answer->tool->ways & TOOL_WAITS)
        begin_wait(site, arguments, call, answer);
    if (!answer->tool->command[0])
        return 0;
    call->argv = words;
    bool outlives = detach && answer->tool->ways & TOOL_DETACHES;
    call->alone = answer->tool->ways & TOOL_MEASURES && !outlives;
    if (detach && !outlives)
        begin_apart(site, call);
    call->timeout_ms = answer->tool->limit_s * 1000;
    return 0;
}

static int begin(void *context, const char *name, const struct value *arguments,
                 struct mcp_call *call, struct err *err)
{
    struct answer *answer = ARENA_NEW(call->arena, struct answer);
    call->state = answer;
    answer->name = name;
    answer->arguments = arguments;
    if (call->kind == MCP_TOOL)
        return begin_tool(context, name, arguments, call, answer, err);
    const struct site *site = context;
    call->timeout_ms = DOCUMENT_MS;
    if (call->kind == MCP_RESOURCE)
        return documents_read(&site->place, call->arena, name, &answer->text, &call->argv, err);
    return prompts_words(&site->place, call->arena, name, value_text(arguments, "problem", NULL),
                         value_text(arguments, "wish", NULL), &call->argv, err);
}

static void put_apart(const char *id, const char *state, struct json *json)
{
    JSON_LOCAL(facts, text, 1 << 12);
    json_object(&facts);
    json_put_text(&facts, "call", id);
    json_put_text(&facts, "state", state);
    json_object_end(&facts);
    results_say(buf_text(&text), json);
}

static void apart(void *context, const struct mcp_call *call, struct json *json)
{
    (void)context;
    put_apart(arena_printf(call->arena, "c%u", call->apart),
              "at work; the tool wait has the answer", json);
}

static void end_apart(struct site *site, struct mcp_call *call)
{
    JSON_LOCAL(json, text, ANSWER_MOST);
    json_object(&json);
    results_answer(site->results, call, &json);
    json_object_end(&json);
    if (apart_number(site,
                     arena_printf(call->arena, "c%u", call->apart))) /* not another's by now */
        site->kept_apart[call->apart % APART_KEPT] = buf_take(&text);
}

static void end_wait(const struct site *site, const struct mcp_call *call,
                     const struct answer *answer, struct json *json)
{
    const char *kept = site->kept_apart[call->awaits % APART_KEPT];
    struct value *members = NULL;
    if (!kept)
        put_apart(value_text(answer->arguments, "call", ""), call->how ? call->how : "at work",
                  json);
    else if (value_parse_json(call->arena, "answer", kept, strlen(kept), &members, NULL) == 0)
        for (size_t i = 0; i < members->count; i++)
            json_put_value(json, members->keys[i], members->items[i]);
}

static void end_tool(struct site *site, struct mcp_call *call, const struct answer *answer,
                     struct json *json)
{
    struct err err = {0};
    if (answer->refusal) {
        results_refuse(answer->refusal, json);
    } else if (call->apart) {
        end_apart(site, call);
    } else if (call->awaits) {
        end_wait(site, call, answer, json);
    } else if (call->argv) {
        results_answer(site->results, call, json);
    } else if (results_more(site->results, value_text(answer->arguments, "result", ""),
                            value_text(answer->arguments, "part", ""), json, &err)) {
        results_refuse(err.message, json);
    }
}

static bool end(void *context, struct mcp_call *call, struct json *json, struct err *err)
{
    const struct answer *answer = call->state;
    const char *text = call->argv ? call->output : answer->text;
    if (call->kind == MCP_TOOL) {
        end_tool(context, call, answer, json);
        return true;
    }
    if (call->argv && (!call->exited || call->status != 0)) {
        (void)err_set(err, ERR_NOT_FOUND, "%.400s", *call->errors ? call->errors : call->how);
        err_one_line(err->message);
        return false;
    }
    json_put_array(json, call->kind == MCP_RESOURCE ? "contents" : "messages");
    json_object(json);
    if (call->kind == MCP_RESOURCE) {
        json_put_text(json, "uri", answer->name);
        json_put_text(json, "mimeType", "text/plain");
        json_put_text(json, "text", text);
    } else {
        json_put_text(json, "role", "user");
        json_put_object(json, "content");
        json_put_text(json, "type", "text");
        json_put_text(json, "text", text);
        json_object_end(json);
    }
    json_object_end(json);
    json_array_end(json);
    return true;
}

/* ---- the whole ---- */

static const char attempt_instructions[] =
    "You work on one kernel of a search, by the file TASK.md in your folder. evaluate is the only "
    "judge of it; submit names the one that you end with. Believe `evaluation.finding`, not the "
    "median alone.";

static const char instructions[] =
    "twagent checks and times kernels (C, C++, CUDA C++) against a definition, and searches for "
    "the fastest. Loop: problems (or problem_new, edit, problem_check), evaluate, profile, tune, "
    "prove. Believe `finding` (faster, slower, no difference, too noisy to "
    "say), not the median alone. Resource twagent://guides/agent has more, "
    "twagent://formats/cpu/PROBLEM (or cuda, triton, webgpu) how a candidate for it is written.";

/* An attempt's folder, in which we stand, is STORE/agents/ID. Its tools read that store, since a
 * client seldom passes on what the run was told. */
static void use_store(void)
{
    MEM_LOCAL char *store = realpath("../..", NULL);
    if (store)
        (void)setenv("TWAGENT_STORE", store, 1);
}

int command_mcp(const struct settings *settings, const char *const *arguments, size_t count)
{
    (void)settings, (void)arguments, (void)count;
    struct err ignored;
    const char *attempt = getenv("TWAGENT_ATTEMPT"), *temporary = getenv("TMPDIR");
    BUF_LOCAL(folder, 4096);
    if (attempt && chdir(attempt) != 0) {
        (void)err_set_errno(&ignored, ERR_USAGE, errno, "TWAGENT_ATTEMPT=%.200s", attempt);
        return command_fail(&ignored);
    }
    if (attempt)
        use_store();
    MEM_LOCAL char *root = getcwd(NULL, 0);
    if (attempt)
        buf_addf(&folder, "%s/.twagent", attempt);
    else
        buf_add_text(&folder, temporary && *temporary == '/' ? temporary : "/tmp");
    buf_addf(&folder, "/twagent-mcp-%d", (int)getpid());
    struct site site = {.place = {.root = root && strcmp(root, "/") != 0 ? root : NULL,
                                  .attempt = attempt != NULL,
                                  .folder = buf_text(&folder)},
                        .results = results_new()};
    const struct mcp_site serves = {.context = &site,
                                    .name = "twagent",
                                    .title = "twagent",
                                    .version = TWAGENT_VERSION,
                                    .instructions = attempt ? attempt_instructions : instructions,
                                    .list = list,
                                    .templates = templates,
                                    .begin = begin,
                                    .apart = apart,
                                    .end = end};
    umask(077);
    if (isatty(STDIN_FILENO))
        fprintf(stderr, "twagent mcp: a coding agent starts this and talks to it by JSON lines; "
                        "docs/mcp.md has the line for yours (Ctrl-D ends it)\n");
    struct loop *loop = loop_new();
    struct mcp_server *server = mcp_server_new(loop, &serves, STDIN_FILENO, STDOUT_FILENO);
    loop_run(loop);
    mcp_server_free(server);
    loop_free(loop);
    results_free(site.results);
    for (size_t i = 0; i < APART_KEPT; i++)
        mem_free(site.kept_apart[i]);
    (void)!file_remove_tree(site.place.folder, &ignored);
    return 0;
}
