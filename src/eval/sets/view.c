#include "eval/sets/view.h"

#include "base/clock.h"
#include "base/mem.h"
#include "eval/data/timeline.h"
#include "eval/sets/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a small problem costs where it can; and at most, as a part of the main shape. Where
 * statistics are made of it there are TIMES as many indices of each dim; so are they where all that
 * a win is asked about in whole sets is asked of samples, for want of time. */
static const double small_elements = 0x1p18, small_flops = 0x1p26, part_of_main = 1.0 / 8.0;
enum { TIMES = 3 };

/* --- how large the small problem is --- */

static bool is_within(const struct session *session, const struct shape *shape, int64_t times,
                      double part)
{
    double flops, bytes, main_flops;
    const struct problem *problem = session->problem;
    if (problem_work(problem, &shape->dims, &flops, &bytes, NULL) != 0 ||
        problem_work(problem, &session->shapes[0].dims, &main_flops, &bytes, NULL) != 0)
        return false;
    return (double)shape->elements <=
               fmax((double)times * small_elements, part * (double)session->shapes[0].elements) &&
           flops <= fmax(small_flops, part * main_flops);
}

static bool make_small(struct session *session, const int64_t *numbers, struct shape *shape)
{
    const struct problem *problem = session->problem;
    struct names given = {0}, dims;
    for (size_t i = 0; i < problem->dim_count; i++)
        if (!problem->dims[i].derived &&
            names_set(&given, problem->dims[i].name, numbers[i], NULL) != 0)
            return false;
    return problem_dims(problem, &given, &dims, NULL) == 0 &&
           shape_make(session, &dims, shape, NULL) == 0 && shape_fits(session, shape);
}

/* The dim with most indices of those that can be sliced, and that has more than `least`; of the one
 * that segments lie along there are `segments` at least. -1: none. */
static int longest(const struct session *session, const int64_t *numbers, int64_t least, int mixed,
                   int64_t segments)
{
    int found = -1;
    for (size_t i = 0; i < session->problem->dim_count; i++)
        if ((session->slices >> i & 1) != 0 && numbers[i] > ((int)i == mixed ? segments : least) &&
            (found < 0 || numbers[i] > numbers[found]))
            found = (int)i;
    return found;
}

/* Several tens of indices of each dim that can be sliced, hundreds where there is but one; fewer
 * where that would take long, and less than a few only where nothing else helps. */
static bool choose_small(struct session *session, const struct view *view,
                         const struct shape *large, int64_t *numbers, struct shape *shape)
{
    enum { FEW = 48, FEW_MORE = 24, MANY = 600, ROWS = 8 };
    const struct problem *problem = session->problem;
    const int64_t segments = (int64_t)view->segment_count, times = view->finer ? TIMES : 1;
    const int mixed = view->mixed;
    int count = __builtin_popcountll(session->slices);
    for (size_t i = 0; i < problem->dim_count; i++) {
        int64_t wanted = times * (FEW + (int64_t)random_below(&session->random, FEW_MORE));
        numbers[i] = large->dims.number[i];
        if (count == 1)
            wanted += MANY;
        if ((session->slices >> i & 1) != 0 && wanted < numbers[i])
            numbers[i] = wanted;
        if ((int)i == mixed)
            numbers[i] = numbers[i] / segments * segments;
    }
    for (int64_t least = ROWS;;) {
        bool made = make_small(session, numbers, shape);
        if (made && is_within(session, shape, times, 0.0))
            return true;
        int most = longest(session, numbers, least, mixed, segments);
        if (most < 0 && made && is_within(session, shape, times, part_of_main))
            return true;
        if (most < 0 && least == 1)
            return false;
        if (most < 0) {
            least = 1;
            continue;
        }
        numbers[most] = (numbers[most] + 1) / 2;
        if (most == mixed)
            numbers[most] = (numbers[most] + segments - 1) / segments * segments;
    }
}

/* --- which index is which --- */

static void shuffle(struct random *random, uint32_t *map, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = (size_t)random_below(random, i);
        uint32_t kept = map[i - 1];
        map[i - 1] = map[other];
        map[other] = kept;
    }
}

