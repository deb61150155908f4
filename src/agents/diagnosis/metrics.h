/* agents/diagnosis/metrics: numbers of a profile by name, whatever backend it is of; derived ones
 * among them. What is not known is NaN. Pure; any thread. */
#ifndef AGENTS_DIAGNOSIS_METRICS_H
#define AGENTS_DIAGNOSIS_METRICS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/value.h"

struct metrics { /* the two documents, or NULL */
    const struct value *profile, *facts;
};

/* Texts that are no JSON object count as absent. */
struct metrics metrics_read(struct arena *arena, const char *profile, const char *facts);

/* "scalar_share", ... (the table in metrics.c); an unknown name asserts. */
double metric_number(const struct metrics *metrics, const char *name);

/* The text with each {name} as people write that number ("61 %", "32.5 GB/s", "6", "3.2 us"); "?"
 * where it is not known. */
void metrics_say(const struct metrics *metrics, const char *text, struct buf *out);

#endif
