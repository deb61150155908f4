/* base/mem: allocation that cannot fail, since running out of memory aborts.
 * Any thread. Tests count down to a failure with mem_fail_after(). */
#pragma once

#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t bytes);                /* zeroed; never NULL; free with mem_free() */
void *mem_array(size_t count, size_t bytes);  /* zeroed; aborts on overflow of count * bytes */
void *mem_resize(void *memory, size_t bytes); /* what it grows by is not zeroed */
/* Room for items[count], too: where `count` has come to *capacity there is twice as much after. */
void *mem_room(void *items, size_t count, size_t *capacity, size_t item_bytes);
#define MEM_MORE(items, count, capacity)                                                           \
    ((items) = mem_room((items), (count), &(capacity), sizeof *(items)))
char *mem_strdup(const char *text);
void mem_free(void *memory); /* NULL is fine */

/* Bytes of the machine's memory that programs can have: what is free, and what the page cache gives
 * back. 0: not known. */
uint64_t mem_available(void);

/* Before a pointer's declaration: freed where its scope ends. */
#define MEM_LOCAL __attribute__((cleanup(mem_free_at)))
static inline void mem_free_at(void *at)
{
    mem_free(*(void **)at);
}

/* Tests only: the n-th allocation from now (1: the next) aborts as running out of memory does.
 * 0 or less disarms. */
void mem_fail_after(long allocations);

#define MEM_NEW(type) ((type *)mem_alloc(sizeof(type)))
