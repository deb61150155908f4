/* The runner's protocol, with a driver that has no GPU (tests/fakes/fake_cuda.c): this program
 * answers to "runner cuda" itself, as twagent does. */
#include "relu.h"

#include "base/value.h"
#include "eval/backend/ceilings.h"
#include "eval/cpu/cpu.h"
#include "eval/cuda/compile/compile.h"
#include "eval/cuda/driver/device.h"
#include "eval/cuda/probe/probe.h"
#include "process/sandbox.h"

#include <dirent.h>
#include <math.h>

/* One that takes no arguments. */
static int open_bare(struct scene *scene, const char *entry)
{
    return scene_open(scene,
                      arena_printf(scene->arena, "  - {entry: %s, grid: 1, block: 1}\n", entry));
}

static void test_computes(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns = 0;
    (void)unused;
    begin(&scene);
    assert_int_equal(open_entry(&scene, "fake_relu"), 0);
    assert_true(scene.subject->device_clock);
    assert_int_equal(call(&scene, &elapsed_ns), 0);
    assert_true(is_right(&scene));
    assert_true(elapsed_ns > 0);
    scene.call.timed = true;
    assert_int_equal(call(&scene, &elapsed_ns), 0);
    assert_true(is_right(&scene));
    assert_true(scene.subject->renew(scene.subject));
    scene_end(&scene);
}

/* What a launch leaves behind is gone before the next, in one call and from call to call. */
static void test_forgets(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    assert_int_equal(open_entry(&scene, "fake_once"), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(call(&scene, &elapsed_ns), 0);
        assert_true(is_right(&scene));
    }
    scene_end(&scene);
}

/* The heap outlives the launch, and so could what lies behind a variable: the one is refused, with
 * the other every life is a process and every call one launch: where it is timed none goes before
 * it, where it is checked one does, which what is right only once does not survive. */
static void test_what_would_be_kept(void **unused)
{
    static const char *const heap[] = {"malloc", "free"};
    static const char *const variables[] = {".nv.global", ".nv.global.init", ".nv.constant3"};
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    for (size_t i = 0; i < sizeof heap / sizeof heap[0]; i++) {
        scene.artifact = scene_cubin(&scene, "", heap[i]);
        assert_int_equal(open_entry(&scene, "fake_relu"), -1);
        assert_int_equal(scene.err.code, ERR_CHILD);
        assert_int_equal(strncmp(scene.err.message, heap[i], strlen(heap[i])), 0);
        assert_non_null(strstr(scene.err.message, "use a workspace"));
    }
    scene.call.timed = true;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        scene.artifact = scene_cubin(&scene, variables[i], "");
        assert_int_equal(open_entry(&scene, "fake_once"), 0);
        assert_false(scene.subject->renew(scene.subject));
        for (int k = 0; k < 2; k++) {
            assert_int_equal(call(&scene, &elapsed_ns), 0);
            assert_true(is_right(&scene));
        }
        scene.call.timed = false;
        assert_int_equal(call(&scene, &elapsed_ns), 0);
        assert_false(is_right(&scene));
        scene.call.timed = true;
    }
    scene.call.timed = false;
    assert_int_equal(open_entry(&scene, "fake_replay"), 0);
    draw_poison_bits(DTYPE_FLOAT32, &scene.call.poison[1].bits);
    scene.call.poison[0].bytes = scene.call.poison[1].bytes = 4000;
    for (uint64_t seed = 0; seed < 8; seed++) {
        scene.call.poison_seed = seed * 40 << 8 | (seed % 2 == 0 ? 1 : 3);
        assert_int_equal(call(&scene, &elapsed_ns), 0);
        assert_int_equal(is_right(&scene), seed % 2 == 0);
    }
    scene.call.poison_seed = 0;
    scene.artifact = scene_cubin(&scene, ".text", "vprintf");
    assert_int_equal(open_entry(&scene, "fake_relu"), 0);
    assert_true(scene.subject->renew(scene.subject));
    scene.artifact = scene_write(&scene, "text.cubin", "// .version 8.0: PTX");
    assert_int_equal(open_entry(&scene, "fake_relu"), -1);
    assert_non_null(strstr(scene.err.message, "cannot be loaded"));
    scene_end(&scene);
}

