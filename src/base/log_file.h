/* base/log_file: a log sink that keeps plain event lines in a file, rotated, in small buffered
 * writes. A disk that is full costs lines, which are counted, and nothing else. Any thread, but for
 * new and free: add the sink after the one and remove it before the other. */
#pragma once

#include "base/err.h"
#include "base/log.h"

#include <stddef.h>

struct log_file; /* opaque */

/* At most `bytes` a file, and PATH.1 to PATH.`keep`, the youngest first, of what was before. Lines
 * wait in memory (some hundred, later ones are lost) until log_file_open() says where they go. */
struct log_file *log_file_new(size_t bytes, int keep);

/* Appends to `path`; its folder is made where it is missing. */
int log_file_open(struct log_file *log, const char *path, struct err *err) MUST_USE;

void log_file_sink(void *log,
                   const struct event *event); /* log_add_sink(log_file_sink, log, ...) */
void log_file_flush(struct log_file *log);     /* what waits; else it goes with a later line */
void log_file_free(struct log_file *log);      /* flushes; NULL is fine */
