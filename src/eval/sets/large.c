/* eval/sets/large: sets of shapes that are as large as the timed one in every dim, and of the timed
 * one itself, of every distribution, at the cost of small ones (view.h). Without them a kernel that
 * branches on its sizes is asked about the large ones on random inputs of the timed shape alone. */
#include "eval/sets/large.h"

#include "base/mem.h"
#include "base/quota.h"
#include "eval/sets/non_finite.h"
#include "eval/sets/session.h"
#include "eval/sets/view.h"

#include <string.h>
#include <unistd.h>

static const double times_most = 1.75, times_least = 1.1;

/* --- shapes --- */

/* Inputs lie in memory twice. Who has a quarter of the machine's for them has no more. */
static bool has_room(const struct session *session, const struct shape *shape)
{
    double memory = (double)quota_memory();
    return (double)session->slots * (double)shape->layout.inputs_bytes +
               (double)shape->layout.outputs_bytes <=
           memory / 4.0;
}

static uint64_t batches_of(const struct session *session)
{
    return session->slices_known ? session->slices : problem_may_be_sliced(session->problem);
}

static bool draw_shape(struct session *session, size_t index, struct shape *shape)
{
    const bool equal = index % 2 == 1; /* a way of square ones is a way of its own */
    uint64_t batches = batches_of(session);
    const double most = session->scarce ? times_least : times_most; /* they take as much more */
    const double times[] = {most, most, times_least};
    struct names dims;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (problem_draw_large(session->problem, random_seed(), batches, times[i], equal, &dims) &&
            shape_make(session, &dims, shape, NULL) == 0 && has_room(session, shape) &&
            shape_fits(session, shape))
            return true;
    return false;
}

/* --- those for which kernels have ways of their own --- */

static const enum form forms[FORM_SHAPES] = {FORM_TILES, FORM_LESS, FORM_FEW, FORM_FEW,
                                             FORM_FEW,   FORM_ONE,  FORM_ONE, FORM_ONE};
enum { FIRST_FEW = 2, FIRST_ONE = 5, OF_EACH = 3 };

/* The `index`th of the sizes, from any on, and so on around. */
static size_t nth_size(uint64_t sizes, size_t index)
{
    index %= (size_t)__builtin_popcountll(sizes);
    while (index-- > 0)
        sizes &= sizes - 1;
    return (size_t)__builtin_ctzll(sizes);
}

static bool draw_form(struct session *session, size_t index, size_t first, struct shape *shape)
{
    const double times = session->scarce ? times_least : times_most;
    const uint64_t batches = batches_of(session);
    const uint64_t sizes = problem_form_sizes(session->problem, batches);
    const size_t of_dim = index < FIRST_FEW ? 0 : (index - FIRST_FEW) % OF_EACH;
    struct names dims;
    if ((int)of_dim >= __builtin_popcountll(sizes))
        return false;
    return problem_draw_form(session->problem, random_seed(), forms[index],
                             nth_size(sizes, first + of_dim), batches, times, &dims) &&
           shape_make(session, &dims, shape, NULL) == 0 && has_room(session, shape) &&
           shape_fits(session, shape);
}

static void draw_forms(struct session *session)
{
    struct shape *shape = MEM_NEW(struct shape);
    size_t first = (size_t)random_below(&session->random, DIMS_MAX);
    for (size_t i = 0; i < FORM_SHAPES; i++)
        if (draw_form(session, i, first, shape)) {
            session->form_shapes[i] = *shape;
            session->forms |= 1U << i;
        }
    mem_free(shape);
}

/* Where inputs are large the calls take turns: whole tiles always, one of a few or of less, and one
 * of a dim that is 1. */
static void ask_forms(struct session *session, bool all)
{
    static const size_t small_elements = (size_t)1 << 22;
    unsigned other = 1 + (unsigned)random_below(&session->random, FIRST_ONE - 1);
    unsigned one = FIRST_ONE + (unsigned)random_below(&session->random, OF_EACH);
    session->forms_asked = session->forms;
    if (!all && session->shapes[0].elements > small_elements)
        session->forms_asked &= 1U | 1U << other | 1U << one;
}

void session_draw_large(struct session *session)
{
    struct shape *shape = MEM_NEW(struct shape);
    for (size_t i = 0; i < LARGE_SHAPES; i++) {
        if (!draw_shape(session, i, shape))
            continue;
        session->large_shapes[session->large_shape_count++] = *shape;
    }
    mem_free(shape);
    for (size_t i = 0; i < FORM_SHAPES; i++)
        session->form_shapes[i] = session->shapes[0];
    draw_forms(session);
    session->timed_shape = session->shapes[0];
    session->divisors = problem_divisors(session->problem);
}

/* --- sets --- */

/* Which shape, in turns; how; by several distributions at once. */
static const struct {
    bool timed, mixed;
    enum view_kind kind;
} kinds[LARGE_SETS - FORM_SHAPES] = {{false, true, VIEW_EXPANDED},
                                     {false, false, VIEW_SAMPLED},
                                     {true, true, VIEW_EXPANDED},
                                     {true, false, VIEW_SAMPLED}};

