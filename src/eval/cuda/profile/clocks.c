/* Two comparisons. Of the same launches: events lie around all that CUPTI has a record of, so that
 * they can tell of more, never of less. Of two processes: the timed one against the kernels' own
 * durations by CUPTI's records, which differ little with CUPTI and without, while the gaps between
 * kernels grow with it: so the durations are summed, and the span is not used. What is much faster
 * where it is timed is a kernel that can tell. A median of launches, and a second measurement on
 * the same bytes, before anybody is accused: inputs of another distribution, a slow moment of the
 * machine and a stray record are no one's doing. */
#include "eval/cuda/profile/profile.h"
#include "eval/cuda/run/host.h"
#include "eval/data/stats.h"

#include <math.h>

static const double resolution_ns = 2000.0; /* of either clock, four times what events have */
static const double drift = 0.02;           /* of one clock against the other */
static const double timed_least = 0.75;     /* of the kernels' durations */
static const double each_ns = 5000.0;       /* by which a kernel's record may be too long */

struct clocks_told clocks_told(const struct wire_records *records)
{
    return (struct clocks_told){.event_ns = stats_median(records->event_ns, records->launches),
                                .span_ns = stats_median(records->span_ns, records->launches),
                                .busy_ns = stats_median(records->busy_ns, records->launches)};
}

enum clocks clocks_compare(const struct wire_records *records, double timed_ns)
{
    double missing[RECORDED_MOST]; /* what the span has more than the events, and may not */
    if (records->launches == 0)
        return CLOCKS_AGREE;
    struct clocks_told told = clocks_told(records);
    for (uint32_t i = 0; i < records->launches; i++)
        missing[i] = records->span_ns[i] * (1.0 - drift) - resolution_ns - records->event_ns[i];
    if (stats_median(missing, records->launches) > 0.0)
        return CLOCKS_EVENTS_SHORT;
    double kernels = (double)(records->kernels + records->memsets);
    if (timed_ns > 0.0 && timed_ns < timed_least * told.busy_ns &&
        told.busy_ns - timed_ns > each_ns * kernels)
        return CLOCKS_TIMED_SHORT;
    return CLOCKS_AGREE;
}

static int accuse(enum clocks found, const struct wire_records *records, double timed_ns,
                  struct err *err)
{
    struct clocks_told told = clocks_told(records);
    if (found == CLOCKS_EVENTS_SHORT)
        return err_set(err, ERR_PROTOCOL,
                       "the device's events tell of %.4f ms, while CUPTI's records of the same "
                       "launches tell of %.4f ms",
                       told.event_ns / 1e6, told.span_ns / 1e6);
    return err_set(
        err, ERR_PROTOCOL,
        "fast only where it is timed: %.4f ms, while its kernels take %.4f ms by CUPTI's "
        "records in another process",
        timed_ns / 1e6, told.busy_ns / 1e6);
}

int clocks_check(struct gpu_host *host, const struct call *call, double time_ns,
                 struct wire_records *records, struct err *err)
{
    uint64_t elapsed_ns = 0;
    struct wire_records again;
    struct call timed = *call;
    enum clocks first = clocks_compare(records, time_ns), second;
    if (first == CLOCKS_AGREE)
        return 0;
    timed.timed = timed.cold = true;
    if (gpu_host_call(host, &timed, &elapsed_ns, err) != 0 ||
        profile_record_again(call, time_ns, &again, err) != 0)
        return -1;
    *records = again;
    time_ns = fmax(time_ns, (double)elapsed_ns);
    second = clocks_compare(records, time_ns);
    return second == first ? accuse(first, records, time_ns, err) : 0;
}