/* Each index as often as any other, so that a row's scale is what it was. */
static void expand(struct session *session, struct view *view, const struct shape *large)
{
    for (size_t i = 0; i < session->problem->dim_count; i++) {
        size_t count = (size_t)large->dims.number[i], few = (size_t)view->small.dims.number[i];
        if ((session->slices >> i & 1) == 0)
            continue;
        if (view->maps.of[i] == NULL)
            view->maps.of[i] = (uint32_t *)mem_array(count, sizeof(uint32_t));
        view->maps.from[i] = (int64_t)few;
        for (size_t k = 0; k < count; k++)
            view->maps.of[i][k] = (uint32_t)(k % few);
        shuffle(&session->random, view->maps.of[i], count);
    }
}

static int compare_indices(const void *a, const void *b)
{
    uint32_t first = *(const uint32_t *)a, second = *(const uint32_t *)b;
    return first < second ? -1 : first > second;
}

/* Both ends, both sides of multiples of tiles, the last of them first; then any. All different. */
static void sample_indices(struct random *random, size_t count, size_t wanted, uint32_t *map)
{
    static const size_t tiles[] = {64, 16, 128, 256, 1024, 32};
    enum { TILES = sizeof tiles / sizeof tiles[0] };
    size_t asked[2 + 4 * TILES] = {count - 1, 0}, asked_count = 2, found = 0;
    unsigned char *taken = (unsigned char *)mem_alloc(count);
    for (size_t i = 0; i < TILES; i++) {
        size_t last = (count - 1) / tiles[i] * tiles[i];
        size_t any = random_below(random, (count - 1) / tiles[i] + 1) * tiles[i];
        asked[asked_count++] = last;
        asked[asked_count++] = last > 0 ? last - 1 : 0;
        asked[asked_count++] = any;
        asked[asked_count++] = any > 0 ? any - 1 : 0;
    }
    for (size_t i = 0; found < wanted; i++) {
        size_t index = i < asked_count ? asked[i] : (size_t)random_below(random, count);
        if (taken[index] == 0)
            map[found++] = (uint32_t)index;
        taken[index] = 1;
    }
    mem_free(taken);
    qsort(map, wanted, sizeof *map, compare_indices);
}

static void sample(struct session *session, struct view *view, const struct shape *large)
{
    for (size_t i = 0; i < session->problem->dim_count; i++) {
        size_t count = (size_t)large->dims.number[i], few = (size_t)view->small.dims.number[i];
        if ((session->slices >> i & 1) == 0)
            continue;
        if (view->maps.of[i] == NULL)
            view->maps.of[i] = (uint32_t *)mem_array(few, sizeof(uint32_t));
        view->maps.from[i] = (int64_t)count;
        sample_indices(&session->random, count, few, view->maps.of[i]);
    }
}

/* --- opening --- */

static bool open_mixed(struct session *session, struct view *view, const struct shape *large,
                       int64_t *numbers)
{
    segments_list(session, view);
    view->slice = MEM_NEW(struct shape);
    view->mixed = segments_choose(session, large, view->segment_count);
    if (session->problem->normwise || view->mixed < 0 ||
        !choose_small(session, view, large, numbers, &view->small))
        return false;
    numbers[view->mixed] /= (int64_t)view->segment_count;
    return make_small(session, numbers, view->slice);
}

static bool open_view(struct session *session, struct set *set, bool mixed)
{
    struct view *view = set->view;
    int64_t numbers[DIMS_MAX] = {0};
    bool open = session->slices != 0 && mixed && open_mixed(session, view, set->shape, numbers);
    if (!open) {
        view->mixed = -1;
        view->segment_count = 1;
        mem_free(view->slice);
        view->slice = NULL;
        open =
            session->slices != 0 && choose_small(session, view, set->shape, numbers, &view->small);
    }
    view->part =
        (struct set){.shape = &view->small, .distribution = set->distribution, .optional = true};
    if (!open)
        view_close(set);
    else
        view_turn(session, set);
    return open;
}

bool view_open(struct session *session, struct set *set, enum view_kind kind, bool mixed)
{
    set->view = MEM_NEW(struct view);
    set->view->kind = kind;
    set->view->finer = session->sliced && !session->scarce && set->shape == &session->shapes[0];
    return open_view(session, set, mixed);
}

bool view_open_like(struct session *session, struct set *set, const struct set *like)
{
    struct view *view = MEM_NEW(struct view);
    view->kind = VIEW_SAMPLED;
    view->mixed = -1;
    view->segment_count = 1;
    view->small = like->view->small;
    view->part =
        (struct set){.shape = &view->small, .distribution = set->distribution, .optional = true};
    set->view = view;
    view_turn(session, set);
    return true;
}

