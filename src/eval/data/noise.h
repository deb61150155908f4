/* eval/data/noise: cold caches before a sample, and what disturbed it after. Inside src/eval. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Takes bytes out of every cache; cache_bytes: the largest one, for machines without such an
 * instruction. flush.c */
void flush_bytes(const void *bytes, size_t length, size_t cache_bytes);

/* Time spent ready to run and not running: by all threads of a process, and by the caller's own;
 * what the process's threads ran, and the first of them alone, which is the one that is called. */
struct noise {
    uint64_t subject_ns, own_ns, subject_ran_ns, called_ran_ns;
    size_t threads;
};
void noise_read(int pid, struct noise *noise); /* pid 0: only our own */

/* How long others kept a subject and this thread from running in a stretch of `elapsed_ns` on so
 * many cores. What the subject's own threads took from each other does not count: whoever makes
 * more of them than there are cores would choose by that which of his samples are left out. Nor
 * does what this thread waited while the subject ran: it had nothing to do then. */
uint64_t noise_between(const struct noise *before, const struct noise *after, uint64_t elapsed_ns,
                       size_t cores);

/* The most of that stretch that others can have made it longer: two that wait at the same time lose
 * it once, and while the subject ran nobody kept it from running. */
uint64_t noise_most(const struct noise *before, const struct noise *after, uint64_t elapsed_ns,
                    size_t cores);

/* The share of these cores' time that programs other than ours take now: 0 to 1, of the busiest
 * one. Blocking: keeps all of them busy for 12 ms, in threads that end with it. */
#define NOISE_QUIET 0.05 /* more than that is load */
double noise_load(const int *cores, size_t count);
