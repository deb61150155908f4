/* eval/measure_noise: cold caches before a sample, and what disturbed it after. Inside src/eval. */
#ifndef EVAL_MEASURE_NOISE_H
#define EVAL_MEASURE_NOISE_H

#include <stddef.h>
#include <stdint.h>

/* Takes bytes out of every cache; cache_bytes: the largest one, for machines without such an
 * instruction. measure_flush.c */
void flush_bytes(const void *bytes, size_t length, size_t cache_bytes);

/* Time spent ready to run and not running: by all threads of a process, and by the caller's own. */
struct noise {
    uint64_t subject_ns, own_ns;
};
void noise_read(int pid, struct noise *noise); /* pid 0: only our own */

#endif
