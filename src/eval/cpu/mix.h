/* eval/cpu/mix: what a loop of the artifact is made of, and how the loops share the time. Inside
 * eval/cpu. Pure but for mix_put(). */
#pragma once

#include "base/json.h"
#include "eval/cpu/samples.h"

enum { MIX_NAME = 80, PHASES_MAX = 64 };

struct mix {                                 /* counts over one loop */
    char function[MIX_NAME], from[MIX_NAME]; /* from: whose body it is, where that was inlined */
    size_t first, last;                      /* instructions */
    long first_line, last_line;              /* of the candidate's source; 0: not known */
    size_t samples;
    unsigned vector_bytes;
    size_t fma, arithmetic, scalar, loads, stores, shuffles, gathers, spills;
};

struct phases {
    struct mix items[PHASES_MAX];
    size_t count;
};

/* A loop with samples; one of the same lines (what was unrolled, and its remainder) adds to that.
 */
void phases_add(struct phases *phases, const struct mix *mix);

/* "time": {"samples", "phases": [{"in", "first_line", "last_line", "share", ...}], "elsewhere":
 * [{"name", "share"}]}, the largest first; absent where nothing was sampled. */
void phases_put(struct phases *phases, const struct samples *samples, struct json *json);

/* Members of an open object: "instructions" ... "shuffles". */
void mix_put_counts(const struct mix *mix, struct json *json);
