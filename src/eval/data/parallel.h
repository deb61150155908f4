/* eval/data/parallel: one pass over something large on all of the lane's cores, for the worker's
 * own work between timed calls: nothing is left of it when a pass is over, so that no thread of
 * ours can be beside what is timed. Measuring thread. */
#pragma once

#include <stddef.h>

enum { PARALLEL_PARTS = 16 };

/* Which cores passes may use from now on; 0: the calling thread's alone. Copied. */
void parallel_use(const int *cores, size_t count);

/* Cuts [0, count) into at most PARALLEL_PARTS parts of whole grains, and calls run(context, part,
 * from, to) for each, at once. `work`, in elements, says whether that is worth a thread. Returns
 * how many parts there were; they are the same for the same arguments on the same cores. */
size_t parallel_for(size_t count, size_t grain, size_t work,
                    void (*run)(void *context, size_t part, size_t from, size_t to), void *context);

void parallel_copy(void *to, const void *from, size_t bytes);
void parallel_clear(void *bytes, size_t length);

/* For what is large and touched at once: fewer and larger pages where the kernel has them. */
void *parallel_alloc(size_t bytes); /* mem_free() it */
