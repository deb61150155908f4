/* base/log: what happens, as event records; the log, the progress display and the report are views
 * of the same events. Emit from any thread; sinks run on the emitting thread, in order, and must
 * not block or emit. */
#pragma once

#include "base/err.h"

#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

struct event {
    uint64_t wall_ms;
    enum log_level level;
    const char *kind;    /* "candidate.move", "worker.exit", ...: dotted, stable, static text */
    const char *subject; /* "r3-c17", or "" */
    const char *message; /* for people, one line; borrowed for the call; never holds a secret */
};

typedef void event_sink(void *context, const struct event *event);

void log_add_sink(event_sink *sink, void *context, enum log_level least); /* at most 8 */
void log_remove_sink(event_sink *sink, void *context);

void log_event(enum log_level level, const char *kind, const char *subject, const char *format, ...)
    PRINTF_LIKE(4, 5);

/* A ready-made sink: plain lines "12:03:55 info candidate.move r1-c3 ..." to a FILE *. */
void log_sink_lines(void *file, const struct event *event);
