/* eval/cuda/counters/cupti_range: structures of CUPTI's range profiler (cupti_api.h). */
#pragma once

#include "eval/cuda/counters/cupti_api.h"

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
