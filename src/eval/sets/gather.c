#include "eval/sets/gather.h"

#include "base/mem.h"
#include "eval/check/check.h"
#include "eval/data/parallel.h"

#include <math.h>
#include <string.h>

void maps_free(struct maps *maps)
{
    for (size_t i = 0; i < DIMS_MAX; i++)
        mem_free(maps->of[i]);
    *maps = (struct maps){0};
}

int axis_dim(const struct problem *problem, const struct tensor_spec *tensor, size_t axis)
{
    for (size_t i = 0; i < problem->dim_count; i++)
        if (strcmp(tensor->shape_text[axis], problem->dims[i].name) == 0)
            return (int)i;
    return -1;
}

bool tensor_has_dim(const struct problem *problem, const struct tensor_spec *tensor, int dim)
{
    for (size_t axis = 0; axis < tensor->rank; axis++)
        if (axis_dim(problem, tensor, axis) == dim)
            return true;
    return false;
}

/* A tensor as rows of `count` elements, which lie together in what is written; in what is read,
 * too, where `map` is NULL. Axes before those pick among rows. */
struct walk {
    size_t rows, count;
    const uint32_t *map;
    size_t axes;
    size_t to[RANK_MAX];   /* extents of what is written */
    size_t step[RANK_MAX]; /* elements from one index to the next of what is read */
    const uint32_t *maps[RANK_MAX];
    int64_t from[RANK_MAX];
};

static void walk_make(const struct problem *problem, const struct tensor_spec *tensor,
                      const struct maps *maps, const int64_t *extents, struct walk *walk)
{
    size_t axes = tensor->rank, step = 1;
    *walk = (struct walk){.rows = 1, .count = 1};
    for (size_t axis = 0; axis < tensor->rank; axis++) {
        int dim = axis_dim(problem, tensor, axis);
        bool mapped = dim >= 0 && maps->of[dim] != NULL;
        walk->maps[axis] = mapped ? maps->of[dim] : NULL;
        walk->from[axis] = mapped ? maps->from[dim] : extents[axis];
        walk->to[axis] = (size_t)extents[axis];
    }
    for (size_t axis = tensor->rank; axis-- > 0; step *= (size_t)walk->from[axis])
        walk->step[axis] = step;
    while (axes > 0 && walk->maps[axes - 1] == NULL)
        walk->count *= walk->to[--axes];
    if (axes > 0 && walk->count == 1) {
        walk->map = walk->maps[--axes];
        walk->count = walk->to[axes];
    }
    walk->axes = axes;
    for (size_t axis = 0; axis < axes; axis++)
        walk->rows *= walk->to[axis];
}

/* Where row `row` begins in what is read; and, of the first axis that picks, at which index. */
static size_t row_at(const struct walk *walk, size_t row, size_t *picked)
{
    size_t at = 0;
    *picked = 0;
    for (size_t axis = walk->axes; axis-- > 0;) {
        size_t index = row % walk->to[axis];
        row /= walk->to[axis];
        if (walk->maps[axis] != NULL)
            *picked = index = walk->maps[axis][index];
        at += index * walk->step[axis];
    }
    return at;
}

struct gathering {
    const struct walk *walk;
    const unsigned char *from;
    unsigned char *to;
    size_t bytes;
};

#define PICK(type)                                                                                 \
    do {                                                                                           \
        const type *numbers = (const type *)(const void *)from;                                    \
        type *out = (type *)(void *)to;                                                            \
        for (size_t i = 0; i < count; i++)                                                         \
            out[i] = numbers[map[i]];                                                              \
    } while (0)

static void pick(const unsigned char *from, const uint32_t *map, size_t count, size_t bytes,
                 unsigned char *to)
{
    if (bytes == 4)
        PICK(uint32_t);
    else if (bytes == 2)
        PICK(uint16_t);
    else if (bytes == 8)
        PICK(uint64_t);
    else
        for (size_t i = 0; i < count; i++)
            memcpy(to + i * bytes, from + map[i] * bytes, bytes);
}

static void gather_part(void *context, size_t part, size_t from, size_t to)
{
    const struct gathering *g = (const struct gathering *)context;
    const struct walk *walk = g->walk;
    size_t picked;
    (void)part;
    for (size_t row = from; row < to; row++) {
        const unsigned char *in = g->from + row_at(walk, row, &picked) * g->bytes;
        unsigned char *out = g->to + row * walk->count * g->bytes;
        if (walk->map != NULL)
            pick(in, walk->map, walk->count, g->bytes, out);
        else
            memcpy(out, in, walk->count * g->bytes);
    }
}

void maps_gather(const struct problem *problem, const struct tensor_spec *tensor,
                 const struct maps *maps, const int64_t *to_extents, size_t bytes, const void *from,
                 void *to)
{
    struct walk walk;
    walk_make(problem, tensor, maps, to_extents, &walk);
    struct gathering gathering = {&walk, (const unsigned char *)from, (unsigned char *)to, bytes};
    parallel_for(walk.rows, 1, walk.rows * walk.count, gather_part, &gathering);
}

