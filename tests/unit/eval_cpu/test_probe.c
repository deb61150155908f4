/* Facts about this machine hold together; ceilings are measured and sane. */
#include "kit.c" /* each test is one source file */

#include "base/value.h"

static int64_t fact(const char *name)
{
    int64_t number = -1;
    if (!expr_lookup_names(&kit.lane.facts, name, &number))
        fail_msg("no fact %s", name);
    return number;
}

static void facts_are_there(void **state)
{
    struct value *device, *versions;
    (void)state;
    int cores[64] = {kit.lane.cores[0]};
    assert_int_equal(backend_cpu.probe(cores, 1, false, kit.arena, &kit.lane, &kit.err), 0);
    assert_int_equal(fact("cores"), 1);
    assert_true(fact("vector_bytes") >= 16 && fact("vector_bytes") <= 256);
    assert_true(fact("l1_bytes") >= 0 && fact("l2_bytes") >= fact("l1_bytes"));
    assert_true(kit.lane.flops_per_s == 0 && kit.lane.copy_bytes_per_s == 0);
    assert_int_equal(value_parse_json(kit.arena, "device", kit.lane.device, strlen(kit.lane.device),
                                      &device, &kit.err),
                     0);
    assert_int_equal(value_parse_json(kit.arena, "versions", kit.lane.versions,
                                      strlen(kit.lane.versions), &versions, &kit.err),
                     0);
    assert_true(strlen(value_text(device, "cpu", "")) > 0);
    assert_non_null(strstr(value_text(device, "march", ""), "-march="));
    assert_non_null(value_at(device, "sandbox.complete"));
    assert_int_equal(value_get(device, "flops_per_s")->kind, VALUE_NULL); /* unknown is not 0 */
    assert_true(strlen(value_text(versions, "gcc", "")) > 0 ||
                strlen(value_text(versions, "clang", "")) > 0);
}

static void ceilings_are_sane(void **state)
{
    (void)state;
    size_t count = kit.lane.core_count;
    int cores[64];
    memcpy(cores, kit.lane.cores, sizeof cores);
    assert_int_equal(backend_cpu.probe(cores, count, true, kit.arena, &kit.lane, &kit.err), 0);
    print_message("copy %.1f GB/s, read %.1f GB/s, %.1f GFLOP/s\n", kit.lane.copy_bytes_per_s / 1e9,
                  kit.lane.read_bytes_per_s / 1e9, kit.lane.flops_per_s / 1e9);
    assert_true(kit.lane.copy_bytes_per_s > 1e8 && kit.lane.copy_bytes_per_s < 1e14);
    assert_true(kit.lane.read_bytes_per_s > 1e8 && kit.lane.read_bytes_per_s < 1e14);
    assert_true(kit.lane.flops_per_s > 1e8 && kit.lane.flops_per_s < 1e14);
}

static void a_lane_has_cores(void **state)
{
    struct lane_facts lane;
    struct err err;
    struct arena *arena = arena_new();
    (void)state;
    assert_int_equal(backend_cpu.probe(NULL, 0, false, arena, &lane, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    arena_free(arena);
}

int main(int argc, char **argv)
{
    int code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(facts_are_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ceilings_are_sane, set_up, tear_down),
        cmocka_unit_test(a_lane_has_cores),
    };
    if (kit_internal(argc, argv, &code))
        return code;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