const struct set *set_computed(const struct set *set)
{
    return set->view != NULL ? &set->view->part : set;
}

void view_turn(struct session *session, struct set *set)
{
    struct view *view = set->view;
    if (view->kind == VIEW_EXPANDED) {
        expand(session, view, set->shape);
    } else {
        sample(session, view, set->shape);
        set_redraw(set);
        set_redraw(&view->part);
    }
}

/* --- what it should give --- */

static void gather_inputs(const struct session *session, struct view *view,
                          unsigned char *const *inputs)
{
    const struct problem *problem = session->problem;
    for (size_t i = 0; i < problem->input_count; i++) {
        const struct placed *placed = &view->small.layout.inputs[i];
        if (view->part.inputs[i] == NULL)
            view->part.inputs[i] = (unsigned char *)mem_alloc(placed->bytes + 1);
        maps_gather(problem, &problem->inputs[i], &view->maps, placed->extents,
                    dtype_bytes(problem->inputs[i].dtype), inputs[i], view->part.inputs[i]);
    }
    view->part.filled = view->part.drawn = true;
}

static void draw_sampled(struct session *session, struct set *set)
{
    session_know_integers(session, set);
    session_let_go(session, NULL); /* one has its inputs at a time */
    set_draw(session, set);
    gather_inputs(session, set->view, set->inputs);
    set->view->part.seed = set->seed;
}

bool view_sample(struct session *session, const struct set *set, struct set *sample)
{
    enum { ENOUGH = 8192 }; /* outputs for statistics */
    const struct problem *problem = session->problem;
    *sample = (struct set){.shape = set->shape, .distribution = set->distribution};
    session_find_slices(session);
    for (int finer = 0; finer < 2; finer++) {
        set_free(sample);
        sample->view = MEM_NEW(struct view);
        sample->view->kind = VIEW_SAMPLED;
        sample->view->finer = finer == 1;
        if (!open_view(session, sample, false))
            return false;
        if (sample->view->small.layout.outputs[0].elements >= ENOUGH)
            break;
    }
    struct view *view = sample->view;
    gather_inputs(session, view, set->inputs);
    for (size_t i = 0; i < problem->output_count; i++) {
        const struct placed *placed = &view->small.layout.outputs[i];
        view->part.exact[i] = (double *)mem_array(placed->elements + 1, sizeof(double));
        maps_gather(problem, &problem->outputs[i], &view->maps, placed->extents, sizeof(double),
                    set->exact[i], view->part.exact[i]);
    }
    return true;
}

static int expect_view(struct session *session, struct set *set, struct err *err)
{
    struct view *view = set->view;
    double spent_ms = session->costs.spent_ms;
    uint64_t begun = timeline_begin(), started = clock_now_ns();
    view->judged = 0;
    view->part.distribution = set->distribution;
    if (view->kind == VIEW_SAMPLED)
        draw_sampled(session, set);
    int status = view->mixed >= 0 ? segments_expect(session, view, err)
                                  : set_expect_whole(session, &view->part, err);
    if (status == 0 && view->mixed < 0) {
        view->segments[0].distribution = set->distribution;
        view->segments[0].unfit = view->part.unfit;
        memcpy(view->segments[0].bounds, view->part.bounds, sizeof view->part.bounds);
    }
    set->expected = status == 0;
    set->unfit = view->part.unfit;
    set->beside = view->part.beside;
    if (set->beside && set->shape == &session->shapes[0])
        session->beside |= 1U << set->distribution;
    set->seed = view->part.seed;
    session->costs.spent_ms = spent_ms + (double)(clock_now_ns() - started) / 1e6;
    timeline_end("set.view", begun);
    return status;
}

/* Its small problem is there, but a call would find nothing. */
static bool is_gone(const struct set *set)
{
    return set->view != NULL && set->view->kind == VIEW_SAMPLED && set->inputs[0] == NULL;
}

/* Samples are of other indices with each drawing. */
int set_expect(struct session *session, struct set *set, struct err *err)
{
    if (set->expected && !is_gone(set))
        return 0;
    if (set->view != NULL && set->view->kind == VIEW_SAMPLED)
        view_turn(session, set);
    return set->view != NULL ? expect_view(session, set, err) : set_expect_whole(session, set, err);
}
