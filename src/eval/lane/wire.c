/* eval/lane/wire: requests and records of docs/worker-protocol.md, from the agent's side. */
#include "base/log.h"
#include "eval/lane/private.h"

#include <string.h>

enum { LINE_MOST = 32 << 20 };

static void put_optional(struct json *json, const char *key, const char *text)
{
    if (text != NULL)
        json_put_text(json, key, text);
}

static void put_open(struct json *json, const struct lane *lane, const struct lane_request *request,
                     bool roofline, const char *ceilings)
{
    const struct lane_spec *spec = &lane->spec;
    put_optional(json, "problem", request->problem != NULL ? request->problem : spec->problem);
    if (lane->elsewhere)
        json_put_bool(json, "host", true);
    put_optional(json, "python", spec->python);
    put_optional(json, "baseline", spec->baseline);
    json_put_int(json, "call_timeout_ms", (int64_t)spec->call_timeout_ms);
    json_put_int(json, "time_budget_ms", (int64_t)spec->time_budget_ms);
    json_put_bool(json, "roofline", roofline);
    if (roofline && spec->later)
        json_put_bool(json, "later", true);
    static const char *const demands[] = {
        [DEMAND_NONE] = NULL, [DEMAND_MUST] = "must", [DEMAND_MAY] = "may"};
    put_optional(json, "fit", demands[spec->fitness]);
    put_optional(json, "confined", demands[spec->walls]);
    if (ceilings != NULL) {
        json_put_raw(json, "ceilings", ceilings);
    }
    if (spec->sanitizes)
        json_put_bool(json, "sanitizes", true);
    if (spec->final)
        json_put_bool(json, "final", true);
    if (spec->ahead != NULL) {
        json_put_object(json, "ahead");
        json_put_text(json, "name", spec->ahead_name);
        json_put_text(json, "source", spec->ahead);
        if (spec->ahead_tune != NULL)
            json_put_raw(json, "tune", spec->ahead_tune);
        if (spec->ahead_space)
            json_put_bool(json, "space", true);
        json_object_end(json);
    }
}

static void put_evaluate(struct json *json, const struct lane_request *request)
{
    static const char *const efforts[] = {
        [EFFORT_SEARCH] = "search", [EFFORT_FULL] = "full", [EFFORT_FINAL] = "final"};
    json_put_text(json, "name", request->name);
    json_key(json, "source");
    json_text_n(json, request->source, request->source_length);
    if (request->tune != NULL) {
        json_put_raw(json, "tune", request->tune);
    }
    json_put_text(json, "effort", efforts[request->effort]);
    json_put_bool(json, "profile", request->profile);
    json_put_bool(json, "sanitize", request->sanitize);
    if (request->until != NULL)
        json_put_text(json, "until", request->until);
    if (request->cachegrind)
        json_put_bool(json, "cachegrind", true);
    json_put_real(json, "best_ns", request->best_ns);
    if (request->of_run)
        json_put_bool(json, "of_run", true);
    if (request->late > 0)
        json_put_real(json, "late", request->late);
    if (request->rival_source == NULL)
        return;
    json_put_object(json, "rival");
    json_put_text(json, "name", request->rival_name);
    json_key(json, "source");
    json_text_n(json, request->rival_source, request->rival_length);
    json_put_raw(json, "tune", request->rival_tune != NULL ? request->rival_tune : "{}");
    json_object_end(json);
}

static void begin(struct json *json, struct buf *line, const char *op, const char *id)
{
    buf_init(line, LINE_MOST);
    json_init(json, line);
    json_object(json);
    json_put_text(json, "op", op);
    json_put_text(json, "id", id);
}

static char *end(struct json *json, struct buf *line)
{
    json_object_end(json);
    buf_add_char(line, '\n');
    return buf_take(line);
}

char *lane_encode(const struct lane *lane, const struct lane_request *request, const char *wire_id)
{
    static const char *const ops[] = {
        [LANE_OPEN] = "open", [LANE_EVALUATE] = "evaluate", [LANE_CHECK_PROBLEM] = "check_problem"};
    struct json json;
    struct buf line;
    begin(&json, &line, ops[request->op], wire_id);
    if (request->op == LANE_CHECK_PROBLEM && request->bare)
        json_put_bool(&json, "bare", true);
    if (request->op == LANE_OPEN)
        put_open(&json, lane, request, lane->spec.roofline, lane->spec.ceilings);
    else if (request->op == LANE_EVALUATE)
        put_evaluate(&json, request);
    if (request->within_ms > 0)
        json_put_int(&json, "within_ms", (int64_t)request->within_ms);
    return end(&json, &line);
}

/* The ceilings were measured once; a worker that takes the place of another need not do it again.
 */
char *lane_encode_reopen(const struct lane *lane, const struct lane_request *open)
{
    struct buf line;
    JSON_LOCAL(json, ceilings, 4096);
    json_value(&json, value_get(open->answer, "ceilings"));
    begin(&json, &line, "open", "reopen");
    bool owed = lane->spec.roofline && lane->spec.later; /* unless they are among these */
    put_open(&json, lane, open, owed, buf_text(&ceilings));
    return end(&json, &line);
}

static enum err_code code_of(const char *name)
{
    for (int code = ERR_USAGE; code < ERR_CODES; code++)
        if (strcmp(err_code_name((enum err_code)code), name) == 0)
            return (enum err_code)code;
    return ERR_PROTOCOL;
}

static enum stage stage_of(const char *name)
{
    for (int stage = 0; stage < STAGES; stage++)
        if (strcmp(stage_name((enum stage)stage), name) == 0)
            return (enum stage)stage;
    return STAGE_PARSE;
}

bool lane_decode(struct lane_request *request, struct arena *arena, const struct value *record)
{
    const char *event = value_text(record, "event", "");
    if (strcmp(event, "stage") == 0) {
        const char *waits = value_text(record, "waits", NULL);
        request->stage = stage_of(value_text(record, "stage", ""));
        request->waits = waits != NULL; /* until the next record */
        if (waits != NULL)
            log_event(LOG_WARN, "lane.waits", request->id != NULL ? request->id : "", "%s", waits);
        task_wake(request->owner);
        return false;
    }
    request->arena = arena;
    request->answer = record;
    request->final_ms = value_real(record, "final_ms", 0.0);
    request->final_least_ms = value_real(record, "final_least_ms", request->final_ms);
    if (strcmp(event, "error") == 0)
        err_set(&request->err, code_of(value_text(record, "code", "")), "%s",
                value_text(record, "message", "the worker gave no reason"));
    else if (strcmp(event, "result") != 0)
        err_set(&request->err, ERR_PROTOCOL, "the worker answered with \"%.40s\"", event);
    else if (request->op == LANE_EVALUATE &&
             evaluation_from_value(arena, value_get(record, "evaluation"), &request->evaluation,
                                   &request->err) != 0)
        err_wrap(&request->err, "the worker's answer");
    const char *unconfined = value_text(record, "unconfined", NULL);
    if (request->op == LANE_OPEN && unconfined != NULL)
        log_event(LOG_WARN, "lane.unconfined", request->id,
                  "%s (twagent doctor says what that means)", unconfined);
    return true;
}
