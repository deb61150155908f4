#include "eval/data/parallel.h"

#include "base/mem.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { LEAST_WORK = 1 << 18, PAGE = 4096 };
static const size_t huge_page = (size_t)2 << 20;

static cpu_set_t cores;
static size_t core_count;

void parallel_use(const int *list, size_t count)
{
    CPU_ZERO(&cores);
    for (size_t i = 0; i < count; i++)
        CPU_SET((size_t)list[i], &cores);
    core_count = count < PARALLEL_PARTS ? count : PARALLEL_PARTS;
}

struct part {
    pthread_t thread;
    bool started;
    void (*run)(void *context, size_t part, size_t from, size_t to);
    void *context;
    size_t part, from, to;
};

static void *run_part(void *argument)
{
    const struct part *part = (const struct part *)argument;
    part->run(part->context, part->part, part->from, part->to);
    return NULL;
}

/* Where the parts besides the caller's run. A thread begins on the core of who starts it, and where
 * that one is bound to its core, as while subjects are timed, all of them would: they would wait
 * there for each other until the scheduler spreads them, for longer than the work takes. From a
 * core that they may not use they are moved at once. */
static cpu_set_t cores_of_others(void)
{
    cpu_set_t others, own;
    if (sched_getaffinity(0, sizeof own, &own) != 0 || CPU_COUNT(&own) != 1)
        return cores;
    CPU_XOR(&others, &cores, &own);
    CPU_AND(&others, &others, &cores);
    return CPU_COUNT(&others) > 0 ? others : cores;
}

static bool start(struct part *part, const cpu_set_t *where)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    bool started = pthread_attr_setaffinity_np(&attributes, sizeof *where, where) == 0 &&
                   pthread_create(&part->thread, &attributes, run_part, part) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

size_t parallel_for(size_t count, size_t grain, size_t work,
                    void (*run)(void *context, size_t part, size_t from, size_t to), void *context)
{
    struct part parts[PARALLEL_PARTS];
    size_t grains = (count + grain - 1) / grain, used = core_count;
    if (work < LEAST_WORK || used < 1)
        used = 1;
    if (used > grains)
        used = grains > 0 ? grains : 1;
    for (size_t i = 0; i < used; i++) {
        size_t from = grains * i / used * grain, to = grains * (i + 1) / used * grain;
        parts[i] = (struct part){
            .run = run, .context = context, .part = i, .from = from, .to = to < count ? to : count};
    }
    const cpu_set_t where = used > 1 ? cores_of_others() : cores;
    for (size_t i = 1; i < used; i++)
        parts[i].started = start(&parts[i], &where);
    run_part(&parts[0]);
    for (size_t i = 1; i < used; i++)
        if (parts[i].started)
            pthread_join(parts[i].thread, NULL);
        else
            run_part(&parts[i]);
    return used;
}

struct copy {
    unsigned char *to;
    const unsigned char *from; /* NULL: zeros */
};

static void copy_part(void *context, size_t part, size_t from, size_t to)
{
    const struct copy *copy = (const struct copy *)context;
    (void)part;
    if (copy->from != NULL)
        memcpy(copy->to + from, copy->from + from, to - from);
    else
        memset(copy->to + from, 0, to - from);
}

void parallel_copy(void *to, const void *from, size_t bytes)
{
    struct copy copy = {(unsigned char *)to, (const unsigned char *)from};
    parallel_for(bytes, PAGE, bytes / 4, copy_part, &copy);
}

void parallel_clear(void *bytes, size_t length)
{
    struct copy copy = {(unsigned char *)bytes, NULL};
    parallel_for(length, PAGE, length / 4, copy_part, &copy);
}

void *parallel_alloc(size_t bytes)
{
    unsigned char *memory = (unsigned char *)mem_alloc(bytes);
    uintptr_t at = ((uintptr_t)memory + PAGE - 1) / PAGE * PAGE;
    uintptr_t end = ((uintptr_t)memory + bytes) / PAGE * PAGE;
    if (bytes >= 2 * huge_page)
        (void)madvise((void *)at, end - at, MADV_HUGEPAGE); /* only a hint */
    return memory;
}
