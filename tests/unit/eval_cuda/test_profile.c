/* A profile through the runner's protocol, with a driver and a CUPTI that have no GPU
 * (tests/fakes/fake_cuda.c, fake_cupti.c); this program answers to "runner cuda" itself. */
#include "scene.h"

#include "base/value.h"
#include "eval/cuda/probe/probe.h"
#include "eval/cuda/profile/profile.h"

#include <math.h>

static const struct value *metrics; /* of the last profile */
static const char *timed_event_ns = "100";

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
    setenv("FAKE_CUDA_EVENT_NS", timed_event_ns, 1); /* of the runner that is timed ... */
    assert_int_equal(scene_open(scene, launches), 0);
    setenv("FAKE_CUDA_EVENT_NS", "7000", 1); /* ... and of the one that profiles */
}

static void end(struct scene *scene)
{
    profile_discard();
    scene_end(scene);
}

static int profile_status(struct scene *scene)
{
    struct buf text;
    struct json json;
    struct value *read;
    buf_init(&text, 1 << 18);
    json_init(&json, &text);
    json_object(&json);
    int status =
        backend_cuda.profile(&scene->lane, scene->problem, &scene->layout.dims, scene->artifact,
                             NULL, 2000.0, scene->subject, &scene->call, &json, &scene->err);
    json_object_end(&json);
    assert_int_equal(
        value_parse_json(scene->arena, "metrics", buf_text(&text), text.length, &read, &scene->err),
        0);
    metrics = read;
    buf_free(&text);
    return status;
}

