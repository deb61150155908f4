/* loop/process: what is kept of a child's output, bounded. */
#include "base/mem.h"
#include "loop/process_private.h"

#include <assert.h>
#include <string.h>

enum { FIRST_CAPACITY = 4096 };

/* Room for `wanted` bytes and a NUL, doubling up to `max`. */
static char *grow(char *data, size_t *capacity, size_t wanted, size_t max)
{
    if (wanted + 1 <= *capacity)
        return data;
    size_t next = *capacity == 0 ? FIRST_CAPACITY : *capacity;
    while (next < wanted + 1)
        next *= 2;
    *capacity = next > max + 1 ? max + 1 : next;
    return mem_resize(data, *capacity);
}

/* --- capture --- */

void capture_init(struct capture *capture, size_t max)
{
    *capture = (struct capture){.max = max};
}

void capture_free(struct capture *capture)
{
    mem_free(capture->data);
    *capture = (struct capture){0};
}

void capture_add(struct capture *capture, const char *bytes, size_t length)
{
    if (capture->length < capture->max && length > 0) {
        size_t room = capture->max - capture->length;
        size_t part = length < room ? length : room;
        capture->data =
            grow(capture->data, &capture->capacity, capture->length + part, capture->max);
        memcpy(capture->data + capture->length, bytes, part);
        capture->length += part;
        capture->oldest = capture->max / 2;
        bytes += part;
        length -= part;
    }
    if (length == 0)
        return;
    capture->dropped += length; /* each byte pushes the oldest of the tail out */
    size_t head = capture->max / 2, tail = capture->max - head;
    if (length > tail) {
        bytes += length - tail;
        length = tail;
    }
    while (length > 0) {
        size_t room = capture->max - capture->oldest;
        size_t part = length < room ? length : room;
        memcpy(capture->data + capture->oldest, bytes, part);
        capture->oldest += part;
        if (capture->oldest == capture->max)
            capture->oldest = head;
        bytes += part;
        length -= part;
    }
}

static void reverse(char *first, char *last)
{
    while (first < last) {
        char swapped = *first;
        *first++ = *--last;
        *last = swapped;
    }
}

const char *capture_text(struct capture *capture, size_t *length, uint64_t *dropped)
{
    if (length != NULL)
        *length = capture->length;
    if (dropped != NULL)
        *dropped = capture->dropped;
    if (capture->length == 0)
        return "";
    size_t head = capture->max / 2;
    if (capture->dropped > 0 && capture->oldest != head) { /* turns the ring straight, in place */
        reverse(capture->data + head, capture->data + capture->oldest);
        reverse(capture->data + capture->oldest, capture->data + capture->max);
        reverse(capture->data + head, capture->data + capture->max);
        capture->oldest = head;
    }
    capture->data[capture->length] = '\0';
    return capture->data;
}

/* --- lines --- */

void lines_init(struct lines *lines, size_t max)
{
    *lines = (struct lines){.max = max};
}

void lines_free(struct lines *lines)
{
    mem_free(lines->data);
    *lines = (struct lines){0};
}

bool lines_full(const struct lines *lines)
{
    return lines->length >= lines->max;
}

char *lines_room(struct lines *lines, size_t most, size_t *room)
{
    size_t left = lines->max - lines->length;
    *room = left < most ? left : most;
    if (lines->start > 0 && (lines->length == 0 || lines->start > lines->length ||
                             lines->start + lines->length + *room > lines->max)) {
        memmove(lines->data, lines->data + lines->start, lines->length);
        lines->start = 0;
    }
    size_t end = lines->start + lines->length;
    lines->data = grow(lines->data, &lines->capacity, end + *room, lines->max);
    return lines->data + end;
}

bool lines_added(struct lines *lines, size_t length)
{
    assert(lines->start + lines->length + length < lines->capacity);
    const char *added = lines->data + lines->start + lines->length;
    lines->length += length;
    return memchr(added, '\n', length) != NULL;
}

static char *find_newline(struct lines *lines)
{
    if (lines->scanned >= lines->length)
        return NULL;
    char *first = lines->data + lines->start + lines->scanned;
    char *newline = memchr(first, '\n', lines->length - lines->scanned);
    lines->scanned =
        newline != NULL ? (size_t)(newline - lines->data) - lines->start : lines->length;
    return newline;
}

bool lines_has_line(struct lines *lines)
{
    return find_newline(lines) != NULL;
}

const char *lines_next(struct lines *lines)
{
    char *newline = find_newline(lines);
    if (newline == NULL)
        return NULL;
    char *line = lines->data + lines->start;
    size_t taken = (size_t)(newline - line) + 1;
    *newline = '\0';
    lines->start += taken;
    lines->length -= taken;
    lines->scanned = 0;
    return line;
}

const char *lines_rest(struct lines *lines, size_t *length)
{
    if (length != NULL)
        *length = lines->length;
    if (lines->length == 0)
        return "";
    lines->data[lines->start + lines->length] = '\0';
    return lines->data + lines->start;
}
