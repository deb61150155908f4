/* eval/sets/judge: is an output of a set with a view right? What several copies of one element of
 * the small problem became is the one that is farthest off; then that is compared as any output. */
#include "base/mem.h"
#include "eval/data/parallel.h"
#include "eval/sets/excuse.h"
#include "eval/sets/session.h"
#include "eval/sets/view.h"

#include <math.h>
#include <string.h>

struct judging {
    struct session *session;
    struct view *view;
    size_t output, bytes;
    const struct tensor_spec *tensor;
    const struct placed *small, *large;
    const void *got;
    void *worst; /* of `small` */
    struct fold fold;
};

static const struct placed *slice_of(const struct judging *j)
{
    return j->view->slice != NULL ? &j->view->slice->layout.outputs[j->output] : j->small;
}

static struct slab slab_of(const struct judging *j)
{
    return (struct slab){j->session->problem, j->tensor, j->small->extents, j->view->mixed,
                         j->view->segment_count};
}

static const struct bound *bound_of(const struct judging *j, size_t segment)
{
    return &j->view->segments[segment].bounds[j->output];
}

enum { ELSEWHERE = UINT32_MAX };

/* Of each element of the large output which one of the small one it is a copy of, ELSEWHERE where
 * that is another segment's. */
static uint32_t *places_of(const struct judging *j, size_t segment)
{
    const struct slab slab = slab_of(j);
    uint32_t *every = (uint32_t *)mem_array(j->small->elements + 1, sizeof(uint32_t));
    uint32_t *own = (uint32_t *)mem_array(j->small->elements + 1, sizeof(uint32_t));
    uint32_t *places = (uint32_t *)mem_array(j->large->elements + 1, sizeof(uint32_t));
    for (size_t i = 0; i < j->small->elements; i++)
        every[i] = (uint32_t)i;
    slab_get(&slab, segment, sizeof *own, every, own);
    memset(every, 0xff, j->small->elements * sizeof *every);
    slab_put(&slab, segment, sizeof *own, own, every);
    maps_gather(j->session->problem, j->tensor, &j->view->maps, j->large->extents, sizeof *places,
                every, places);
    mem_free(every);
    mem_free(own);
    return places;
}

/* The copies that are farthest off are no measure of the whole. Where that alone refuses, all are
 * counted as what they are. */
static void count_all(struct judging *j, size_t segment, struct mismatch *mismatch)
{
    const struct bound *bound = bound_of(j, segment);
    double difference = 0.0, square = 0.0;
    size_t count = 0;
    if (mismatch->bad_count > 0 || j->view->kind == VIEW_SAMPLED)
        return;
    uint32_t *places = places_of(j, segment);
    for (size_t i = 0; i < j->large->elements; i++) {
        double exact = places[i] != ELSEWHERE ? j->fold.exact[places[i]] : INFINITY;
        if (!isfinite(exact))
            continue;
        double d = dtype_load(j->tensor->dtype, j->got, i) - exact;
        difference += d * d;
        square += exact * exact;
        count++;
    }
    double allowed = bound->norm * sqrt(square) + bound->floor * sqrt((double)count);
    mismatch->norm_ratio = difference == 0.0 ? 0.0
                           : allowed > 0.0   ? sqrt(difference) / allowed
                                             : INFINITY;
    mismatch->passed = mismatch->norm_ratio <= 1.0;
    mem_free(places);
}

/* Asked of the small problem, in which all but this segment is right. The definition reads where a
 * call's inputs lie, who may be called on them once more. */
static bool hangs_on_tie(struct judging *j, size_t segment, const void *worst,
                         const struct mismatch *mismatch)
{
    struct set *part = &j->view->part;
    const struct slab slab = slab_of(j);
    const struct bound kept = part->bounds[j->output];
    if (!set_may_tie(bound_of(j, segment), slice_of(j), mismatch))
        return false;
    void *got = mem_alloc(j->small->bytes + 1);
    size_t read_bytes = part->shape->layout.inputs_bytes;
    void *before = mem_alloc(read_bytes + 1);
    memcpy(before, j->session->region.inputs, read_bytes);
    dtype_from_double(j->tensor->dtype, j->fold.exact, j->small->elements, got);
    slab_put(&slab, segment, j->bytes, worst, got);
    part->bounds[j->output] = *bound_of(j, segment);
    bool excused = session_excuses(j->session, part, j->output, got);
    part->bounds[j->output] = kept;
    memcpy(j->session->region.inputs, before, read_bytes);
    mem_free(before);
    mem_free(got);
    return excused;
}