/* What the driver maps beyond what was asked for is cleared as the rest is, warm caches or cold. */
static void test_clears_all_that_is_mapped(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    assert_int_equal(open_entry(&scene, "fake_behind"), 0);
    for (int i = 0; i < 8; i++) {
        scene.call.cold = i / 2 % 2 == 0;
        scene.call.timed = i >= 4;
        assert_int_equal(call(&scene, &elapsed_ns), 0);
        assert_true(is_right(&scene));
    }
    scene_end(&scene);
}

static bool told; /* where time goes, of every step */
bool __wrap_timeline_on(void);

bool __wrap_timeline_on(void)
{
    return told;
}

/* What the host takes for a launch is in no time, one or several launches: the device stands still
 * until all is queued, and nobody waits for it meanwhile. */
static void test_holds_the_device(void **unused)
{
    static const char launch[] = "  - {entry: fake_relu, grid: 1, block: 1, args: [X, Y, N]}\n";
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    setenv("FAKE_CUDA_COSTS", "1", 1);
    setenv("FAKE_CUDA_LATE", "300", 1); /* less than the wall clock tells of any call */
    begin(&scene);
    for (int launches = 1; launches <= 2; launches++) {
        const char *plan =
            launches == 1 ? launch : arena_printf(scene.arena, "%s%s", launch, launch);
        assert_int_equal(scene_open(&scene, plan), 0);
        scene.call.timed = true;
        assert_int_equal(call(&scene, &elapsed_ns), 0);
        assert_int_equal(elapsed_ns, 1);
        assert_true(is_right(&scene));
        scene.call.timed = false;
        assert_int_equal(call(&scene, &elapsed_ns), 0);
        assert_int_equal(elapsed_ns, launches * 300);
        scene.call.stays = true;
        assert_int_equal(call(&scene, &elapsed_ns), 0);
        scene.call.stays = false;
    }
    scene_end(&scene);
    for (int mapped = 1; mapped >= 0; mapped--) {
        told = mapped != 0; /* who asks where time goes does not change it */
        begin(&scene);
        assert_int_equal(open_entry(&scene, "fake_relu"), 0);
        scene.call.timed = true;
        assert_int_equal(call(&scene, &elapsed_ns), 0);
        assert_int_equal(elapsed_ns, mapped ? 1 : 300);
        scene_end(&scene);
        setenv("FAKE_CUDA_UNMAPPED", "1", 1);
    }
    unsetenv("FAKE_CUDA_UNMAPPED");
    unsetenv("FAKE_CUDA_LATE");
    unsetenv("FAKE_CUDA_COSTS");
}

/* Bytes beside the tensors come back as the kernel left them: the worker sees what was hit. */
static void test_brings_red_zones(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    assert_int_equal(open_entry(&scene, "fake_beyond"), 0);
    assert_int_equal(call(&scene, &elapsed_ns), 0);
    assert_true(output(&scene)[1003] == 1.0f);
    assert_int_equal(open_entry(&scene, "fake_half"), 0);
    assert_int_equal(call(&scene, &elapsed_ns), 0);
    assert_false(is_right(&scene));
    assert_int_equal(scene.region.outputs[scene.call.offsets[1] + 3999], 0x7f);
    scene_end(&scene);
}

/* Where poison does not come with the region it is the runner's own, and what lies between the
 * tensors is the worker's all the same. */
