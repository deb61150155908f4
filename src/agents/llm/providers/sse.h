/* agents/llm/providers/sse: server-sent events from bytes, however they are cut.
 * Lines end with CR, LF or CRLF; several data lines join with LF; comments, ids and retry times
 * are skipped; a byte order mark at the start is too. One owner, any thread. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { SSE_EVENT_BYTES_MAX = 4 << 20 };

/* `event` is "message" where the stream names none. Both are borrowed for the call. Non-zero ends
 * the feeding and is handed on, with *err filled in by whoever returned it. */
typedef int sse_event(void *context, const char *event, const char *data, size_t length,
                      struct err *err);

struct sse {
    struct buf line, data, event;
    bool after_cr, has_data, begun;
    sse_event *emit;
    void *context;
};

void sse_init(struct sse *sse, sse_event *emit, void *context);
void sse_free(struct sse *sse);

/* ERR_LIMIT for an event longer than SSE_EVENT_BYTES_MAX. */
int sse_feed(struct sse *sse, const char *bytes, size_t length, struct err *err) MUST_USE;
