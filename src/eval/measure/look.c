/* eval/measure/look: a first look at one point of many, at the main shape alone. It can be the end
 * of one that is wrong there, and of one that is far behind; it makes nothing a kernel. */
#include "base/clock.h"
#include "eval/data/timeline.h"
#include "eval/measure/measure.h"
#include "eval/measure/session_private.h"
#include "eval/sets/wide.h"

enum { LOOKS_LEAST = 2, LOOKS_LITTLE = 3, LOOKS_MOST = 6 };
static const double long_ns = 5e6;
static const double far = 1.2; /* times as far behind */

bool session_look_behind(double time_ns, double best_ns, double behind)
{
    return best_ns > 0.0 && time_ns > behind * best_ns;
}

static double fastest(const double *samples, size_t count)
{
    double least = count > 0 ? samples[0] : 0.0;
    for (size_t i = 1; i < count; i++)
        least = samples[i] < least ? samples[i] : least;
    return least;
}

/* Who else uses the device can make any call longer, and several in a row: the fastest counts, and
 * what would end has more of them where they are cheap, or it might be ended by little. */
static bool is_clear(const struct bench *bench, const double *samples, size_t count)
{
    const struct measure_request *request = bench->request;
    double time_ns = fastest(samples, count), best_ns = request->best_ns;
    if (count < LOOKS_LEAST)
        return false;
    if (!session_look_behind(time_ns, best_ns, request->behind))
        return true;
    return (session_is_large(bench->session) || time_ns > long_ns) &&
           (count >= LOOKS_LITTLE || session_look_behind(time_ns, best_ns, far * request->behind));
}

/* That it has not met: one whose outputs are known already, where there is one. */
static struct set *choose_set(struct bench *bench)
{
    struct session *session = bench->session;
    struct set *found = NULL;
    for (size_t i = 0, ties = 0; i < session->pool_count; i++) {
        struct set *set = &session->pool[i];
        bool good = (bench->seen >> i & 1) == 0 && set->expected && !set->unfit;
        if (good && random_below(&session->random, ++ties) == 0)
            found = set;
    }
    return found != NULL ? found : bench_fresh_set(bench);
}

/* Each is a call that is checked, on inputs that it has not met. The first one names the launch
 * that fails, and waits for each; the others take the time that timed ones do. */
static int look(struct bench *bench, double samples[LOOKS_MOST], size_t *count, struct err *err)
{
    for (*count = 0; *count < LOOKS_MOST && !bench->ended;) {
        struct outcome outcome;
        if (is_clear(bench, samples, *count))
            return 0;
        if (bench_ensure_generation(bench, 1, err) != 0)
            return -1;
        struct set *set = bench->ended ? NULL : choose_set(bench);
        if (set == NULL)
            return 0;
        bench->clocked = *count > 0;
        if (bench_check(bench, set, &outcome, err) != 0)
            return -1;
        bench_saw(bench, set); /* also one that has no finite result */
        if (!bench->ended && outcome.elapsed_ns > 0)
            samples[(*count)++] = (double)outcome.elapsed_ns;
    }
    return 0;
}

int session_look(struct session *session, const struct measure_request *request,
                 struct arena *arena, struct evaluation *evaluation, double *fastest_ns,
                 struct err *err)
{
    uint64_t started = clock_now_ns();
    double samples[LOOKS_MOST];
    size_t count = 0;
    struct bench *bench = bench_begin(session, request, arena, evaluation);
    session->bench = bench;
    int status = baseline_await(session, err); /* nothing of ours is beside what decides */
    if (status == 0)
        status = bench_choose_region(bench, err);
    if (status == 0 && !bench->ended)
        wide_begin(session);
    if (status == 0 && !bench->ended)
        status = bench_open(bench, err);
    baselines_hold(session, true);
    session_stop_drawing(session);
    if (status == 0 && !bench->ended)
        status = look(bench, samples, &count, err);
    *fastest_ns = fastest(samples, count);
    if (count > 0 && !bench->ended) {
        stats_interval(samples, count, &evaluation->time_ns);
        evaluation->timed_samples = (int64_t)count;
    }
    timeline_put("look", started, clock_now_ns() - started);
    evaluation->stage_ms[STAGE_CHECK] = (double)(clock_now_ns() - started) / 1e6;
    return status;
}