static void test_poisons_by_itself(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns, first, second;
    (void)unused;
    begin(&scene);
    assert_int_equal(open_entry(&scene, "fake_half"), 0);
    scene.call.poison_seed = 77;
    scene.call.poison[1].bytes = 4000;
    draw_poison_bits(DTYPE_FLOAT32, &scene.call.poison[1].bits);
    assert_int_equal(call(&scene, &elapsed_ns), 0);
    assert_true(output(&scene)[0] <= 3.0f);
    for (int i = 500; i < 1000; i++)
        assert_true(isnan(output(&scene)[i]));
    memcpy(&first, output(&scene) + 998, sizeof first);
    assert_int_equal(scene.region.outputs[scene.call.offsets[1] + 4000], 0x7f);
    assert_int_equal(scene.region.outputs[scene.call.offsets[1] - 1], 0x7f);
    scene.call.poison_seed = 78;
    assert_int_equal(call(&scene, &elapsed_ns), 0);
    memcpy(&second, output(&scene) + 998, sizeof second);
    assert_true(first != second);
    scene_end(&scene);
}

static void test_inputs_are_watched(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    const char *const entries[] = {"fake_input", "fake_forges"}; /* the latter knows our hash */
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        assert_int_equal(open_entry(&scene, entries[i]), 0);
        assert_int_equal(call(&scene, &elapsed_ns), -1);
        assert_int_equal(scene.err.code, ERR_LIMIT);
        assert_string_equal(scene.err.message, "wrote to an input");
    }
    scene_end(&scene);
}

static void test_faults(void **unused)
{
    static const struct {
        const char *entry;
        enum err_code code;
        const char *says;
    } rows[] = {
        {"fake_illegal", ERR_CHILD, "fake_illegal: illegal memory access"},
        {"fake_trap", ERR_CHILD, "fake_trap: unspecified launch failure"},
        {"fake_hang", ERR_TIMEOUT, "fake_hang did not end within 0.1 s"},
        {"fake_die", ERR_CHILD, "fake_die: killed by SIGKILL"},
        {"fake_missing", ERR_CHILD, "no extern \"C\" __global__ fake_missing"},
    };
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int how = 0; how < 3; how++) { /* the last: told by what comes behind its launch */
            scene.call.timed = how == 1;
            scene.call.stays = how == 2;
            fail_at(&scene, arena_printf(scene.arena, "  - {entry: %s, grid: 1, block: 1}\n",
                                         rows[i].entry));
            scene.call.stays = false;
            assert_int_equal(scene.err.code, rows[i].code);
            assert_non_null(strstr(scene.err.message, rows[i].says));
            assert_false(scene.subject->renew(scene.subject));
            assert_int_equal(open_entry(&scene, "fake_relu"), 0); /* the lane is alive */
            assert_int_equal(call(&scene, &elapsed_ns), 0);
            assert_true(is_right(&scene));
        }
    scene_end(&scene);
}

/* Of several entries the one that fails is named; in a graph all that it may have been. */
static void test_names_the_entry(void **unused)
{
    struct scene scene;
    (void)unused;
    static const struct {
        const char *entry, *says, *says_of_graph;
    } rows[] = {
        {"fake_trap", "fake_trap: unspecified", "fake_relu or fake_trap: unspecified"},
        {"fake_hang", "fake_hang did not end", "fake_relu or fake_hang did not end"},
        {"fake_die", "fake_die: killed by SIG", "fake_relu or fake_die: killed by SIG"},
    };
    begin(&scene);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int timed = 0; timed < 2; timed++) {
            const char *relu = "{entry: fake_relu, grid: 1, block: 1, args: [X, Y, N]}";
            const char *launches =
                arena_printf(scene.arena, "  - %s\n  - %s\n  - {entry: %s, grid: 1, block: 1}\n",
                             relu, relu, rows[i].entry);
            const char *says = timed ? rows[i].says_of_graph : rows[i].says;
            scene.call.timed = timed;
            fail_at(&scene, launches);
            if (strncmp(scene.err.message, says, strlen(says)) != 0)
                fail_msg("%s", scene.err.message);
        }
    scene_end(&scene);
}

