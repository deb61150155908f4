/* mcp/calls: a call that takes its time: a turn, a child, an answer.
 *
 *   WAITING (for a turn) -> RUNNING (the child) -> OVER; a cancellation ends either
 *
 * A call that is apart was answered when it began, and a later call asks for what came of it.
 */
#include "mcp/private.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WAITING, RUNNING, STATES };
static const char *const states[STATES] = {"waiting", "running"};
static const uint32_t moves[STATES] = {1u << RUNNING, 0};

enum { PROGRESS_MS = 1000, LOOK_MS = 50, OUTPUT_MOST = 16 << 20, MESSAGE_MOST = 200 };

/* ---- progress ---- */

/* The last line that the child said on its way; "" where it said none. */
static void last_line(const struct call *call, char text[MESSAGE_MOST])
{
    size_t length = 0;
    const char *errors = call->process ? process_errors(call->process, &length, NULL) : "";
    while (length > 0 && strchr("\r\n ", errors[length - 1]))
        length--;
    size_t begin = length;
    while (begin > 0 && errors[begin - 1] != '\n' && errors[begin - 1] != '\r')
        begin--;
    while (begin < length && errors[begin] == ' ')
        begin++;
    snprintf(text, MESSAGE_MOST, "%.*s", (int)(length - begin), errors + begin);
    err_one_line(text);
}

static void what_it_does(const struct call *call, char text[MESSAGE_MOST])
{
    last_line(call, text);
    if (!*text)
        snprintf(text, MESSAGE_MOST, "%s",
                 call->task.state == WAITING ? "waits until another call has measured" : "at work");
}

static void tell_progress(struct call *call)
{
    char text[MESSAGE_MOST];
    double seconds = (double)(clock_now_ms() - call->began_ms) / 1000;
    what_it_does(call, text);
    struct json json = {.out = &call->server->output};
    json_object(&json);
    json_put_text(&json, "jsonrpc", "2.0");
    json_put_text(&json, "method", "notifications/progress");
    json_put_object(&json, "params");
    json_put_raw(&json, "progressToken", call->progress);
    json_put_real(&json, "progress", seconds);
    json_put_text(&json, "message", text);
    json_object_end(&json);
    json_object_end(&json);
    buf_add_char(json.out, '\n');
    task_wake(&call->server->task);
}

static void keep_telling(struct call *call)
{
    if (!call->progress || call->tick.armed)
        return;
    if (call->tick.fired)
        tell_progress(call);
    timer_start(call->task.loop, &call->tick, &call->task, PROGRESS_MS);
}

/* ---- the task ---- */

static enum task_result over(struct call *call)
{
    timer_stop(&call->tick);
    slots_release(&call->slot);
    return TASK_DONE;
}

static enum task_result start_child(struct call *call)
{
    extern char **environ;
    MEM_LOCAL char *folder = getcwd(NULL, 0);
    struct err err = {0};
    const struct process_spec spec = {.argv = call->call.argv,
                                      .env = (const char *const *)environ,
                                      .folder = folder,
                                      .input = "",
                                      .timeout_ms = call->call.timeout_ms,
                                      .kill_after_ms = 5000,
                                      .output_max = OUTPUT_MOST};
    task_move(&call->task, RUNNING);
    call->process = process_start(call->task.loop, &call->task, &spec, &err);
    if (!call->process) {
        call->call.how = call->call.errors = arena_strdup(call->call.arena, err.message);
        return over(call);
    }
    return TASK_WAIT;
}

static struct call *find_apart(struct mcp_server *server, unsigned number)
{
    list_each (link, &server->calls) {
        struct call *call = container_of(link, struct call, link);
        if (call->call.apart == number && !call->task.finished)
            return call;
    }
    return NULL;
}

/* The other one says nothing when it ends: it is looked for. */
static enum task_result await_other(struct call *call)
{
    struct call *other = call->call.awaits ? find_apart(call->server, call->call.awaits) : NULL;
    char text[MESSAGE_MOST];
    if (!other || call->task.cancel_requested)
        return over(call);
    if (call->call.ends)
        task_cancel(&other->task);
    if (!call->call.ends && clock_now_ms() - call->began_ms >= call->call.timeout_ms) {
        what_it_does(other, text);
        call->call.how = arena_strdup(call->call.arena, text);
        return over(call);
    }
    if (!call->tick.armed)
        timer_start(call->task.loop, &call->tick, &call->task, LOOK_MS);
    return TASK_WAIT;
}

static enum task_result call_step(struct task *task)
{
    struct call *call = container_of(task, struct call, task);
    if (!call->call.argv)
        return await_other(call);
    if (task->state == WAITING && task->cancel_requested)
        return over(call);
    keep_telling(call);
    if (task->state == WAITING) {
        if (!call->slot.slots &&
            !slots_acquire(call->call.alone ? &call->server->alone : &call->server->beside,
                           &call->slot, task, 1))
            return TASK_WAIT;
        return call->slot.granted ? start_child(call) : TASK_WAIT;
    }
    if (process_outcome(call->process) == PROCESS_RUNNING) {
        if (task->cancel_requested)
            process_stop(call->process);
        return TASK_WAIT;
    }
    return over(call);
}

