/* eval/cuda/run/scrub: what a kernel finds that it never wrote: shared memory, registers and local
 * memory hold what blocks before it left there. Each call fills them with something else, so that
 * who depends on it is wrong now and then. Runner process only. */
#pragma once

#include "eval/cuda/driver/driver.h"

struct scrub {
    const struct driver *driver;
    cu_module module, local; /* local: NULL until a kernel needed it */
    cu_function scrub, deep, litter;
    cu_pointer sink; /* 4 bytes that may be written */
    int sm_count, shared_bytes, threads_per_sm;
};

int scrub_open(const struct driver *driver, int sm_count, int shared_bytes, int threads_per_sm,
               cu_pointer sink, struct scrub *scrub, struct err *err) MUST_USE;

/* Shared memory and most registers of every SM: the seed says whether with NaN, with any bits or
 * with zeros. */
cu_result scrub_blocks(const struct scrub *scrub, uint64_t seed, cu_stream stream);
/* The start of each thread's local memory, of as many as the device has at once. */
cu_result scrub_local(struct scrub *scrub, uint64_t seed, cu_stream stream);
/* Many blocks that overwrite their shared memory as soon as they find an SM that has room: on
 * another stream than a kernel's that ends meanwhile. */
cu_result scrub_behind(const struct scrub *scrub, uint64_t seed, cu_stream stream);
