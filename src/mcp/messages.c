/* mcp/messages: one line as a request; methods; results and errors. */
#include "mcp/private.h"

#include <stdio.h>
#include <string.h>

/* The last is what a client is offered that asks "initialize" for one that is not among them. */
static const char *const versions[] = {"2026-07-28", "2025-11-25", "2025-06-18"};
enum { VERSIONS = sizeof versions / sizeof versions[0], MODERN = 0, LEGACY = 1 };

#define META "io.modelcontextprotocol/"

/* How long a client may go by a list or a document: all of ours change by acts of its user. */
enum { TTL_MS = 10000 };

/* ---- answers ---- */

static struct json begin(struct mcp_server *server, const char *id)
{
    struct json json = {.out = &server->output};
    json_object(&json);
    json_put_text(&json, "jsonrpc", "2.0");
    if (id)
        json_put_raw(&json, "id", id);
    return json;
}

static void end(struct mcp_server *server, struct json *json)
{
    json_object_end(json);
    buf_add_char(&server->output, '\n');
}

static void error_begin(struct mcp_server *server, const char *id, enum rpc_code code,
                        const char *message, struct json *json)
{
    *json = begin(server, id);
    json_put_object(json, "error");
    json_put_int(json, "code", code);
    json_put_text(json, "message", message);
}

void rpc_error(struct mcp_server *server, const char *id, enum rpc_code code, const char *message)
{
    struct json json;
    error_begin(server, id, code, message, &json);
    json_object_end(&json);
    end(server, &json);
}

void rpc_result(struct mcp_server *server, const char *id, const char *result)
{
    struct json json = begin(server, id);
    json_put_raw(&json, "result", result);
    end(server, &json);
}

static void put_implementation(const struct mcp_site *site, struct json *json, const char *key)
{
    json_put_object(json, key);
    json_put_text(json, "name", site->name);
    json_put_text(json, "title", site->title);
    json_put_text(json, "version", site->version);
    json_object_end(json);
}

void rpc_seal(struct mcp_server *server, struct json *json, bool modern, bool cacheable)
{
    if (modern) {
        json_put_text(json, "resultType", "complete");
        if (cacheable) {
            json_put_int(json, "ttlMs", TTL_MS);
            json_put_text(json, "cacheScope", "private");
        }
        json_put_object(json, "_meta");
        put_implementation(server->site, json, META "serverInfo");
        json_object_end(json);
    }
    json_object_end(json);
}

static struct json result_begin(struct mcp_server *server, const char *id)
{
    struct json json = begin(server, id);
    json_put_object(&json, "result");
    return json;
}

static void result_end(struct mcp_server *server, struct json *json, bool modern, bool cacheable)
{
    rpc_seal(server, json, modern, cacheable);
    end(server, json);
}

/* ---- methods ---- */

static void put_versions(struct json *json, const char *key)
{
    json_put_array(json, key);
    for (size_t i = 0; i < VERSIONS; i++)
        json_text(json, versions[i]);
    json_array_end(json);
}

static void put_abilities(const struct mcp_site *site, struct json *json)
{
    static const char *const names[] = {"tools", "resources", "prompts"};
    json_put_object(json, "capabilities");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        json_put_object(json, names[i]);
        json_object_end(json);
    }
    json_object_end(json);
    json_put_text(json, "instructions", site->instructions);
}

static bool is_version(const char *text, size_t from)
{
    for (size_t i = from; text && i < VERSIONS; i++)
        if (strcmp(text, versions[i]) == 0)
            return true;
    return false;
}

static void initialize(struct mcp_server *server, struct request *request)
{
    const char *wanted = value_text(request->params, "protocolVersion", NULL);
    if (!wanted) {
        rpc_error(server, request->id, RPC_PARAMS, "initialize: protocolVersion is missing");
        return;
    }
    struct json json = result_begin(server, request->id);
    json_put_text(&json, "protocolVersion", is_version(wanted, LEGACY) ? wanted : versions[LEGACY]);
    put_abilities(server->site, &json);
    put_implementation(server->site, &json, "serverInfo");
    result_end(server, &json, false, false);
}

static void discover(struct mcp_server *server, struct request *request)
{
    struct json json = result_begin(server, request->id);
    put_versions(&json, "supportedVersions");
    put_abilities(server->site, &json);
    result_end(server, &json, true, true);
}

static void ping(struct mcp_server *server, struct request *request)
{
    struct json json = result_begin(server, request->id);
    result_end(server, &json, request->modern, false);
}

/* All on one page. */
static void list(struct mcp_server *server, struct request *request, enum mcp_kind kind,
                 const char *key)
{
    if (value_get(request->params, "cursor")) {
        rpc_error(server, request->id, RPC_PARAMS, "there is one page: no cursor was given out");
        return;
    }
    struct json json = result_begin(server, request->id);
    json_put_array(&json, key);
    server->site->list(server->site->context, kind, &json);
    json_array_end(&json);
    result_end(server, &json, request->modern, true);
}

static void list_tools(struct mcp_server *server, struct request *request)
{
    list(server, request, MCP_TOOL, "tools");
}

