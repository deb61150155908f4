/* eval/cuda/counters/cupti_samples: structures of CUPTI's sampling of program counters
 * (cupti_api.h; https://docs.nvidia.com/cupti, "PC Sampling API"), as CUPTI 12 and 13 have them. */
#pragma once

#include "eval/cuda/counters/cupti_api.h"

enum { CUPTI_STALL_NAME = 128, CUPTI_SAMPLED_CONTINUOUSLY = 1, CUPTI_SAMPLES_PARSED = 1 };
enum {
    CUPTI_SAMPLING_PERIOD = 1, /* samples every 2^number cycles */
    CUPTI_SAMPLING_SCRATCH = 3,
    CUPTI_SAMPLING_HARDWARE_BUFFER = 4,
    CUPTI_SAMPLING_MODE = 5,
    CUPTI_SAMPLING_START_STOP = 6,
    CUPTI_SAMPLING_FORMAT = 7,
    CUPTI_SAMPLING_DATA = 8,
    CUPTI_SAMPLING_SLEEP_MS = 9 /* of CUPTI's own threads */
};

struct cupti_stall {
    uint32_t reason, samples;
};
struct cupti_pc {
    size_t size;
    uint64_t cubin, offset; /* of the instruction in its function */
    uint32_t function_index, pad;
    char *function;
    size_t stall_count;
    struct cupti_stall *stalls;
    uint32_t correlation;
};
struct cupti_samples {
    size_t size, most;
    uint64_t total, dropped;
    size_t count, remaining;
    uint64_t range;
    struct cupti_pc *pcs;
    uint64_t others;
    uint8_t buffer_full;
};

struct cupti_sampling { /* enable, disable, start, stop */
    CUPTI_HEAD;
    void *context;
};
struct cupti_sampling_data {
    CUPTI_HEAD;
    void *context;
    struct cupti_samples *samples;
};
struct cupti_stall_count {
    CUPTI_HEAD;
    void *context;
    size_t *count;
};
struct cupti_stall_names {
    CUPTI_HEAD;
    void *context;
    size_t count;
    uint32_t *reasons;
    char **names;
};
struct cupti_attribute {
    int type, status;
    union {
        uint32_t number;
        size_t bytes;
        void *pointer;
        uint64_t room[3];
    };
};
struct cupti_sampling_config {
    CUPTI_HEAD;
    void *context;
    size_t count;
    struct cupti_attribute *attributes;
};

struct cupti_source { /* file and folder are malloc()'s, for the caller to free() */
    size_t size;
    const void *cubin;
    const char *function;
    size_t cubin_bytes;
    uint32_t line;
    uint64_t offset;
    char *file, *folder;
};
