/* Facts about this machine hold together; ceilings are measured and sane. */
#include "kit.c" /* each test is one source file */

#include "base/value.h"
#include "eval/backend/ceilings.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

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

/* Of these cores: others have ceilings of their own. */
static void ceilings_are_remembered(void **state)
{
    int cores[] = {kit.lane.cores[0]}, others[] = {kit.lane.cores[0] + 1};
    (void)state;
    setenv("XDG_CACHE_HOME", kit.folder, 1);
    assert_int_equal(backend_cpu.probe(cores, 1, false, kit.arena, &kit.lane, &kit.err), 0);
    kit.lane.copy_bytes_per_s = 1e30;
    ceilings_remember(&kit.lane);
    assert_int_equal(backend_cpu.probe(cores, 1, false, kit.arena, &kit.lane, &kit.err), 0);
    assert_true(kit.lane.copy_bytes_per_s == 1e30);
    assert_non_null(strstr(kit.lane.device, "\"copy_bytes_per_s\":1e"));
    assert_int_equal(backend_cpu.probe(others, 1, false, kit.arena, &kit.lane, &kit.err), 0);
    assert_true(kit.lane.copy_bytes_per_s == 0);
    setenv("XDG_CACHE_HOME", "/proc/none", 1);
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

/* With others on its core meanwhile, a trial longer than a time slice. */
static int probe_beside(struct lane_facts *beside)
{
    enum { OTHERS = 6 };
    pid_t others[OTHERS];
    int core = kit.lane.cores[0];
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    for (int i = 0; i < OTHERS; i++)
        if ((others[i] = fork()) == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            (void)sched_setaffinity(0, sizeof set, &set);
            for (;;)
                continue;
        }
    int failed = backend_cpu.probe(&core, 1, true, kit.arena, beside, &kit.err);
    for (int i = 0; i < OTHERS; i++) {
        kill(others[i], SIGKILL);
        (void)waitpid(others[i], NULL, 0);
    }
    return failed;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* What others take of the cores is no part of what memory gives. Else an honest kernel is faster
 * than "reading the inputs alone". By the wall clock it would be a seventh each time; what other
 * virtual machines take of the memory comes and goes, and is in either measurement. */
static void others_do_not_lower_ceilings(void **state)
{
    enum { ROUNDS = 12 };
    int core = kit.lane.cores[0], rounds = 0;
    double share = 0;
    (void)state;
    for (; rounds < ROUNDS && share <= 0.4; rounds++) {
        struct lane_facts alone = {.gpu_index = kit.lane.gpu_index}, beside = alone;
        assert_int_equal(backend_cpu.probe(&core, 1, true, kit.arena, &alone, &kit.err), 0);
        assert_int_equal(probe_beside(&beside), 0);
        share = least(beside.read_bytes_per_s / alone.read_bytes_per_s,
                      beside.copy_bytes_per_s / alone.copy_bytes_per_s);
        print_message("beside others %.0f %% of what it is alone\n", 100 * share);
    }
    assert_true(share > 0.4);
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
        cmocka_unit_test_setup_teardown(ceilings_are_remembered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ceilings_are_sane, set_up, tear_down),
        cmocka_unit_test_setup_teardown(others_do_not_lower_ceilings, set_up, tear_down),
        cmocka_unit_test(a_lane_has_cores),
    };
    if (kit_internal(argc, argv, &code))
        return code;
    setenv("XDG_CACHE_HOME", "/proc/none", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
