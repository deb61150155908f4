#include "base/mem.h"

#include "base/quota.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 0: no fault is armed. */
static atomic_long allocations_left;

static _Noreturn void out_of_memory(size_t bytes)
{
    fprintf(stderr, "twagent: out of memory (%zu bytes wanted)\n", bytes);
    abort();
}

static void count_down(size_t bytes)
{
    if (atomic_load_explicit(&allocations_left, memory_order_relaxed) > 0 &&
        atomic_fetch_sub_explicit(&allocations_left, 1, memory_order_relaxed) == 1)
        out_of_memory(bytes);
}

void mem_fail_after(long allocations)
{
    atomic_store(&allocations_left, allocations > 0 ? allocations : 0);
}

void *mem_alloc(size_t bytes)
{
    count_down(bytes);
    void *memory = calloc(1, bytes > 0 ? bytes : 1);
    if (memory == NULL)
        out_of_memory(bytes);
    return memory;
}

void *mem_array(size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total))
        out_of_memory(SIZE_MAX);
    return mem_alloc(total);
}

void *mem_resize(void *memory, size_t bytes)
{
    count_down(bytes);
    void *resized = realloc(memory, bytes > 0 ? bytes : 1);
    if (resized == NULL)
        out_of_memory(bytes);
    return resized;
}

void *mem_room(void *items, size_t count, size_t *capacity, size_t item_bytes)
{
    enum { FIRST = 64 };
    if (count < *capacity)
        return items;
    *capacity = *capacity > 0 ? 2 * *capacity : FIRST;
    return mem_resize(items, *capacity * item_bytes);
}

char *mem_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = (char *)mem_alloc(bytes);
    memcpy(copy, text, bytes);
    return copy;
}

void mem_free(void *memory)
{
    free(memory);
}

/* Where a machine has run for a while, nearly all that is not in use is page cache. */
uint64_t mem_available(void)
{
    static const char name[] = "MemAvailable:";
    char line[128];
    uint64_t kib = 0;
    FILE *info = fopen("/proc/meminfo", "re");
    while (info != NULL && kib == 0 && fgets(line, sizeof line, info) != NULL)
        if (strncmp(line, name, sizeof name - 1) == 0)
            kib = strtoull(line + sizeof name - 1, NULL, 10);
    if (info != NULL)
        (void)fclose(info);
    long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (kib == 0 && pages > 0 && page > 0)
        kib = (uint64_t)pages * (uint64_t)page / 1024;
    struct quota quota;
    quota_read(&quota);
    uint64_t left =
        quota.memory_bytes > quota.memory_used ? quota.memory_bytes - quota.memory_used : 0;
    return quota.memory_bytes > 0 && left < kib * 1024 ? left : kib * 1024;
}
