/* eval/measure/fitness: is a problem fit to be optimized? Its reference must run, repeat itself and
 * pass its own tolerance; its tolerance must refuse what is not a solution; its floor must be sane.
 */
#include "eval/measure/fitness_null.h"
#include "eval/problem/torch.h"
#include "eval/reference/private.h"
#include "eval/sets/non_finite.h"
#include "eval/sets/view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DETAIL_MOST = 400 };

static void finding(struct fitness *fitness, const char *name, bool passed, const char *format, ...)
    PRINTF_LIKE(4, 5);

static void finding(struct fitness *fitness, const char *name, bool passed, const char *format, ...)
{
    va_list arguments;
    BUF_LOCAL(text, DETAIL_MOST);
    va_start(arguments, format);
    buf_addv(&text, format, arguments);
    va_end(arguments);
    json_object(fitness->json);
    json_put_text(fitness->json, "name", name);
    json_put_bool(fitness->json, "passed", passed);
    json_put_text(fitness->json, "text", buf_text(&text));
    json_object_end(fitness->json);
    fitness->fit = fitness->fit && passed;
}

/* --- the reference --- */

/* `results` are the session's scratch: fresh pages for each call would cost more than what comes to
 * lie there. */
static int compute(struct session *session, const struct set *set,
                   enum reference_precision precision, void **results, struct err *err)
{
    const struct layout *layout = &set->shape->layout;
    struct call call;
    set_place(session, set, &call);
    for (size_t i = 0; i < session->problem->output_count; i++)
        results[i] = session_scratch(session, i, layout->outputs[i].bytes);
    return reference_compute(session->reference, layout, &call, precision, results, err);
}

static bool passes(const struct session *session, const struct set *set, void **results)
{
    for (size_t i = 0; i < session->problem->output_count; i++) {
        struct mismatch mismatch;
        const struct placed *placed = &set->shape->layout.outputs[i];
        check_compare(&session->problem->outputs[i], placed->extents, placed->elements,
                      &set->bounds[i], set->exact[i], results[i], &mismatch);
        if (!mismatch.passed)
            return false;
    }
    return true;
}

struct tally {
    size_t unfit, counted, failed;
    size_t inexact, rounded; /* results that no float32 is; of those, the exact one's rounding */
    size_t beside; /* of the main shape: the definition itself fails the spec's tolerance */
};

/* 1: what the user's function did is a finding. */
static int expect(struct fitness *fitness, struct set *set, bool pool, struct tally *tally,
                  struct err *err)
{
    if (set_expect(fitness->session, set, err) != 0) {
        if (err->code != ERR_USAGE && err->code != ERR_TIMEOUT && err->code != ERR_CHILD)
            return -1;
        finding(fitness, "reference", false, "%s", err->message);
        return 1;
    }
    tally->unfit += set->unfit;
    tally->beside += pool && set->beside;
    if (!pool || !set->unfit || set->beside)
        return 0;
    finding(fitness, "reference", false,
            "its results on %s inputs are NaN, or beyond the range of the output's type",
            distribution_name(set->distribution));
    return 1;
}

/* Whether a definition's float32 results are its float64 ones, rounded: then it computes in float64
 * whatever it is given. */
static void compare_rounded(const struct session *session, const struct set *set, void **results,
                            struct tally *tally)
{
    for (size_t i = 0; i < session->problem->output_count; i++) {
        const float *got = (const float *)results[i];
        if (session->problem->outputs[i].dtype != DTYPE_FLOAT32)
            continue;
        for (size_t k = 0; k < set->shape->layout.outputs[i].elements; k++) {
            float rounded = (float)set->exact[i][k];
            bool inexact = (double)rounded < set->exact[i][k] || (double)rounded > set->exact[i][k];
            tally->inexact += inexact;
            tally->rounded += inexact && !(rounded < got[k]) && !(rounded > got[k]);
        }
    }
}

static void name_double_steps(struct fitness *fitness, const struct tally *tally)
{
    struct session *session = fitness->session;
    bool rounded = tally->inexact > 0 && tally->rounded >= tally->inexact - tally->inexact / 1000;
    const char *steps = reference_double_steps(session->reference, rounded, session->arena);
    if (*steps != '\0')
        finding(fitness, "double steps", true,
                "it computes in float64 whatever it is given, so that its own error says little of "
                "float32's: %s",
                steps);
}

