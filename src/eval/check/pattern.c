/* What a wrong output looks like: words that help its author to find the mistake. Tried in order,
 * from what explains most; none of this decides anything. */
#include "eval/check/scale.h"

#include "base/mem.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 2048, SHIFT_MOST = 64, EDGE = 8 };

struct scene {
    const struct tensor_spec *output;
    size_t count, bad_count;
    size_t rows, columns; /* of the last two axes; 1 row for a vector */
    const double *exact;
    const void *got;
    struct groups groups;
    const struct bound *bound;
    unsigned char *bad; /* [count] */
    size_t *samples;    /* indices of bad elements, spread evenly */
    size_t sample_count;
    size_t scaled_at; /* the group whose rms this is: samples of one long row come together */
    double scale;
    bool has_scale;
};

static double got_at(const struct scene *scene, size_t index)
{
    return dtype_load(scene->output->dtype, scene->got, index);
}

static void judge_at(struct scene *scene, size_t index, struct judge *judge)
{
    bool scaled = !scene->bound->fixed && !scene->bound->exact_equality;
    size_t first = index / scene->groups.group * scene->groups.group;
    if (!scene->has_scale || scene->scaled_at != first)
        scene->scale = scaled ? groups_rms(&scene->groups, first) : 0.0;
    scene->has_scale = true;
    scene->scaled_at = first;
    judge_init(scene->bound, scene->output->dtype, scene->scale, judge);
}

static void find_bad(struct scene *scene)
{
    struct judge judge;
    for (size_t i = 0; i < scene->count; i++) {
        if (i % scene->groups.group == 0)
            judge_at(scene, i, &judge);
        scene->bad[i] = !judge_element(&judge, scene->exact[i], got_at(scene, i));
        scene->bad_count += scene->bad[i];
    }
    size_t seen = 0;
    for (size_t i = 0; i < scene->count && scene->sample_count < SAMPLES; i++)
        if (scene->bad[i] && seen++ * SAMPLES >= scene->sample_count * scene->bad_count)
            scene->samples[scene->sample_count++] = i;
}

/* The bits of what draw_poison() wrote; a computed NaN has no payload. */
static bool is_poison(enum dtype dtype, const void *array, size_t index)
{
    uint64_t bits64;
    uint32_t bits32;
    uint16_t bits16;
    const unsigned char *at = (const unsigned char *)array + index * dtype_bytes(dtype);
    switch (dtype) {
    case DTYPE_FLOAT64:
        memcpy(&bits64, at, sizeof bits64);
        return (bits64 & 0x0007ffffffffffffu) != 0;
    case DTYPE_FLOAT32:
        memcpy(&bits32, at, sizeof bits32);
        return (bits32 & 0x003fffffu) != 0;
    case DTYPE_FLOAT16:
    case DTYPE_BFLOAT16:
        memcpy(&bits16, at, sizeof bits16);
        return (bits16 & (dtype == DTYPE_FLOAT16 ? 0x01ffu : 0x003fu)) != 0;
    default:
        return false;
    }
}

static bool in_strip(size_t place, size_t extent, size_t tile)
{
    return extent > tile && place >= extent - extent % tile;
}

/* All bad elements lie where the last tile of some size is not whole, or close to an edge. */
static bool is_boundary(const struct scene *scene)
{
    bool edge = (scene->rows > 4 * EDGE || scene->columns > 4 * EDGE) &&
                scene->bad_count * 4 >= scene->rows + scene->columns;
    for (size_t tile = 2; tile <= 512; tile *= 2) {
        if (scene->rows <= tile && scene->columns <= tile)
            break;
        bool all = scene->bad_count * 2 < scene->count;
        for (size_t i = 0; all && i < scene->count; i++)
            all = !scene->bad[i] || in_strip(i % scene->columns, scene->columns, tile) ||
                  in_strip(i / scene->columns % scene->rows, scene->rows, tile);
        if (all)
            return true;
    }
    for (size_t i = 0; edge && i < scene->count; i++) {
        size_t row = i / scene->columns % scene->rows, column = i % scene->columns;
        bool outer_row = scene->rows > 4 * EDGE && (row < EDGE || row >= scene->rows - EDGE);
        bool outer_column =
            scene->columns > 4 * EDGE && (column < EDGE || column >= scene->columns - EDGE);
        edge = !scene->bad[i] || outer_row || outer_column;
    }
    return edge;
}

static const char *not_a_number(const struct scene *scene)
{
    size_t nans = 0, poisoned = 0;
    for (size_t s = 0; s < scene->sample_count; s++)
        if (isnan(got_at(scene, scene->samples[s]))) {
            nans++;
            poisoned += is_poison(scene->output->dtype, scene->got, scene->samples[s]);
        }
    if (nans == 0 || nans * 10 < scene->sample_count * 9)
        return NULL;
    if (poisoned * 10 < nans * 9)
        return "NaN";
    return is_boundary(scene) ? "not written at the boundary" : "not written";
}

static const char *all_zero(const struct scene *scene)
{
    for (size_t i = 0; i < scene->count; i++)
        if (got_at(scene, i) != 0.0)
            return NULL;
    return "all zero";
}

