/* mcp/private: what the files of src/mcp share. Loop thread only. */
#pragma once

#include "base/buf.h"
#include "loop/loop.h"
#include "loop/process.h"
#include "loop/readable.h"
#include "loop/slots.h"
#include "loop/task.h"
#include "mcp/mcp.h"

enum rpc_code {
    RPC_PARSE = -32700,
    RPC_INVALID = -32600,
    RPC_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_VERSION = -32022
};

enum { ID_MOST = 300, SIGNALS = 3 };

struct mcp_server {
    struct task task;
    const struct mcp_site *site;
    int in, out;
    bool input_over;
    bool is_file; /* always readable, and cannot be watched */
    struct readable readable;
    struct timer retry; /* while the client does not read */
    struct signal_watch signals[SIGNALS];
    struct buf input, output;
    bool too_long; /* until the line's end */
    struct list calls;
    size_t call_count, apart_count;
    struct slots alone, beside;
};

/* One message; `root` lives in `arena`. */
struct request {
    struct arena *arena; /* rpc_call_start() takes it and leaves NULL */
    const char *id;      /* as JSON; NULL: a notification */
    const char *method;
    const struct value *params, *meta;
    bool modern; /* since 2026-07-28 */
};

struct call {
    struct task task;
    struct link link;
    struct mcp_server *server;
    struct mcp_call call;
    const char *id, *progress; /* as JSON; progress: NULL: not asked for */
    bool modern;
    struct slot slot;
    struct process *process;
    struct timer tick;
    uint64_t began_ms;
};

/* ---- answers: onto the server's output ---- */
void rpc_error(struct mcp_server *server, const char *id, enum rpc_code code, const char *message);
/* `result`: an object as JSON; rpc_seal() closes one that was begun, with what every result has.
 * `cacheable`: lists and resources. */
void rpc_result(struct mcp_server *server, const char *id, const char *result);
void rpc_seal(struct mcp_server *server, struct json *json, bool modern, bool cacheable);

/* ---- messages ---- */
void rpc_take(struct mcp_server *server, const char *line, size_t length);

/* ---- calls ---- */
void rpc_call_start(struct mcp_server *server, struct request *request, enum mcp_kind kind);
struct call *rpc_call_find(struct mcp_server *server, const char *id);
void rpc_calls_cancel(struct mcp_server *server);
void rpc_calls_reap(struct mcp_server *server); /* answers those that have ended */
