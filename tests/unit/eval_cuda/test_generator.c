/* A generator gives draw.c's numbers byte for byte, or none. Its kernel is compiled by NVRTC where
 * there is one, and run as C by tests/fakes/fake_cuda.c. */
#include "scene.h"

#include "eval/cuda/compile/nvrtc.h"
#include "eval/cuda/draw/generator.h"

#include <signal.h>
#include <sys/wait.h>

enum {
    LARGE = GENERATOR_LEAST_BYTES / 2 + 12345,          /* of any type */
    WINDOWS = (GENERATOR_WINDOW_BYTES / 4) * 2 + 12345, /* two windows of float32, and some more */
};

static bool has_nvrtc(void)
{
    struct cuda_compiler compiler;
    struct arena *arena = arena_new();
    struct err ignored;
    bool found = nvrtc_find(arena, &compiler, &ignored) == 0;
    arena_free(arena);
    return found;
}

/* Ours is the generator alone. */
static void kill_children(void)
{
    char path[64], text[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)gettid());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    assert_int_equal(kill((pid_t)strtol(text, NULL, 10), SIGKILL), 0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)strtol(text, NULL, 10), &info, WEXITED | WNOWAIT), 0);
}

static bool begin(void)
{
    const struct lane_facts lane = {.gpu = true};
    cuda_draw_end();
    cuda_draw_warm(&lane, "sm_90a", (size_t)LARGE * 8);
    return cuda_draw_await();
}

static bool draws(enum distribution distribution, enum dtype dtype, size_t count, double low,
                  double high)
{
    size_t bytes = dtype_bytes(dtype) * count;
    unsigned char *wanted = mem_alloc(bytes), *got = mem_alloc(bytes);
    struct drawing drawing;
    memset(got, 0, bytes);
    draw_plan(distribution, 4711, dtype, 100, low, high, &drawing);
    draw_run(&drawing, count, wanted);
    bool drawn = cuda_draw(&drawing, count, got);
    if (drawn)
        assert_memory_equal(got, wanted, bytes);
    mem_free(wanted);
    mem_free(got);
    return drawn;
}

static void test_the_same_bytes(void **unused)
{
    static const enum dtype dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_FLOAT16,
                                        DTYPE_BFLOAT16};
    static const double bounds[][2] = {{1, -1}, {-10000, 10000}, {0, 1}, {-1e-6, 1e-6}};
    (void)unused;
    if (!has_nvrtc())
        skip();
    assert_true(begin());
    for (int d = 0; d < DRAW_RANDOM_COUNT; d++)
        for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++) {
            const double *bound = bounds[((size_t)d + t) % 4];
            size_t count = GENERATOR_LEAST_BYTES / dtype_bytes(dtypes[t]) + 12345;
            assert_true(draws((enum distribution)d, dtypes[t], count, bound[0], bound[1]));
        }
    assert_true(draws(DRAW_HEAVY, DTYPE_FLOAT32, WINDOWS, 1, -1));
}

static void test_what_is_not_for_it(void **unused)
{
    struct drawing drawing;
    float few[1000];
    (void)unused;
    if (!has_nvrtc())
        skip();
    assert_true(begin());
    assert_false(draws(DRAW_NORMAL, DTYPE_INT32, LARGE, 1, -1));
    assert_false(draws(DRAW_SORTED, DTYPE_FLOAT32, LARGE, 1, -1));
    draw_plan(DRAW_NORMAL, 1, DTYPE_FLOAT32, 100, 1, -1, &drawing);
    assert_false(cuda_draw(&drawing, 1000, few));
    assert_true(draws(DRAW_NORMAL, DTYPE_FLOAT32, LARGE, 1, -1)); /* and it is still there */
}

/* Numbers are wrong, or there is nobody: then the worker is told to draw. */
static void test_what_goes_wrong(void **unused)
{
    static const char *const how[] = {"last", "other", "later", "dies"};
    (void)unused;
    if (!has_nvrtc())
        skip();
    for (size_t i = 0; i < sizeof how / sizeof how[0]; i++) {
        setenv("FAKE_DRAW", how[i], 1);
        assert_true(begin());
        size_t count = strcmp(how[i], "later") == 0 ? WINDOWS : LARGE;
        assert_false(draws(DRAW_NORMAL, DTYPE_FLOAT32, count, 1, -1));
        assert_false(cuda_draw_await()); /* ended */
        assert_false(draws(DRAW_NORMAL, DTYPE_FLOAT32, LARGE, 1, -1));
    }
    unsetenv("FAKE_DRAW");
}

static void test_no_compiler(void **unused)
{
    (void)unused;
    setenv("TWAGENT_NVRTC", "/nowhere/libnvrtc.so", 1);
    assert_false(begin());
    assert_false(draws(DRAW_NORMAL, DTYPE_FLOAT32, LARGE, 1, -1));
    unsetenv("TWAGENT_NVRTC");
}

static void test_small_inputs_need_none(void **unused)
{
    const struct lane_facts lane = {.gpu = true};
    (void)unused;
    cuda_draw_end();
    cuda_draw_warm(&lane, "sm_90a", 1 << 20);
    assert_false(cuda_draw_await());
}

/* One that was killed between two sessions is noticed, and another is started; one that is not
 * wanted any more is ended. */
static void test_sessions_after_each_other(void **unused)
{
    const struct lane_facts lane = {.gpu = true};
    (void)unused;
    if (!has_nvrtc())
        skip();
    assert_true(begin());
    kill_children();
    for (int i = 0; i < 2; i++) {
        cuda_draw_warm(&lane, "sm_90a", (size_t)LARGE * 8);
        assert_true(cuda_draw_await());
    }
    assert_true(draws(DRAW_NORMAL, DTYPE_FLOAT32, LARGE, 1, -1));
    kill_children();
    assert_false(cuda_draw_await());
    assert_true(begin());
    cuda_draw_warm(&lane, "sm_90a", 1 << 20);
    assert_false(cuda_draw_await());
}

int main(int argc, char **argv)
{
    int code;
    if (scene_internal(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_bytes),
        cmocka_unit_test(test_what_is_not_for_it),
        cmocka_unit_test(test_what_goes_wrong),
        cmocka_unit_test(test_no_compiler),
        cmocka_unit_test(test_small_inputs_need_none),
        cmocka_unit_test(test_sessions_after_each_other),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_draw_end();
    return failed;
}
