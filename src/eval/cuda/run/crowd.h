/* eval/cuda/run/crowd: company for a candidate's launch. Blocks of ours, one on each SM, keep its
 * copy engine, the L2 and the memory busy, so that a copy which nobody waits for comes late; some
 * take all of their SM's shared memory, so that the candidate's blocks lie otherwise; and
 * whatever shared memory a block of the candidate's leaves is overwritten at once. Honest kernels
 * take longer and give the same. Runner process only. */
#pragma once

#include "eval/cuda/run/scrub.h"
#include "eval/cuda/run/service.h"

struct crowd {
    const struct driver *driver;
    const struct scrub *scrub;
    cu_module module;
    cu_function function;
    cu_stream stream, seats, behind;
    cu_pointer memory, device_gate;
    uint64_t mask; /* of offsets in `memory` */
    volatile uint32_t *gate;
    int sm_count;
    bool there;
};

/* `memory` is what it reads and writes; it runs while the second gate of the service is closed.
 * Where the device cannot see gates it is not there, and nothing below does anything. */
void crowd_open(const struct driver *driver, const struct scrub *scrub, int capability,
                cu_pointer memory, size_t bytes, const struct service *service,
                struct crowd *crowd);
/* Before a launch; it ends by itself after 20 ms. */
cu_result crowd_gather(struct crowd *crowd, uint64_t seed);
cu_result crowd_litter(struct crowd *crowd, uint64_t seed); /* right behind it */
cu_result crowd_leave(struct crowd *crowd);                 /* once it has ended; waits */
