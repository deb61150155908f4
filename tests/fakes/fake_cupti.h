/* What the two halves of the CUPTI that counts nothing share: fake_cupti.c has counters and
 * records, fake_cupti_samples.c instructions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INVALID = 1, NOT_ENABLED = 2 };

struct head {
    size_t size;
    void *private_data;
};

extern bool fake_counting, fake_sampling; /* never both */
extern bool fake_has_sampled;

#define EXPORT __attribute__((visibility("default"))) int
