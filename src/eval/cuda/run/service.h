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

struct service {
    const struct driver *driver;
    cu_module module;
    cu_function hash, scrub, poison, hold;
    cu_pointer sum; /* 8 bytes, in a mapped part of its own */
    int sm_count, shared_bytes;
    volatile uint32_t *gate; /* a page of the host's that the device reads too */
    cu_pointer device_gate;  /* 0: it cannot */
};

/* ERR_ENVIRONMENT where the driver cannot compile PTX. */
int service_open(const struct driver *driver, int sm_count, int shared_bytes,
                 struct service *service, struct err *err) MUST_USE;

/* The sum over all 8-byte words, each mixed with its place and the key: order of threads does not
 * matter. Who knew the key could change words and keep the sum. `bytes` is a multiple of 8. Waits
 * for it. Returns the driver's result. */
cu_result service_hash(struct service *service, cu_pointer from, size_t bytes, uint64_t key,
                       cu_stream stream, uint64_t *hash);

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

/* Overwrites all shared memory of the device: what a block left there the next could read. */
cu_result service_scrub(struct service *service, cu_stream stream);
