/* agents/ideas/attempt: one thing that was tried, as prompts show it and novelty compares it. Plain
 * values; texts borrowed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct prompt_attempt { /* one line of the history */
    const char *id, *title, *category;
    const char *state;         /* "kept", "rejected", "failed", "dropped" */
    const char *reason;        /* of what was not kept */
    double speedup;            /* over the baseline; 0: none */
    double over_parent;        /* time of the parent over its own; 0: not known */
    double time_ns;            /* what they are ordered by; 0: not known */
    bool dropped;              /* far behind, after a few samples */
    const char *same_as;       /* whose source it ended as, so that it was not tested; or "" */
    const char *first_failure; /* of one that was mended: what was first wrong; or "" */
    int64_t repairs;
    bool given; /* a start, or an earlier run's kernel, as it was: no idea of this run's */
};
