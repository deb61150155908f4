/* eval/measure/empty: what a call itself takes. A kernel that does nothing is called where the
 * candidate and its baseline are: in turns with them, in a fresh process each round, on the same
 * inputs. Where they take long enough nobody asks. */
#include "base/file.h"
#include "eval/backend/build.h"
#include "eval/measure/timing.h"

#include <math.h>

enum { SOURCE_MOST = 1 << 16, UNITS_LEAST = 5 };
static const double long_ns = 2e5; /* twenty times what a call takes */

/* Trusted, and built once a session; where that fails, no call's own time is known. */
static int build_empty(struct session *session, const char *folder, struct err *err)
{
    BUF_LOCAL(source, SOURCE_MOST);
    const char *name = "empty.c", *file = arena_printf(session->arena, "%s/%s", folder, name);
    const struct baseline_spec spec = {.name = "empty", .file = file};
    session->backend->empty(session->problem, &source);
    if (file_make_dirs(folder, err) != 0 || build_write(folder, name, &source, err) != 0)
        return -1;
    return build_baseline(session->backend, session->lane, session->problem, &spec, BUILD_FAST,
                          folder, "built", session->arena, &session->empty, err);
}

bool empty_is_wanted(const struct timing *timing, double a_ns)
{
    struct session *session = timing->bench->session;
    double b_ns = timing->bench->estimate_ns;
    bool is_short = (b_ns > 0.0 && b_ns < long_ns) || (a_ns > 0.0 && a_ns < long_ns);
    struct err ignored;
    if (!timing->by_rounds || !is_short || session->backend->empty == NULL)
        return false;
    if (!session->empty_tried)
        (void)build_empty(
            session, arena_printf(session->arena, "%s/empty", session->options.folder), &ignored);
    session->empty_tried = true;
    return session->empty != NULL;
}

int empty_open(struct timing *timing, struct err *err)
{
    struct session *session = timing->bench->session;
    const struct program program = {session->problem, NULL, NULL, NULL};
    if (!timing->with_empty)
        return 0;
    empty_close(timing);
    if (session->backend->open(session->lane, &session->region, session->empty, &program, false,
                               &timing->empty, err) != 0) {
        timing->empty = NULL;
        timing->with_empty = false;
        return err->code == ERR_CANCELLED ? -1 : 0;
    }
    timing->empty->ops->pause(timing->empty);
    return 0;
}

void empty_close(struct timing *timing)
{
    if (timing->empty != NULL)
        timing->empty->ops->close(timing->empty);
    timing->empty = NULL;
}

/* NaN where it is not known, or was disturbed. */
int empty_call(struct timing *timing, const struct arrangement *arrangement, double *call_ns,
               struct err *err)
{
    struct outcome outcome;
    *call_ns = NAN;
    if (timing->empty == NULL)
        return 0;
    if (call_run(timing->bench, timing->empty, arrangement, true, &outcome, err) != 0) {
        empty_close(timing); /* somebody killed it: what a call takes is not known then */
        timing->with_empty = false;
        return err->code == ERR_CANCELLED ? -1 : 0;
    }
    timing->timed_ns += outcome.elapsed_ns;
    if (!outcome.disturbed)
        *call_ns = (double)outcome.elapsed_ns;
    return 0;
}

double empty_so_far(const struct timing *timing)
{
    double calls[PAIRS_MOST];
    size_t count = 0;
    for (size_t i = 0; i < timing->count; i++)
        if (timing->samples[i].call_ns > 0.0)
            calls[count++] = timing->samples[i].call_ns;
    return count > 0 ? stats_median(calls, count) : 0.0;
}

void empty_interval(const struct timing *timing, struct interval *call)
{
    double calls[PAIRS_MOST];
    size_t unit[PAIRS_MOST], count = 0, units = 0;
    for (size_t i = 0; i < timing->count; i++) {
        const struct sample *sample = &timing->samples[i];
        if (!(sample->call_ns > 0.0))
            continue;
        units += count == 0 || unit[count - 1] != sample->round;
        calls[count] = sample->call_ns;
        unit[count++] = sample->round;
    }
    *call = (struct interval){0};
    if (units < UNITS_LEAST)
        return;
    stats_grouped(calls, unit, count, call);
    call->processes = units;
}
