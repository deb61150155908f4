/* tuning/model: log time over a tune space as a constant, effects of values and of pairs of values
 * (tuning.h says by whom). Inside src/tuning. */
#pragma once

#include "tuning/tuning.h"

enum {
    MODEL_ROWS = 2048, /* beyond these an even choice */
    MODEL_GROUPS = TUNING_PARAMETERS * (TUNING_PARAMETERS + 1) / 2
};

/* Points as positions in each parameter's list of values. */
struct model_rows {
    size_t count;
    uint8_t at[MODEL_ROWS][TUNING_PARAMETERS];
};

struct model_group { /* a parameter (a == b), or a pair */
    size_t a, b, cells;
    double *effect; /* of each cell: value of a x levels + value of b */
};

struct model {
    size_t parameters, group_count;
    size_t levels[TUNING_PARAMETERS];
    double mean;
    double alone, together; /* variances of effects over that of the noise */
    struct model_group groups[MODEL_GROUPS];
};

struct model *model_new(size_t parameters, const size_t *levels);
void model_free(struct model *model);
/* Fits y at rows, of which each counts weight[i] times (0: left out). */
void model_fit(struct model *model, const struct model_rows *rows, const double *y,
               const double *weight);
double model_predict(const struct model *model, const uint8_t *at);
/* The effects in which a parameter has a hand, at a point. */
double model_part(const struct model *model, const uint8_t *at, size_t parameter);
double model_effect(const struct model_group *group, const struct model *model, const uint8_t *at);
