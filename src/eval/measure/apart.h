/* eval/measure/apart: what is known of threads besides the caller's. Worker's measuring thread. */
#pragma once

#include "eval/backend/subject.h"

enum { OUTPUT_SAMPLES = 256 };

struct bench;

/* Who writes what of the main shape's outputs, as far as was seen in its last held call. */
struct apart {
    struct watch watch;
    bool looks;                             /* the next held call is of that shape */
    unsigned most;                          /* the largest number below */
    unsigned by[OUTPUT_SAMPLES];            /* 1: the caller, then other threads; 0: not seen */
    struct watched written[OUTPUT_SAMPLES]; /* from the first output's start on */
};

/* Before a call: what its subject is to know of them. */
void apart_tell(struct bench *bench, const struct layout *layout);
