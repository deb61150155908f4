/* eval/cuda/counters/cupti_host: structures of CUPTI's host side (cupti_api.h): names of counters
 * to a configuration, collected data to numbers. */
#pragma once

#include "eval/cuda/counters/cupti_api.h"

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