/* What the driver would copy from beyond the arguments that there are. */
static void test_arguments_are_counted(void **unused)
{
    static const struct {
        const char *launch, *says;
    } rows[] = {
        {"entry: fake_relu, args: [X, Y]", "fake_relu: args has 2 names, but the function takes 3"},
        {"entry: fake_relu", "fake_relu: args has 0 names, but the function takes 3"},
        {"entry: fake_relu, args: [X, Y, N, N]",
         "fake_relu: args has 4 names, but the function takes 3"},
        {"entry: fake_wide, args: [X, Y, N]",
         "fake_wide: argument 1 of args is a tensor of 8 bytes, the function's has 16"},
        {"entry: fake_wide, args: [N, X, Y]",
         "fake_wide: argument 1 of args is a number of 8 bytes, the function's has 16"},
    };
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int timed = 0; timed < 2; timed++) {
            scene.call.timed = timed;
            const char *launches =
                arena_printf(scene.arena, "  - {%s, grid: 1, block: 1}\n", rows[i].launch);
            assert_int_equal(scene_open(&scene, launches), 0);
            assert_int_equal(call(&scene, &elapsed_ns), -1);
            assert_int_equal(scene.err.code, ERR_CHILD);
            assert_string_equal(scene.err.message, rows[i].says);
        }
    scene_end(&scene);
}

static void test_refuses(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    assert_int_equal(scene_open(&scene, "  - {entry: fake_relu, grid: 1, block: 2048}\n"), 0);
    assert_int_equal(call(&scene, &elapsed_ns), -1);
    assert_int_equal(scene.err.code, ERR_LIMIT);
    assert_non_null(strstr(scene.err.message, "fake_relu: block is 2048"));
    scene.artifact = scene_write(&scene, "bad.cubin", "garbage");
    assert_int_equal(open_entry(&scene, "fake_relu"), -1);
    assert_int_equal(scene.err.code, ERR_CHILD);
    assert_non_null(strstr(scene.err.message, "cannot be loaded"));
    scene_end(&scene);
}

/* A device's time that the worker's own clock has no room for is not believed. */
static void test_wall_clock_bounds(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    setenv("FAKE_CUDA_BOAST", "1", 1);
    begin(&scene);
    assert_int_equal(open_entry(&scene, "fake_relu"), 0);
    assert_int_equal(call(&scene, &elapsed_ns), -1);
    assert_int_equal(scene.err.code, ERR_PROTOCOL);
    unsetenv("FAKE_CUDA_BOAST");
    scene_end(&scene);
}

/* Less than the whole call took, and more than passed around the events. */
static void test_clocks_agree(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    (void)unused;
    begin(&scene);
    assert_int_equal(open_entry(&scene, "fake_relu"), 0);
    assert_int_equal(call(&scene, &elapsed_ns), 0);
    const struct device_state *state = &scene.subject->state;
    assert_true(state->span_ns > 0.0 && state->span_ns <= 1.001 * state->wall_ns + 5000.0);
    scene_end(&scene);
    setenv("FAKE_CUDA_DRIFT", "1", 1);
    begin(&scene);
    assert_int_equal(open_entry(&scene, "fake_relu"), 0);
    int tries = 0; /* a runner that was stopped around its events leaves room for any drift */
    while (call(&scene, &elapsed_ns) == 0)
        assert_true(++tries < 20);
    assert_int_equal(scene.err.code, ERR_PROTOCOL);
    unsetenv("FAKE_CUDA_DRIFT");
    scene_end(&scene);
}

