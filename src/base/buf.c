#include "base/buf.h"

#include "base/mem.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_init(struct buf *buf, size_t max)
{
    assert(max < SIZE_MAX / 2);
    *buf = (struct buf){.max = max};
}

void buf_free(struct buf *buf)
{
    mem_free(buf->data);
    buf_init(buf, buf->max);
}

void buf_reset(struct buf *buf)
{
    buf->length = 0;
    buf->dropped = 0;
    if (buf->data != NULL)
        buf->data[0] = '\0';
}

/* Makes room for `wanted` more bytes and the NUL, or for as many as `max` lets in; returns how
 * many those are. */
static size_t make_room(struct buf *buf, size_t wanted)
{
    size_t room = buf->max - buf->length;
    if (wanted > room)
        wanted = room;
    size_t needed = buf->length + wanted + 1;
    if (needed > buf->capacity) {
        size_t capacity = buf->capacity < 32 ? 64 : buf->capacity * 2;
        if (capacity > buf->max + 1)
            capacity = buf->max + 1;
        if (capacity < needed)
            capacity = needed;
        buf->data = (char *)mem_resize(buf->data, capacity);
        buf->capacity = capacity;
    }
    return wanted;
}

void buf_add(struct buf *buf, const void *bytes, size_t length)
{
    if (length == 0)
        return;
    size_t fits = make_room(buf, length);
    memcpy(buf->data + buf->length, bytes, fits);
    buf->length += fits;
    buf->data[buf->length] = '\0';
    buf->dropped += length - fits;
}

void buf_add_text(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void buf_add_char(struct buf *buf, char c)
{
    buf_add(buf, &c, 1);
}

void buf_addf(struct buf *buf, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    buf_addv(buf, format, arguments);
    va_end(arguments);
}

void buf_addv(struct buf *buf, const char *format, va_list arguments)
{
    char small[512];
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(small, sizeof small, format, arguments);
    if (length >= 0 && (size_t)length < sizeof small) {
        buf_add(buf, small, (size_t)length);
    } else if (length >= 0) {
        size_t bytes = (size_t)length + 1;
        char *large = (char *)mem_alloc(bytes);
        vsnprintf(large, bytes, format, again);
        buf_add(buf, large, (size_t)length);
        mem_free(large);
    } else {
        abort(); /* a format that printf refuses is a programmer's error */
    }
    va_end(again);
}

void buf_consume(struct buf *buf, size_t length)
{
    assert(length <= buf->length);
    if (length == 0)
        return;
    memmove(buf->data, buf->data + length, buf->length - length + 1);
    buf->length -= length;
}

const char *buf_text(const struct buf *buf)
{
    return buf->data != NULL ? buf->data : "";
}

char *buf_take(struct buf *buf)
{
    char *text = buf->data != NULL ? buf->data : mem_strdup("");
    buf_init(buf, buf->max);
    return text;
}

char *buf_keep(struct buf *buf, struct arena *arena)
{
    char *text = arena_strndup(arena, buf_text(buf), buf->length);
    buf_free(buf);
    return text;
}
