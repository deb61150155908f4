/* One pass that only counts and measures, chunk by chunk in vectors; a chunk where something is
 * wrong, or not finite, is gone through again with care. */
#include "eval/check/scale.h"
#include "eval/data/parallel.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { CHUNK = 1024 };

struct tally {
    size_t bad;
    double most;               /* largest error over the allowed one */
    double difference, square; /* sums of d*d and e*e */
    size_t worst;              /* index of the largest error over the allowed one */
    double worst_ratio, worst_got, worst_exact;
};

static vector_mask as_mask(vector numbers)
{
    return (vector_mask)numbers;
}

static vector larger(vector a, vector b)
{
    vector_mask a_is = a > b;
    return (vector)((a_is & as_mask(a)) | (~a_is & as_mask(b)));
}

/* False where an element failed or a sum is not finite: *tally is then as it was. */
static bool tally_fast(const struct judge *judge, const double *exact, const double *got,
                       size_t count, struct tally *tally)
{
    const vector_mask magnitude = {INT64_MAX, INT64_MAX};
    const vector rms = {judge->rms, judge->rms}, ratio = {judge->ratio, judge->ratio};
    const vector floor = {judge->floor, judge->floor};
    vector difference[2] = {{0.0, 0.0}}, square[2] = {{0.0, 0.0}}, most[2] = {{0.0, 0.0}};
    vector_mask good[2] = {{0, 0}};
    for (size_t i = 0; i + 4 <= count; i += 4)
        for (size_t lane = 0; lane < 2; lane++) {
            vector e, g;
            memcpy(&e, exact + i + 2 * lane, sizeof e);
            memcpy(&g, got + i + 2 * lane, sizeof g);
            vector d = (vector)(as_mask(g - e) & magnitude);
            vector scale = larger((vector)(as_mask(e) & magnitude), rms);
            vector allowed = ratio * scale + floor;
            good[lane] += d <= allowed;
            most[lane] = larger(d / allowed, most[lane]); /* 0 / 0 is not */
            difference[lane] += d * d;
            square[lane] += e * e;
        }
    vector differences = difference[0] + difference[1], squares = square[0] + square[1];
    vector mosts = larger(most[0], most[1]);
    vector_mask goods = good[0] + good[1];
    double sums[2] = {differences[0] + differences[1], squares[0] + squares[1]};
    if ((size_t) - (goods[0] + goods[1]) != count / 4 * 4 || !isfinite(sums[0] + sums[1]))
        return false;
    tally->difference += sums[0];
    tally->square += sums[1];
    tally->most = scale_largest(tally->most, scale_largest(mosts[0], mosts[1]));
    return true;
}

static void tally_element(const struct judge *judge, double exact, double got, size_t index,
                          struct tally *tally)
{
    bool finite = judge_is_finite(judge, exact) && isfinite(got);
    double d = finite ? fabs(got - exact) : 0.0;
    double allowed = judge_allowed(judge, exact);
    double ratio = !finite || allowed < d * 1e-300 ? INFINITY : d > 0.0 ? d / allowed : 0.0;
    if (finite) {
        tally->difference += d * d;
        tally->square += exact * exact;
        tally->most = scale_largest(tally->most, ratio);
    }
    if (judge_element(judge, exact, got))
        return;
    if (tally->bad == 0 || ratio > tally->worst_ratio) {
        tally->worst = index;
        tally->worst_ratio = ratio;
        tally->worst_got = got;
        tally->worst_exact = exact;
    }
    tally->bad++;
}

static void tally_group(const struct judge *judge, enum dtype dtype, const double *exact,
                        const void *got, size_t first, size_t end, struct tally *tally)
{
    double buffer[CHUNK];
    const unsigned char *bytes = (const unsigned char *)got;
    for (size_t at = first; at < end; at += CHUNK) {
        size_t length = end - at < CHUNK ? end - at : CHUNK;
        size_t careful = length / 4 * 4; /* the first that is not tallied yet */
        const double *numbers = buffer;
        if (dtype == DTYPE_FLOAT64)
            numbers = (const double *)got + at;
        else
            dtype_to_double(dtype, bytes + at * dtype_bytes(dtype), length, buffer);
        if (!tally_fast(judge, exact + at, numbers, length, tally))
            careful = 0;
        for (size_t i = careful; i < length; i++)
            tally_element(judge, exact[at + i], numbers[i], at + i, tally);
    }
}

static double norm_ratio(const struct bound *bound, const struct groups *groups,
                         const struct tally *tally)
{
    double floor = bound->floor + (groups->tensor == 0.0 ? bound->zero : 0.0);
    double allowed = bound->norm * sqrt(tally->square) + floor * sqrt((double)groups->count);
    if (bound->fixed || bound->exact_equality || !isfinite(tally->square))
        return 0.0;
    if (tally->difference == 0.0)
        return 0.0;
    return allowed > 0.0 ? sqrt(tally->difference) / allowed : INFINITY;
}

