#include "agents/llm/providers/sse.h"

#include <string.h>

void sse_init(struct sse *sse, sse_event *emit, void *context)
{
    *sse = (struct sse){.emit = emit, .context = context};
    buf_init(&sse->line, SSE_EVENT_BYTES_MAX);
    buf_init(&sse->data, SSE_EVENT_BYTES_MAX);
    buf_init(&sse->event, 256);
}

void sse_free(struct sse *sse)
{
    buf_free(&sse->line);
    buf_free(&sse->data);
    buf_free(&sse->event);
}

static int dispatch(struct sse *sse, struct err *err)
{
    int status = 0;
    if (sse->has_data) {
        const char *event = sse->event.length > 0 ? buf_text(&sse->event) : "message";
        status = sse->emit(sse->context, event, buf_text(&sse->data), sse->data.length, err);
    }
    buf_reset(&sse->data);
    buf_reset(&sse->event);
    sse->has_data = false;
    return status;
}

static int end_line(struct sse *sse, struct err *err)
{
    const char *text = buf_text(&sse->line);
    size_t length = sse->line.length;
    if (!sse->begun && length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
        length -= 3;
    }
    sse->begun = true;
    if (length == 0) {
        buf_reset(&sse->line);
        return dispatch(sse, err);
    }
    const char *colon = memchr(text, ':', length);
    size_t name = colon != NULL ? (size_t)(colon - text) : length;
    const char *value = colon != NULL ? colon + 1 : text + length;
    size_t size = length - (size_t)(value - text);
    if (size > 0 && *value == ' ') {
        value++;
        size--;
    }
    if (name == 4 && memcmp(text, "data", 4) == 0) {
        if (sse->has_data)
            buf_add_char(&sse->data, '\n');
        buf_add(&sse->data, value, size);
        sse->has_data = true;
    } else if (name == 5 && memcmp(text, "event", 5) == 0) {
        buf_reset(&sse->event);
        buf_add(&sse->event, value, size);
    }
    buf_reset(&sse->line);
    if (sse->data.dropped > 0)
        return err_set(err, ERR_LIMIT, "an event is longer than %d bytes", SSE_EVENT_BYTES_MAX);
    return 0;
}

int sse_feed(struct sse *sse, const char *bytes, size_t length, struct err *err)
{
    for (size_t at = 0; at < length;) {
        if (sse->after_cr && bytes[at] == '\n') {
            sse->after_cr = false;
            at++;
            continue;
        }
        sse->after_cr = false;
        size_t run = 0;
        while (at + run < length && bytes[at + run] != '\n' && bytes[at + run] != '\r')
            run++;
        buf_add(&sse->line, bytes + at, run);
        if (sse->line.dropped > 0)
            return err_set(err, ERR_LIMIT, "a line is longer than %d bytes", SSE_EVENT_BYTES_MAX);
        at += run;
        if (at == length)
            break;
        sse->after_cr = bytes[at++] == '\r';
        if (end_line(sse, err) != 0)
            return -1;
    }
    return 0;
}