static int repeat(struct session *session, const struct set *set, struct tally *tally,
                  struct err *err)
{
    void *again[OUTPUTS_MAX];
    const struct set *computed = set_computed(set);
    if (set->unfit)
        return 0;
    if (compute(session, computed, PRECISION_SPEC, again, err) != 0)
        return -1;
    if (set->shape == &session->shapes[0])
        compare_rounded(session, computed, again, tally);
    tally->counted++;
    tally->failed += !passes(session, computed, again);
    return 0;
}

/* Sets that do not count, by name. A problem that has no others is no question. */
static void check_tolerance(struct fitness *fitness, const struct tally *tally)
{
    const struct session *session = fitness->session;
    BUF_LOCAL(names, DETAIL_MOST);
    for (int d = 0; d < DISTRIBUTIONS; d++)
        if ((session->beside >> d & 1) != 0)
            buf_addf(&names, "%s%s", names.length > 0 ? ", " : "",
                     distribution_name((enum distribution)d));
    finding(
        fitness, "tolerance", tally->beside < FITNESS_SETS,
        "the definition itself, computed in its own types, fails rtol %g, atol %g on some sets, "
        "which do not count: %s inputs; %zu of %d sets of the main shape",
        session->problem->rtol, session->problem->atol, buf_text(&names), tally->beside,
        (int)FITNESS_SETS);
}

static void tell_non_finite(struct fitness *fitness)
{
    const struct problem *problem = fitness->session->problem;
    const char *why = problem->non_finite == NON_FINITE_IGNORE ? "the spec says `ignore`"
                      : problem_is_spoiled(problem) ? "this backend's languages have none"
                      : problem->normwise
                          ? "accuracy is normwise"
                          : "no input of floats lacks a range, or an output is whole";
    if (session_non_finite_applies(fitness->session))
        finding(fitness, "non-finite", true,
                "NaN and infinities are drawn: what a kernel gives for them is %s",
                problem->non_finite == NON_FINITE_PROPAGATE
                    ? "the definition's, by class"
                    : "the definition's, where it is settled");
    else
        finding(fitness, "non-finite", true, "NaN and infinities are not drawn: %s", why);
}

/* A case is asked for here alone, so that all of them use the memory of the first: there is no room
 * for all of a large problem's, and fresh pages cost more than what is done with them. */
static int check_reference(struct fitness *fitness, struct err *err)
{
    struct session *session = fitness->session;
    struct tally tally = {0};
    size_t count = session->case_count + FITNESS_SETS;
    for (size_t i = 0; i < count; i++) {
        bool pool = i < FITNESS_SETS;
        struct set *set = pool ? &session->pool[i] : &session->cases[i - FITNESS_SETS];
        int status = expect(fitness, set, pool, &tally, err);
        if (status == 0)
            status = repeat(session, set, &tally, err);
        if (status != 0)
            return status;
        if (!pool && i + 1 < count)
            set_hand_over(session, set, set + 1);
    }
    finding(fitness, "reference", true, "computed %zu sets of inputs; %zu edge cases do not apply",
            count, tally.unfit);
    name_double_steps(fitness, &tally);
    if (session->beside != 0)
        check_tolerance(fitness, &tally);
    finding(fitness, "repeats", tally.failed == 0,
            "computed again in its own precision, %zu of %zu results are within the tolerance",
            tally.counted - tally.failed, tally.counted);
    tell_non_finite(fitness);
    return 0;
}

/* --- what must be refused --- */

/* Every output is wrong in turn: a null solution of one of several must be seen, too. */
static void check_null(struct fitness *fitness, size_t which)
{
    const struct problem *problem = fitness->session->problem;
    for (size_t output = 0; output < problem->output_count; output++) {
        struct null_result result;
        null_try(fitness->session, which, output, &result);
        if (result.tried > 0)
            finding(fitness, result.name, null_refused(&result), "%s: refused on %zu of %zu sets",
                    problem->outputs[output].name, result.refused, result.tried);
    }
}

static void check_lower(struct fitness *fitness)
{
    const struct problem *problem = fitness->session->problem;
    struct null_result result;
    const char *why;
    if (null_lower(fitness->session, &result, &why))
        finding(fitness, result.name, result.refused > 0,
                "inputs rounded to %d bits: refused on %zu of %zu sets%s",
                reference_bits(problem, PRECISION_LOWER), result.refused, result.tried,
                result.elsewhere && result.refused > 0 ? ", at smaller shapes alone" : "");
    else if (why != NULL)
        finding(fitness, result.name, true, "%s: %s", problem->precision, why);
}

