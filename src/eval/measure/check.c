/* eval/measure/check: checked calls of a candidate, and what is done in doubt.
 *
 * A bound holds eight times what is expected, so what is between half and twice of it is either a
 * kernel that is nearly too inexact or an unlucky drawing. More is drawn of the same kind, and the
 * majority decides, so that the same source gets the same verdict. Of the main shape every timed
 * call is a drawing, and the majority of each distribution counts. */
#include "eval/data/timeline.h"
#include "eval/measure/accuracy.h"
#include "eval/sets/session.h"
#include "eval/sets/view.h"

static const double doubt_low = 0.5;

enum { DRAWINGS = 6, DRAWINGS_OF_MAIN = 4, WEIGHED_MOST = 8 };

static bool is_main(const struct bench *bench, const struct set *set)
{
    return set->shape == &bench->session->shapes[0];
}

/* --- more of the same --- */

static uint64_t kind_of(const struct bench *bench, const struct set *set)
{
    bool own = set->view == NULL && set->shape >= bench->session->shapes &&
               set->shape < bench->session->shapes + SHAPES_MOST;
    uint64_t shape =
        own ? (uint64_t)(set->shape - bench->session->shapes) : (uint64_t)(uintptr_t)set->shape;
    return shape * DISTRIBUTIONS + set_distribution(set) + 1;
}

static bool was_weighed(const struct bench *bench, const struct set *set)
{
    for (size_t i = 0; i < bench->accuracy.weighed_count; i++)
        if (bench->accuracy.weighed[i] == kind_of(bench, set))
            return true;
    return bench->accuracy.weighed_count == WEIGHED_MOST;
}

struct tally {
    size_t judged, over; /* sets; those on which the kernel was too inexact */
};

static void reject_for_good(struct bench *bench, const struct tally *tally)
{
    const struct accuracy *accuracy = &bench->accuracy;
    bench_reject(bench, VERDICT_REJECTED, accuracy->reason,
                 arena_printf(bench->arena, "%sdrawn again: too inexact on %zu of %zu sets\n",
                              accuracy->details, tally->over, tally->judged));
}

/* One set after another, each a drawing of its own; `tally` has those that were there before.
 * Where the shape is too large for the definition all are views of a small problem. */
static int draw_more(struct bench *bench, const struct shape *shape, const struct set *like,
                     enum distribution distribution, size_t drawings, struct tally *tally,
                     struct err *err)
{
    struct set more = {.shape = shape, .distribution = distribution, .optional = true};
    int status = 0;
    if (like != NULL ? like->view != NULL : bench->session->sliced)
        (void)view_open(bench->session, &more, like != NULL ? like->view->kind : VIEW_SAMPLED,
                        false);
    for (size_t i = 0; i < drawings && status == 0 && !bench->ended; i++) {
        struct outcome outcome;
        set_redraw(&more);
        if (more.view != NULL)
            view_turn(bench->session, &more);
        if (bench->subject == NULL)
            status = bench_open(bench, err);
        if (status == 0 && !bench->ended)
            status = bench_check_once(bench, &more, &outcome, err);
        tally->judged += !more.unfit;
        tally->over += !more.unfit && bench->accuracy.last > 1.0;
    }
    set_free(&more);
    if (status == 0 && !bench->ended && tally->over * 2 > tally->judged)
        reject_for_good(bench, tally);
    return status;
}

static int weigh(struct bench *bench, const struct set *set, struct err *err)
{
    struct accuracy *accuracy = &bench->accuracy;
    struct tally tally = {.judged = 1, .over = accuracy->last > 1.0};
    if (bench->ended || bench->request == NULL || !(accuracy->last > doubt_low) ||
        was_weighed(bench, set))
        return 0;
    accuracy->weighed[accuracy->weighed_count++] = kind_of(bench, set);
    return draw_more(bench, set->shape, set, set_distribution(set),
                     is_main(bench, set) ? DRAWINGS_OF_MAIN : DRAWINGS, &tally, err);
}

int bench_check(struct bench *bench, struct set *set, struct outcome *outcome, struct err *err)
{
    int status = bench_check_once(bench, set, outcome, err);
    return status != 0 || set->unfit ? status : weigh(bench, set, err);
}

int accuracy_settle(struct bench *bench, struct err *err)
{
    const struct accuracy *accuracy = &bench->accuracy;
    int status = 0;
    for (int d = 0; d < DISTRIBUTIONS && status == 0 && !bench->ended; d++) {
        struct tally tally = {.judged = accuracy->judged[d], .over = accuracy->over[d]};
        if (tally.over * 2 > tally.judged)
            status = draw_more(bench, &bench->session->shapes[0], NULL, (enum distribution)d,
                               DRAWINGS_OF_MAIN, &tally, err);
    }
    return status;
}

