/* A profile through the runner's protocol, with a driver and a CUPTI that have no GPU
 * (tests/fakes/fake_cuda.c, fake_cupti.c); this program answers to "runner cuda" itself. */
#include "scene.h"

#include "base/value.h"
#include "eval/cuda/device.h"
#include "eval/cuda/profile.h"

#include <math.h>

static const struct value *metrics; /* of the last profile */

static void begin(struct scene *scene, const char *launches)
{
    static const struct {
        const char *name;
        int64_t number;
    } facts[] = {{"sm_count", 132},
                 {"max_threads_per_sm", 2048},
                 {"registers_per_sm", 65536},
                 {"sm_shared_bytes", 233472},
                 {"compute_capability", 90}};
    scene_begin(scene);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        assert_int_equal(names_set(&scene->lane.facts, facts[i].name, facts[i].number, NULL), 0);
    scene->lane.copy_bytes_per_s = 4e12;
    scene->call.cold = scene->call.timed = true;
    assert_int_equal(scene_open(scene, launches), 0);
}

static void end(struct scene *scene)
{
    profile_discard();
    scene_end(scene);
}

static void profile(struct scene *scene)
{
    struct buf text;
    struct json json;
    struct value *read;
    buf_init(&text, 1 << 18);
    json_init(&json, &text);
    json_object(&json);
    assert_int_equal(backend_cuda.profile(&scene->lane, scene->problem, &scene->layout.dims,
                                          scene->artifact, NULL, 2000.0, scene->subject,
                                          &scene->call, &json, &scene->err),
                     0);
    json_object_end(&json);
    assert_int_equal(
        value_parse_json(scene->arena, "metrics", buf_text(&text), text.length, &read, &scene->err),
        0);
    metrics = read;
    buf_free(&text);
}

static double at(const char *path)
{
    const struct value *value = value_at(metrics, path);
    return value != NULL ? value->real : NAN;
}

static const char *word(const char *map, const char *key)
{
    return value_text(value_get(metrics, map), key, "");
}

#define RELU "  - {entry: fake_relu, grid: \"ceil_div(N, 128)\", block: 128, args: [X, Y, N]}\n"

static void test_counters(void **unused)
{
    struct scene scene;
    (void)unused;
    begin(&scene, RELU);
    profile(&scene);
    assert_string_equal(word("profile", "source"), "counters");
    assert_string_equal(word("profile", "why"), "");
    assert_true(at("profile.passes") == 3.0);
    assert_true(isfinite(at("profile.open_ms")));
    assert_string_equal(word("hot_kernel", "entry"), "fake_relu");
    assert_true(at("hot_kernel.time_ns") == 1000.0);
    assert_true(at("hot_kernel.time_share") == 1.0);
    assert_true(at("hot_kernel.dram_share") == 0.01 * (1000.0 + COUNTER_DRAM_PCT));
    assert_true(at("hot_kernel.blocks") == 8.0);
    assert_true(at("hot_kernel.blocks_per_sm") == 16.0);
    assert_true(isfinite(at("hot_kernel.stalls.barrier")));
    assert_true(at("dram_bytes") == 2000.0 + COUNTER_DRAM_READ + COUNTER_DRAM_WRITE);
    assert_true(at("roofline.bytes") == 8000.0);
    profile(&scene); /* the runner is kept: CUPTI is open already */
    assert_true(isnan(at("profile.open_ms")));
    assert_string_equal(word("profile", "source"), "counters");
    end(&scene);
}

/* Of several launches each has its numbers, and the longest is told again; what runs before them is
 * a memset's. */
static void test_several_launches(void **unused)
{
    struct scene scene;
    (void)unused;
    setenv("FAKE_CUPTI_KERNELS", "3", 1);
    begin(&scene, RELU "  - {entry: fake_half, grid: 1, block: 64, args: [X, Y, N]}\n");
    profile(&scene);
    const struct value *kernels = value_get(metrics, "kernels");
    assert_int_equal(kernels->count, 2);
    assert_true(value_real(kernels->items[0], "time_ns", 0) == 2000.0);
    assert_true(value_real(kernels->items[1], "time_ns", 0) == 3000.0);
    assert_true(at("hot_kernel.time_share") == 0.5);
    assert_string_equal(word("hot_kernel", "entry"), "fake_half");
    assert_true(at("kernels_ns") == 6000.0);
    end(&scene);
    unsetenv("FAKE_CUPTI_KERNELS");
}

