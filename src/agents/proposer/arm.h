/* agents/proposer/arm: one start of a proposer: its valid points, and those that were looked at.
 * Inside src/agents/proposer. */
#pragma once

#include "agents/proposer/proposer.h"
#include "agents/proposer/surrogate.h"
#include "base/random.h"

struct look { /* one point that was measured, or is being */
    struct tune_point point;
    bool told, kernel;
    double log_time;
};

struct arm {
    const struct proposer_space *space;
    uint8_t number;
    struct tune_point *points; /* valid ones: all, or a sample */
    size_t point_count;
    struct look *looks;
    size_t look_count, look_capacity;
};

void arm_names(const struct proposer_space *space, const struct tune_point *point,
               struct names *names);
/* False where a number is not in its parameter's list. */
bool arm_point(const struct arm *arm, const struct names *names, struct tune_point *point);
bool arm_valid(const struct proposer_space *space, const struct tune_point *point);
void arm_list(struct arm *arm, struct random *random); /* makes `points` */
struct look *arm_find(const struct arm *arm,
                      const struct tune_point *point); /* NULL: not looked at */
struct look *arm_add(struct arm *arm, const struct tune_point *point);
const struct look *arm_best(const struct arm *arm); /* the fastest kernel; NULL: none yet */
/* Square of the number of values that a point has in common with one that was looked at, summed: a
 * value counts once, each pair of values twice. */
int arm_crowd(const struct arm *arm, const struct tune_point *point);
