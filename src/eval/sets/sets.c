/* eval/sets: inputs with their expected outputs: what is drawn, when, and how often
 * anew.
 */
#include "base/mem.h"
#include "eval/data/timeline.h"
#include "eval/reference/private.h"
#include "eval/sets/non_finite.h"
#include "eval/sets/session.h"
#include "eval/sets/view.h"

#include <math.h>
#include <string.h>

enum { CASES_A_SHAPE = 2, CASES_LEAST = 6, FEW_REDUCTION = 16, CASE_LARGE = 1 << 22 };

static void set_assign(struct set *set, const struct shape *shape, enum distribution distribution)
{
    set_free(set);
    *set = (struct set){.shape = shape, .distribution = distribution};
}

/* One input alone is far from zero: two such factors would cancel in a product of theirs, for
 * honest kernels as well. One alone has few numbers that are not zero, or else hardly a product had
 * any. */
static enum distribution distribution_of(const struct session *session, const struct set *set,
                                         size_t input)
{
    bool plain = set->distribution == DRAW_OFFSET || set->distribution == DRAW_BELOW ||
                 set->distribution == DRAW_FEW;
    if (set_is_spoiled(set))
        plain = input != set_spoiled_input(session, set);
    else
        plain = plain && input > 0;
    return plain ? DRAW_NORMAL : set->distribution;
}

/* What draw_fill() takes for a row. */
static size_t row_of(const struct set *set, enum distribution distribution,
                     const struct tensor_spec *tensor, const struct placed *placed)
{
    if (distribution == DRAW_FEW)
        return set->shape->reduction / FEW_DRAWN;
    return distribution == DRAW_NON_FINITE ? set->shape->reduction : tensor_row(tensor, placed);
}

/* Of integers without a range: what a narrower type does not hold, and whose products' sums do not
 * overflow. */
static double largest_integer(const struct shape *shape)
{
    double terms = shape->reduction > 1 ? (double)shape->reduction : 1.0;
    return fmax(100.0, fmin(30000.0, floor(sqrt(0x1p30 / terms))));
}

/* Huge integers: the first input alone is, as far as sums of its products with the others, which
 * are small then, do not overflow; 0: not so that 16 bits would not hold it. */
static double huge_integer(const struct problem *problem, const struct shape *shape)
{
    enum { OTHERS_MOST = 3 };
    const struct tensor_spec *first = &problem->inputs[0];
    double terms = shape->reduction > 1 ? (double)shape->reduction : 1.0;
    double most = floor(0x1p28 / terms / OTHERS_MOST);
    bool whole = !dtype_is_float(first->dtype) && first->low > first->high;
    for (size_t i = 0; i < problem->output_count; i++)
        whole = whole && !dtype_is_float(problem->outputs[i].dtype);
    return whole && most >= 0x1p16 ? most : 0.0;
}

bool set_is_huge_integers(const struct session *session, const struct set *set)
{
    return set->distribution == DRAW_HUGE && huge_integer(session->problem, set->shape) > 0.0;
}

static void fill_huge_integers(struct session *session, struct set *set, struct random *seeds)
{
    const struct problem *problem = session->problem;
    double most = huge_integer(problem, set->shape);
    for (size_t i = 0; i < problem->input_count; i++) {
        const struct tensor_spec *tensor = &problem->inputs[i];
        const struct placed *placed = &set->shape->layout.inputs[i];
        double high = i == 0 ? most : 3.0;
        bool own = tensor->low <= tensor->high || dtype_is_float(tensor->dtype);
        draw_fill(DRAW_GIVEN, random_next(seeds), tensor->dtype, placed->elements,
                  tensor_row(tensor, placed), own ? tensor->low : -high, own ? tensor->high : high,
                  set->inputs[i]);
        for (size_t k = 0; i == 0 && k < placed->elements; k++) /* its half is a whole number */
            dtype_store(tensor->dtype, set->inputs[i], k,
                        2.0 * dtype_load(tensor->dtype, set->inputs[i], k));
    }
}

static bool is_free(const struct tensor_spec *tensor)
{
    return tensor->dtype == DTYPE_INT32 && tensor->low > tensor->high;
}

bool set_is_whole_integers(const struct session *session, const struct set *set)
{
    bool found = false;
    for (size_t i = 0; i < session->problem->input_count; i++)
        found = found || is_free(&session->problem->inputs[i]);
    return found && set->distribution == DRAW_EXTREMES && session->problem->torch == NULL;
}

