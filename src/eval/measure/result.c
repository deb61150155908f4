/* eval/measure/result: from samples to intervals. */
#include "eval/measure/timing.h"

#include "base/clock.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

enum { SPREAD_LEAST = 3 /* ratios */, HISTORY_SHOWN = 4 };

/* Disturbed samples are left out as long as they are few: a candidate that could choose which of
 * its samples count would choose the fast ones. */
static bool leaves_out(const struct timing *timing)
{
    return timing->disturbed * 3 <= timing->count;
}

/* The A that stands for a chunk: the mean of its neighbours in time. */
static double shared_a(const struct timing *timing, size_t chunk)
{
    if (timing->a_count == 0)
        return baseline_median(timing->baseline);
    double before = timing->a_ns[chunk > 0 ? chunk - 1 : 0];
    double after = timing->a_ns[chunk < timing->a_count ? chunk : timing->a_count - 1];
    return (before + after) / 2.0;
}

/* A time without what others took of it: what it could have been on a machine of its own. */
static double undelayed(double ns, double delay_ns)
{
    return fmax(ns - delay_ns, ns / 1e3);
}

struct columns {
    size_t count;
    bool all; /* disturbed ones too: then `least` and `most` differ from `ratio` */
    double a[PAIRS_MOST], b[PAIRS_MOST], ratio[PAIRS_MOST], least[PAIRS_MOST], most[PAIRS_MOST];
    enum distribution distribution[PAIRS_MOST];
    bool disturbed[PAIRS_MOST];
    size_t unit[PAIRS_MOST]; /* of samples that share their luck */
};

/* Those of one unit side by side, else in their order: few, and nearly so already. */
static void sort_by_unit(double *samples, size_t *unit, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t at = i; at > 0 && unit[at - 1] > unit[at]; at--) {
            double sample = samples[at];
            size_t one = unit[at];
            samples[at] = samples[at - 1];
            unit[at] = unit[at - 1];
            samples[at - 1] = sample;
            unit[at - 1] = one;
        }
}

static void grouped(const struct columns *columns, const double *of, struct interval *interval)
{
    double samples[PAIRS_MOST];
    size_t unit[PAIRS_MOST];
    memcpy(samples, of, columns->count * sizeof *samples);
    memcpy(unit, columns->unit, columns->count * sizeof *unit);
    sort_by_unit(samples, unit, columns->count);
    stats_grouped(samples, unit, columns->count, interval);
}

static size_t processes_of(const struct timing *timing, const struct columns *columns)
{
    size_t processes = 0;
    for (size_t i = 0; timing->by_rounds && i < columns->count; i++)
        processes += i == 0 || columns->unit[i] != columns->unit[i - 1];
    return timing->swaps && timing->rounds > 1 ? 2 : processes;
}

/* A round's processes; or, where one process of each does, a block A B B A, or as many of them as
 * keep the number of units small. */
static size_t unit_of(const struct timing *timing, size_t at)
{
    enum { UNITS = 40 };
    size_t block = timing->shared ? CHUNK : BLOCK_PAIRS;
    size_t blocks = (timing->count + block * UNITS - 1) / (block * UNITS);
    if (timing->swaps) { /* a block, and the one at its place in the round after it */
        size_t of_round = timing->pairs_of_round, both = 2 * of_round;
        at = at / both * both + at % of_round * 2;
        block *= 2;
        blocks = (blocks + 1) / 2;
    }
    return timing->by_rounds ? timing->samples[at].round : at / (block * (blocks > 0 ? blocks : 1));
}

/* Where little is left beside what a call itself takes, less than a hundredth is no time at all. */
static double without(double ns, double call_ns)
{
    return fmax(ns - call_ns, ns / 100.0);
}

static void gather(const struct timing *timing, double call_ns, struct columns *columns)
{
    columns->all = !leaves_out(timing);
    columns->count = 0;
    for (size_t i = 0; i < timing->count; i++) {
        const struct sample *sample = &timing->samples[i];
        if (sample->disturbed && !columns->all)
            continue;
        size_t at = columns->count++;
        double a = timing->shared ? shared_a(timing, sample->chunk) : sample->a_ns;
        double b = without(sample->b_ns, call_ns);
        a = without(a, call_ns);
        double a_delay_ns = sample->disturbed ? sample->a_delay_ns : 0.0;
        double b_delay_ns = sample->disturbed ? sample->b_delay_ns : 0.0;
        columns->a[at] = a;
        columns->b[at] = b;
        columns->distribution[at] = sample->distribution;
        columns->unit[at] = unit_of(timing, i);
        columns->disturbed[at] = sample->disturbed;
        columns->ratio[at] = a / b;
        columns->least[at] = undelayed(a, a_delay_ns) / b;
        columns->most[at] = a / undelayed(b, b_delay_ns);
    }
}

