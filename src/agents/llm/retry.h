/* agents/llm/retry: when a request is sent again, and how long that waits. Pure; any thread. */
#pragma once

#include "agents/llm/providers/codec.h"
#include "base/random.h"

#include <stdbool.h>
#include <stdint.h>

struct retry_policy {
    int tries;          /* requests in all, the first included */
    uint64_t base_ms;   /* first back-off's upper end; doubles with each try */
    uint64_t cap_ms;    /* back-off never exceeds this */
    uint64_t honour_ms; /* a Retry-After up to this is honoured; beyond it the endpoint is parked */
    int break_after;    /* failures in a row that open the breaker; 0: 5 */
    uint64_t probe_ms;  /* until an open breaker is probed; doubles with each; 0: 15 s */
    uint64_t probe_cap_ms; /* 0: 5 min */
};

extern const struct retry_policy retry_policy_default; /* 6 tries, 0.5 s doubling to 60 s, 120 s */

struct retry_decision {
    bool again;
    bool park;         /* the provider asks for more patience than we have */
    uint64_t delay_ms; /* before the next request */
    bool whole_key;    /* the delay holds for every request of the key */
};

/* `failures`: requests of this completion that have failed so far (>= 1). `after_ms`: what the
 * provider asked for, < 0: nothing. Back-off has full jitter: uniform in [0, min(cap, base * 2^n)];
 * an honoured Retry-After is never undercut, and gets up to a tenth (at least base) on top. */
struct retry_decision retry_decide(const struct retry_policy *policy, enum fault fault,
                                   int failures, int64_t after_ms, struct random *random);

/* Reads `retry-after-ms`, then `Retry-After` (seconds, fractions too, or an HTTP date against
 * the response's `Date`, whose clock it is by, or else `wall_ms`); "" means absent. Negative, NaN
 * and past values are 0; huge ones are clamped to a day. -1 where neither header holds a number or
 * a date. */
int64_t retry_after(const char *retry_after_ms, const char *retry_after, const char *date,
                    uint64_t wall_ms);

int retry_break_after(const struct retry_policy *policy);

/* Before the probe that comes after `probes` that failed: with a quarter of jitter either way. */
uint64_t retry_probe_ms(const struct retry_policy *policy, int probes, struct random *random);