static void judge_segment(struct judging *j, size_t segment, struct mismatch *mismatch)
{
    const struct placed *slice = slice_of(j);
    const struct slab slab = slab_of(j);
    double *exact = (double *)mem_array(slice->elements + 1, sizeof(double));
    void *worst = mem_alloc(slice->bytes + 1);
    slab_get(&slab, segment, sizeof(double), j->fold.exact, exact);
    slab_get(&slab, segment, j->bytes, j->worst, worst);
    check_output(j->tensor, slice->extents, slice->elements, bound_of(j, segment), exact, worst,
                 mismatch);
    if (!mismatch->passed)
        count_all(j, segment, mismatch);
    if (!mismatch->passed && hangs_on_tie(j, segment, worst, mismatch)) {
        *mismatch = (struct mismatch){.passed = true, .pattern = ""};
        j->view->excused = true;
    }
    mem_free(exact);
    mem_free(worst);
}

/* --- in the large output's own terms --- */

/* How many are wrong, where, and what it looks like; other segments are taken for right. */
static void describe_copies(struct judging *j, size_t segment, struct mismatch *mismatch)
{
    static const size_t elements_most = (size_t)1 << 27;
    size_t count = j->large->elements;
    struct mismatch large;
    if (mismatch->bad_count == 0 || count > elements_most)
        return;
    double *exact = (double *)mem_array(count + 1, sizeof(double));
    void *got = mem_alloc(j->large->bytes + 1);
    uint32_t *places = places_of(j, segment);
    memcpy(got, j->got, j->large->bytes);
    for (size_t i = 0; i < count; i++)
        if (places[i] != ELSEWHERE)
            exact[i] = j->fold.exact[places[i]];
        else
            dtype_store(j->tensor->dtype, got, i, 0.0);
    check_output(j->tensor, j->large->extents, count, bound_of(j, segment), exact, got, &large);
    if (large.bad_count > 0) {
        large.worst_ratio = mismatch->worst_ratio;
        large.norm_ratio = mismatch->norm_ratio;
        *mismatch = large;
    }
    mem_free(exact);
    mem_free(got);
    mem_free(places);
}

static void describe_sample(const struct judging *j, struct mismatch *mismatch)
{
    size_t index = mismatch->worst, at = 0, step = 1;
    for (size_t axis = j->tensor->rank; axis-- > 0;) {
        int dim = axis_dim(j->session->problem, j->tensor, axis);
        size_t here = index % (size_t)j->small->extents[axis];
        index /= (size_t)j->small->extents[axis];
        if (dim >= 0 && j->view->maps.of[dim] != NULL)
            here = j->view->maps.of[dim][here];
        at += here * step;
        step *= (size_t)j->large->extents[axis];
    }
    mismatch->worst = at;
}

enum { CHUNK = 1024 };

struct missing {
    const struct judging *j;
    size_t count[PARALLEL_PARTS], first[PARALLEL_PARTS];
};

static void miss_part(void *context, size_t part, size_t from, size_t to)
{
    struct missing *missing = (struct missing *)context;
    const unsigned char *got = (const unsigned char *)missing->j->got;
    double numbers[CHUNK];
    missing->count[part] = 0;
    for (size_t at = from; at < to; at += CHUNK) {
        size_t length = to - at < CHUNK ? to - at : CHUNK, found = 0;
        dtype_to_double(missing->j->tensor->dtype, got + at * missing->j->bytes, length, numbers);
        for (size_t i = 0; i < length; i++)
            found += isnan(numbers[i]) != 0;
        for (size_t i = 0; i < length && found > 0 && missing->count[part] == 0; i++)
            if (isnan(numbers[i])) {
                missing->first[part] = at + i;
                break;
            }
        missing->count[part] += found;
    }
}

