/* mcp/mcp: the Model Context Protocol over two descriptors, one JSON-RPC message a line: revision
 * 2026-07-28 (stateless; each request says its version) and, for clients that begin with
 * "initialize", 2025-11-25 and 2025-06-18. Loop thread only. The protocol alone is here: what there
 * is to call is the site's.
 *
 * A call is answered at once, or by a child of its own, so that nothing it does reaches the server:
 * a crash is an error, a cancellation ends the child's group, and a client that goes away ends
 * them all. */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;

enum mcp_kind { MCP_TOOL, MCP_RESOURCE, MCP_PROMPT };

enum { MCP_LINE_MOST = 8 << 20, MCP_CALLS_MOST = 64, MCP_APART_MOST = 32 };

struct mcp_call {
    struct arena *arena; /* the call's own */
    enum mcp_kind kind;
    void *state; /* the site's */
    /* by begin(): the child, or NULL for an answer that end() makes from `state` alone */
    const char *const *argv;
    uint64_t timeout_ms;
    bool alone; /* it measures: one such call at a time */
    /* By begin(), too. `apart`: the site's number of a call that is answered at once, by apart(),
     * and goes on until the client leaves; end() then says what came of it to nobody but the site.
     * `awaits`: the number of such a one, for whose end this call waits, timeout_ms at most;
     * `ends`: which it cancels first. */
    unsigned apart, awaits;
    bool ends;
    /* for end(): how the child ended; of a call that awaits another only `how`, what that one does
     * now, or NULL where it has ended */
    bool exited; /* and with this */
    int status;
    const char *how; /* "exited 1", "killed by SIGSEGV" */
    const char *output, *errors;
    size_t output_length;
    uint64_t output_dropped;
};

struct mcp_site { /* borrowed while it serves */
    void *context;
    const char *name, *title, *version, *instructions;
    /* The elements of tools/list, resources/list or prompts/list. */
    void (*list)(void *context, enum mcp_kind kind, struct json *json);
    void (*templates)(void *context, struct json *json); /* of resources */
    /* A tool's or a prompt's name, or a resource's URI; `arguments` is a map or NULL, both borrowed
     * for the call's life. ERR_NOT_FOUND and ERR_USAGE are the client's errors. */
    int (*begin)(void *context, const char *name, const struct value *arguments,
                 struct mcp_call *call, struct err *err);
    void (*apart)(void *context, const struct mcp_call *call, struct json *json);
    /* Members of the result; false with *err where there is none: ERR_NOT_FOUND is the client's
     * error. */
    bool (*end)(void *context, struct mcp_call *call, struct json *json, struct err *err);
};

/* Serves until `in` is at its end, `out` is gone, or SIGINT, SIGTERM or SIGHUP come; children are
 * over when loop_run() returns. */
struct mcp_server;
struct mcp_server *mcp_server_new(struct loop *loop, const struct mcp_site *site, int in, int out);
void mcp_server_free(struct mcp_server *server); /* after loop_run() */
