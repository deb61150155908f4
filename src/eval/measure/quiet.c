/* eval/measure/quiet: what to do where the machine is too busy to tell. Other programs' load is
 * looked at while all that belongs to candidates is stopped: no candidate can have itself measured
 * again, or hold up a run, by what it does. */
#include "eval/data/noise.h"
#include "eval/measure/timing.h"

#include "base/clock.h"
#include "base/quota.h"
#include "eval/data/timeline.h"

#include <math.h>
#include <time.h>

enum { LOOK_NS = 200000000 };

/* In budgets of timed calls. Halved after each wait that was in vain, so that a machine which is
 * never quiet costs a run a bounded time. */
static uint64_t patience_ns(const struct bench *bench)
{
    static const uint64_t budgets[] = {
        [EFFORT_SEARCH] = 5, [EFFORT_FULL] = 25, [EFFORT_FINAL] = 50};
    const struct session *session = bench->session;
    uint64_t budget_ns = session->options.time_budget_ms * UINT64_C(1000000);
    return budgets[bench->request->effort] * budget_ns >> session->waits_in_vain;
}

static bool is_quiet(struct session *session)
{
    session->load = noise_load(session->lane->cores, session->lane->core_count);
    return session->load < NOISE_QUIET;
}

bool quiet_wait(struct bench *bench, const struct timing *timing)
{
    struct session *session = bench->session;
    uint64_t started = clock_now_ns(), most = patience_ns(bench);
    double spare_ms = bench_left_ms(bench) - cost_behind_timing(bench, timing);
    if (lane_is_apart(session->lane)) /* its clock knows nothing of the cores */
        return timing->a_spread > 0.0 && spare_ms > 0.0;
    if (spare_ms <= 0.0) {
        bench_note(bench, "not measured a second time on a busy machine, for want of time");
        return false;
    }
    if (spare_ms * 1e6 < (double)most)
        most = (uint64_t)(spare_ms * 1e6);
    bench_close(bench);
    bool quiet = is_quiet(session), at_once = quiet;
    while (!quiet && clock_now_ns() - started < most && !atomic_load(&session->cancelled)) {
        const struct timespec rest = {.tv_nsec = LOOK_NS};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
        quiet = is_quiet(session);
    }
    timeline_end("time.quiet", started);
    if (quiet && !at_once)
        bench_note(bench, "waited %.1f s until the other programs were done",
                   (double)(clock_now_ns() - started) / 1e9);
    else if (!quiet && most < LOOK_NS)
        bench_note(bench, "waited no longer for a quiet machine: earlier waits were in vain");
    else if (!quiet)
        bench_note(bench, "waited %.1f s for a quiet machine, in vain",
                   (double)(clock_now_ns() - started) / 1e9);
    if (quiet)
        session->waits_in_vain = 0;
    else if (session->waits_in_vain < 16)
        session->waits_in_vain++;
    return quiet;
}

/* A larger shape, by its largest dim: what would be left there is twice what a call takes. */
static const char *larger_shape(const struct bench *bench, double factor)
{
    const struct names *dims = &bench->session->shapes[0].dims;
    size_t largest = 0;
    for (size_t i = 1; i < dims->count; i++)
        largest = dims->number[i] > dims->number[largest] ? i : largest;
    if (dims->count == 0)
        return "";
    return arena_printf(bench->arena, ", as at %s=%.0f", dims->name[largest],
                        factor * (double)dims->number[largest]);
}

static const char *short_words(const struct bench *bench)
{
    const struct evaluation *evaluation = bench->evaluation;
    const struct interval *call = &evaluation->call_ns;
    double whole = evaluation->time_ns.median, width = call->high - call->low;
    double left = fmax(fmax(whole - call->median, width / 2.0), whole / 100.0), factor = 2.0;
    while (factor * left < 2.0 * call->median)
        factor *= 2.0;
    return arena_printf(
        bench->arena,
        "too short to tell at this shape: a call itself takes %.3g us (%.3g to %.3g) "
        "of the kernel's %.3g us, and a difference in the rest would not show; "
        "about %.0f times the work would do%s",
        call->median / 1e3, call->low / 1e3, call->high / 1e3, whole / 1e3, factor,
        larger_shape(bench, factor));
}

const char *quiet_words(struct bench *bench, const struct comparison *comparison)
{
    const struct session *session = bench->session;
    if (comparison->too_short)
        return short_words(bench);
    double own = comparison->spread, of_baseline = comparison->baseline_spread;
    const char *seen = isfinite(stats_resolution(comparison))
                           ? arena_printf(bench->arena, "nothing under %.2fx would show",
                                          1.0 + stats_resolution(comparison))
                           : "no ratio means anything then";
    /* On a busy machine few samples agree by chance: nothing is the kernel's own there. */
    bool busy = session->load >= NOISE_QUIET;
    const char *whose = !busy && own > 2.0 * of_baseline && of_baseline < 0.05
                            ? "the kernel's own time varies, while the baseline's does not; "
                              "--time-budget gives more samples"
                            : "what helps: end other programs, --cores with idle ones, a larger "
                              "--time-budget";
    struct quota quota;
    quota_read(&quota);
    if (quota.cpus > 0 && quota.throttled > 0)
        whose =
            arena_printf(bench->arena,
                         "this job's quota of %.3g CPUs has held its processes %lld times; what "
                         "helps: a larger one, or --cores with fewer",
                         quota.cpus, (long long)quota.throttled);
    const char *load =
        busy ? arena_printf(bench->arena, "; other programs take %.0f %% of a core's time",
                            100.0 * session->load)
             : "";
    return arena_printf(bench->arena,
                        "over %zu samples the baseline strays from itself by %.0f %%, kernel "
                        "and baseline at most by %.0f %%: %s%s; %s",
                        comparison->baseline_samples, 100.0 * of_baseline, 100.0 * own, seen, load,
                        whose);
}
