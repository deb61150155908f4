/* Bootstrap of the median (Efron's percentile interval), as it comes out for infinitely many
 * resamples: a resample's median is one of the samples, and how often it is at most the r-th of
 * them is a binomial tail, so that nothing need be drawn. Of few samples it holds the median less
 * often than it says (7 samples: 88 %); so it is never narrower than the interval of the sign test,
 * which holds it at least 95 % of the time whatever the samples' distribution is, from 6 samples
 * on. */
#include "eval/data/stats.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double *sorted_copy(const double *samples, size_t count)
{
    double *sorted = (double *)mem_array(count, sizeof *sorted);
    memcpy(sorted, samples, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare);
    return sorted;
}

static double median_of_sorted(const double *sorted, size_t count)
{
    if (count % 2 == 1)
        return sorted[count / 2];
    return sorted[count / 2 - 1] + (sorted[count / 2] - sorted[count / 2 - 1]) / 2.0;
}

double stats_median(const double *samples, size_t count)
{
    if (count == 0)
        return NAN;
    MEM_LOCAL double *sorted = sorted_copy(samples, count);
    return median_of_sorted(sorted, count);
}

static double log_choose(size_t n, size_t k)
{
    int sign; /* lgamma() itself writes to a global */
    return lgamma_r((double)n + 1.0, &sign) - lgamma_r((double)k + 1.0, &sign) -
           lgamma_r((double)(n - k) + 1.0, &sign);
}

/* P(at least `least` of `count` draws succeed), each with chance p. */
static double tail(size_t count, size_t least, double p)
{
    double sum = 0.0;
    if (p <= 0.0 || p >= 1.0)
        return p >= 1.0 || least == 0 ? 1.0 : 0.0;
    for (size_t k = least; k <= count; k++)
        sum += exp(log_choose(count, k) + (double)k * log(p) + (double)(count - k) * log1p(-p));
    return sum;
}

/* The smallest rank (from 1) that holds a resample's median with at least this chance, where the
 * median is the `least`-th smallest of its draws. */
static size_t quantile_rank(size_t count, size_t least, double chance)
{
    size_t below = 0, at = count;
    while (at - below > 1) {
        size_t middle = below + (at - below) / 2;
        if (tail(count, least, (double)middle / (double)count) >= chance)
            at = middle;
        else
            below = middle;
    }
    return at;
}

/* Down from `rank` until the median lies below that sample with a chance of at most 2.5 %. */
static size_t sign_rank(size_t count, size_t rank)
{
    while (rank > 1 && tail(count, count + 1 - rank, 0.5) > 0.025)
        rank--;
    return rank;
}

void stats_interval(const double *samples, size_t count, struct interval *interval)
{
    *interval = (struct interval){.median = NAN, .low = NAN, .high = NAN, .samples = count};
    if (count < 2) {
        interval->median = count == 1 ? samples[0] : NAN;
        return;
    }
    MEM_LOCAL double *sorted = sorted_copy(samples, count);
    interval->median = median_of_sorted(sorted, count);
    /* Of an even count's two middles the lower for the low end, the upper for the high end. */
    size_t low = quantile_rank(count, (count + 1) / 2, 0.025);
    size_t high = quantile_rank(count, count / 2 + 1, 0.975);
    interval->low = sorted[sign_rank(count, low) - 1];
    interval->high = sorted[count - sign_rank(count, count + 1 - high)];
}

bool stats_has_ends(const struct interval *interval)
{
    return interval->samples > 0 && !isnan(interval->low) && !isnan(interval->high);
}

/* --- units --- */

enum { UNITS_MOST = 64, RANKS_FROM = 6 };

/* How many of the smallest and of the largest Walsh averages lie outside the interval: the most
 * that leaves at least 95 %. Each set of ranks is as likely as any other, and `ways` counts those
 * of each sum. */
static size_t ranks_outside(size_t count)
{
    double ways[UNITS_MOST * (UNITS_MOST + 1) / 2 + 1] = {1.0};
    size_t most = count * (count + 1) / 2, outside = 0;
    for (size_t rank = 1, top = 0; rank <= count; rank++) {
        top += rank;
        for (size_t sum = top; sum >= rank; sum--)
            ways[sum] += ways[sum - rank];
    }
    double below = 0.0, allowed = 0.025 * exp2((double)count);
    while (outside < most && below + ways[outside] <= allowed)
        below += ways[outside++];
    return outside;
}

static void by_signed_ranks(const double *units, size_t count, struct interval *interval)
{
    MEM_LOCAL double *walsh = (double *)mem_array(count * (count + 1) / 2, sizeof *walsh);
    size_t averages = 0, outside = ranks_outside(count);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i; j < count; j++)
            walsh[averages++] = units[i] + (units[j] - units[i]) / 2.0;
    qsort(walsh, averages, sizeof *walsh, compare);
    interval->median = median_of_sorted(walsh, averages);
    interval->low = walsh[outside - 1];
    interval->high = walsh[averages - outside];
}

