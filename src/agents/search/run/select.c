#include "agents/search/run/select.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *left, const void *right)
{
    const struct contender *a = left, *b = right;
    double high_a = a->time_high > 0 ? a->time_high : (double)INFINITY;
    double high_b = b->time_high > 0 ? b->time_high : (double)INFINITY;
    if (high_a != high_b)
        return high_a < high_b ? -1 : 1;
    if (a->time_ns != b->time_ns && !isnan(a->time_ns) && !isnan(b->time_ns))
        return a->time_ns < b->time_ns ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

void select_sort(struct contender *contenders, size_t count)
{
    if (count > 1)
        qsort(contenders, count, sizeof *contenders, compare);
}

size_t select_count(size_t count, double share, int64_t beam)
{
    if (count == 0)
        return 0;
    if (beam > 0)
        return (uint64_t)beam < count ? (size_t)beam : count;
    /* 0.07 * 100 is 7.000000000000001: without the slack its ceiling would be 8. */
    double wanted = ceil(share * (double)count - 1e-9);
    if (!(wanted >= 1))
        return 1;
    return wanted < (double)count ? (size_t)wanted : count;
}
