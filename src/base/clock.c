#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t (*injected)(void *context);
static void *injected_context;

static void read_clock(clockid_t id, struct timespec *now)
{
    if (clock_gettime(id, now) != 0)
        abort(); /* cannot happen on a kernel that we run on */
}

uint64_t clock_now_ns(void)
{
    if (injected != NULL)
        return injected(injected_context);
    struct timespec now;
    read_clock(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_now_ms(void)
{
    return clock_now_ns() / 1000000u;
}

uint64_t clock_wall_ms(void)
{
    struct timespec now;
    read_clock(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

int64_t clock_cpu_ns(int pid)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return -1;
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

void clock_format_wall(uint64_t wall_ms, char text[32])
{
    const uint64_t last = 253402300799999u; /* the end of the year 9999 */
    if (wall_ms > last)
        wall_ms = last;
    time_t seconds = (time_t)(wall_ms / 1000u);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    char day[24];
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text, 32, "%s.%03uZ", day, (unsigned)(wall_ms % 1000u));
}

void clock_inject(uint64_t (*source)(void *context), void *context)
{
    injected = source;
    injected_context = context;
}
