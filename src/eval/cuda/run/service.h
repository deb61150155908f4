/* eval/cuda/run/service: kernels of our own that a runner needs between a candidate's launches, as
 * PTX that the driver compiles for its device. Runner process only. */
#pragma once

#include "eval/candidate/layout.h"
#include "eval/cuda/driver/driver.h"

/* Memory is mapped in parts of this size: what was not asked for can be written to all the same. */
enum { SERVICE_MAPPED_BYTES = 2 << 20 };
static inline size_t service_mapped(size_t bytes)
{
    return (bytes + SERVICE_MAPPED_BYTES - 1) / SERVICE_MAPPED_BYTES * SERVICE_MAPPED_BYTES;
}

enum { SERVICE_SECOND_GATE = 16 }; /* of the words of the gates' page: crowd.c */

struct service {
    const struct driver *driver;
    cu_module module;
    cu_function hash, poison, hold, empty;
    cu_pointer sum; /* 8 bytes, in a mapped part of its own */
    int sm_count;
    volatile uint32_t *gate; /* the first; a page of the host's that the device reads too */
    cu_pointer device_gate;  /* 0: it cannot */
};

/* ERR_ENVIRONMENT where the driver cannot compile PTX. */
int service_open(const struct driver *driver, int sm_count, struct service *service,
                 struct err *err) MUST_USE;

struct service_range {
    cu_pointer from;
    uint64_t bytes; /* a multiple of 8 */
};

/* The sum over all 8-byte words of all ranges, each mixed with its place and the key: order of
 * threads does not matter. Who knew the key could change words and keep the sum. Waits for it.
 * Returns the driver's result. */
cu_result service_hash(struct service *service, const struct service_range *ranges, size_t count,
                       uint64_t key, cu_stream stream, uint64_t *hash);

/* Fills with these bits and a hash of the seed and the place: up to 7 bytes more than `bytes`. */
cu_result service_poison(struct service *service, cu_pointer to, const struct call_poison *poison,
                         uint64_t seed, cu_stream stream);

/* Clears what service_hash() uses, and all that is mapped with it; the gate's page, too. Nothing of
 * the stream's runs meanwhile. */
cu_result service_clear(struct service *service, cu_stream stream);

/* The stream stands still until service_release(), for 20 ms at most: what is queued meanwhile then
 * runs without waiting for the host, however late that is. Does nothing where the device cannot
 * read the host's memory. */
cu_result service_hold(struct service *service, cu_stream stream);
void service_release(struct service *service);

/* Launches that do nothing, at least so many: what counts the launches of a context, as %gridid
 * does, has gone on by these. Waits for them. */
cu_result service_idle(struct service *service, uint32_t launches, cu_stream stream);
