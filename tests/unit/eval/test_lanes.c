/* What each of several lanes has. */
#include "eval/lane/lane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_what_each_lane_has(void **state)
{
    static const struct {
        struct lane_spec spec;
        size_t lanes, count;
        const char *cores, *device; /* the last one's */
    } cases[] = {{{.cores = "0-3"}, 1, 1, "0-3", NULL},
                 {{.cores = "0-3,8"}, 2, 2, "2,3,8", NULL},
                 {{.cores = "0-3", .device = "0,2"}, 1, 2, "2,3", "2"},
                 {{.cores = "0-3", .device = "0,2"}, 3, 3, "2,3", "0"},
                 {{.launcher = "srun", .device = "0,2"}, 4, 4, NULL, "2"},
                 {{.launcher = "srun", .cores = "0"}, 3, 3, "0", NULL}};
    struct arena *arena = arena_new();
    struct lane_share shares[LANES_MAX];
    size_t count;
    struct err err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(lane_shares(arena, &cases[i].spec, cases[i].lanes, shares, &count, &err),
                         0);
        assert_int_equal(count, cases[i].count);
        const char *const is[] = {shares[count - 1].cores, shares[count - 1].device};
        const char *const wanted[] = {cases[i].cores, cases[i].device};
        for (size_t k = 0; k < 2; k++)
            assert_string_equal(is[k] != NULL ? is[k] : "", wanted[k] != NULL ? wanted[k] : "");
    }
    assert_int_equal(lane_shares(arena, &cases[0].spec, 5, shares, &count, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_int_equal(lane_shares(arena, &cases[4].spec, LANES_MAX + 1, shares, &count, &err), -1);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_each_lane_has)};
    return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
