/* tuning/model: log time over a tune space as a Gaussian process (tuning.h says which). Inside
 * src/tuning. */
#pragma once

#include "tuning/tuning.h"

enum {
    MODEL_ROWS = 384, /* measured points; beyond these an even choice */
    MODEL_FOLDS = 10,
    MODEL_FITS = MODEL_FOLDS + 1
};

/* A point as positions in each parameter's list of values. */
typedef uint8_t model_point[TUNING_PARAMETERS];

struct model {
    size_t parameters, count;
    size_t levels[TUNING_PARAMETERS];
    /* How alike two values are: 1 to themselves, less the further apart. */
    double alike[TUNING_PARAMETERS][TUNING_LEVELS][TUNING_LEVELS];
    model_point at[MODEL_ROWS];
    double y[MODEL_ROWS], say[MODEL_ROWS]; /* say: of each point, 0 to 1 */
    uint8_t fold[MODEL_ROWS];
    struct model_fit {
        double hand[TUNING_PARAMETERS]; /* a parameter's in the differences; 0: none */
        double scale;                   /* by which a point's own variance is 1 */
        double noise;                   /* variance of one point's, to that of the differences */
        double mean, effect[MODEL_ROWS];
    } fits[MODEL_FITS]; /* without each fold, then of all: made first, the others begin from it */
};

/* From values[parameter][level], ascending or not. */
void model_values(struct model *model, size_t parameter, const int64_t *values, size_t levels);
/* Makes all fits, each with hands and noise chosen for its points alone. */
void model_fit(struct model *model);
/* What each fit expects at a point. */
void model_predict(const struct model *model, const uint8_t *at, double expected[MODEL_FITS]);