static void profile(struct scene *scene)
{
    assert_int_equal(profile_status(scene), 0);
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

static const char *records_why(void)
{
    return value_text(value_at(metrics, "profile.records"), "why", "");
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
    assert_true(at("profile.records.launches") == 0.0);
    assert_true(isnan(at("profile.records.event_ns")));
    assert_non_null(strstr(records_why(), "no libcupti"));
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

/* ---- two clocks ---- */

/* Counters and records of the same profile, and of the next one; records without counters too. */
static void test_records(void **unused)
{
    struct scene scene;
    (void)unused;
    for (int refused = 0; refused < 2; refused++) {
        if (refused)
            setenv("FAKE_CUPTI_REFUSES", "35", 1);
        begin(&scene, RELU);
        for (int i = 0; i < 2; i++) {
            profile(&scene);
            assert_string_equal(word("profile", "source"), refused ? "records" : "counters");
            assert_true(at("profile.records.launches") == RECORDED_MOST);
            assert_true(fabs(at("profile.records.event_ns") - 7000.0) < 1.0);
            assert_true(at("profile.records.span_ns") == 5000.0);
            assert_true(at("profile.records.kernels_ns") == 5000.0);
            assert_true(at("profile.records.kernels") == 1.0);
        }
        end(&scene);
    }
    unsetenv("FAKE_CUPTI_REFUSES");
}

static void test_records_of_several(void **unused)
{
    struct scene scene;
    (void)unused;
    setenv("FAKE_CUPTI_MEMSETS", "1", 1);
    begin(&scene, RELU "memset: {Y: 0}\n");
    profile(&scene);
    assert_true(at("profile.records.memsets") == 1.0);
    assert_true(at("profile.records.span_ns") == 3000.0 + 100.0 + 5000.0);
    assert_true(at("profile.records.kernels_ns") == 8000.0);
    end(&scene);
    begin(&scene, RELU); /* what is not the plan's is no evidence */
    profile(&scene);
    assert_true(at("profile.records.launches") == 0.0);
    assert_non_null(strstr(records_why(), "not the plan's: 1 kernels and 1 memsets"));
    end(&scene);
    unsetenv("FAKE_CUPTI_MEMSETS");
    begin(&scene, RELU "  - {entry: fake_half, grid: 1, block: 64, args: [X, Y, N]}\n");
    profile(&scene);
    assert_non_null(strstr(records_why(), "not the plan's: 1 kernels")); /* one is missing */
    end(&scene);
}

/* Events that end before what lies between them: by records of the very same launches. */
static void test_events_are_short(void **unused)
{
    struct scene scene;
    (void)unused;
    setenv("FAKE_CUPTI_KERNEL_NS", "20000", 1);
    begin(&scene, RELU);
    assert_int_equal(profile_status(&scene), -1);
    assert_int_equal(scene.err.code, ERR_PROTOCOL);
    assert_non_null(strstr(scene.err.message, "events tell of 0.0070 ms, while CUPTI's records of "
                                              "the same launches tell of 0.0200 ms"));
    assert_true(at("profile.records.span_ns") == 20000.0); /* the metrics are there */
    assert_string_equal(word("hot_kernel", "entry"), "fake_relu");
    end(&scene);
    unsetenv("FAKE_CUPTI_KERNEL_NS");
}

/* 2 us where it is timed, and again; 20 us where it is recorded, and again. */
static void test_fast_where_timed(void **unused)
{
    struct scene scene;
    (void)unused;
    setenv("FAKE_CUPTI_KERNEL_NS", "20000", 1);
    begin(&scene, RELU);
    setenv("FAKE_CUDA_EVENT_NS", "21000", 1);
    assert_int_equal(profile_status(&scene), -1);
    assert_int_equal(scene.err.code, ERR_PROTOCOL);
    assert_non_null(strstr(scene.err.message, "fast only where it is timed: 0.0020 ms, while its "
                                              "kernels take 0.0200 ms"));
    end(&scene);
    unsetenv("FAKE_CUPTI_KERNEL_NS");
}

/* Timed again on the same bytes it is as slow: inputs, or a moment, were others. */
static void test_second_look(void **unused)
{
    struct scene scene;
    (void)unused;
    setenv("FAKE_CUPTI_KERNEL_NS", "8000", 1);
    timed_event_ns = "3500";
    begin(&scene, RELU);
    setenv("FAKE_CUDA_EVENT_NS", "9000", 1);
    profile(&scene);
    assert_true(at("profile.records.span_ns") == 8000.0);
    end(&scene);
    timed_event_ns = "100"; /* and where it is not, the same is none */
    begin(&scene, RELU);
    setenv("FAKE_CUDA_EVENT_NS", "9000", 1);
    assert_int_equal(profile_status(&scene), -1);
    end(&scene);
    unsetenv("FAKE_CUPTI_KERNEL_NS");
}

/* A fault in these launches costs no more than what they would have said. */
static void test_recorded_fault(void **unused)
{
    struct scene scene;
    (void)unused;
    setenv("FAKE_CUPTI_KERNELS", "3", 1);
    setenv("FAKE_CUPTI_KERNEL_NS", "1000", 1);
    begin(&scene, RELU RELU RELU); /* so many that they are a graph */
    setenv("FAKE_CUDA_GRAPHS_FAIL", "1", 1);
    profile(&scene);
    unsetenv("FAKE_CUDA_GRAPHS_FAIL");
    assert_string_equal(word("profile", "source"), "counters");
    assert_true(at("hot_kernel.time_ns") == 3000.0);
    assert_true(at("profile.records.launches") == 0.0);
    assert_non_null(strstr(records_why(), "fake_relu: unspecified launch failure"));
    profile(&scene); /* by a runner of its own */
    assert_true(at("profile.records.launches") == RECORDED_MOST);
    end(&scene);
    unsetenv("FAKE_CUPTI_KERNELS");
    unsetenv("FAKE_CUPTI_KERNEL_NS");
}

/* One launch is no graph. */
static void test_recorded_queued(void **unused)
{
    struct scene scene;
    (void)unused;
    begin(&scene, RELU);
    setenv("FAKE_CUDA_GRAPHS_FAIL", "1", 1);
    profile(&scene);
    unsetenv("FAKE_CUDA_GRAPHS_FAIL");
    assert_true(at("profile.records.launches") == RECORDED_MOST);
    end(&scene);
}

/* As where it is timed: nothing goes before the launch that counts where a variable could keep it.
 */
static void test_recorded_variables(void **unused)
{
    struct scene scene;
    (void)unused;
    begin(&scene, "  - {entry: fake_single, grid: 8, block: 128, args: [X, Y, N]}\n");
    profile(&scene);
    assert_true(at("profile.records.launches") == 0.0);
    assert_non_null(strstr(records_why(), "LAUNCH_FAILED"));
    scene.artifact = scene_cubin(&scene, ".nv.global", "");
    profile(&scene);
    assert_true(at("profile.records.launches") == RECORDED_MOST);
    end(&scene);
}

static const struct value *phase(size_t place)
{
    const struct value *all = value_at(metrics, "time.phases");
    return all != NULL && place < all->count ? all->items[place] : NULL;
}

/* 100 samples: 1 is another function's, 3 have no line. What a line table has and the source has
 * not is a number or a word, no more. Twice: the range profiler is on again in between. */
static void test_lines(void **unused)
{
    struct scene scene;
    (void)unused;
    begin(&scene, RELU);
    for (int i = 0; i < 2; i++) {
        profile(&scene);
        assert_true(at("time.samples") == 100.0);
        assert_true(value_real(phase(0), "share", 0) == 0.8);
        assert_int_equal(value_int(phase(0), "first_line", 0), 3);
        assert_string_equal(value_text(phase(0), "stall", ""), "long_scoreboard");
        assert_true(fabs(value_real(phase(0), "stall_share", 0) - 50.0 / 80.0) < 1e-9);
        assert_string_equal(
            value_text(phase(0), "text", ""),
            "- {entry: fake_relu, grid: \"ceil_div(N, 128)\", block: 128, args: [X, "
            "Y, N]}");
        assert_int_equal(value_int(phase(1), "first_line", 0), 999999);
        assert_string_equal(value_text(phase(2), "file", ""), "pass?wd?[2J");
        assert_null(value_get(phase(1), "text"));
        assert_true(phase(3) == NULL && *value_text(phase(2), "stall", "") == 0);
    }
    end(&scene);
}

/* Where sampling once ends counters for good, counters are what stays. Last: it is remembered. */
static void test_lines_at_a_price(void **unused)
{
    struct scene scene;
    (void)unused;
    setenv("FAKE_CUPTI_SPOILED", "1", 1);
    begin(&scene, RELU);
    for (int i = 0; i < 3; i++) {
        profile(&scene);
        assert_true(isfinite(at("hot_kernel.dram_share")));
        assert_true((at("time.samples") == 100.0) == (i == 0));
    }
    assert_non_null(strstr(word("time", "why"), "no counters any more"));
    end(&scene);
    unsetenv("FAKE_CUPTI_SPOILED");
}

/* A driver that refuses costs the lines and nothing else. */
static void test_no_lines(void **unused)
{
    static const struct {
        const char *name, *value, *why;
    } rows[] = {{"FAKE_CUPTI_SAMPLING", "35", "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"},
                {"FAKE_CUPTI_FUNCTION", "nobody's", "no instruction of its kernels"}};
    struct scene scene;
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        setenv(rows[i].name, rows[i].value, 1);
        begin(&scene, RELU);
        profile(&scene);
        assert_string_equal(word("profile", "source"), "counters");
        assert_non_null(strstr(word("time", "why"), rows[i].why));
        end(&scene);
        unsetenv(rows[i].name);
    }
}

static void test_compare(void **unused)
{
    static const struct {
        double event_us[RECORDED_MOST], span_us[RECORDED_MOST], busy_us, timed_us;
        uint32_t kernels;
        enum clocks found;
    } rows[] = {
        {{40, 40, 40, 40, 40}, {39, 39, 39, 39, 39}, 39, 39, 1, CLOCKS_AGREE},
        /* events may be short by 2 us and 2 %, and in two launches of five by anything */
        {{40, 40, 40, 40, 40}, {42.7, 42.7, 42.7, 42.7, 42.7}, 42, 39, 1, CLOCKS_AGREE},
        {{40, 40, 40, 40, 40}, {43, 43, 43, 43, 43}, 43, 39, 1, CLOCKS_EVENTS_SHORT},
        {{10, 10, 40, 40, 40}, {41, 41, 41, 41, 41}, 41, 39, 1, CLOCKS_AGREE},
        {{10, 10, 10, 40, 40}, {41, 41, 41, 41, 41}, 41, 39, 1, CLOCKS_EVENTS_SHORT},
        {{3, 3, 3, 3, 3}, {4.9, 4.9, 4.9, 4.9, 4.9}, 4.9, 3, 1, CLOCKS_AGREE},
        /* clocks of a machine that is far slower with CUPTI: between kernels, not in them */
        {{90, 90, 90, 90, 90}, {80, 80, 80, 80, 80}, 39, 33, 1, CLOCKS_AGREE},
        /* a slow profiler is no one's doing, as long as it is by less than a third */
        {{60, 60, 60, 60, 60}, {52, 52, 52, 52, 52}, 52, 39.1, 1, CLOCKS_AGREE},
        {{60, 60, 60, 60, 60}, {53, 53, 53, 53, 53}, 53, 39.1, 1, CLOCKS_TIMED_SHORT},
        /* of short kernels each may be told 5 us too long */
        {{60, 60, 60, 60, 60}, {50, 50, 50, 50, 50}, 40, 15, 8, CLOCKS_AGREE},
        {{60, 60, 60, 60, 60}, {50, 50, 50, 50, 50}, 40, 15, 4, CLOCKS_TIMED_SHORT},
        {{60, 60, 60, 60, 60}, {50, 50, 50, 50, 50}, 40, 0, 1, CLOCKS_AGREE}, /* not timed */
    };
    struct wire_records none = {.launches = 0};
    (void)unused;
    assert_int_equal(clocks_compare(&none, 1.0), CLOCKS_AGREE);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wire_records records = {.launches = RECORDED_MOST, .kernels = rows[i].kernels};
        for (int k = 0; k < RECORDED_MOST; k++) {
            records.event_ns[k] = 1e3 * rows[i].event_us[k];
            records.span_ns[k] = 1e3 * rows[i].span_us[k];
            records.busy_ns[k] = 1e3 * rows[i].busy_us;
        }
        if (clocks_compare(&records, 1e3 * rows[i].timed_us) != rows[i].found)
            fail_msg("row %zu", i);
    }
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
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_several_launches),
        cmocka_unit_test(test_not_permitted),
        cmocka_unit_test(test_no_library),
        cmocka_unit_test(test_missing_counter),
        cmocka_unit_test(test_fault),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_records_of_several),
        cmocka_unit_test(test_events_are_short),
        cmocka_unit_test(test_fast_where_timed),
        cmocka_unit_test(test_second_look),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_no_lines),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_recorded_fault),
        cmocka_unit_test(test_recorded_queued),
        cmocka_unit_test(test_recorded_variables),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_lines_at_a_price),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