/* --- the floor --- */

static const char *time_words(double ns, char text[32])
{
    if (ns < 1e6)
        snprintf(text, 32, "%.1f us", ns / 1e3);
    else
        snprintf(text, 32, "%.2f ms", ns / 1e6);
    return text;
}

int fitness_floor(struct fitness *fitness, struct err *err)
{
    struct session *session = fitness->session;
    double flops, bytes, ns;
    char taken[32], of_bytes[32], of_flops[32], work[48] = "operations not known (`flops`)";
    char floors[128];
    if (fitness->ended)
        return 0;
    fitness->ended = true;
    if (problem_work(session->problem, &session->shapes[0].dims, &flops, &bytes, err) != 0 ||
        baseline_time(session, &session->baselines[0], &ns, err) != 0)
        return -1;
    bool sane = bytes > 0.0 && flops >= 0.0 && ns >= session->bytes_floor_ns;
    time_words(session->bytes_floor_ns, of_bytes);
    snprintf(floors, sizeof floors, "floor is %s (bytes)", of_bytes);
    if (flops > 0.0) {
        snprintf(work, sizeof work, "%.4g million operations", flops / 1e6);
        snprintf(floors, sizeof floors, "floors are %s (bytes) and %s (operations)", of_bytes,
                 time_words(session->flops_floor_ns, of_flops));
    }
    finding(fitness, "floor", sane, "%s, %.4g MB; the reference takes %s, the %s%s%s", work,
            bytes / 1e6, time_words(ns, taken), floors,
            session->bandwidth > 0.0 ? "" : " (ceilings not measured)",
            ns >= session->bytes_floor_ns
                ? ""
                : ": `bytes` is too large, or the reference leaves out part of the work");
    for (size_t i = 1; i < session->baseline_count; i++) {
        struct baseline *baseline = &session->baselines[i];
        struct err unavailable; /* check_baselines() has said why */
        if (baseline->verified && baseline_time(session, baseline, &ns, &unavailable) == 0)
            finding(fitness, "baseline", true, "%s takes %s", baseline->name,
                    time_words(ns, taken));
    }
    return 0;
}

/* One that does not build for want of a library is this machine's affair, not the problem's. */
static bool problem_links(const struct problem *problem, const char *name)
{
    for (size_t i = 0; i < problem->baseline_count; i++)
        if (strcmp(problem->baselines[i].name, name) == 0)
            return problem->baselines[i].libraries != NULL || problem->baselines[i].file == NULL;
    return false;
}

static int check_baselines(struct fitness *fitness, struct err *err)
{
    struct session *session = fitness->session;
    for (size_t i = 1; i < session->baseline_count; i++) {
        struct baseline *baseline = &session->baselines[i];
        if (baseline_ready(session, baseline, err) == 0)
            finding(fitness, "baseline", true, "%s is right", baseline->name);
        else if (baseline->library != NULL ||
                 (baseline->artifact == NULL && problem_links(session->problem, baseline->name)))
            finding(fitness, "baseline", true, "%s is not available here: %s", baseline->name,
                    err->message);
        else if (err->code == ERR_USAGE || err->code == ERR_CHILD || err->code == ERR_TIMEOUT)
            finding(fitness, "baseline", false, "%s", err->message);
        else
            return -1;
    }
    return 0;
}

void fitness_begin(struct fitness *fitness, struct session *session, struct json *json)
{
    *fitness = (struct fitness){.session = session, .json = json, .fit = true};
    json_put_array(json, "findings");
}

int fitness_check(struct fitness *fitness, bool baselines, struct err *err)
{
    const struct problem_torch *torch = fitness->session->problem->torch;
    if (torch != NULL && *torch->notes != '\0')
        finding(fitness, "module", true, "%s", torch->notes);
    int status = check_reference(fitness, err);
    if (status != 0) {
        fitness->ended = true;
        return status < 0 ? -1 : 0;
    }
    for (size_t i = 0; i < null_count(); i++)
        check_null(fitness, i);
    check_lower(fitness);
    return baselines ? check_baselines(fitness, err) : 0;
}

void fitness_end(struct fitness *fitness)
{
    json_array_end(fitness->json);
    json_put_bool(fitness->json, "fit", fitness->fit);
}
