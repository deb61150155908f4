/* Every CUDA start that ships: it parses, and the worker makes its launch plan, tensor maps and
 * arguments included, with the facts that the probe has (of a Hopper), for the shapes of the spec
 * and some hidden ones, at its first point that is valid at one of the spec's, and for the first
 * such shape, which is the main one where it can be, at every one; and, where NVRTC is installed,
 * that point compiles for sm_90a; what spills registers is said. The same for the definitions' own
 * kernels in float64. */
#include "kit.h"

#include "base/mem.h"
#include "eval/cuda/compile/cubin.h"
#include "eval/cuda/probe/probe.h"
#include "eval/cuda/run/plan.h"

#include <dirent.h>

enum { HIDDEN_SHAPES = 4, POINTS_MOST = 4096 };
static const int64_t hopper_l2_bytes = 52428800;

static struct names facts; /* whose names live in */
static struct arena *probed;

/* As a lane has them: by the probe itself, of the fake driver, which is a Hopper but for its L2. */
static int ask_probe(void **unused)
{
    const int cores[] = {0};
    struct lane_facts lane = {0};
    struct err err = {0};
    int64_t number;
    (void)unused;
    probed = arena_new();
    if (cuda_probe(cores, 1, false, probed, &lane, &err) != 0)
        fail_msg("%s", err.message);
    facts = lane.facts;
    assert_true(expr_lookup_names(&facts, "l2_bytes", &number));
    return names_set(&facts, "l2_bytes", hopper_l2_bytes, &err);
}

static int forget(void **unused)
{
    (void)unused;
    arena_free(probed);
    return 0;
}

static void parse(struct kit *kit, const char *path)
{
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
    assert_ptr_equal(kit->candidate->language, &language_cuda);
}

static void check_shape(struct kit *kit, const char *path, const struct names *dims)
{
    static struct plan plan;
    struct layout layout;
    struct call call;
    const struct program program = {kit->problem, kit->candidate, &kit->tune, NULL};
    if (layout_make(kit->problem, dims, kit->candidate, &kit->tune, 0, &layout, &kit->err) != 0)
        fail_msg("%s: %s", path, kit->err.message);
    call_make(&layout, 0, 1000, &call);
    if (plan_make(&program, &facts, &call, &plan, &kit->err) != 0)
        fail_msg("%s: %s", path, kit->err.message);
    for (size_t i = 0; i < plan.launch_count; i++)
        assert_true(plan.launches[i].arg_count > 0);
}

/* Every point that is valid at a shape; the first one stays in `first`. */
static size_t check_points(struct kit *kit, const char *path, const struct names *dims,
                           struct names *first)
{
    size_t valid = 0;
    for (uint64_t i = 0; i < tune_points(kit->candidate) && i < POINTS_MOST; i++) {
        tune_at(kit->candidate, i, &kit->tune);
        if (!tune_valid(kit->candidate, dims, &facts, &kit->tune))
            continue;
        if (valid++ == 0)
            *first = kit->tune;
        check_shape(kit, path, dims);
    }
    return valid;
}

static void check_plan(struct kit *kit, const char *path)
{
    const struct problem *problem = kit->problem;
    struct names tune = {0};
    size_t valid = 0;
    parse(kit, path);
    for (size_t i = 0; i < problem->shape_count && valid == 0; i++)
        valid = check_points(kit, path, &problem->shapes[i], &tune);
    if (valid == 0)
        fail_msg("%s: no valid point", path);
    kit->tune = tune;
    for (size_t i = 0; i < problem->shape_count; i++)
        check_shape(kit, path, &problem->shapes[i]);
    for (uint64_t seed = 0; seed < HIDDEN_SHAPES; seed++) {
        struct names dims;
        if (problem_draw_dims(problem, seed, &dims, &kit->err) != 0)
            fail_msg("%s: %s", path, kit->err.message);
        check_shape(kit, path, &dims);
    }
}

/* With variables it would be measured without a launch before the one that counts. */
static void check_cubin(struct kit *kit, const char *path)
{
    struct buf image;
    struct cubin cubin;
    buf_init(&image, 1 << 24);
    if (file_read(kit->build.artifact, &image, &kit->err) != 0)
        fail_msg("%s", kit->err.message);
    if (cubin_read(buf_text(&image), image.length, &cubin) != 0 || cubin.heap != NULL ||
        cubin.variables)
        fail_msg("%s: has variables, or uses the heap", path);
    buf_free(&image);
}

static void compile(struct kit *kit, const char *path)
{
    if (kit_build(kit, "sm_90a", BUILD_FAST) != 0)
        fail_msg("%s: %s", path, buf_text(&kit->said));
    for (size_t i = 0; i < kit->report.entry_count; i++)
        if (kit->report.entries[i].spill_store_bytes > 0)
            print_message("%s: %s spills %lld bytes\n", path, kit->report.entries[i].entry,
                          (long long)kit->report.entries[i].spill_store_bytes);
    check_cubin(kit, path);
}

/* The kernel in float64 that some have beside the definition: src/eval/sets/wide.h. */
static size_t check_wide(struct kit *kit, struct problem *problem, const char *name,
                         void (*check)(struct kit *kit, const char *path))
{
    char path[1024];
    snprintf(path, sizeof path, "%s/problems/%s/ref_impl.cu", TEST_SOURCE_DIR, name);
    if (!file_exists(path))
        return 0;
    for (size_t i = 0; i < problem->input_count; i++)
        problem->inputs[i].dtype = DTYPE_FLOAT64;
    for (size_t i = 0; i < problem->output_count; i++)
        problem->outputs[i].dtype = DTYPE_FLOAT64;
    check(kit, path);
    return 1;
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
        seen += check_wide(&kit, problem, entry->d_name, check);
        kit_close(&kit);
        problem_free(problem);
    }
    closedir(problems);
    return seen;
}

/* What the probe has an expression may use: the parser's list of facts is the same. */
static void test_facts(void **state)
{
    struct kit kit;
    (void)state;
    kit_open(&kit, NULL);
    assert_true(facts.count > 0);
    for (size_t i = 0; i < facts.count; i++)
        kit_parse(&kit, arena_printf(kit.arena,
                                     "/*---\nlaunch: [{entry: k, grid: %s, block: 1}]\n---*/\n",
                                     facts.name[i]));
    kit_close(&kit);
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
#ifdef __SANITIZE_ADDRESS__
    skip(); /* half a minute of NVRTC, in which nothing of ours runs */
#endif
    assert_true(each_start(check_and_compile) > 0);
}

int main(int argc, char **argv)
{
    int code;
    if (kit_internal(argc, argv, &code))
        return code;
    if (argc >= 3 && strcmp(argv[1], "runner") == 0)
        return cuda_runner_main(argc - 3, argv + 3);
    kit_start_self();
    setenv("TWAGENT_CUDA_DRIVER", TEST_BINARY_DIR "/tests/fakes/libfake_cuda.so", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_compile),
    };
    return cmocka_run_group_tests(tests, ask_probe, forget);
}
