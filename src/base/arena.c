#include "base/arena.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Under the address sanitizer each piece is followed by a poisoned gap, so that running over its
 * end is seen although the chunk goes on. */
#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define GAP 16
#else
#define GAP                                   0
#define ASAN_POISON_MEMORY_REGION(at, size)   ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

enum { CHUNK_LEAST = 4096, CHUNK_MOST = 256 * 1024, ALIGNMENT = 16 };

struct chunk {
    struct chunk *next;
    size_t bytes; /* of data */
    size_t used;
    _Alignas(ALIGNMENT) char data[];
};

struct arena {
    struct chunk *chunks; /* the first is the one being filled */
    size_t next_bytes;
};

static void add_chunk(struct arena *arena, size_t bytes)
{
    struct chunk *chunk = (struct chunk *)mem_alloc(sizeof *chunk + bytes);
    chunk->bytes = bytes;
    ASAN_POISON_MEMORY_REGION(chunk->data, bytes);
    /* A large piece gets a chunk that it fills; going on in the old one wastes less. */
    if (arena->chunks != NULL && bytes > arena->next_bytes) {
        chunk->next = arena->chunks->next;
        arena->chunks->next = chunk;
        return;
    }
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    if (arena->next_bytes < CHUNK_MOST)
        arena->next_bytes *= 2;
}

struct arena *arena_new(void)
{
    struct arena *arena = MEM_NEW(struct arena);
    arena->next_bytes = CHUNK_LEAST;
    return arena;
}

struct arena *arena_new_sized(size_t bytes)
{
    struct arena *arena = arena_new();
    if (bytes < CHUNK_MOST)
        arena->next_bytes = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    return arena;
}

void arena_free(struct arena *arena)
{
    if (arena == NULL)
        return;
    while (arena->chunks != NULL) {
        struct chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        ASAN_UNPOISON_MEMORY_REGION(chunk->data, chunk->bytes);
        mem_free(chunk);
    }
    mem_free(arena);
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        abort(); /* as mem_array() does for what no machine has */
    size_t rounded = (bytes + GAP + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (rounded == 0)
        rounded = ALIGNMENT; /* pieces of no bytes have addresses of their own, too */
    struct chunk *chunk = arena->chunks;
    if (chunk == NULL || chunk->bytes - chunk->used < rounded) {
        bool large = rounded > arena->next_bytes;
        add_chunk(arena, large ? rounded : arena->next_bytes);
        chunk = arena->chunks;
        if (large && chunk->next != NULL)
            chunk = chunk->next;
    }
    char *piece = chunk->data + chunk->used;
    chunk->used += rounded;
    ASAN_UNPOISON_MEMORY_REGION(piece, bytes);
    return piece;
}

void *arena_array(struct arena *arena, size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total))
        abort();
    return arena_alloc(arena, total);
}

void *arena_room(struct arena *arena, void *items, size_t count, size_t *capacity,
                 size_t item_bytes)
{
    enum { FIRST = 64 };
    if (count < *capacity)
        return items;
    *capacity = *capacity > 0 ? 2 * *capacity : FIRST;
    void *grown = arena_array(arena, *capacity, item_bytes);
    if (count > 0)
        memcpy(grown, items, count * item_bytes);
    return grown;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return arena_strndup(arena, text, strlen(text));
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
    char *copy = (char *)arena_alloc(arena, length + 1);
    if (length > 0)
        memcpy(copy, text, length);
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0)
        abort(); /* a format that printf refuses is a programmer's error */
    char *text = (char *)arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}