/* Each sample against the next one on inputs of the same distribution: a kernel with itself at the
 * same work (a division by a subnormal takes longer, and only some inputs lead to one). The
 * direction alternates, so that a drift of the machine does not add up. */
static double neighbours(const double *samples, const enum distribution *distribution, size_t count)
{
    double ratios[PAIRS_MOST];
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        size_t next = i + 1;
        while (next < count && distribution[next] != distribution[i])
            next++;
        if (next == count)
            continue;
        double ratio = samples[i] / samples[next];
        ratios[found] = found % 2 == 0 ? ratio : 1.0 / ratio;
        found++;
    }
    return found < SPREAD_LEAST ? 0.0 : stats_spread(ratios, found);
}

/* The same, without what differs from process to process: that is in the ratio's own interval, and
 * does not count again. */
static double stray(const struct columns *columns, const double *samples, bool by_rounds)
{
    double own[PAIRS_MOST];
    for (size_t from = 0, to; from < columns->count; from = to) {
        for (to = from + 1; to < columns->count && columns->unit[to] == columns->unit[from]; to++)
            continue;
        double median = by_rounds ? stats_median(samples + from, to - from) : 1.0;
        for (size_t i = from; i < to; i++)
            own[i] = samples[i] / median;
    }
    /* A median of few calls has their noise: where processes are alike the other one is smaller. */
    return fmin(neighbours(own, columns->distribution, columns->count),
                neighbours(samples, columns->distribution, columns->count));
}

/* With a few A samples for many of B, an interval over their ratios would know nothing of A's own
 * noise: it is widened to what A's extremes, this time or lately, would have given. */
static void widen(struct timing *timing, double call_ns)
{
    double least = INFINITY, most = 0.0;
    for (size_t i = 0; i < timing->a_count; i++) {
        double a = without(timing->a_ns[i], call_ns);
        least = fmin(least, undelayed(a, timing->a_delay_ns[i]));
        most = fmax(most, a);
    }
    const struct baseline *baseline = timing->baseline;
    for (size_t i = 0; timing->a_count < 3 && i < HISTORY_SHOWN && i < baseline->history_count;
         i++) {
        double past =
            without(baseline->history[(baseline->history_count - 1 - i) % HISTORY_MOST], call_ns);
        least = fmin(least, past);
        most = fmax(most, past);
    }
    if (most <= 0.0)
        return;
    timing->ratio.low = fmin(timing->ratio.low, least / timing->b.high);
    timing->ratio.high = fmax(timing->ratio.high, most / timing->b.low);
    timing->a.low = fmin(timing->a.low, least);
    timing->a.high = fmax(timing->a.high, most);
}

/* What the undisturbed samples alone would give, where those of enough units are left. */
static void undisturbed_interval(const struct columns *columns, struct interval *ratio)
{
    enum { UNITS_LEAST = 6 };
    double ratios[PAIRS_MOST];
    size_t unit[PAIRS_MOST], count = 0, units = 0;
    for (size_t i = 0; i < columns->count; i++) {
        if (columns->disturbed[i])
            continue;
        ratios[count] = columns->ratio[i];
        unit[count++] = columns->unit[i];
    }
    sort_by_unit(ratios, unit, count);
    for (size_t i = 0; i < count; i++)
        units += i == 0 || unit[i - 1] != unit[i];
    if (units >= UNITS_LEAST)
        stats_grouped(ratios, unit, count, ratio);
    else
        grouped(columns, columns->ratio, ratio);
    ratio->samples = columns->count;
}

/* Where disturbed samples have to count, a long call lost more to others than a short one, so that
 * their ratio is none of the kernels'. The interval reaches from what it would be had only the
 * baseline not been disturbed to what it would be had only the candidate not been. */
static void ratio_interval(const struct columns *columns, struct interval *ratio)
{
    struct interval end;
    undisturbed_interval(columns, ratio);
    if (!columns->all)
        return;
    stats_interval(columns->least, columns->count, &end);
    ratio->low = fmin(ratio->low, end.low);
    stats_interval(columns->most, columns->count, &end);
    ratio->high = fmax(ratio->high, end.high);
}

/* A few samples of a slow A: their range for want of more. */
static double spread_of_few(const double *samples, size_t count)
{
    double least = INFINITY, most = 0.0;
    for (size_t i = 0; i < count; i++) {
        least = fmin(least, samples[i]);
        most = fmax(most, samples[i]);
    }
    return count < 2 ? 0.0 : (most - least) / (most + least);
}

static void shared_interval(struct timing *timing, double call_ns)
{
    double a_ns[SHARED_MOST];
    for (size_t i = 0; i < timing->a_count; i++)
        a_ns[i] = without(timing->a_ns[i], call_ns);
    stats_interval(a_ns, timing->a_count, &timing->a);
}

