/* eval/measure/watch: what a call on a device is to be, and how that one was doing while the
 * candidate was timed: clocks, temperature, what held clocks down, who else computed on it, and
 * whether its events agree with the clock around them. */
#include "eval/measure/measure.h"

static void widen(unsigned range[2], const unsigned seen[2], bool first)
{
    range[0] = first || seen[0] < range[0] ? seen[0] : range[0];
    range[1] = first || seen[1] > range[1] ? seen[1] : range[1];
}

void bench_watch(struct bench *bench, const struct device_state *state)
{
    struct device_state *all = &bench->watched;
    bool first = all->looks == 0;
    all->span_ns += state->span_ns;
    all->wall_ns += state->wall_ns;
    if (state->looks == 0)
        return;
    widen(all->sm_mhz, state->sm_mhz, first);
    widen(all->memory_mhz, state->memory_mhz, first);
    widen(all->celsius, state->celsius, first);
    if (state->other_looks > 0)
        widen(all->others, state->others, all->other_looks == 0);
    all->other_looks += state->other_looks;
    all->limits |= state->limits;
    all->looks += state->looks;
}

static void put_range(struct json *json, const char *key, const unsigned range[2])
{
    json_put_array(json, key);
    json_int(json, range[0]);
    json_int(json, range[1]);
    json_array_end(json);
}

/* nvml.h's nvmlClocksEventReason: idle (bit 0), set by an application (1) and 8 hold nothing down
 * that matters here. */
static void put_limits(struct json *json, uint64_t limits)
{
    static const struct {
        unsigned bit;
        const char *name;
    } reasons[] = {{2, "power cap"},        {3, "hardware slowdown"}, {4, "sync boost"},
                   {5, "software thermal"}, {6, "hardware thermal"},  {7, "power brake"}};
    json_put_array(json, "clock_limits");
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if ((limits >> reasons[i].bit & 1) != 0)
            json_text(json, reasons[i].name);
    json_array_end(json);
}

void bench_put_watched(const struct bench *bench, struct json *json)
{
    const struct device_state *all = &bench->watched;
    if (!(all->span_ns > 0.0))
        return;
    json_put_object(json, "device_state");
    json_put_real(json, "events_of_wall_clock", all->span_ns / all->wall_ns);
    json_put_int(json, "looks", all->looks);
    if (all->looks > 0) {
        put_range(json, "sm_clock_mhz", all->sm_mhz);
        put_range(json, "memory_clock_mhz", all->memory_mhz);
        put_range(json, "temperature_celsius", all->celsius);
        put_limits(json, all->limits);
    }
    if (all->other_looks > 0)
        put_range(json, "other_processes", all->others);
    else if (all->looks > 0) {
        json_key(json, "other_processes");
        json_null(json);
    }
    json_object_end(json);
}

void bench_tell_device(const struct bench *bench, bool candidate, struct call *call)
{
    call->guarded = bench->guarded != GUARD_NONE; /* no page is taken from it */
    call->crowded = candidate && bench->crowded;
    call->rounds = bench->stays ? bench->rounds : 0;
    call->behind = bench->stays ? bench->behind : 0;
    call->earlier = bench->earlier;
}
