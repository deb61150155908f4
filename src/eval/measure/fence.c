#include "eval/measure/fence.h"

#include "base/random.h"

#include <string.h>

void fence_gaps(const struct placed *placed, size_t count, size_t *cursor,
                void (*visit)(void *context, size_t from, size_t to), void *context)
{
    for (size_t i = 0; i < count; i++) {
        visit(context, *cursor, placed[i].offset);
        *cursor = placed[i].offset + placed[i].bytes;
    }
}

void fence_fill(void *context, size_t from, size_t to)
{
    struct fence *fence = (struct fence *)context;
    while (from < to) {
        size_t at = from % GUARD_BYTES;
        size_t length = to - from < GUARD_BYTES - at ? to - from : GUARD_BYTES - at;
        memcpy(fence->base + from, fence->pattern + at, length);
        from += length;
    }
}

void fence_check(void *context, size_t from, size_t to)
{
    struct fence *fence = (struct fence *)context;
    while (from < to && fence->intact) {
        size_t at = from % GUARD_BYTES;
        size_t length = to - from < GUARD_BYTES - at ? to - from : GUARD_BYTES - at;
        if (memcmp(fence->base + from, fence->pattern + at, length) != 0) {
            fence->intact = false;
            while (fence->base[from] == fence->pattern[from % GUARD_BYTES])
                from++;
            fence->broken = from;
        }
        from += length;
    }
}

/* Of a generator of its own: the subject sees one, and could compute what comes next. */
void fence_pattern(unsigned char pattern[GUARD_BYTES])
{
    struct random own;
    random_init(&own, random_seed());
    for (size_t i = 0; i < GUARD_BYTES; i += sizeof(uint64_t)) {
        uint64_t bits = random_next(&own);
        memcpy(pattern + i, &bits, sizeof bits);
    }
}
