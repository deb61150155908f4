/* agents/diagnosis: what holds a kernel back, from its profile: place on the roofline, first
 * limiter, the evidence for it. By rules, no model asked. Pure; any thread. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/value.h"

/* There is a profile, and none of its numbers names one reason: said in place of a guess. */
#define DIAGNOSIS_NONE    "no single limiter seen"
#define DIAGNOSIS_UNKNOWN "unknown" /* too little was measured to say even that */

struct diagnosis { /* texts in the arena or static; "" where not known */
    const char
        *limiter;      /* "memory bandwidth", "latency", "not vectorized", "compute", "parallelism",
                        * "unknown", ...: stable words, lessons are filed under them */
    const char *place; /* "61 % of the memory roof (32.5 of 53.3 GB/s)" */
    const char *evidence; /* some lines, each "- what the profile says: what it means" */
    const char *code;     /* of a CPU's hot loop: a line for each instruction */
    const char
        *categories; /* "memory, parallelism": kinds of ideas that could lift it, best first */
};

/* `metrics`: the evaluation's JSON object; `facts`: the lane's. Never fails: what is missing is not
 * spoken of. */
struct diagnosis diagnosis_of(struct arena *arena, const char *metrics, const char *facts);

/* Where a kernel's time goes, by the profile's member "time", or NULL: "- where the time goes: 62 %
 * in lines 40 to 58 (pack: only moves data), ...": one line. */
void time_say(const struct value *time, struct buf *out);