static void results_without(struct timing *timing, double call_ns)
{
    struct columns columns;
    gather(timing, call_ns, &columns);
    timing->used = columns.count;
    if (columns.count == 0)
        return;
    grouped(&columns, columns.b, &timing->b);
    ratio_interval(&columns, &timing->ratio);
    double of_b = stray(&columns, columns.b, timing->by_rounds), of_a;
    if (timing->shared) {
        if (timing->a_count > 0)
            shared_interval(timing, call_ns);
        else
            grouped(&columns, columns.a, &timing->a);
        widen(timing, call_ns);
        if (timing->a.samples == 1) /* one call of it says nothing of the next */
            timing->a.low = timing->a.high = NAN;
        of_a = fmax(neighbours(timing->a_ns, timing->a_distribution, timing->a_count),
                    timing->a_count <= SPREAD_LEAST ? spread_of_few(timing->a_ns, timing->a_count)
                                                    : 0.0);
    } else {
        grouped(&columns, columns.a, &timing->a);
        of_a = stray(&columns, columns.a, timing->by_rounds);
    }
    timing->b.processes = timing->ratio.processes = processes_of(timing, &columns);
    timing->a.processes = timing->shared ? 0 : timing->b.processes;
    timing->a_spread = of_a;
    timing->spread = fmax(of_a, of_b);
}

static double least(double one, double other)
{
    return one < other ? one : other;
}

static void widen_by(struct interval *interval, const struct interval *other)
{
    interval->low = least(interval->low, other->low);
    interval->high = -least(-interval->high, -other->high);
}

/* What a call itself takes is known to an interval, too, by whose ends all others are widened.
 * Where that leaves nothing to be told by, nothing is taken off. */
void timing_results(struct timing *timing)
{
    struct interval call;
    results_without(timing, 0.0);
    empty_interval(timing, &call);
    timing->call = call;
    if (timing->used == 0 || !stats_has_ends(&call))
        return;
    struct timing *other = MEM_NEW(struct timing);
    *other = *timing;
    results_without(other, call.median);
    struct timing net = *other;
    for (int end = 0; end < 2; end++) {
        results_without(other, end == 0 ? call.low : call.high);
        widen_by(&net.a, &other->a);
        widen_by(&net.b, &other->b);
        widen_by(&net.ratio, &other->ratio);
    }
    mem_free(other);
    net.call_taken = !stats_is_wide(&net.ratio);
    if (net.call_taken)
        *timing = net;
}

double timing_whole_a(const struct timing *timing)
{
    return timing->a.median + (timing->call_taken ? timing->call.median : 0.0);
}

double timing_stray(const struct timing *timing)
{
    struct columns columns;
    gather(timing, timing->call_taken ? timing->call.median : 0.0, &columns);
    return columns.count == 0 ? 1.0 : stats_spread(columns.ratio, columns.count);
}

struct comparison timing_comparison(const struct timing *timing)
{
    const struct baseline *baseline = timing->baseline;
    size_t known = timing->shared ? timing->a_count : timing->used;
    if (timing->shared && baseline != NULL)
        known += baseline->history_count < HISTORY_SHOWN ? baseline->history_count : HISTORY_SHOWN;
    /* Where whole calls cannot be told apart it is noise. */
    bool hidden = timing->call.samples > 0 && !timing->call_taken && !stats_is_wide(&timing->ratio);
    return (struct comparison){.speedup = timing->ratio,
                               .spread = timing->spread,
                               .baseline_spread = timing->a_spread,
                               .baseline_samples = known,
                               .too_short = hidden};
}

bool timing_hurries(const struct timing *timing)
{
    return timing->hurry_ns > 0 && clock_now_ns() >= timing->hurry_ns;
}

/* Rounds enough for an interval. */
static bool hurried_enough(const struct timing *timing)
{
    return timing_hurries(timing) && timing->rounds >= ROUNDS_OF_SLOW &&
           timing->in_round >= timing->pairs_of_round;
}

bool timing_enough(struct timing *timing)
{
    struct columns columns;
    struct interval ratio;
    gather(timing, 0.0, &columns);
    if (hurried_enough(timing))
        return true;
    if (timing->count < timing->limits.pairs_least ||
        timing->rounds < timing->limits.rounds_least ||
        ((timing->by_rounds || timing->swaps) && !round_is_over(timing)) ||
        (timing->swaps && timing->rounds % 2 != 0))
        return false;
    /* What was left out is replaced, up to twice the least. */
    if (columns.count < timing->limits.pairs_least &&
        timing->count < 2 * timing->limits.pairs_least)
        return false;
    uint64_t budget_ns = timing->limits.budget_ns;
    if (timing->timed_ns >= budget_ns ||
        clock_now_ns() - timing->started_ns >= budget_ns) /* what lies between the calls, too */
        return true;
    grouped(&columns, columns.ratio, &ratio);
    return ratio.high - ratio.low < 2.0 * timing->limits.narrow * ratio.median;
}
