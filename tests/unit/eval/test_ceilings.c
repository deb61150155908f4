/* A machine's ceilings from one process to the next: the best stay, and those under load say so. */
#include "eval/backend/ceilings.h"

#include "folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct lane_facts seen(const char *identity, double copy, double flops, bool under_load)
{
    return (struct lane_facts){.identity = identity,
                               .copy_bytes_per_s = copy,
                               .flops_per_s = flops,
                               .under_load = under_load};
}

static void remember(const char *identity, double copy, double flops, bool under_load)
{
    struct lane_facts lane = seen(identity, copy, flops, under_load);
    ceilings_remember(&lane);
}

static void expect(const char *identity, double copy, double flops, bool under_load)
{
    struct lane_facts lane = seen(identity, 0.0, 0.0, false);
    ceilings_recall(&lane);
    assert_true(lane.copy_bytes_per_s == copy && lane.flops_per_s == flops);
    assert_int_equal(lane.under_load, under_load);
}

static void test_the_best_stay(void **state)
{
    (void)state;
    expect("a", 0.0, 0.0, false);
    remember("a", 2e9, 5e9, true);
    expect("a", 2e9, 5e9, true);
    remember("a", 3e9, 4e9, true); /* still a busy machine */
    expect("a", 3e9, 5e9, true);
    remember("a", 1e9, 9e9, false);
    expect("a", 3e9, 9e9, false);
    remember("a", 4e9, 1e9, true); /* what a busy one reached, a quiet one can */
    expect("a", 4e9, 9e9, false);
    expect("b", 0.0, 0.0, false);
    expect(NULL, 0.0, 0.0, false);
}

/* An adapter that computes on the cores is measured as they are: where nobody else is on them. */
static void test_whose_clock(void **state)
{
    struct lane_facts lane = {.gpu = false};
    struct err err;
    (void)state;
    assert_false(lane_is_apart(&lane));
    lane.gpu = true;
    assert_true(lane_is_apart(&lane));
    assert_int_equal(names_set(&lane.facts, "software", 1, &err), 0);
    assert_false(lane_is_apart(&lane));
}

static void test_doubt(void **state)
{
    struct lane_facts lane = seen("doubted", 0.0, 0.0, false);
    (void)state;
    ceilings_doubt(&lane); /* nothing to doubt */
    expect("doubted", 0.0, 0.0, false);
    remember("doubted", 2e9, 5e9, false);
    ceilings_doubt(&lane);
    expect("doubted", 2e9, 5e9, true);
}

static void test_what_cannot_be_kept(void **state)
{
    char *kept = mem_strdup(getenv("XDG_CACHE_HOME"));
    (void)state;
    setenv("XDG_CACHE_HOME", "/proc/none", 1);
    remember("a", 2e9, 5e9, false);
    expect("a", 0.0, 0.0, false);
    setenv("XDG_CACHE_HOME", kept, 1);
    mem_free(kept);
}

int main(void)
{
    struct folder folder;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_best_stay), cmocka_unit_test(test_whose_clock),
        cmocka_unit_test(test_doubt), cmocka_unit_test(test_what_cannot_be_kept)};
    folder_make(&folder);
    setenv("XDG_CACHE_HOME", folder.path, 1);
    int failed = cmocka_run_group_tests_name("ceilings", tests, NULL, NULL);
    folder_remove(&folder);
    return failed;
}