double session_whole_integer(const struct session *session, const struct shape *shape)
{
    double terms = shape->reduction > 1 ? (double)shape->reduction : 1.0;
    double more = session->integers > 0.0 ? terms / session->integers_terms : 1.0;
    double most = floor(session->integers / fmax(1.0, more));
    return most >= INTEGERS_LEAST ? most : 0.0;
}

/* The ends of the range among them. */
static void fill_whole_integers(const struct session *session, struct set *set, size_t input,
                                uint64_t seed)
{
    enum { ENDS = 13 };
    const struct placed *placed = &set->shape->layout.inputs[input];
    double most = session_whole_integer(session, set->shape);
    int32_t *numbers = (int32_t *)(void *)set->inputs[input];
    draw_fill(DRAW_GIVEN, seed, DTYPE_INT32, placed->elements,
              tensor_row(&session->problem->inputs[input], placed), -most, most,
              set->inputs[input]);
    for (size_t i = seed % ENDS; i < placed->elements; i += ENDS)
        numbers[i] = (int32_t)(numbers[i] < 0 ? -most : most);
}

void set_place(const struct session *session, const struct set *set, struct call *call)
{
    const struct layout *layout = &set->shape->layout;
    call_make(layout, 0, 0, call);
    for (size_t i = 0; i < session->problem->input_count; i++)
        parallel_copy(session->region.inputs + layout->inputs[i].offset, set->inputs[i],
                      layout->inputs[i].bytes);
}

/* Every tensor has a seed of its own behind the set's, so that two inputs are never alike. Needs
 * no reference. */
static void set_fill(struct session *session, struct set *set)
{
    struct random seeds;
    uint64_t begun = timeline_begin();
    set->seed = random_seed();
    random_init(&seeds, set->seed);
    bool huge = set_is_huge_integers(session, set);
    bool whole =
        set_is_whole_integers(session, set) && session_whole_integer(session, set->shape) > 0.0;
    for (size_t i = 0; i < session->problem->input_count; i++)
        if (set->inputs[i] == NULL)
            set->inputs[i] =
                (unsigned char *)parallel_alloc(set->shape->layout.inputs[i].bytes + 1);
    if (huge)
        fill_huge_integers(session, set, &seeds);
    for (size_t i = 0; !huge && i < session->problem->input_count; i++) {
        const struct tensor_spec *tensor = &session->problem->inputs[i];
        const struct placed *placed = &set->shape->layout.inputs[i];
        enum distribution distribution = distribution_of(session, set, i);
        size_t row = row_of(set, distribution, tensor, placed);
        double high = tensor->high, low = tensor->low;
        bool any = !dtype_is_float(tensor->dtype) && low > high;
        if (whole && any) {
            fill_whole_integers(session, set, i, random_next(&seeds));
            continue;
        }
        if (distribution == DRAW_EXTREMES && any)
            low = -(high = largest_integer(set->shape));
        draw_fill(distribution, random_next(&seeds), tensor->dtype, placed->elements, row, low,
                  high, set->inputs[i]);
    }
    set->filled = true;
    timeline_end("set.draw", begun);
}

/* A file makes all of its inputs, whatever is asked for. Where they are large that is done for the
 * shapes that are listed, and others are drawn as those of a spec. */
static bool gives_own(const struct session *session, const struct set *set)
{
    static const size_t small = (size_t)32 << 20;
    bool listed = set->shape >= session->shapes && set->shape < session->shapes + SHAPES_MOST;
    return listed || session->shapes[0].layout.inputs_bytes <= small;
}

void set_draw(struct session *session, struct set *set)
{
    if (!set->filled)
        set_fill(session, set);
    for (size_t i = 0; i < session->problem->input_count; i++)
        reference_shape_input(session->reference, i, set->distribution,
                              &set->shape->layout.inputs[i], set->inputs[i]);
    reference_draw_own(session->reference, &set->shape->layout, set->seed, set->inputs);
    if (set->distribution == DRAW_GIVEN && session->drawn_ahead > 0)
        session->drawn_ahead--;
    if (set->distribution == DRAW_GIVEN && gives_own(session, set))
        reference_draw_given(session->reference, &set->shape->layout, set->seed, set->inputs);
    set->drawn = true;
}