static void list_resources(struct mcp_server *server, struct request *request)
{
    list(server, request, MCP_RESOURCE, "resources");
}

static void list_prompts(struct mcp_server *server, struct request *request)
{
    list(server, request, MCP_PROMPT, "prompts");
}

static void list_templates(struct mcp_server *server, struct request *request)
{
    struct json json = result_begin(server, request->id);
    json_put_array(&json, "resourceTemplates");
    server->site->templates(server->site->context, &json);
    json_array_end(&json);
    result_end(server, &json, request->modern, true);
}

static void call_tool(struct mcp_server *server, struct request *request)
{
    rpc_call_start(server, request, MCP_TOOL);
}

static void read_resource(struct mcp_server *server, struct request *request)
{
    rpc_call_start(server, request, MCP_RESOURCE);
}

static void get_prompt(struct mcp_server *server, struct request *request)
{
    rpc_call_start(server, request, MCP_PROMPT);
}

static const struct method {
    const char *name;
    void (*answer)(struct mcp_server *server, struct request *request);
} methods[] = {
    {"initialize", initialize},
    {"server/discover", discover},
    {"ping", ping},
    {"tools/list", list_tools},
    {"tools/call", call_tool},
    {"resources/list", list_resources},
    {"resources/templates/list", list_templates},
    {"resources/read", read_resource},
    {"prompts/list", list_prompts},
    {"prompts/get", get_prompt},
};

/* ---- requests ---- */

/* An id as JSON, or NULL: a text of some length, or a whole number. */
static const char *read_id(struct arena *arena, const struct value *id)
{
    JSON_LOCAL(json, text, ID_MOST);
    if (!id || (id->kind != VALUE_TEXT && id->kind != VALUE_INT))
        return NULL;
    json_value(&json, id);
    return text.dropped ? NULL : arena_strdup(arena, buf_text(&text));
}

/* The client takes its answer no more. */
static void notice(struct mcp_server *server, const struct request *request)
{
    if (strcmp(request->method, "notifications/cancelled") != 0)
        return;
    const char *id = read_id(request->arena, value_get(request->params, "requestId"));
    struct call *call = id ? rpc_call_find(server, id) : NULL;
    if (call)
        task_cancel(&call->task);
}

/* True where the version that the request says is one of ours, or none is said. */
static bool version_fits(struct mcp_server *server, struct request *request)
{
    const struct value *said = value_get(request->meta, META "protocolVersion");
    const char *text = said && said->kind == VALUE_TEXT ? said->text : NULL;
    struct json json;
    request->modern = text && strcmp(text, versions[MODERN]) == 0;
    if (!said || is_version(text, MODERN))
        return true;
    error_begin(server, request->id, RPC_VERSION, "Unsupported protocol version", &json);
    json_put_object(&json, "data");
    put_versions(&json, "supported");
    json_put_text(&json, "requested", text);
    json_object_end(&json);
    json_object_end(&json);
    end(server, &json);
    return false;
}

static void answer(struct mcp_server *server, struct request *request)
{
    if (!version_fits(server, request))
        return;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(request->method, methods[i].name) == 0) {
            methods[i].answer(server, request);
            return;
        }
    rpc_error(server, request->id, RPC_METHOD, "there is no such method");
}

/* NULL, or what is wrong with it. */
static const char *read_request(struct request *request, const struct value *root)
{
    const struct value *id = value_get(root, "id");
    request->id = read_id(request->arena, id);
    if (root->kind == VALUE_LIST)
        return "a batch; send one message a line";
    if (root->kind != VALUE_MAP || strcmp(value_text(root, "jsonrpc", ""), "2.0") != 0)
        return "expected an object with jsonrpc 2.0";
    if (id && !request->id)
        return "expected an id that is a text of at most 256 bytes or a whole number";
    request->method = value_text(root, "method", NULL);
    if (!request->method)
        return "the method is missing";
    request->params = value_get(root, "params");
    if (request->params && request->params->kind != VALUE_MAP)
        return "params: expected an object";
    request->meta = value_get(request->params, "_meta");
    return NULL;
}

static bool is_answer(const struct value *root)
{
    return !value_get(root, "method") && (value_get(root, "result") || value_get(root, "error"));
}

static bool is_blank(const char *line, size_t length)
{
    size_t i = 0;
    while (i < length && strchr(" \t\r", line[i]) && line[i])
        i++;
    return i == length;
}

void rpc_take(struct mcp_server *server, const char *line, size_t length)
{
    struct request request = {.arena = arena_new_sized(4096)};
    struct value *root = NULL;
    struct err err = {0};
    const char *wrong;
    if (is_blank(line, length)) {
        ;
    } else if (value_parse_json(request.arena, "message", line, length, &root, &err)) {
        rpc_error(server, NULL, RPC_PARSE, err.message);
    } else if (is_answer(root)) {
        ; /* we ask nothing */
    } else if ((wrong = read_request(&request, root)) != NULL) {
        rpc_error(server, request.id, RPC_INVALID, wrong);
    } else if (!request.id) {
        notice(server, &request);
    } else {
        answer(server, &request);
    }
    arena_free(request.arena);
}