static const char *overflow(const struct scene *scene)
{
    size_t infinite = 0;
    for (size_t s = 0; s < scene->sample_count; s++)
        infinite += isinf(got_at(scene, scene->samples[s])) != 0;
    return infinite > 0 && infinite * 2 >= scene->sample_count ? "overflow" : NULL;
}

/* Would `share` of the samples pass, each if another element's exact value were meant? */
static bool explained(struct scene *scene,
                      bool (*source)(const struct scene *, size_t, int64_t, size_t *),
                      int64_t parameter)
{
    size_t right = 0, asked = 0;
    struct judge judge;
    for (size_t s = 0; s < scene->sample_count; s++) {
        size_t from;
        if (!source(scene, scene->samples[s], parameter, &from))
            continue;
        judge_at(scene, from, &judge);
        asked++;
        right += judge_element(&judge, scene->exact[from], got_at(scene, scene->samples[s]));
        if (asked == 16 && right < 12)
            return false;
    }
    return asked * 2 >= scene->sample_count && right * 20 >= asked * 19;
}

static bool source_shifted(const struct scene *scene, size_t index, int64_t by, size_t *from)
{
    int64_t at = (int64_t)index + by;
    *from = (size_t)at;
    return at >= 0 && at < (int64_t)scene->count;
}

static bool source_transposed(const struct scene *scene, size_t index, int64_t unused, size_t *from)
{
    size_t matrix = scene->rows * scene->columns, base = index / matrix * matrix;
    size_t within = index - base;
    (void)unused;
    *from = base + within % scene->rows * scene->columns + within / scene->rows;
    return true;
}

static const char *moved(struct scene *scene)
{
    if (scene->sample_count < 4)
        return NULL;
    if (scene->rows > 1 && scene->columns > 1 && explained(scene, source_transposed, 0))
        return "transposed";
    for (int64_t by = 1; by <= SHIFT_MOST; by++)
        if (explained(scene, source_shifted, by) || explained(scene, source_shifted, -by))
            return "shifted";
    int64_t row = (int64_t)scene->columns;
    if (scene->rows > 1 &&
        (explained(scene, source_shifted, row) || explained(scene, source_shifted, -row)))
        return "shifted";
    return NULL;
}

/* A scale that was forgotten: got = c * exact, with the c of the largest sample. */
static const char *constant_factor(struct scene *scene)
{
    double largest = 0.0, factor = 0.0;
    struct judge judge;
    for (size_t s = 0; s < scene->sample_count; s++) {
        size_t i = scene->samples[s];
        if (isfinite(scene->exact[i]) && fabs(scene->exact[i]) > largest) {
            largest = fabs(scene->exact[i]);
            factor = got_at(scene, i) / scene->exact[i];
        }
    }
    if (scene->sample_count < 16 || !isfinite(factor) || factor == 0.0 || fabs(factor - 1.0) < 0.01)
        return NULL;
    for (size_t s = 0; s < scene->sample_count; s++) {
        size_t i = scene->samples[s];
        judge_at(scene, i, &judge);
        double d = fabs(got_at(scene, i) / factor - scene->exact[i]);
        if (!(d <= 4.0 * judge_allowed(&judge, scene->exact[i])))
            return NULL;
    }
    return "off by a constant factor";
}

/* No element is off by a fiftieth of its scale. */
static bool is_close(const struct scene *scene, const struct mismatch *mismatch)
{
    static const double close = 0.02;
    const struct bound *bound = scene->bound;
    double off = fabs(mismatch->worst_got - mismatch->worst_exact);
    double relative = bound->fixed ? off / (fabs(mismatch->worst_exact) + 1e-300)
                                   : mismatch->worst_ratio * bound->element;
    return isfinite(mismatch->worst_ratio) && relative < close;
}

static const char *name_pattern(struct scene *scene, const struct mismatch *mismatch)
{
    const char *name = not_a_number(scene);
    if (name == NULL)
        name = all_zero(scene);
    if (name == NULL)
        name = overflow(scene);
    if (name == NULL)
        name = moved(scene);
    if (name == NULL)
        name = constant_factor(scene);
    if (name == NULL && is_boundary(scene))
        name = "boundary only";
    if (name == NULL && dtype_is_float(scene->output->dtype) && is_close(scene, mismatch))
        name = "low precision";
    if (name == NULL)
        name = scene->bad_count * 2 < scene->count ? "scattered" : "everywhere";
    return name;
}

const char *check_pattern(const struct tensor_spec *output, const int64_t *extents, size_t count,
                          const struct bound *bound, const double *exact, const void *got,
                          const struct mismatch *mismatch)
{
    if (mismatch->bad_count == 0) /* the norm alone */
        return "low precision";
    struct scene scene = {
        .output = output,
        .count = count,
        .rows = output->rank > 1 ? (size_t)extents[output->rank - 2] : 1,
        .columns = output->rank > 0 ? (size_t)extents[output->rank - 1] : 1,
        .exact = exact,
        .got = got,
        .bound = bound,
        .bad = (unsigned char *)mem_alloc(count),
        .samples = (size_t *)mem_array(SAMPLES, sizeof(size_t)),
    };
    groups_init(&scene.groups, exact, count, scene.columns, bound->normwise);
    find_bad(&scene);
    const char *name = name_pattern(&scene, mismatch);
    mem_free(scene.bad);
    mem_free(scene.samples);
    return name;
}
