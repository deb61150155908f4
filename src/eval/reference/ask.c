/* eval/reference/ask: a line to the Python child, and a line from it. */
#include "eval/data/timeline.h"
#include "eval/reference/python_private.h"

#include <string.h>

int python_tell(struct python *python, struct err *err)
{
    const char *line;
    buf_add_char(&python->request, '\n');
    if (child_send(&python->child, buf_text(&python->request), python->request.length, err) == 0)
        return 0;
    if (child_line(&python->child, 1000, &line, err) != 0) /* says better how it ended */
        return -1;
    child_stop(&python->child);
    return err_set(err, ERR_CHILD, "the reference does not take requests any more");
}

int python_hear(struct python *python, uint64_t timeout_ms, struct arena *arena,
                const struct value **answer, struct err *err)
{
    const char *line;
    struct value *root;
    if (child_line(&python->child, timeout_ms, &line, err) != 0)
        return -1;
    if (value_parse_json(arena, "reference", line, strlen(line), &root, err) != 0) {
        child_stop(&python->child);
        return err_set(err, ERR_PROTOCOL, "the reference answered with something else than JSON");
    }
    const char *message = value_text(root, "error", NULL);
    if (message != NULL)
        return err_set(err, ERR_USAGE, "reference: %s", message);
    *answer = root;
    return 0;
}

int python_ask(struct python *python, uint64_t timeout_ms, struct arena *arena,
               const struct value **answer, struct err *err)
{
    uint64_t begun = timeline_begin();
    int status = python_tell(python, err);
    if (status == 0)
        status = python_hear(python, timeout_ms, arena, answer, err);
    timeline_end("python.ask", begun);
    return status;
}

void python_begin(struct python *python, struct json *json, const char *op)
{
    buf_reset(&python->request);
    json_init(json, &python->request);
    json_object(json);
    json_put_text(json, "op", op);
}

const char *python_double_steps(struct reference *reference, bool rounded, struct arena *arena)
{
    struct python *python = python_of(reference);
    struct err ignored;
    struct json json;
    const struct value *answer = NULL;
    if (python_ensure(python, &ignored) != 0)
        return "";
    python_begin(python, &json, "steps");
    json_put_bool(&json, "rounded", rounded);
    json_object_end(&json);
    if (python_ask(python, REFERENCE_TIMEOUT_MS, arena, &answer, &ignored) != 0)
        return "";
    return value_text(answer, "steps", "");
}