/* --- and back --- */

enum { CHUNK = 1024 };

struct folding {
    const struct walk *walk;
    struct fold *fold;
    enum dtype dtype;
    const unsigned char *got;
    double largest;
};

/* How far off; infinite numbers are right where the exact one leaves the type's range. */
static double distance(const struct folding *f, double exact, double got)
{
    if (check_is_anything(exact) || check_is_not_finite(exact))
        return isfinite(got) && check_is_not_finite(exact) ? INFINITY : 0.0;
    if (isfinite(got))
        return isfinite(exact) ? fabs(got - exact) : INFINITY;
    if (isnan(exact) || isnan(got))
        return isnan(exact) && isnan(got) ? 0.0 : INFINITY;
    bool beyond = fabs(exact) >= f->largest * 0.99 && (exact > 0.0) == (got > 0.0);
    return beyond ? 0.0 : INFINITY;
}

/* `count` copies, of elements `at` + map[i] (NULL: `at` + i). */
static void fold_run(const struct folding *f, size_t at, const uint32_t *map, size_t first,
                     size_t count)
{
    struct fold *fold = f->fold;
    const size_t bytes = dtype_bytes(f->dtype);
    const unsigned char *got = f->got + first * bytes;
    double numbers[CHUNK];
    for (size_t from = 0; from < count; from += CHUNK) {
        size_t length = count - from < CHUNK ? count - from : CHUNK;
        dtype_to_double(f->dtype, got + from * bytes, length, numbers);
        for (size_t i = 0; i < length; i++) {
            size_t place = at + (map != NULL ? map[from + i] : from + i);
            double exact = fold->exact[place], d = fabs(numbers[i] - exact);
            if (d <= fold->farthest[place]) /* never of a NaN */
                continue;
            d = distance(f, exact, numbers[i]);
            if (d > fold->farthest[place]) {
                fold->farthest[place] = d;
                memcpy((unsigned char *)fold->worst + place * bytes, got + (from + i) * bytes,
                       bytes);
            }
        }
    }
}

static void fold_part(void *context, size_t part, size_t from, size_t to)
{
    const struct folding *f = (const struct folding *)context;
    const struct walk *walk = f->walk;
    size_t picked;
    (void)part;
    for (size_t row = 0; row < walk->rows; row++) {
        size_t at = row_at(walk, row, &picked);
        if (picked >= from && picked < to)
            fold_run(f, at, walk->map, row * walk->count, walk->count);
    }
}

/* Several copies of one element must be one part's: parts share out what the outermost axis that
 * picks among rows reads. */
void maps_fold(const struct problem *problem, const struct tensor_spec *tensor,
               const struct maps *maps, const int64_t *got_extents, const void *got,
               struct fold *fold)
{
    struct walk walk;
    walk_make(problem, tensor, maps, got_extents, &walk);
    struct folding f = {.walk = &walk,
                        .fold = fold,
                        .dtype = tensor->dtype,
                        .got = (const unsigned char *)got,
                        .largest = dtype_max(tensor->dtype)};
    size_t share = 1;
    for (size_t axis = walk.axes; axis-- > 0;)
        if (walk.maps[axis] != NULL)
            share = (size_t)walk.from[axis];
    parallel_for(share, 1, walk.rows * walk.count, fold_part, &f);
}

/* --- parts of a tensor --- */

struct rows { /* in bytes: of what lies together; from one such to the next; where they begin */
    size_t count, run, step, first;
};

static struct rows slab_rows(const struct slab *slab, size_t part, size_t bytes)
{
    struct rows rows = {.count = 1, .run = bytes, .step = bytes};
    bool found = false;
    for (size_t axis = slab->tensor->rank; axis-- > 0;) {
        size_t extent = (size_t)slab->extents[axis];
        bool own = !found && axis_dim(slab->problem, slab->tensor, axis) == slab->dim;
        if (own) {
            rows.step = rows.run * extent;
            rows.run *= extent / slab->count;
            rows.first = part * rows.run;
            found = true;
        } else if (found) {
            rows.count *= extent;
        } else {
            rows.run *= extent;
        }
    }
    return rows;
}

void slab_get(const struct slab *slab, size_t part, size_t bytes, const void *whole, void *to)
{
    struct rows rows = slab_rows(slab, part, bytes);
    for (size_t i = 0; i < rows.count; i++)
        memcpy((unsigned char *)to + i * rows.run,
               (const unsigned char *)whole + i * rows.step + rows.first, rows.run);
}

void slab_put(const struct slab *slab, size_t part, size_t bytes, const void *from, void *whole)
{
    struct rows rows = slab_rows(slab, part, bytes);
    for (size_t i = 0; i < rows.count; i++)
        memcpy((unsigned char *)whole + i * rows.step + rows.first,
               (const unsigned char *)from + i * rows.run, rows.run);
}