static void test_not_permitted(void **unused)
{
    struct scene scene;
    (void)unused;
    setenv("FAKE_CUPTI_REFUSES", "35", 1);
    begin(&scene, RELU);
    for (int i = 0; i < 2; i++) {
        profile(&scene);
        assert_string_equal(word("profile", "source"), "records");
        assert_non_null(strstr(word("profile", "why"), "not permitted"));
        assert_true(at("hot_kernel.time_ns") == 5000.0);
        assert_true(at("kernels_ns") == 5000.0);
        assert_true(isnan(at("hot_kernel.dram_share")));
        assert_true(isnan(at("dram_bytes")));
    }
    end(&scene);
    unsetenv("FAKE_CUPTI_REFUSES");
}

static void test_no_library(void **unused)
{
    struct scene scene;
    (void)unused;
    setenv("TWAGENT_CUPTI", "/nowhere/libcupti.so", 1);
    begin(&scene, RELU);
    profile(&scene);
    assert_string_equal(word("profile", "source"), "resources");
    assert_non_null(strstr(word("profile", "why"), "no libcupti"));
    assert_true(at("hot_kernel.occupancy_most") == 1.0);
    assert_true(isnan(at("hot_kernel.time_ns")));
    end(&scene);
    setenv("TWAGENT_CUPTI", FAKES "libfake_cupti.so", 1);
}

static void test_missing_counter(void **unused)
{
    struct scene scene;
    (void)unused;
    setenv("FAKE_CUPTI_LACKS", "dram__bytes_read.sum", 1);
    begin(&scene, RELU);
    profile(&scene);
    assert_string_equal(word("profile", "source"), "counters");
    assert_true(isnan(at("hot_kernel.dram_read_bytes")));
    assert_true(isfinite(at("hot_kernel.dram_write_bytes")));
    assert_true(isnan(at("dram_bytes")));
    end(&scene);
    unsetenv("FAKE_CUPTI_LACKS");
}

/* A fault costs that profile; the next one has a runner of its own. */
static void test_fault(void **unused)
{
    struct scene scene;
    (void)unused;
    begin(&scene, "  - {entry: fake_trap, grid: 1, block: 1}\n");
    profile(&scene);
    assert_string_equal(word("profile", "source"), "resources");
    assert_non_null(strstr(word("profile", "why"), "fake_trap"));
    end(&scene);
    begin(&scene, RELU);
    profile(&scene);
    assert_string_equal(word("profile", "source"), "counters");
    end(&scene);
}

/* What `twagent doctor` says of them. */
static void test_probe(void **unused)
{
    const char *words = NULL;
    struct arena *arena = arena_new();
    struct err err = {0};
    (void)unused;
    assert_int_equal(cuda_probe_counters(0, arena, &words, &err), 0);
    assert_non_null(strstr(words, "counters in 3 passes, by CUPTI 130000"));
    setenv("FAKE_CUPTI_REFUSES", "35", 1);
    assert_int_equal(cuda_probe_counters(0, arena, &words, &err), -1);
    assert_non_null(strstr(err.message, "not permitted"));
    unsetenv("FAKE_CUPTI_REFUSES");
    arena_free(arena);
}

int main(int argc, char **argv)
{
    int code;
    if (scene_internal(argc, argv, &code))
        return code;
    setenv("TWAGENT_CUPTI", FAKES "libfake_cupti.so", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters),        cmocka_unit_test(test_several_launches),
        cmocka_unit_test(test_not_permitted),   cmocka_unit_test(test_no_library),
        cmocka_unit_test(test_missing_counter), cmocka_unit_test(test_fault),
        cmocka_unit_test(test_probe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
