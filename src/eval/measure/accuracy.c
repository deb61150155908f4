/* eval/measure/accuracy: how much of the allowed error a candidate needs, and what is done in
 * doubt.
 *
 * A bound holds eight times what is expected, so what is between half and twice of it is either a
 * kernel that is nearly too inexact or an unlucky drawing. More is drawn of the same kind, and the
 * majority decides, so that the same source gets the same verdict. Of the main shape every timed
 * call is a drawing, and the majority of each distribution counts. */
#include "eval/measure/accuracy.h"

#include "eval/measure/session_private.h"

#include <string.h>

static const double doubt_low = 0.5, doubt_high = 2.0;

enum { DRAWINGS = 6, DRAWINGS_OF_MAIN = 4, WEIGHED_MOST = 8 };

static bool is_main(const struct bench *bench, const struct set *set)
{
    return set->shape == &bench->session->shapes[0];
}

bool accuracy_is_doubtful(const struct bound *bound, double ratio)
{
    return !bound->fixed && !bound->exact_equality && ratio <= doubt_high;
}

void accuracy_see(struct bench *bench, const struct set *set, double ratio, double honest)
{
    struct accuracy *accuracy = &bench->accuracy;
    bool again = accuracy->seed == set->seed && accuracy->seen;
    accuracy->last = ratio;
    if (!accuracy->seen || ratio > accuracy->ratio) {
        accuracy->ratio = ratio;
        accuracy->honest = honest;
        accuracy->distribution = set->distribution;
        accuracy->dims = set->shape->dims;
    }
    for (size_t i = 0; i < set->shape->dims.count; i++) {
        bool more = !accuracy->seen || set->shape->dims.number[i] > accuracy->reached.number[i];
        accuracy->reached.name[i] = set->shape->dims.name[i];
        if (more)
            accuracy->reached.number[i] = set->shape->dims.number[i];
    }
    accuracy->reached.count = set->shape->dims.count;
    accuracy->seen = true;
    accuracy->seed = set->seed;
    if (!is_main(bench, set) || again)
        return;
    accuracy->judged[set->distribution]++;
    accuracy->over[set->distribution] += ratio > 1.0;
}

/* --- more of the same --- */

static uint64_t kind_of(const struct bench *bench, const struct set *set)
{
    return (uint64_t)(set->shape - bench->session->shapes) * DISTRIBUTIONS + set->distribution + 1;
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

/* One set after another, each a drawing of its own; `tally` has those that were there before. */
static int draw_more(struct bench *bench, const struct shape *shape, enum distribution distribution,
                     size_t drawings, struct tally *tally, struct err *err)
{
    struct accuracy *accuracy = &bench->accuracy;
    struct set more = {.shape = shape, .distribution = distribution, .optional = true};
    int status = 0;
    accuracy->weighing = true;
    for (size_t i = 0; i < drawings && status == 0 && !bench->ended; i++) {
        struct outcome outcome;
        set_redraw(&more);
        if (bench->subject == NULL)
            status = bench_open(bench, err);
        if (status == 0 && !bench->ended)
            status = bench_check(bench, &more, &outcome, err);
        tally->judged += !more.unfit;
        tally->over += !more.unfit && accuracy->last > 1.0;
    }
    accuracy->weighing = false;
    set_free(&more);
    if (status == 0 && !bench->ended && tally->over * 2 > tally->judged)
        reject_for_good(bench, tally);
    return status;
}

int accuracy_weigh(struct bench *bench, const struct set *set, struct err *err)
{
    struct accuracy *accuracy = &bench->accuracy;
    struct tally tally = {.judged = 1, .over = accuracy->last > 1.0};
    if (bench->ended || bench->request == NULL || accuracy->weighing ||
        !(accuracy->last > doubt_low) || was_weighed(bench, set))
        return 0;
    accuracy->weighed[accuracy->weighed_count++] = kind_of(bench, set);
    return draw_more(bench, set->shape, set->distribution,
                     is_main(bench, set) ? DRAWINGS_OF_MAIN : DRAWINGS, &tally, err);
}

int accuracy_settle(struct bench *bench, struct err *err)
{
    const struct accuracy *accuracy = &bench->accuracy;
    int status = 0;
    for (int d = 0; d < DISTRIBUTIONS && status == 0 && !bench->ended; d++) {
        struct tally tally = {.judged = accuracy->judged[d], .over = accuracy->over[d]};
        if (tally.over * 2 > tally.judged)
            status = draw_more(bench, &bench->session->shapes[0], (enum distribution)d,
                               DRAWINGS_OF_MAIN, &tally, err);
    }
    return status;
}

/* --- a win's precision, where it was timed --- */

/* Sums of few terms are asked at a small shape, and a kernel may take another way at the main one.
 * What claims to be faster there is asked there, too. */
int accuracy_of_win(struct bench *bench, struct err *err)
{
    struct session *session = bench->session;
    const enum stage stage = bench->stage;
    struct set few = {.shape = &session->shapes[0], .distribution = DRAW_FEW, .optional = true};
    struct outcome outcome;
    if (bench->request->effort == EFFORT_SEARCH || bench->evaluation->finding != FINDING_FASTER ||
        session->long_shape == few.shape || !session_few_applies(session))
        return 0;
    bench->stage = STAGE_CHECK; /* it is not timed */
    int status = bench->subject != NULL ? 0 : bench_open(bench, err);
    if (status == 0 && !bench->ended)
        status = bench_check(bench, &few, &outcome, err);
    set_free(&few);
    bench->stage = stage;
    return status;
}

/* --- the record --- */

void accuracy_put(const struct bench *bench, struct json *json)
{
    const struct accuracy *accuracy = &bench->accuracy;
    if (!accuracy->seen)
        return;
    json_put_object(json, "error");
    json_put_real(json, "of_allowed", accuracy->ratio);
    json_put_real(json, "honest", accuracy->honest);
    json_put_text(json, "inputs", distribution_name(accuracy->distribution));
    json_put_names(json, "shape", &accuracy->dims);
    json_object_end(json);
    json_put_names(json, "checked_up_to", &accuracy->reached);
}

void accuracy_note(struct bench *bench)
{
    const struct problem *problem = bench->session->problem;
    for (int d = 0; d < DISTRIBUTIONS; d++)
        if ((bench->session->beside >> d & 1) != 0)
            bench_note(bench,
                       "%s inputs do not count: there the definition itself, computed in its own "
                       "types, needs more than a quarter of rtol %g, atol %g",
                       distribution_name((enum distribution)d), problem->rtol, problem->atol);
}
