/* The retry policy: which faults are asked again, how long is waited, what is clamped. */
#include "check.h"

#include "agents/llm/retry.h"

static const uint64_t wall_ms = 1780000000000; /* 2026-05-28T20:26:40Z */

static const struct {
    const char *ms, *seconds;
    int64_t expected;
    const char *date; /* the server's own; NULL: it does not say */
} headers[] = {
    {"", "", -1, NULL},
    {"", "7", 7000, NULL},
    {"", "1.5", 1500, NULL},
    {"250", "7", 250, NULL},
    {"", "0", 0, NULL},
    {"", "-5", 0, NULL},
    {"", "nan", 0, NULL},
    {"-1", "", 0, NULL},
    {"", "1e9", 86400000, NULL},
    {"", "inf", 86400000, NULL},
    {"", "soon", -1, NULL},
    {"soon", "3", 3000, NULL},
    {"", "Thu, 28 May 2026 20:26:50 GMT", 10000, NULL},
    {"", "Thursday, 28-May-26 20:26:50 GMT", 10000, NULL},
    {"", "Thu May 28 20:26:50 2026", 10000, NULL},
    {"", "Thu, 28 May 2026 20:00:00 GMT", 0, NULL}, /* past */
    {"", "Thu, 28 May 2026 20:26:50 GMT and more", -1, NULL},
    {"", "Thu, 28 May 2026 23:26:50 GMT", 10000, "Thu, 28 May 2026 23:26:40 GMT"},
    {"", "Thu, 28 May 2026 17:26:50 GMT", 10000, "Thu, 28 May 2026 17:26:40 GMT"},
    {"", "Thu, 28 May 2026 20:26:50 GMT", 10000, "now"},
    {"", "7", 7000, "Thu, 28 May 2026 23:26:40 GMT"},
};

static void test_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(headers); i++) {
        int64_t got = retry_after(headers[i].ms, headers[i].seconds,
                                  headers[i].date ? headers[i].date : "", wall_ms);
        if (got != headers[i].expected)
            fail_msg("\"%s\", \"%s\": %lld", headers[i].ms, headers[i].seconds, (long long)got);
    }
}

static void test_faults(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 1);
    for (int fault = FAULT_NONE; fault <= FAULT_EMPTY; fault++) {
        struct retry_decision decision =
            retry_decide(&retry_policy_default, (enum fault)fault, 1, -1, &random);
        assert_int_equal(decision.again, fault == FAULT_RETRY || fault == FAULT_LIMITED);
        assert_int_equal(decision.whole_key, fault == FAULT_LIMITED);
        assert_false(decision.park);
    }
}

/* Full jitter: never above the doubling cap, sometimes near it and sometimes near nothing. */
static void test_backoff(void **state)
{
    (void)state;
    static const uint64_t caps[] = {0, 500, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    struct retry_policy policy = retry_policy_default;
    struct random random;
    random_init(&random, 7);
    policy.tries = 20;
    for (int failures = 1; failures < 10; failures++) {
        uint64_t least = UINT64_MAX, most = 0;
        for (int i = 0; i < 2000; i++) {
            struct retry_decision decision =
                retry_decide(&policy, FAULT_RETRY, failures, -1, &random);
            assert_true(decision.again);
            least = decision.delay_ms < least ? decision.delay_ms : least;
            most = decision.delay_ms > most ? decision.delay_ms : most;
        }
        assert_true(most <= caps[failures]);
        assert_true(most > caps[failures] * 95 / 100);
        assert_true(least < caps[failures] * 5 / 100);
    }
    assert_false(retry_decide(&retry_policy_default, FAULT_RETRY, 6, -1, &random).again);
    assert_true(retry_decide(&retry_policy_default, FAULT_RETRY, 5, -1, &random).again);
}

static void test_asked_for(void **state)
{
    (void)state;
    struct random random;
    uint64_t least = UINT64_MAX, most = 0;
    random_init(&random, 3);
    for (int i = 0; i < 1000; i++) {
        struct retry_decision decision =
            retry_decide(&retry_policy_default, FAULT_LIMITED, 1, 20000, &random);
        assert_true(decision.again && decision.delay_ms >= 20000 && decision.delay_ms <= 22000);
        least = decision.delay_ms < least ? decision.delay_ms : least;
        most = decision.delay_ms > most ? decision.delay_ms : most;
    }
    assert_true(least < 20100 && most > 21900); /* not all at once when the time has come */
    assert_false(retry_decide(&retry_policy_default, FAULT_LIMITED, 1, 120000, &random).park);
    struct retry_decision parked =
        retry_decide(&retry_policy_default, FAULT_LIMITED, 1, 120001, &random);
    assert_true(parked.park && !parked.again);
}

/* 15 s doubling to 5 min, a quarter more or less. */
static void test_probes(void **state)
{
    (void)state;
    static const uint64_t middles[] = {15000, 30000, 60000, 120000, 240000, 300000, 300000};
    struct random random;
    random_init(&random, 11);
    assert_int_equal(retry_break_after(&retry_policy_default), 5);
    for (int probes = 0; probes < (int)COUNT(middles); probes++) {
        uint64_t least = UINT64_MAX, most = 0, middle = middles[probes];
        for (int i = 0; i < 2000; i++) {
            uint64_t ms = retry_probe_ms(&retry_policy_default, probes, &random);
            least = ms < least ? ms : least;
            most = ms > most ? ms : most;
        }
        assert_true(least >= middle * 3 / 4 && least < middle * 8 / 10);
        assert_true(most <= middle * 5 / 4 && most > middle * 12 / 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_backoff), cmocka_unit_test(test_asked_for),
        cmocka_unit_test(test_probes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