/* Outputs hold NaN before a call. Where the sample should have none, no other element may. */
static void find_unwritten(const struct judging *j, struct mismatch *mismatch)
{
    struct missing missing = {.j = j};
    size_t count = 0, first = 0;
    if (!dtype_is_float(j->tensor->dtype) || set_is_spoiled(&j->view->part))
        return; /* where it should be elsewhere is not known */
    for (size_t i = 0; i < j->small->elements; i++)
        if (isnan(j->fold.exact[i]))
            return;
    size_t parts = parallel_for(j->large->elements, CHUNK, j->large->elements, miss_part, &missing);
    for (size_t i = parts; i-- > 0;) {
        first = missing.count[i] > 0 ? missing.first[i] : first;
        count += missing.count[i];
    }
    if (count > 0)
        *mismatch = (struct mismatch){.bad_count = count,
                                      .worst = first,
                                      .worst_got = NAN,
                                      .worst_ratio = INFINITY,
                                      .pattern = "not written"};
}

/* --- all of it --- */

static void collect(struct judging *j)
{
    const struct problem *problem = j->session->problem;
    size_t count = j->small->elements;
    j->worst = mem_alloc(j->small->bytes + 1);
    j->fold.exact = j->view->part.exact[j->output];
    if (j->view->kind == VIEW_SAMPLED) {
        maps_gather(problem, j->tensor, &j->view->maps, j->small->extents, j->bytes, j->got,
                    j->worst);
        return;
    }
    j->fold.worst = j->worst;
    j->fold.farthest = (double *)mem_array(count + 1, sizeof(double));
    for (size_t i = 0; i < count; i++)
        j->fold.farthest[i] = -1.0;
    maps_fold(problem, j->tensor, &j->view->maps, j->large->extents, j->got, &j->fold);
}

static void judge_view(struct judging *j, struct mismatch *mismatch)
{
    struct view *view = j->view;
    bool first = true;
    view->excused = false;
    collect(j);
    *mismatch = (struct mismatch){.passed = true, .pattern = ""};
    for (size_t i = 0; i < view->segment_count; i++) {
        struct mismatch own;
        if (view->segments[i].unfit)
            continue;
        judge_segment(j, i, &own);
        if (!first && !(mismatch_ratio(&own) > mismatch_ratio(mismatch)))
            continue;
        first = false;
        *mismatch = own;
        view->judged = i;
    }
    if (view->kind == VIEW_SAMPLED && mismatch->passed)
        find_unwritten(j, mismatch);
    else if (view->kind == VIEW_SAMPLED && mismatch->bad_count > 0)
        describe_sample(j, mismatch);
    else if (!mismatch->passed)
        describe_copies(j, view->judged, mismatch);
    mem_free(j->worst);
    mem_free(j->fold.farthest);
}

const struct bound *set_bound(const struct set *set, size_t output)
{
    return set->view != NULL ? &set->view->segments[set->view->judged].bounds[output]
                             : &set->bounds[output];
}

enum distribution set_distribution(const struct set *set)
{
    return set->view != NULL ? set->view->segments[set->view->judged].distribution
                             : set->distribution;
}

bool set_excused(const struct set *set)
{
    return set->view != NULL && set->view->excused;
}

void set_judge(struct session *session, const struct set *set, size_t output,
               const struct placed *placed, const void *got, struct mismatch *mismatch)
{
    const struct tensor_spec *tensor = &session->problem->outputs[output];
    if (set->view == NULL) {
        check_output(tensor, placed->extents, placed->elements, &set->bounds[output],
                     set->exact[output], got, mismatch);
        return;
    }
    struct judging judging = {.session = session,
                              .view = set->view,
                              .output = output,
                              .bytes = dtype_bytes(tensor->dtype),
                              .tensor = tensor,
                              .small = &set->view->small.layout.outputs[output],
                              .large = placed,
                              .got = got};
    judge_view(&judging, mismatch);
}
