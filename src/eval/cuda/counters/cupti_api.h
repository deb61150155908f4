/* eval/cuda/counters/cupti_api: the few structures and numbers of CUPTI's range profiler, of its
 * host side and of its activity records that are used here, as the binary interface of CUPTI 12.6
 * to 13 has them (https://docs.nvidia.com/cupti), so that no CUDA header is needed to build. Every
 * structure begins with its own size up to the end of its last member. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { CUPTI_AUTO_RANGE = 1, CUPTI_USER_REPLAY = 3, CUPTI_RANGE_PROFILER = 0 };
enum { CUPTI_SUPPORTED = 3, CUPTI_KIND_MEMSET = 2, CUPTI_KIND_CONCURRENT_KERNEL = 10 };
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

/* What all versions of a kernel's record (CUpti_ActivityKernel5 to 10) and of a memset's
 * (CUpti_ActivityMemset2 to 4) begin with. Both times 0: they could not be collected. */
struct cupti_record {
    uint32_t kind, other[3];
    uint64_t start_ns, end_ns;
};
struct cupti_memset_record {
    struct cupti_record record;
    uint64_t other[4];
    uint64_t graph_node; /* 0: not launched by a graph */
};

/* The size to put into a structure: up to the end of its last member, without what pads it. */
#define CUPTI_SIZE(type, last) (offsetof(struct type, last) + sizeof(((struct type *)0)->last))
