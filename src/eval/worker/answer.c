/* eval/worker/answer: records to the agent. Whoever does not read them has stopped being served:
 * the write blocks, and a closed pipe ends the worker. */
#include "base/file.h"
#include "base/json.h"
#include "eval/data/timeline.h"
#include "eval/worker/private.h"

#include <stdlib.h>
#include <unistd.h>

void worker_answer_begin(struct json *json, struct buf *line, const char *id, const char *event)
{
    buf_init(line, ANSWER_MOST);
    json_init(json, line);
    json_object(json);
    json_put_text(json, "id", id);
    json_put_text(json, "event", event);
}

void worker_answer_send(struct json *json, struct buf *line)
{
    json_object_end(json);
    buf_add_char(line, '\n');
    if (line->dropped == 0 && file_write_all(STDOUT_FILENO, buf_text(line), line->length) != 0)
        _exit(EXIT_FAILURE); /* the agent is gone; our children die with us */
    buf_free(line);
}

void answer_error(const char *id, const struct err *err)
{
    struct json json;
    struct buf line;
    worker_answer_begin(&json, &line, id, "error");
    json_put_text(&json, "code", err_code_name(err->code));
    json_put_text(&json, "message", err->message);
    worker_answer_send(&json, &line);
}

void answer_ping(const char *id)
{
    struct json json;
    struct buf line;
    worker_answer_begin(&json, &line, id, "result");
    worker_answer_send(&json, &line);
}

void answer_stage(const char *id, enum stage stage)
{
    struct json json;
    struct buf line;
    worker_answer_begin(&json, &line, id, "stage");
    json_put_text(&json, "stage", stage_name(stage));
    worker_answer_send(&json, &line);
}

void answer_waits(const char *id, enum stage stage, const char *why)
{
    struct json json;
    struct buf line;
    worker_answer_begin(&json, &line, id, "stage");
    json_put_text(&json, "stage", stage_name(stage));
    json_put_text(&json, "waits", why);
    worker_answer_send(&json, &line);
}

void answer_evaluation(const char *id, const struct evaluation *evaluation, double final_ms,
                       double least_ms)
{
    struct json json;
    struct buf line;
    worker_answer_begin(&json, &line, id, "result");
    json_key(&json, "evaluation");
    evaluation_to_json(evaluation, &json);
    if (final_ms > 0.0)
        json_put_real(&json, "final_ms", final_ms);
    if (least_ms > 0.0)
        json_put_real(&json, "final_least_ms", least_ms);
    worker_answer_send(&json, &line);
    timeline_end("answer", timeline_begin());
}
