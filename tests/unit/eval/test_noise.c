/* Time that others took of a call, and what a flush leaves as it was. */
#include "base/mem.h"
#include "eval/data/noise.h"
#include "eval/measure/session.h"
#include "eval/measure/timing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_flushing_touches_nothing(void **state)
{
    enum { BYTES = 10001 };
    unsigned char *bytes = mem_alloc(BYTES);
    (void)state;
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (unsigned char)(i * 31);
    flush_bytes(bytes + 1, BYTES - 1, 1 << 16);
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(bytes[i], (unsigned char)(i * 31));
    mem_free(bytes);
}

static void test_noise_of_nobody(void **state)
{
    struct noise before, after;
    (void)state;
    noise_read(getpid(), &before);
    noise_read(getpid(), &after);
    assert_true(after.own_ns >= before.own_ns && after.subject_ns >= before.subject_ns);
    noise_read(0, &after);
    assert_int_equal(after.subject_ns, 0);
}

/* What a subject's own threads took from each other is no disturbance: else a candidate that makes
 * more of them than there are cores would have its slow samples left out. */
static void test_who_disturbed(void **state)
{
    const struct noise before = {.threads = 2};
    struct noise after = {.subject_ns = 8000,
                          .own_ns = 10,
                          .subject_ran_ns = 2000,
                          .called_ran_ns = 900,
                          .threads = 2};
    (void)state;
    assert_int_equal(noise_between(&before, &after, 1000, 2), 10); /* both cores were its own */
    after.subject_ran_ns = 500;
    assert_int_equal(noise_between(&before, &after, 1000, 2), 1510); /* 1500 were somebody's */
    after.subject_ns = 300;
    assert_int_equal(noise_between(&before, &after, 1000, 2), 310);
    assert_int_equal(noise_between(&after, &before, 1000, 2), 0); /* a thread has ended */
}

/* A queue for a core where nobody had anything to do there is none: the worker's while its subject
 * runs, a thread's that was to stop after the clock had. */
static void test_harmless_queues(void **state)
{
    const struct noise before = {.threads = 1};
    struct noise after = {.subject_ns = 12000,
                          .own_ns = 980,
                          .subject_ran_ns = 990,
                          .called_ran_ns = 990,
                          .threads = 1};
    (void)state;
    assert_int_equal(noise_between(&before, &after, 1000, 2), 20);
    after.called_ran_ns = after.subject_ran_ns = 400; /* "done" was said, and nobody listened */
    assert_int_equal(noise_between(&before, &after, 1000, 2), 1200);
    after.called_ran_ns = 1040; /* it went on after the clock */
    after.subject_ran_ns = 1040;
    assert_int_equal(noise_between(&before, &after, 1000, 2), 0);
}

/* Whoever waits at the same time as another loses that time once: a call that ran for 400 of 1000
 * can have lost 600, and would not have ended at once on a machine of its own. */
static void test_most_that_is_lost(void **state)
{
    const struct noise before = {.threads = 1};
    struct noise after = {.subject_ran_ns = 400, .called_ran_ns = 400, .threads = 1};
    (void)state;
    assert_int_equal(noise_most(&before, &after, 1000, 2), 600);
    after.threads = 2; /* it may have run on two cores at once */
    assert_int_equal(noise_most(&before, &after, 1000, 2), 800);
    after.subject_ran_ns = 2400; /* it went on after the clock */
    assert_int_equal(noise_most(&before, &after, 1000, 2), 0);
    assert_int_equal(noise_most(&after, &before, 1000, 2), 1000); /* a thread has ended */
}

/* Three calls that agree by chance on a busy machine do not make the kernel the one that varies. */
static void test_whose_noise(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct session session = {.load = 0.85};
    struct bench bench = {.session = &session, .arena = arena};
    struct comparison comparison = {.spread = 0.31, .baseline_samples = 3};
    const char *words = quiet_words(&bench, &comparison);
    assert_non_null(strstr(words, "over 3 samples the baseline strays from itself by 0 %"));
    assert_non_null(strstr(words, "other programs take 85 % of a core's time; what helps: end"));
    assert_null(strstr(words, "the kernel's own time varies"));
    session.load = 0.01;
    words = quiet_words(&bench, &comparison);
    assert_null(strstr(words, "other programs take"));
    assert_non_null(strstr(words, "the kernel's own time varies"));
    arena_free(arena);
}

/* Where the request's time is over nobody looks whether it is quiet. */
static void test_no_time_to_wait(void **state)
{
    (void)state;
    static struct session session = {.load = -1.0, .options.time_budget_ms = 400};
    static struct lane_facts lane;
    const struct measure_request request = {.effort = EFFORT_FINAL};
    struct bench bench = {.session = &session, .request = &request, .ends_ns = 1};
    const struct timing timing = {.bench = &bench};
    session.lane = &lane;
    buf_init(&bench.notes, 4096);
    assert_false(quiet_wait(&bench, &timing));
    assert_true(session.load < 0.0 && session.waits_in_vain == 0);
    assert_non_null(strstr(buf_text(&bench.notes), "for want of time"));
    buf_free(&bench.notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flushing_touches_nothing),
        cmocka_unit_test(test_noise_of_nobody),
        cmocka_unit_test(test_who_disturbed),
        cmocka_unit_test(test_harmless_queues),
        cmocka_unit_test(test_most_that_is_lost),
        cmocka_unit_test(test_whose_noise),
        cmocka_unit_test(test_no_time_to_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