/* Fresh pages are the kernel's work, and take as long as the results that come to lie there. */
static void touch_results(const struct session *session, struct set *set)
{
    for (size_t i = 0; i < session->problem->output_count; i++) {
        size_t bytes = (set->shape->layout.outputs[i].elements + 1) * sizeof(double);
        if (set->exact[i] == NULL) {
            set->exact[i] = (double *)parallel_alloc(bytes);
            parallel_clear(set->exact[i], bytes);
        }
    }
}

void session_fill(struct session *session)
{
    size_t count = session->pool_count + session->case_count, bytes = 0;
    for (size_t i = 0; i < count && reference_pending(session->reference); i++) {
        struct set *set =
            i < session->pool_count ? &session->pool[i] : &session->cases[i - session->pool_count];
        if (set_is_whole_integers(session, set) && !session->integers_known)
            continue; /* the definition is asked first */
        if (shape_is_sliced(session, set->shape))
            continue;
        bytes += shape_bytes(set->shape);
        if (bytes > session->options.memory_bytes)
            return;
        set_fill(session, set);
        touch_results(session, set);
    }
}

void session_draw_ahead(struct session *session)
{
    enum { MOST = 2 };
    uint64_t seeds[MOST];
    size_t count = session->pool_count + session->case_count, known = 0;
    if (session->problem->reference_kind != REFERENCE_TORCH || session->sliced)
        return;
    for (size_t i = 0; i < count && known < MOST; i++) {
        struct set *set =
            i < session->pool_count ? &session->pool[i] : &session->cases[i - session->pool_count];
        if (set->distribution != DRAW_GIVEN || set->drawn)
            continue;
        if (!set->filled)
            set_fill(session, set);
        seeds[known++] = set->seed;
    }
    if (known > 0 && reference_draw_ahead(session->reference, seeds, known))
        session->drawn_ahead = known;
}

void session_stop_drawing(struct session *session)
{
    struct subject *subject = reference_subject(session->reference);
    if (session->drawn_ahead > 0 && subject != NULL)
        subject->ops->pause(subject);
    session->drawn_ahead = 0;
}

/* --- which sets there are --- */

static void add_case(struct session *session, const struct shape *shape,
                     enum distribution distribution)
{
    if (session->case_count < CASES_MOST)
        set_assign(&session->cases[session->case_count++], shape, distribution);
}

/* Distributions take turns over all cases, so that every one of them meets several shapes. */
static enum distribution next_distribution(const struct session *session)
{
    return (enum distribution)(session->case_count % DRAW_RANDOM_COUNT);
}

/* Where a single row may be all there is, more sets of which some would be wrong. */
enum { OFFSETS_MORE = 2 };

/* Whether sums with few terms can be had: there they tell how exact a kernel computes, whatever the
 * order in which it sums. */
bool session_few_applies(const struct session *session)
{
    const struct problem *problem = session->problem;
    const struct tensor_spec *first = &problem->inputs[0];
    bool zero = first->low > first->high || (first->low <= 0.0 && first->high >= 0.0);
    enum dtype dtype = problem_precise(problem)->dtype;
    return zero && first->dtype == dtype && (dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT64) &&
           reference_bits(problem, PRECISION_SPEC) < 0 && !problem->tolerance_fixed &&
           !problem->normwise && session->long_shape->reduction >= FEW_REDUCTION &&
           session->long_shape->elements <= (size_t)1 << 22;
}

static void add_long_cases(struct session *session)
{
    size_t from = session->case_count;
    if (session->long_shape != &session->shapes[0])
        add_case(session, session->long_shape, next_distribution(session));
    if (session_few_applies(session))
        add_case(session, session->long_shape, DRAW_FEW);
    for (size_t i = from; i < session->case_count; i++)
        session->cases[i].optional = true;
}

/* Where nothing small can be had, since parameters alone are large, fewer do. */
static size_t sets_of(const struct shape *shape, size_t wanted)
{
    return shape->elements <= CASE_LARGE ? wanted : (wanted + 1) / 2;
}

static void add_hidden_cases(struct session *session)
{
    for (size_t i = 0; i < HIDDEN_SHAPES; i++)
        for (size_t k = 0; k < sets_of(&session->shapes[session->shape_count + i], CASES_A_SHAPE);
             k++)
            add_case(session, &session->shapes[session->shape_count + i],
                     next_distribution(session));
    for (size_t i = 0; i < session->beyond_count; i++) {
        add_case(session, &session->shapes[session->beyond_shape + i], next_distribution(session));
        session->cases[session->case_count - 1].optional = true;
    }
}

