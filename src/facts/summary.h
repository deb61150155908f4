/* facts/summary: rows of candidates counted by what they have in common: who wrote them, of which
 * kind their idea was, why they were refused. Pure; any thread. */
#pragma once

#include "eval/data/stats.h"
#include "facts/kernels.h"

struct summary {
    const char *name; /* "loop order", "gpt-5-mini", "rejected: the output is wrong" */
    size_t evaluated, kernels, rejected, failed, dropped;
    size_t better;        /* kernels whose whole interval lies above their parent's */
    size_t wins;          /* champions that were verified as faster */
    struct interval gain; /* speed-up over the parent's, of kernels with one; samples 0: none */
    int64_t micro_dollars;
    double evaluation_ms; /* only where rows have it */
};

enum summary_by { SUMMARY_ALL, SUMMARY_MODEL, SUMMARY_CATEGORY, SUMMARY_LANGUAGE, SUMMARY_REASON };

/* Groups by falling `evaluated`; SUMMARY_REASON counts only what is no kernel. *groups in `arena`.
 */
void summary_make(struct arena *arena, const struct kernel_row *rows, size_t count,
                  enum summary_by by, struct summary **groups, size_t *group_count);

/* What made a problem faster, in order of time: a kernel is a step where the lower end of
 * its speed-up is above that of all before it. The rows are alike. `clear`: it is above the whole
 * interval of the step before. */
struct step {
    const struct kernel_row *row;
    bool clear;
};
void summary_steps(struct arena *arena, const struct kernel_row *const *rows, size_t count,
                   struct step **steps, size_t *step_count);
