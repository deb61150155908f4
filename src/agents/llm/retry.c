#include "agents/llm/retry.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    DAY_MS = 24 * 60 * 60 * 1000,
    BREAK_AFTER = 5,
    PROBE_MS = 15 * 1000,
    PROBE_CAP_MS = 5 * 60 * 1000
};

const struct retry_policy retry_policy_default = {
    .tries = 6, .base_ms = 500, .cap_ms = 60000, .honour_ms = 120000};

struct retry_decision retry_decide(const struct retry_policy *policy, enum fault fault,
                                   int failures, int64_t after_ms, struct random *random)
{
    struct retry_decision decision = {0};
    if (fault != FAULT_RETRY && fault != FAULT_LIMITED)
        return decision;
    if (after_ms >= 0 && (uint64_t)after_ms > policy->honour_ms) {
        decision.park = true;
        return decision;
    }
    if (failures >= policy->tries)
        return decision;
    uint64_t most = policy->base_ms;
    for (int i = 1; i < failures && most < policy->cap_ms; i++)
        most *= 2;
    if (most > policy->cap_ms)
        most = policy->cap_ms;
    decision.again = true;
    decision.whole_key = fault == FAULT_LIMITED;
    if (after_ms < 0) {
        decision.delay_ms = random_below(random, most + 1);
        return decision;
    }
    uint64_t extra = (uint64_t)after_ms / 10;
    if (extra < policy->base_ms)
        extra = policy->base_ms;
    decision.delay_ms = (uint64_t)after_ms + random_below(random, extra + 1);
    return decision;
}

int retry_break_after(const struct retry_policy *policy)
{
    return policy->break_after > 0 ? policy->break_after : BREAK_AFTER;
}

uint64_t retry_probe_ms(const struct retry_policy *policy, int probes, struct random *random)
{
    uint64_t cap = policy->probe_cap_ms > 0 ? policy->probe_cap_ms : PROBE_CAP_MS;
    uint64_t ms = policy->probe_ms > 0 ? policy->probe_ms : PROBE_MS;
    for (int i = 0; i < probes && ms < cap; i++)
        ms *= 2;
    if (ms > cap)
        ms = cap;
    return ms - ms / 4 + random_below(random, ms / 2 + 1);
}

static int64_t clamp_ms(double ms)
{
    if (isnan(ms) || ms <= 0)
        return 0;
    return ms >= DAY_MS ? DAY_MS : (int64_t)llround(ms);
}

/* IMF-fixdate, RFC 9110 section 5.6.7, and the two obsolete forms. */
static bool parse_date(const char *text, time_t *when)
{
    static const char *const formats[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
                                          "%a %b %d %H:%M:%S %Y"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct tm tm = {0};
        const char *end = strptime(text, formats[i], &tm);
        if (end == NULL || *end != '\0')
            continue;
        *when = timegm(&tm);
        return true;
    }
    return false;
}

static bool parse_number(const char *text, double *number)
{
    char *end;
    *number = strtod(text, &end);
    return end != text && *(end + strspn(end, " \t")) == '\0';
}

int64_t retry_after(const char *retry_after_ms, const char *retry_after, const char *date,
                    uint64_t wall_ms)
{
    double number;
    time_t when, said;
    if (parse_number(retry_after_ms, &number))
        return clamp_ms(number);
    if (parse_number(retry_after, &number))
        return clamp_ms(number * 1000);
    if (parse_date(retry_after, &when))
        return clamp_ms((double)when * 1000 -
                        (parse_date(date, &said) ? (double)said * 1000 : (double)wall_ms));
    return -1;
}
