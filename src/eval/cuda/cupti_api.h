/* eval/cuda/cupti_api: the few structures and numbers of CUPTI's range profiler, of its host side
 * and of its activity records that are used here, as the binary interface of CUPTI 12.6 to 13 has
 * them (https://docs.nvidia.com/cupti), so that no CUDA header is needed to build. Every structure
 * begins with its own size up to the end of its last member. */
#ifndef EVAL_CUDA_CUPTI_API_H
#define EVAL_CUDA_CUPTI_API_H

#include <stddef.h>
#include <stdint.h>

enum { CUPTI_AUTO_RANGE = 1, CUPTI_USER_REPLAY = 3, CUPTI_RANGE_PROFILER = 0 };
enum { CUPTI_SUPPORTED = 3, CUPTI_KIND_CONCURRENT_KERNEL = 10 };
enum { CUPTI_NOT_PERMITTED = 35, CUPTI_NOT_PERMITTED_VIRTUAL = 40 };

#define CUPTI_HEAD                                                                                 \
    size_t size;                                                                                   \
    void *private_data

struct cupti_head {
    CUPTI_HEAD;
};
struct cupti_chip {
    CUPTI_HEAD;
    size_t device;
    const char *name; /* "GH100" */
};
struct cupti_supported {
    CUPTI_HEAD;
    int device, all, architecture, sli, virtual_gpu, confidential, mining, wsl;
    int api; /* 0: ranges */
};
struct cupti_availability {
    CUPTI_HEAD;
    void *context;
    size_t bytes;
    uint8_t *image;
};

/* ---- the host side: names to a configuration, data to numbers ---- */

struct cupti_host_open {
    CUPTI_HEAD;
    int type;
    const char *chip;
    const uint8_t *availability;
    void *host;
};
struct cupti_host {
    CUPTI_HEAD;
    void *host;
};
struct cupti_host_add {
    CUPTI_HEAD;
    void *host;
    const char **names;
    size_t count;
};
struct cupti_host_size {
    CUPTI_HEAD;
    void *host;
    size_t bytes;
};
struct cupti_host_config {
    CUPTI_HEAD;
    void *host;
    size_t bytes;
    uint8_t *config;
};
struct cupti_host_passes {
    CUPTI_HEAD;
    size_t bytes;
    uint8_t *config;
    size_t passes;
};
struct cupti_host_values {
    CUPTI_HEAD;
    void *host;
    const uint8_t *data;
    size_t bytes, range;
    const char **names;
    size_t count;
    double *values;
};

/* ---- the device side ---- */

struct cupti_range_enable {
    CUPTI_HEAD;
    void *context, *profiler;
};
struct cupti_range { /* disable, start */
    CUPTI_HEAD;
    void *profiler;
};
struct cupti_range_config {
    CUPTI_HEAD;
    void *profiler;
    size_t config_bytes;
    const uint8_t *config;
    size_t data_bytes;
    uint8_t *data;
    int range, replay;
    size_t ranges_most;
    uint16_t levels, level_least;
    size_t pass;
    uint16_t level_target;
};
struct cupti_range_stop {
    CUPTI_HEAD;
    void *profiler;
    size_t pass, level_target;
    uint8_t all_submitted;
};
struct cupti_range_decode {
    CUPTI_HEAD;
    void *profiler;
    size_t dropped;
};
struct cupti_data_size {
    CUPTI_HEAD;
    void *profiler;
    const char **names;
    size_t count, ranges_most;
    uint32_t nodes_most;
    size_t bytes;
};
struct cupti_data_init {
    CUPTI_HEAD;
    void *profiler;
    size_t bytes;
    uint8_t *data;
};
struct cupti_data_info {
    CUPTI_HEAD;
    const uint8_t *data;
    size_t bytes, ranges;
};

/* What all versions of a kernel's record begin with. */
struct cupti_kernel_record {
    uint32_t kind;
    uint8_t cache, shared_config;
    uint16_t registers;
    uint32_t partitioned_requested, partitioned_executed;
    uint64_t start_ns, end_ns;
};

/* The size to put into a structure: up to the end of its last member, without what pads it. */
#define CUPTI_SIZE(type, last) (offsetof(struct type, last) + sizeof(((struct type *)0)->last))

#endif