static void add_edge_cases(struct session *session)
{
    for (int i = DRAW_EDGES; i < DRAW_FEW; i++) {
        add_case(session, session_small_shape(session), (enum distribution)i);
        struct set *set = &session->cases[session->case_count - 1];
        set->optional = set_is_huge_integers(session, set) || /* a definition may not take them */
                        set_is_whole_integers(session, set);
    }
    if (session_non_finite_applies(session)) {
        add_case(session, session_small_shape(session), DRAW_NON_FINITE);
        session->cases[session->case_count - 1].optional = true; /* a definition may raise there */
    }
    bool rows = false; /* by the spec's own shapes: hidden ones change */
    for (size_t i = 1; i < session->shape_count; i++)
        rows = rows || shape_shows(session, &session->shapes[i]) >= 2;
    for (int i = 0; i < OFFSETS_MORE && !rows; i++)
        add_case(session, session_small_shape(session), DRAW_OFFSET);
}

/* A sum's rest, where that is all there is: a wrong one shows far from zero. And each place of a
 * row has its largest number somewhere: what is made of one of them alone shows on huge ones. In a
 * range they all are its ends, and many rows constant. */
static void add_short_cases(struct session *session)
{
    static const enum distribution asked[] = {DRAW_OFFSET, DRAW_BELOW, DRAW_HUGE};
    const struct tensor_spec *first = &session->problem->inputs[0];
    for (size_t i = 0; session->short_shape != NULL && i < sizeof asked / sizeof asked[0]; i++)
        if (asked[i] != DRAW_HUGE || (dtype_is_float(first->dtype) && first->low > first->high))
            add_case(session, session->short_shape, asked[i]);
}

void session_make_cases(struct session *session)
{
    size_t shapes = session->shape_count;
    size_t each = CASES_A_SHAPE;
    while ((shapes - 1) * each < CASES_LEAST && shapes > 1)
        each++;
    for (size_t i = 1; i < shapes; i++) {
        bool large = session->shapes[i].elements > session->shapes[0].elements / 2;
        for (size_t k = 0; k < (large ? 1 : sets_of(&session->shapes[i], each)); k++)
            add_case(session, &session->shapes[i], next_distribution(session));
    }
    add_long_cases(session);
    session->hidden_case = session->case_count;
    add_hidden_cases(session);
    session->edge_case = session->case_count;
    add_edge_cases(session);
    add_short_cases(session);
    for (size_t i = 0; i < session->pool_count; i++)
        set_assign(&session->pool[i], &session->shapes[0],
                   (enum distribution)(i % DRAW_RANDOM_COUNT));
}

/* Sets of a shape that is another one now have memory of the former's size: whatever happens, none
 * of them is left with it. */
static int refresh_hidden(struct session *session, struct err *err)
{
    int status = 0;
    for (size_t i = 0; i < HIDDEN_SHAPES && status == 0; i++)
        status = session_draw_hidden(session, i, err);
    session_draw_short(session);
    session_draw_beyond(session);
    for (size_t i = session->hidden_case; i < session->case_count; i++) {
        struct set *set = &session->cases[i];
        bool optional = set->optional;
        bool own = i < session->edge_case || set->shape == session->short_shape;
        set_assign(set, own ? set->shape : session_small_shape(session), set->distribution);
        set->optional = optional;
    }
    return status;
}

int session_refresh(struct session *session, bool all, struct err *err)
{
    size_t turn = session->refreshed++;
    if (turn == 0 && !all) /* nobody has met any of them; a final's are others than the trial's */
        return 0;
    /* What a subject that can be renewed has seen it cannot keep: fewer drawings do. */
    enum { SELDOM = 4 };
    if (!all && session->backend->renews && turn % SELDOM != 0)
        return 0;
    if (session->backend->renews)
        turn /= SELDOM;
    if (all && !session_is_large(session)) /* there they would take longer than all the rest */
        session->known_bounds = 0;
    if (all && refresh_hidden(session, err) != 0)
        return -1;
    for (size_t i = 0; i < session->pool_count; i++)
        if (all || i == turn % session->pool_count)
            set_redraw(&session->pool[i]);
    for (size_t i = 0; i < session->case_count; i++)
        if (all || i == turn % session->case_count)
            set_redraw(&session->cases[i]);
    return 0;
}
