/* eval/measure/left: what a call leaves in the process that made it. Worker's measuring thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench;

enum { GROWTH_CALLS = 8 };
struct growth { /* what the last calls of a generation had left, the oldest first */
    unsigned generation;
    size_t calls;
    uint64_t memory_bytes[GROWTH_CALLS + 1];
    unsigned threads[GROWTH_CALLS + 1];
};

/* False, and the verdict, where the last call has left something. */
bool left_nothing(struct bench *bench);
void left_tell(struct bench *bench); /* a note, where threads stay */
