/* base/arena: memory that lives and dies together; one arena a document or a candidate.
 * One owner, any thread. Nothing is freed singly. */
#pragma once

#include "base/err.h"

#include <stddef.h>

struct arena; /* opaque */

struct arena *arena_new(void);
/* For many small ones: the first `bytes` are taken at once, where it is thousands else. */
struct arena *arena_new_sized(size_t bytes);
void arena_free(struct arena *arena); /* NULL is fine */

void *arena_alloc(struct arena *arena, size_t bytes); /* zeroed, aligned to 16 */
void *arena_array(struct arena *arena, size_t count, size_t bytes);
/* As mem_room(); what it was stays where it is. */
void *arena_room(struct arena *arena, void *items, size_t count, size_t *capacity,
                 size_t item_bytes);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);

/* Of a function's own: freed where its scope ends. */
#define ARENA_LOCAL(name) struct arena *name __attribute__((cleanup(arena_free_at))) = arena_new()
static inline void arena_free_at(struct arena **at)
{
    arena_free(*at);
}

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
