/* base/buf: the one string builder; it names its maximum at birth and never grows past it.
 * One owner, any thread. The text is always NUL-terminated. */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
    char *data;    /* NULL until the first byte; use buf_text() to read */
    size_t length; /* bytes, without the terminating NUL */
    size_t capacity;
    size_t max;     /* bytes; more are dropped and counted */
    size_t dropped; /* bytes that did not fit; 0 means whole */
};

/* Of a function's own: freed where its scope ends. */
#define BUF_LOCAL(name, most) struct buf name __attribute__((cleanup(buf_free))) = {.max = (most)}

void buf_init(struct buf *buf, size_t max);
void buf_free(struct buf *buf);  /* leaves it empty and usable */
void buf_reset(struct buf *buf); /* forgets the text, keeps the memory */

void buf_add(struct buf *buf, const void *bytes, size_t length);
void buf_add_text(struct buf *buf, const char *text);
void buf_add_char(struct buf *buf, char c);
void buf_addf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);
void buf_addv(struct buf *buf, const char *format, va_list arguments);

/* Drops the first `length` bytes: what a reader has consumed. */
void buf_consume(struct buf *buf, size_t length);

const char *buf_text(const struct buf *buf); /* "" when empty; borrowed until the next change */
char *buf_take(struct buf *buf); /* moves the text out (mem_free() it); buf is empty after */
char *buf_keep(struct buf *buf, struct arena *arena); /* the same, into the arena */
