/* Every CUDA start that ships: it parses, its launch plan can be computed for every check shape on
 * a Hopper, within what CUDA allows, at its first valid point; and, where NVRTC is installed, that
 * point compiles for sm_90a; what spills registers is said. */
#include "kit.h"

#include <dirent.h>

enum { THREADS_MAX = 1024, SHARED_MAX = 232448, CLUSTER_MAX = 8, GRID_YZ_MAX = 65535 };

static struct names hopper(void)
{
    static const struct {
        const char *name;
        int64_t number;
    } facts[] = {{"sm_count", 132},
                 {"warp_size", 32},
                 {"l2_bytes", 52428800},
                 {"shared_bytes_optin", SHARED_MAX},
                 {"shared_bytes_per_sm", 233472},
                 {"max_threads_per_sm", 2048},
                 {"max_threads_per_block", THREADS_MAX},
                 {"registers_per_sm", 65536}};
    struct names names = {0};
    struct err err;
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        if (names_set(&names, facts[i].name, facts[i].number, &err) != 0)
            fail_msg("%s", err.message);
    return names;
}

static void add_all(struct names *to, const struct names *from)
{
    struct err err;
    for (size_t i = 0; i < from->count; i++)
        if (names_set(to, from->name[i], from->number[i], &err) != 0)
            fail_msg("%s", err.message);
}

static int64_t number(const char *path, const struct expr *expr, struct names *names)
{
    int64_t result;
    struct err err;
    if (expr_eval(expr, expr_lookup_names, names, &result, &err) != 0)
        fail_msg("%s: %s", path, err.message);
    return result;
}

static int64_t extent(const char *path, const struct expr *const exprs[3], struct names *names,
                      int64_t most)
{
    int64_t product = 1;
    for (size_t i = 0; i < 3 && exprs[i] != NULL; i++) {
        int64_t one = number(path, exprs[i], names);
        if (one < 1 || one > most)
            fail_msg("%s: an extent of %lld", path, (long long)one);
        product *= one;
    }
    return product;
}

static void check_launch(const char *path, const struct launch *launch, struct names *names)
{
    assert_non_null(launch->entry);
    if (launch->grid[0] == NULL || launch->block[0] == NULL)
        fail_msg("%s: a launch without grid or block", path);
    int64_t blocks = extent(path, launch->grid, names, INT32_MAX);
    for (size_t i = 1; i < 3 && launch->grid[i] != NULL; i++)
        assert_true(number(path, launch->grid[i], names) <= GRID_YZ_MAX);
    int64_t threads = extent(path, launch->block, names, THREADS_MAX);
    if (threads > THREADS_MAX)
        fail_msg("%s: blocks of %lld threads", path, (long long)threads);
    if (launch->cluster[0] != NULL) {
        int64_t cluster = extent(path, launch->cluster, names, CLUSTER_MAX);
        assert_true(cluster <= CLUSTER_MAX && blocks % cluster == 0);
    }
    int64_t shared = launch->shared_bytes != NULL ? number(path, launch->shared_bytes, names) : 0;
    if (shared < 0 || shared > SHARED_MAX)
        fail_msg("%s: %lld bytes of shared memory", path, (long long)shared);
}

/* The first point of the tune space that is valid for the main shape. */
static void first_point(struct kit *kit, const char *path, const struct names *facts)
{
    bool valid = false;
    for (uint64_t i = 0; !valid && i < tune_points(kit->candidate) && i < 4096; i++) {
        tune_at(kit->candidate, i, &kit->tune);
        valid = tune_valid(kit->candidate, &kit->problem->shapes[0], facts, &kit->tune);
    }
    if (!valid)
        fail_msg("%s: no valid point", path);
}

static void check_plan(struct kit *kit, const char *path)
{
    struct names facts = hopper();
    struct buf text;
    buf_init(&text, 1 << 20);
    if (file_read(path, &text, &kit->err) != 0)
        fail_msg("%s", kit->err.message);
    candidate_free(kit->candidate);
    kit->candidate = NULL;
    if (candidate_parse(kit->problem, path, buf_text(&text), text.length, &kit->candidate,
                        &kit->err) != 0)
        fail_msg("%s", kit->err.message);
    buf_free(&text);
    assert_string_equal(kit->candidate->language, "cuda");
    if (kit->candidate->launch_count == 0)
        fail_msg("%s: no launch", path);
    first_point(kit, path, &facts);
    for (size_t s = 0; s < kit->problem->shape_count; s++) {
        struct names names = kit->problem->shapes[s];
        add_all(&names, &kit->tune);
        add_all(&names, &facts);
        for (size_t i = 0; i < kit->candidate->launch_count; i++)
            check_launch(path, &kit->candidate->launches[i], &names);
    }
}

static void compile(struct kit *kit, const char *path)
{
    if (kit_build(kit, "sm_90a", BUILD_FAST) != 0)
        fail_msg("%s: %s", path, buf_text(&kit->said));
    for (size_t i = 0; i < kit->report.entry_count; i++)
        if (kit->report.entries[i].spill_store_bytes > 0)
            print_message("%s: %s spills %lld bytes\n", path, kit->report.entries[i].entry,
                          (long long)kit->report.entries[i].spill_store_bytes);
}

static size_t each_start(void (*check)(struct kit *kit, const char *path))
{
    char path[1024];
    size_t seen = 0;
    struct dirent *entry;
    DIR *problems = opendir(TEST_SOURCE_DIR "/problems");
    assert_non_null(problems);
    while ((entry = readdir(problems)) != NULL) {
        struct problem *problem = NULL;
        struct err err;
        struct kit kit;
        const char *starts[64];
        snprintf(path, sizeof path, "%s/problems/%s/spec.yaml", TEST_SOURCE_DIR, entry->d_name);
        if (!file_exists(path))
            continue;
        if (problem_load(path, &problem, &err) != 0)
            fail_msg("%s", err.message);
        kit_open(&kit, problem);
        size_t count = problem_starts(problem, "cuda", starts, 64);
        for (size_t i = 0; i < count; i++)
            check(&kit, starts[i]);
        seen += count;
        kit_close(&kit);
        problem_free(problem);
    }
    closedir(problems);
    return seen;
}

static void test_plans(void **state)
{
    (void)state;
    assert_true(each_start(check_plan) > 0);
}

static void check_and_compile(struct kit *kit, const char *path)
{
    check_plan(kit, path);
    compile(kit, path);
}

static void test_compile(void **state)
{
    (void)state;
    kit_need_nvrtc();
    assert_true(each_start(check_and_compile) > 0);
}

int main(int argc, char **argv)
{
    int code;
    if (kit_internal(argc, argv, &code))
        return code;
    setenv("TWAGENT_DATA", TEST_SOURCE_DIR, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_compile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