struct judged {
    const struct tensor_spec *output;
    const struct bound *bound;
    const double *exact;
    const void *got;
    bool scaled;
    const struct groups *groups;
    struct groups own[PARALLEL_PARTS];
    struct tally tallies[PARALLEL_PARTS];
};

/* `from` is the beginning of a group. */
static void judge_part(void *context, size_t part, size_t from, size_t to)
{
    struct judged *judged = (struct judged *)context;
    struct groups *groups = &judged->own[part];
    struct judge judge;
    *groups = *judged->groups;
    judged->tallies[part] = (struct tally){0};
    for (size_t first = from; first < to;) {
        size_t end = first + groups->group < to ? first + groups->group : to;
        double rms = judged->scaled ? groups_rms(groups, first) : 0.0;
        judge_init(judged->bound, judged->output->dtype, rms, &judge);
        tally_group(&judge, judged->output->dtype, judged->exact, judged->got, first, end,
                    &judged->tallies[part]);
        first = end;
    }
}

static void add_tally(struct tally *sum, const struct tally *part)
{
    if (part->bad > 0 && (sum->bad == 0 || part->worst_ratio > sum->worst_ratio)) {
        sum->worst = part->worst;
        sum->worst_ratio = part->worst_ratio;
        sum->worst_got = part->worst_got;
        sum->worst_exact = part->worst_exact;
    }
    sum->bad += part->bad;
    sum->difference += part->difference;
    sum->square += part->square;
    sum->most = scale_largest(sum->most, part->most);
}

double mismatch_ratio(const struct mismatch *mismatch)
{
    return scale_largest(mismatch->worst_ratio, mismatch->norm_ratio);
}

void check_compare(const struct tensor_spec *output, const int64_t *extents, size_t count,
                   const struct bound *bound, const double *exact, const void *got,
                   struct mismatch *mismatch)
{
    struct tally tally = {0};
    struct groups groups;
    bool scaled = !bound->fixed && !bound->exact_equality;
    size_t row = output->rank > 0 ? (size_t)extents[output->rank - 1] : 1;
    groups_init(&groups, exact, count, row, scaled && bound->normwise);
    struct judged judged = {output, bound, exact, got, scaled, &groups, {{0}}, {{0}}};
    size_t parts = parallel_for(count, groups.group, count, judge_part, &judged);
    for (size_t i = 0; i < parts; i++) {
        add_tally(&tally, &judged.tallies[i]);
        if (judged.own[i].tensor >= 0.0) /* computed on the way; norm_ratio() asks for it */
            groups.tensor = judged.own[i].tensor;
    }
    *mismatch = (struct mismatch){
        .bad_count = tally.bad,
        .worst = tally.worst,
        .worst_got = tally.worst_got,
        .worst_exact = tally.worst_exact,
        .worst_ratio = tally.bad > 0 ? tally.worst_ratio : tally.most,
        .norm_ratio = norm_ratio(bound, &groups, &tally),
        .pattern = "",
    };
    mismatch->passed = tally.bad == 0 && mismatch->norm_ratio <= 1.0;
}

void check_output(const struct tensor_spec *output, const int64_t *extents, size_t count,
                  const struct bound *bound, const double *exact, const void *got,
                  struct mismatch *mismatch)
{
    check_compare(output, extents, count, bound, exact, got, mismatch);
    if (!mismatch->passed)
        mismatch->pattern = check_pattern(output, extents, count, bound, exact, got, mismatch);
}

static void describe_index(const struct tensor_spec *output, const int64_t *extents, size_t index,
                           struct buf *out)
{
    size_t place[RANK_MAX];
    for (size_t axis = output->rank; axis-- > 0;) {
        place[axis] = index % (size_t)extents[axis];
        index /= (size_t)extents[axis];
    }
    buf_addf(out, "%s", output->name);
    for (size_t axis = 0; axis < output->rank; axis++)
        buf_addf(out, "%s%zu%s", axis == 0 ? "[" : ", ", place[axis],
                 axis + 1 == output->rank ? "]" : "");
}

void mismatch_describe(const struct tensor_spec *output, const int64_t *extents,
                       const struct mismatch *mismatch, struct buf *out)
{
    size_t count = 1;
    for (size_t axis = 0; axis < output->rank; axis++)
        count *= (size_t)extents[axis];
    if (mismatch->passed) {
        buf_addf(out, "%s: right", output->name);
    } else if (mismatch->bad_count == 0) {
        buf_addf(out,
                 "%s: no element is far off, but the whole is %.3g times as inexact as allowed"
                 " (%s)",
                 output->name, mismatch->norm_ratio, mismatch->pattern);
    } else {
        describe_index(output, extents, mismatch->worst, out);
        buf_addf(out, ": got %.9g, expected %.9g (%zu of %zu wrong; %s)", mismatch->worst_got,
                 mismatch->worst_exact, mismatch->bad_count, count, mismatch->pattern);
    }
}
