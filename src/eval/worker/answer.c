/* eval/worker/answer: records to the agent. Whoever does not read them has stopped being served:
 * the write blocks, and a closed pipe ends the worker. */
#include "base/json.h"
#include "eval/data/timeline.h"
#include "eval/worker/private.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void write_all(const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            _exit(EXIT_FAILURE); /* the agent is gone; our children die with us */
        bytes += written;
        length -= (size_t)written;
    }
}

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
    if (line->dropped == 0)
        write_all(buf_text(line), line->length);
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

void answer_evaluation(const char *id, const struct evaluation *evaluation, double final_ms)
{
    struct json json;
    struct buf line;
    worker_answer_begin(&json, &line, id, "result");
    json_key(&json, "evaluation");
    evaluation_to_json(evaluation, &json);
    if (final_ms > 0.0)
        json_put_real(&json, "final_ms", final_ms);
    worker_answer_send(&json, &line);
    timeline_end("answer", timeline_begin());
}