/* --- a win's precision, where it was timed --- */

/* Sums of few terms are asked at a small shape, and a kernel may take another way at the main one.
 * What claims to be faster there is asked there, too. */
static bool is_asked_of_win(const struct bench *bench)
{
    const struct session *session = bench->session;
    return bench->request->effort != EFFORT_SEARCH && session->long_shape != &session->shapes[0] &&
           session_few_applies(session);
}

static void draw_few(struct bench *bench)
{
    if (bench->few.shape != NULL)
        return;
    bench->few = (struct set){
        .shape = &bench->session->shapes[0], .distribution = DRAW_FEW, .optional = true};
    if (bench->session->sliced)
        (void)view_open(bench->session, &bench->few, VIEW_SAMPLED, false);
}

bool accuracy_expects(const struct bench *bench)
{
    return is_asked_of_win(bench) && !bench->few.expected;
}

int accuracy_expect(struct bench *bench, struct err *err)
{
    draw_few(bench);
    return set_expect(bench->session, &bench->few, err);
}

int accuracy_of_win(struct bench *bench, struct err *err)
{
    const enum stage stage = bench->stage;
    struct outcome outcome;
    if (bench->evaluation->finding != FINDING_FASTER || !is_asked_of_win(bench))
        return 0;
    bench->stage = STAGE_CHECK; /* it is not timed */
    draw_few(bench);
    int status = bench->subject != NULL ? 0 : bench_open(bench, err);
    if (status == 0 && !bench->ended)
        status = bench_check(bench, &bench->few, &outcome, err);
    bench->stage = stage;
    return status;
}

/* --- generations of its runner --- */

int bench_check_apart(struct bench *bench, bool halted, struct err *err)
{
    struct outcome outcome;
    const struct subject *subject = bench->subject;
    struct set *set = bench->ended ? NULL : bench_fresh_set(bench);
    if (set == NULL || !subject->holds ||
        (halted ? subject->threads == 0 || subject->unwatched : bench->never_held))
        return 0;
    bench->held = bench->apart.looks = !halted;
    bench->halted = halted;
    uint64_t begun = timeline_begin();
    int status = bench_check(bench, set, &outcome, err);
    timeline_end(halted ? "check.halted" : "check.held", begun);
    bench->held = bench->apart.looks = bench->halted = false;
    return status;
}

/* Between timed calls, now and then: a check on top, and never a time. */
static int check_apart_at_times(struct bench *bench, size_t sets_needed, struct err *err)
{
    enum { CHANCE_THREADED = 4, WATCHED = 2, CHANCE_ALONE = 16 };
    struct session *session = bench->session;
    size_t left = session->pool_count - (size_t)__builtin_popcountll(bench->seen);
    uint64_t chance = bench->subject->threads == 0 ? CHANCE_ALONE
                      : bench->threaded            ? CHANCE_THREADED
                                                   : 1; /* it had none while it was checked */
    uint64_t drawn = random_below(&session->random, chance);
    if (left <= sets_needed || drawn > WATCHED)
        return 0;
    return bench_check_apart(bench, drawn > 0, err);
}

/* The next generation begins with a call in each slot, whose times are not used: the first touch of
 * a page is the kernel's work. From the runner's side they are calls like any other. */
int bench_ensure_generation(struct bench *bench, size_t sets_needed, struct err *err)
{
    struct session *session = bench->session;
    size_t left = session->pool_count - (size_t)__builtin_popcountll(bench->seen);
    const unsigned slots = (1U << session->slots) - 1;
    size_t cold = session->slots - (size_t)__builtin_popcount(bench->warm & slots);
    bool fresh = bench->subject == NULL || left < sets_needed + cold;
    if (fresh && (bench_open(bench, err) != 0 || bench->ended))
        return bench->ended ? 0 : -1;
    for (size_t tries = 0; (bench->warm & slots) != slots && tries < POOL_LEAST; tries++) {
        struct outcome outcome;
        struct set *set = bench_fresh_set(bench);
        if (set == NULL)
            return 0;
        bench->slot_wanted = (bench->warm & 1) != 0 ? 1 : 0;
        bench->slot_forced = true;
        int status = bench_check(bench, set, &outcome, err);
        bench->slot_forced = false;
        if (status != 0 || bench->ended)
            return status;
    }
    return check_apart_at_times(bench, sets_needed, err);
}