static size_t open_descriptors(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static void test_many_faults_leak_nothing(void **unused)
{
    struct scene scene;
    uint64_t elapsed_ns;
    size_t before = 0;
    (void)unused;
    begin(&scene);
    for (int i = 0; i < 24; i++) {
        assert_int_equal(open_bare(&scene, i % 2 ? "fake_illegal" : "fake_die"), 0);
        assert_int_equal(call(&scene, &elapsed_ns), -1);
        if (i == 3)
            before = open_descriptors();
    }
    assert_int_equal(open_descriptors(), before);
    scene_end(&scene);
}

static void test_probe(void **unused)
{
    const int cores[] = {0};
    struct lane_facts lane = {0};
    struct arena *arena = arena_new();
    struct value *device;
    int64_t number;
    struct err err = {0};
    (void)unused;
    setenv("XDG_CACHE_HOME", "", 1);
    setenv("HOME", "", 1); /* nothing is remembered */
    assert_int_equal(cuda_probe(cores, 1, true, arena, &lane, &err), 0);
    assert_true(lane.gpu);
    assert_true(expr_lookup_names(&lane.facts, "sm_count", &number) && number == 132);
    assert_true(expr_lookup_names(&lane.facts, "shared_bytes_optin", &number) && number == 232448);
    assert_true(lane.copy_bytes_per_s > 0.0);
    assert_string_equal(lane.lock_path, "/sys/bus/pci/devices/ffff:00:00.0");
    assert_string_equal(device_arch(arena, &lane), "sm_90a");
    assert_int_equal(
        value_parse_json(arena, "device", lane.device, strlen(lane.device), &device, &err), 0);
    assert_string_equal(value_text(device, "gpu", ""), "Fake GPU");
    lane = (struct lane_facts){.gpu_index = 3};
    assert_int_equal(cuda_probe(cores, 1, false, arena, &lane, &err), -1);
    assert_non_null(strstr(err.message, "no GPU 3 here"));
    setenv("FAKE_CUDA_NONE", "1", 1);
    lane = (struct lane_facts){0};
    assert_int_equal(cuda_probe(cores, 1, false, arena, &lane, &err), -1);
    assert_int_equal(err.code, ERR_ENVIRONMENT);
    unsetenv("FAKE_CUDA_NONE");
    arena_free(arena);
}

/* Of a GPU and its driver: who asks for no measurement is told them all the same. */
static void test_ceilings_are_remembered(void **unused)
{
    const int cores[] = {0};
    char folder[] = "/tmp/twagent-cuda-XXXXXX";
    struct arena *arena = arena_new();
    struct err err = {0};
    struct lane_facts first = {0}, second = {0};
    (void)unused;
    assert_non_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
    assert_int_equal(cuda_probe(cores, 1, true, arena, &first, &err), 0);
    assert_true(first.copy_bytes_per_s > 0.0);
    assert_int_equal(cuda_probe(cores, 1, false, arena, &second, &err), 0);
    assert_true(second.copy_bytes_per_s == 0.0); /* nobody has kept them */
    ceilings_remember(&first);
    assert_int_equal(cuda_probe(cores, 1, false, arena, &second, &err), 0);
    assert_true(fabs(first.copy_bytes_per_s / second.copy_bytes_per_s - 1.0) < 1e-9);
    assert_true(strstr(second.device, "\"copy_bytes_per_s\":null") == NULL);
    first.copy_bytes_per_s = 1e30; /* what lies there is read, and not when it is measured anew */
    ceilings_remember(&first);
    assert_int_equal(cuda_probe(cores, 1, false, arena, &second, &err), 0);
    assert_true(second.copy_bytes_per_s == 1e30);
    assert_int_equal(cuda_probe(cores, 1, true, arena, &second, &err), 0);
    assert_true(second.copy_bytes_per_s < 1e30);
    assert_int_equal(file_remove_tree(folder, &err), 0);
    arena_free(arena);
}

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "sandbox") == 0)
        return sandbox_main(argc - 2, argv + 2);
    if (argc >= 2 && strcmp(argv[1], "cuda-compile") == 0)
        return cuda_compile_main(argc - 2, argv + 2);
    int code;
    if (scene_internal(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_computes),
        cmocka_unit_test(test_forgets),
        cmocka_unit_test(test_what_would_be_kept),
        cmocka_unit_test(test_clears_all_that_is_mapped),
        cmocka_unit_test(test_holds_the_device),
        cmocka_unit_test(test_brings_red_zones),
        cmocka_unit_test(test_poisons_by_itself),
        cmocka_unit_test(test_inputs_are_watched),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_names_the_entry),
        cmocka_unit_test(test_arguments_are_counted),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_wall_clock_bounds),
        cmocka_unit_test(test_clocks_agree),
        cmocka_unit_test(test_many_faults_leak_nothing),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_ceilings_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