static const struct task_type call_type = {"mcp-call", states, moves, STATES, call_step, NULL};

/* ---- begin and end ---- */

struct call *rpc_call_find(struct mcp_server *server, const char *id)
{
    list_each (link, &server->calls) {
        struct call *call = container_of(link, struct call, link);
        if (strcmp(call->id, id) == 0)
            return call;
    }
    return NULL;
}

static const char *as_json(struct arena *arena, const struct value *value)
{
    JSON_LOCAL(json, text, ID_MOST);
    json_value(&json, value);
    return text.dropped ? NULL : arena_strdup(arena, buf_text(&text));
}

/* From here on it has no id: another call may have it. */
static void answer_apart(struct mcp_server *server, struct call *call)
{
    JSON_LOCAL(json, text, 1 << 16);
    json_object(&json);
    server->site->apart(server->site->context, &call->call, &json);
    rpc_seal(server, &json, call->modern, false);
    rpc_result(server, call->id, buf_text(&text));
    call->id = "";
    call->progress = NULL;
}

void rpc_call_start(struct mcp_server *server, struct request *request, enum mcp_kind kind)
{
    const char *name = value_text(request->params, kind == MCP_RESOURCE ? "uri" : "name", NULL);
    const struct value *arguments = value_get(request->params, "arguments");
    const struct value *token = value_get(request->meta, "progressToken");
    struct err err = {0};
    if (!name || (arguments && arguments->kind != VALUE_MAP)) {
        rpc_error(server, request->id, RPC_PARAMS,
                  name ? "arguments: expected an object" : "expected what to call or to read");
        return;
    }
    if (rpc_call_find(server, request->id)) {
        rpc_error(server, request->id, RPC_INVALID, "a call with this id has not ended");
        return;
    }
    if (server->call_count >= MCP_CALLS_MOST) {
        rpc_error(server, request->id, RPC_INTERNAL, "busy: 64 calls have not ended");
        return;
    }
    struct call *call = MEM_NEW(struct call);
    *call = (struct call){.server = server,
                          .call = {.arena = request->arena, .kind = kind, .timeout_ms = 1},
                          .id = request->id,
                          .modern = request->modern,
                          .began_ms = clock_now_ms()};
    if (token && (token->kind == VALUE_TEXT || token->kind == VALUE_INT))
        call->progress = as_json(request->arena, token);
    if (server->site->begin(server->site->context, name, arguments, &call->call, &err)) {
        rpc_error(server, request->id, RPC_PARAMS, err.message);
        mem_free(call);
        return;
    }
    if (call->call.apart && server->apart_count >= MCP_APART_MOST) { /* room for those that wait */
        rpc_error(server, request->id, RPC_INTERNAL, "busy: 32 detached calls have not ended");
        mem_free(call);
        return;
    }
    server->apart_count += call->call.apart != 0;
    request->arena = NULL;
    list_append(&server->calls, &call->link);
    server->call_count++;
    if (call->call.apart)
        answer_apart(server, call);
    task_start(server->task.loop, &call->task, &call_type, &server->task, call->id);
}

void rpc_calls_cancel(struct mcp_server *server)
{
    list_each (link, &server->calls)
        task_cancel(&container_of(link, struct call, link)->task);
}

static void tell_ending(struct call *call)
{
    BUF_LOCAL(how, 256);
    struct mcp_call *known = &call->call;
    size_t length;
    process_describe(call->process, &how);
    known->how = arena_strdup(known->arena, buf_text(&how));
    known->exited = process_outcome(call->process) == PROCESS_EXITED;
    known->status = process_status(call->process);
    known->output = process_output(call->process, &known->output_length, &known->output_dropped);
    known->errors = process_errors(call->process, &length, NULL);
}

static void answer(struct mcp_server *server, struct call *call)
{
    struct err err = {0};
    JSON_LOCAL(json, text, 2 * OUTPUT_MOST);
    if (call->process)
        tell_ending(call);
    else if (call->call.apart)
        call->call.how = "ended before its turn came", call->call.errors = "";
    json_object(&json);
    bool good = server->site->end(server->site->context, &call->call, &json, &err);
    if (call->call.apart)
        return;
    if (!good) {
        rpc_error(server, call->id, err.code == ERR_NOT_FOUND ? RPC_PARAMS : RPC_INTERNAL,
                  err.message);
        return;
    }
    rpc_seal(server, &json, call->modern, call->call.kind == MCP_RESOURCE);
    rpc_result(server, call->id, buf_text(&text));
}

void rpc_calls_reap(struct mcp_server *server)
{
    list_each_safe (link, &server->calls) {
        struct call *call = container_of(link, struct call, link);
        if (!call->task.finished)
            continue;
        if (!call->task.cancel_requested || call->call.apart)
            answer(server, call);
        list_remove(link);
        server->call_count--;
        server->apart_count -= call->call.apart != 0;
        process_free(call->process);
        arena_free(call->call.arena);
        mem_free(call);
    }
}
