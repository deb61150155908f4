/* eval/cuda/device: what a GPU is, as its driver tells. The first half is for processes that have
 * opened the driver; cuda_probe() is the worker's, and asks a short-lived `twagent runner cuda
 * probe`. */
#ifndef EVAL_CUDA_DEVICE_H
#define EVAL_CUDA_DEVICE_H

#include "eval/backend.h"
#include "eval/cuda/driver.h"

struct device {
    cu_device handle;
    char name[128], pci[32]; /* "NVIDIA H200", "0000:1b:00.0" */
    int major, minor, sm_count, warp_size, l2_bytes, shared_bytes_optin, shared_bytes_per_sm;
    int max_threads_per_sm, registers_per_sm, clock_khz, memory_clock_khz, memory_bus_bits;
    int driver_version; /* 13000 */
    size_t memory_bytes;
};
/* Device `index` in the order of the PCI bus. ERR_ENVIRONMENT where there is none. */
int device_open(const struct driver *driver, int index, struct device *device,
                struct err *err) MUST_USE;

/* eval/backend.h's probe. Ceilings of `roofline` are measured on the device (about a second). */
int cuda_probe(const int *cores, size_t core_count, bool roofline, struct arena *arena,
               struct lane_facts *lane, struct err *err) MUST_USE;

/* Tries whether hardware counters can be read here, and says which (about a second); the error says
 * why not. */
int cuda_probe_counters(int gpu_index, struct arena *arena, const char **words,
                        struct err *err) MUST_USE;

/* How many GPUs the driver shows, as CUDA_VISIBLE_DEVICES has it. ERR_ENVIRONMENT: none. */
int cuda_count(struct arena *arena, int *count, struct err *err) MUST_USE;

/* The asked process: one JSON object on stdout. Arguments: INDEX [roofline|counters|count]. */
int device_probe_main(int argc, char **argv);

/* "sm_90a" for 9.0: the target whose code runs on this device alone and has all it can. */
const char *device_arch(struct arena *arena, const struct lane_facts *lane);

#endif