bool session_draws(const struct session *session, enum distribution distribution)
{
    if (distribution == DRAW_NON_FINITE)
        return session_non_finite_applies(session);
    return distribution != DRAW_FEW || session_few_applies(session);
}

/* With numbers that are alike, or of which only the class counts, a wrong index shows nothing; with
 * a one in each row hardly anything; nor where products of tiny ones are none, or a few rows
 * outweigh all others. */
static bool is_alike(enum distribution distribution)
{
    return distribution == DRAW_ZEROS || distribution == DRAW_ONES ||
           distribution == DRAW_ONE_HOT || distribution == DRAW_TINY || distribution == DRAW_ROWS ||
           distribution == DRAW_COLUMNS || distribution == DRAW_WIDE ||
           distribution == DRAW_NON_FINITE;
}

/* Any at the timed shape. The only call at another one is of numbers that differ; a win is asked
 * about each distribution at large ones. */
static enum distribution any_distribution(struct session *session, const struct shape *shape,
                                          bool timed)
{
    const bool shorter = shape->reduction < session->shapes[0].reduction;
    for (;;) {
        enum distribution found = (enum distribution)random_below(&session->random, DISTRIBUTIONS);
        if (session_draws(session, found) && (timed || !is_alike(found)) &&
            (found != DRAW_FEW || !shorter))
            return found;
    }
}

/* What the definition computes whole, once in a while: where it has shown to be quick. */
static bool is_quick(const struct session *session, const struct shape *shape)
{
    static const double slow_ns = 0.5e9;
    static const size_t elements_most = (size_t)1 << 24;
    return session->exact_ns > 0.0 && session->exact_ns < slow_ns &&
           shape->elements <= elements_most;
}

bool large_open(struct session *session, struct set *set, const struct shape *shape,
                enum distribution distribution, enum view_kind kind, bool mixed)
{
    set_free(set);
    *set = (struct set){.shape = shape, .distribution = distribution, .optional = true};
    return view_open(session, set, kind, mixed) || is_quick(session, shape);
}

bool large_is_beyond(const struct session *session, const struct set *set)
{
    return set->shape >= session->large_shapes && set->shape < session->large_shapes + LARGE_SHAPES;
}

enum { FORM_SETS = LARGE_SETS - FORM_SHAPES }; /* from here on */

static const struct shape *shape_of(struct session *session, size_t index)
{
    if (index >= FORM_SETS)
        return (session->forms_asked >> (index - FORM_SETS) & 1) != 0
                   ? &session->form_shapes[index - FORM_SETS]
                   : NULL;
    if (kinds[index].timed)
        return &session->timed_shape;
    if (session->large_shape_count == 0)
        return NULL;
    return &session->large_shapes[index % session->large_shape_count];
}

/* Each shape is a new one now and then, and with it the sets of that shape. */
static void renew(struct session *session)
{
    struct shape *shape = MEM_NEW(struct shape);
    for (size_t i = 0; i < session->large_shape_count; i++)
        if (draw_shape(session, i, shape))
            session->large_shapes[i] = *shape;
    draw_forms(session);
    for (size_t i = 0; i < LARGE_SETS; i++) {
        struct set *set = &session->large[i];
        set_free(set);
        set->shape = NULL;
    }
    mem_free(shape);
}

void session_begin_large(struct session *session, bool all)
{
    if (!session->slices_known) {
        session_find_slices(session);
        renew(session); /* what was taken for a batch may be none */
    } else if (all || session->refreshed % LARGE_TURNS == 0) {
        renew(session);
    }
    ask_forms(session, all);
}

struct set *session_next_large(struct session *session, size_t index)
{
    struct set *set = &session->large[index];
    const struct shape *shape = shape_of(session, index);
    if (shape == NULL)
        return NULL;
    const bool form = index >= FORM_SETS, timed = !form && kinds[index].timed;
    if (set->shape != shape || set->view == NULL) {
        if (!large_open(session, set, shape, any_distribution(session, shape, timed),
                        form ? VIEW_EXPANDED : kinds[index].kind, !form && kinds[index].mixed))
            return NULL;
    } else if (set->view->kind == VIEW_SAMPLED) {
        set->distribution = any_distribution(session, shape, timed);
    }
    if (set->view != NULL)
        view_turn(session, set);
    else
        set_redraw(set);
    return set;
}

void large_rest(struct session *session, struct set *set)
{
    static const size_t kept_most = (size_t)16 << 20;
    if (set->view == NULL || set->view->kind != VIEW_SAMPLED ||
        set->shape->layout.inputs_bytes <= kept_most)
        return;
    for (size_t i = 0; i < session->problem->input_count; i++) {
        mem_free(set->inputs[i]);
        set->inputs[i] = NULL;
    }
    set_redraw(set);
}

void large_close(struct session *session)
{
    for (size_t i = 0; i < LARGE_SETS; i++)
        set_free(&session->large[i]);
}