/* So few say nothing of their distribution: it has to be taken for a normal one. */
static void by_student(const double *units, size_t count, struct interval *interval)
{
    static const double quantiles[RANKS_FROM] = {0, 0, 12.706, 4.303, 3.182, 2.776};
    double mean = 0.0, squares = 0.0;
    for (size_t i = 0; i < count; i++)
        mean += units[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (units[i] - mean) * (units[i] - mean);
    interval->median = mean;
    if (count < 2)
        return;
    double half = quantiles[count] * sqrt(squares / (double)(count - 1) / (double)count);
    interval->low = mean - half;
    interval->high = mean + half;
}

/* Units past the most there may be join the last one. */
static size_t medians_of_units(const double *samples, const size_t *unit, size_t count,
                               double medians[UNITS_MOST])
{
    MEM_LOCAL double *logs = (double *)mem_array(count, sizeof *logs);
    size_t units = 0;
    for (size_t i = 0; i < count; i++)
        logs[i] = log(samples[i]);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && (unit[to] == unit[from] || units + 1 == UNITS_MOST); to++)
            continue;
        medians[units++] = stats_median(logs + from, to - from);
    }
    return units;
}

void stats_grouped(const double *samples, const size_t *unit, size_t count,
                   struct interval *interval)
{
    double units[UNITS_MOST];
    *interval = (struct interval){.median = NAN, .low = NAN, .high = NAN, .samples = count};
    if (count == 0)
        return;
    size_t found = medians_of_units(samples, unit, count, units);
    if (found >= RANKS_FROM)
        by_signed_ranks(units, found, interval);
    else
        by_student(units, found, interval);
    interval->median = exp(interval->median);
    interval->low = exp(interval->low);
    interval->high = exp(interval->high);
}

/* --- the noise floor --- */

double stats_spread(const double *ratios, size_t count)
{
    struct interval interval;
    stats_interval(ratios, count, &interval);
    double half = stats_has_ends(&interval) ? (interval.high - interval.low) / 2.0 : 0.0;
    double distance = fabs(interval.median - 1.0);
    return half > distance ? half : distance;
}

/* --- what it shows --- */

static const char *const findings[] = {[FINDING_NONE] = "",
                                       [FINDING_FASTER] = "faster",
                                       [FINDING_SLOWER] = "slower",
                                       [FINDING_SAME] = "no difference shown",
                                       [FINDING_NOISY] = "too noisy to say"};

enum { BASELINE_ENOUGH = 6 /* samples: the range of so many holds the median 97 % of the time */ };
static const double margin_least = 0.01, spreads = 3.0;
static const double spread_most = 0.5;      /* past it no ratio means anything */
static const double few_margin = 1.0;       /* a slow moment doubles a time: 2x needs more */
static const double resolution_most = 0.25; /* who cannot see 1.25x cannot say "no difference" */

/* By how much a ratio must leave 1 behind to mean something; infinite where it never does. */
static double margin_of(const struct comparison *comparison, double spread)
{
    if (!isfinite(spread) || spread > spread_most)
        return INFINITY;
    double margin = fmax(margin_least, spreads * spread);
    return comparison->baseline_samples < BASELINE_ENOUGH ? fmax(margin, few_margin) : margin;
}

double stats_resolution(const struct comparison *comparison)
{
    const struct interval *speedup = &comparison->speedup;
    double half = (speedup->high - speedup->low) / 2.0 / speedup->median;
    return margin_of(comparison, comparison->spread) + (isfinite(half) ? half : 0.0);
}

/* "Slower" goes by the baseline's steadiness alone: a candidate whose times jump about on purpose
 * would never be called so otherwise. */
enum finding stats_finding(const struct comparison *comparison)
{
    const struct interval *speedup = &comparison->speedup;
    if (speedup->samples == 0)
        return FINDING_NONE;
    if (speedup->low > 1.0 + margin_of(comparison, comparison->spread))
        return FINDING_FASTER;
    if (speedup->high < 1.0 / (1.0 + margin_of(comparison, comparison->baseline_spread)))
        return FINDING_SLOWER;
    bool hidden = comparison->too_short || stats_resolution(comparison) > resolution_most;
    return hidden ? FINDING_NOISY : FINDING_SAME;
}

bool stats_is_wide(const struct interval *interval)
{
    double half = (interval->high - interval->low) / 2.0 / interval->median;
    return !(half <= resolution_most);
}

size_t stats_least_claim(const struct comparison *const *comparisons, size_t count)
{
    const double near = 1.1;
    double median = comparisons[0]->speedup.median;
    size_t least = count;
    for (size_t i = 1; i < count; i++)
        median = fmin(median, comparisons[i]->speedup.median);
    for (size_t i = 0; i < count; i++)
        if (comparisons[i]->speedup.median <= near * median &&
            (least == count || comparisons[i]->speedup.low < comparisons[least]->speedup.low))
            least = i;
    return least;
}

const char *finding_name(enum finding finding)
{
    return findings[finding];
}

enum finding finding_of(const char *name)
{
    for (int i = FINDING_FASTER; name != NULL && i <= FINDING_NOISY; i++)
        if (strcmp(findings[i], name) == 0)
            return (enum finding)i;
    return FINDING_NONE;
}
