/* eval/measure/left: what a call leaves in the process that made it. A user's process goes on with
 * the rounding mode, the signal mask and the files that a kernel has left there, and calls it for a
 * year: what grows by a little in each call takes all there is. Threads that stay are a pool. */
#include "eval/measure/measure.h"

#include <string.h>

enum { GROWN_LEAST = GROWTH_CALLS - 1, MEMORY_EACH = 64 << 10, MEMORY_ALL = 1 << 20 };

/* Of the calls in a row, those that left more than was there before. */
static size_t grown_calls(const struct growth *growth, bool memory)
{
    size_t grown = 0;
    for (size_t i = 1; i <= GROWTH_CALLS; i++)
        grown += memory ? growth->memory_bytes[i] >= growth->memory_bytes[i - 1] + MEMORY_EACH
                        : growth->threads[i] > growth->threads[i - 1];
    return grown;
}

static void add(struct growth *growth, unsigned generation, const struct remains *remains)
{
    if (growth->generation != generation)
        *growth = (struct growth){.generation = generation};
    memmove(growth->memory_bytes, growth->memory_bytes + 1, GROWTH_CALLS * sizeof(uint64_t));
    memmove(growth->threads, growth->threads + 1, GROWTH_CALLS * sizeof(unsigned));
    growth->memory_bytes[GROWTH_CALLS] = remains->memory_bytes;
    growth->threads[GROWTH_CALLS] = remains->threads;
    growth->calls++;
}

static const char *growing(struct bench *bench)
{
    const struct growth *growth = &bench->growth;
    uint64_t bytes = growth->memory_bytes[GROWTH_CALLS] - growth->memory_bytes[0];
    if (growth->calls <= GROWTH_CALLS)
        return NULL;
    if (grown_calls(growth, false) >= GROWN_LEAST)
        return "its threads become more with each call";
    if (grown_calls(growth, true) >= GROWN_LEAST && bytes >= MEMORY_ALL)
        return arena_printf(bench->arena, "its memory grows by %.2g MB a call",
                            (double)bytes / GROWTH_CALLS / 1e6);
    return NULL;
}

bool left_nothing(struct bench *bench)
{
    struct subject *subject = bench->subject;
    if (subject == NULL || subject->remains == NULL)
        return true;
    const struct remains remains = subject->remains(subject);
    const char *what = remains.changed;
    if (what != NULL)
        what = arena_printf(bench->arena, "changed %s and left it so", what);
    add(&bench->growth, bench->generation, &remains);
    if (what == NULL)
        what = growing(bench);
    if (what != NULL)
        bench_reject(bench, VERDICT_REJECTED, what,
                     "What a call leaves in its process is part of its result.\n");
    return what == NULL;
}

void left_tell(struct bench *bench)
{
    unsigned threads = bench->growth.threads[GROWTH_CALLS];
    if (threads > 0)
        bench_note(bench, "%u thread%s of its own stay after a call", threads,
                   threads > 1 ? "s" : "");
}
