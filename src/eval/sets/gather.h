/* eval/sets/gather: tensors of one shape made from those of another by picking indices of some
 * dims: element (i, j) of the one is element (map[i], j) of the other. Any thread; pure. */
#pragma once

#include "eval/candidate/layout.h"

/* For each of a problem's dims: which index of the tensor that is read stands at each index of the
 * one that is written; NULL: the dim is the same in both. */
struct maps {
    uint32_t *of[DIMS_MAX];
    int64_t from[DIMS_MAX]; /* how many indices there are to pick from */
};
void maps_free(struct maps *maps);
/* Which dim an axis is, by itself; -1: it is another expression. */
int axis_dim(const struct problem *problem, const struct tensor_spec *tensor, size_t axis);
bool tensor_has_dim(const struct problem *problem, const struct tensor_spec *tensor, int dim);

/* `to`: extents of what is written. Elements of `bytes` each. */
void maps_gather(const struct problem *problem, const struct tensor_spec *tensor,
                 const struct maps *maps, const int64_t *to_extents, size_t bytes, const void *from,
                 void *to);

/* What several copies of one number became: of each element of `exact` (that is gathered from) the
 * copy in `got` (of the extents written) that is farthest from it. */
struct fold {
    const double *exact;
    void *worst;      /* of the tensor's dtype, as many as in `exact` */
    double *farthest; /* as many; below 0 where no copy was seen yet */
};
void maps_fold(const struct problem *problem, const struct tensor_spec *tensor,
               const struct maps *maps, const int64_t *got_extents, const void *got,
               struct fold *fold);

/* One of `count` equal parts of a tensor along the axis that is `dim`; the whole of one that has no
 * such axis. */
struct slab {
    const struct problem *problem;
    const struct tensor_spec *tensor;
    const int64_t *extents; /* of the whole */
    int dim;
    size_t count;
};
void slab_get(const struct slab *slab, size_t part, size_t bytes, const void *whole, void *to);
void slab_put(const struct slab *slab, size_t part, size_t bytes, const void *from, void *whole);
