/* eval/session_baseline: what speed-ups are against: C sources built once a session, and the
 * reference itself. Their runners are stopped while they are not called: a baseline is trusted, and
 * may meet a set twice. */
#include "eval/session_build.h"
#include "eval/session_private.h"
#include "eval/stats.h"

#include <math.h>
#include <string.h>

int baselines_open(struct session *session, struct err *err)
{
    const struct problem *problem = session->problem;
    const char *wanted =
        session->options.baseline != NULL ? session->options.baseline : problem->baseline;
    bool found = false;
    session->baselines[0] = (struct baseline){.name = "reference", .verified = true};
    session->baseline_count = 1;
    for (size_t i = 0; i < problem->baseline_count; i++)
        session->baselines[session->baseline_count++] =
            (struct baseline){.name = problem->baselines[i].name, .env = problem->baselines[i].env};
    for (size_t i = 0; i < session->baseline_count; i++)
        if (strcmp(session->baselines[i].name, wanted) == 0) {
            session->baseline = i;
            found = true;
        }
    if (!found)
        return err_set(err, ERR_USAGE, "%s has no baseline \"%s\"", problem->name, wanted);
    return 0;
}

/* Built when first needed: most of them only the final measurement asks for. */
static int build(struct session *session, struct baseline *baseline, struct err *err)
{
    const struct problem *problem = session->problem;
    const struct baseline_spec *spec = NULL;
    for (size_t i = 0; i < problem->baseline_count; i++)
        if (problem->baselines[i].name == baseline->name)
            spec = &problem->baselines[i];
    if (baseline->artifact != NULL || spec == NULL)
        return 0;
    return build_baseline(session->backend, session->lane, problem, spec, session->options.folder,
                          arena_printf(session->arena, "baseline-%s", baseline->name),
                          session->arena, &baseline->artifact, err);
}

/* A baseline that is wrong is nothing to be faster than. */
static int verify(struct session *session, struct baseline *baseline, struct err *err)
{
    struct evaluation evaluation = {0};
    struct bench bench = {.session = session,
                          .arena = session->arena,
                          .evaluation = &evaluation,
                          .region = &session->region};
    struct arrangement arrangement;
    struct outcome outcome;
    struct set *set = &session->pool[0];
    if (set_expect(session, set, err) != 0 ||
        bench_arrange(&bench, set->shape, &arrangement, err) != 0)
        return -1;
    call_place(&bench, set, &arrangement);
    if (call_run(&bench, baseline->subject, &arrangement, true, &outcome, err) != 0) {
        baseline_close(session, baseline);
        return err_wrap(err, "baseline %s", baseline->name);
    }
    if (!call_verify(&bench, set, &arrangement))
        return err_set(err, ERR_USAGE, "baseline %s: %s", baseline->name, evaluation.reason);
    baseline->verified = true;
    return 0;
}

int baseline_ready(struct session *session, struct baseline *baseline, struct err *err)
{
    if (baseline == &session->baselines[0]) {
        baseline->subject = reference_subject(session->reference);
        if (baseline->subject == NULL)
            return err_set(err, ERR_CHILD, "the reference has ended");
        baseline->subject->ops->pause(baseline->subject);
        return 0;
    }
    if (build(session, baseline, err) != 0)
        return err_wrap(err, "baseline %s", baseline->name);
    if (baseline->subject == NULL) {
        if (session->backend->open(session->lane, &session->region, baseline->artifact,
                                   baseline->env, &baseline->subject, err) != 0) {
            baseline->subject = NULL;
            return err_wrap(err, "baseline %s", baseline->name);
        }
        baseline->subject->ops->pause(baseline->subject);
        baseline->warm = false;
    }
    return baseline->verified ? 0 : verify(session, baseline, err);
}

void baseline_close(struct session *session, struct baseline *baseline)
{
    if (baseline != &session->baselines[0] && baseline->subject != NULL)
        baseline->subject->ops->close(baseline->subject);
    baseline->subject = NULL; /* the reference's is its own */
    baseline->warm = false;
}

/* A process keeps the luck of its layout for life. A fresh one for each evaluation spreads it over
 * the session as a candidate's runners do; one that is slow anyway does not notice. */
void baselines_rest(struct session *session)
{
    static const double slow_ns = 20e6;
    for (size_t i = 1; i < session->baseline_count; i++)
        if (!(baseline_median(&session->baselines[i]) > slow_ns))
            baseline_close(session, &session->baselines[i]);
}

void baseline_remember(struct baseline *baseline, double median_ns)
{
    baseline->history[baseline->history_count++ % HISTORY_MOST] = median_ns;
}

double baseline_median(const struct baseline *baseline)
{
    size_t count = baseline->history_count < HISTORY_MOST ? baseline->history_count : HISTORY_MOST;
    return count > 0 ? stats_median(baseline->history, count) : (double)NAN;
}
