/* Kernels as folders: a CUDA one as a package, imported by a Python whose torch is a stub, and
 * called through a driver that has no GPU; its numbers are those that a runner is given. */
#include "check.h"

#include "base/buf.h"
#include "base/file.h"
#include "eval/cpu/cpu.h"
#include "eval/cuda/compile/compile.h"
#include "eval/cuda/cuda.h"
#include "eval/cuda/private.h"
#include "eval/problem/torch.h"
#include "process/sandbox.h"

#include <sys/stat.h>
#include <unistd.h>

#define STUB TEST_SOURCE_DIR "/tests/unit/cli/stub"

static const char module[] =
    "{\"spec\": \"{\\\"name\\\": \\\"relu_module\\\", \\\"dims\\\": {\\\"B\\\": 64}, "
    "\\\"hidden\\\": {\\\"B\\\": [1, 64]}, \\\"inputs\\\": {\\\"x\\\": {\\\"shape\\\": "
    "[\\\"B\\\"], \\\"dtype\\\": \\\"float32\\\"}}, \\\"outputs\\\": {\\\"out0\\\": "
    "{\\\"shape\\\": [\\\"B\\\"], \\\"dtype\\\": \\\"float32\\\"}}, "
    "\\\"reference\\\": \\\"relu_module.py\\\"}\", \"binding\": {\"arguments\": [{\"input\": "
    "\"x\", \"torch\": \"float32\"}, {\"value\": 0.5}], \"parameters\": [], \"outputs\": "
    "[\"out0\"], \"returns\": {\"kind\": \"tuple\", \"items\": [{\"key\": null, \"torch\": "
    "\"float32\"}, {\"key\": null, \"torch\": null}]}, \"training\": true, \"mode_matters\": "
    "true}, \"draws\": {}, \"initial\": [], \"notes\": []}";

static const char module_source[] =
    "/*---\ntune: {EVERY: [32], where: EVERY <= sm_count}\nmemset: {out0: 255}\nlaunch:\n  - "
    "{entry: fake_relu, grid: "
    "\"ceil_div(B, 2), 1\", block: 32, args: [x, out0, B]}\n---*/\nextern \"C\" __global__ void "
    "fake_relu(const float *x, float *out0, long long B)\n{\n    for (long long i = threadIdx.x; i "
    "< B; i += EVERY)\n        out0[i] = fmaxf(x[i], 0.0f);\n}\n";

struct kit {
    struct emission emission;
    char folder[64], package[96];
};

static void open_kit(struct kit *kit)
{
    *kit = (struct kit){.emission = {.arena = arena_new(),
                                     .id = "r1-c1",
                                     .title = "relu_module, r1-c1: 2.00x eager"}};
    strcpy(kit->folder, "/tmp/twagent-test-XXXXXX");
    assert_non_null(mkdtemp(kit->folder));
    snprintf(kit->package, sizeof kit->package, "%s/package", kit->folder);
    assert_int_equal(mkdir(kit->package, 0700), 0);
    kit->emission.folder = kit->package;
}

static void take_candidate(struct kit *kit, const char *name, const char *text)
{
    struct err err;
    struct emission *e = &kit->emission;
    if (candidate_parse(e->problem, name, text, strlen(text), &e->candidate, &err) != 0)
        fail_msg("%s", err.message);
    tune_at(e->candidate, 0, &e->tune);
}

static void close_kit(struct kit *kit)
{
    struct err err;
    candidate_free(kit->emission.candidate);
    if (file_remove_tree(kit->folder, &err) != 0)
        fail_msg("%s", err.message);
    arena_free(kit->emission.arena);
}

/* A compiler that never comes to an end, where `hung` says so. */
static bool hung;
__typeof__(cuda_build) __real_cuda_build, __wrap_cuda_build;

int __wrap_cuda_build(struct arena *arena, const char *arch, const struct problem *problem,
                      const struct candidate *candidate, const struct names *tune,
                      const struct baseline_spec *baseline, enum build_flavour flavour,
                      const char *folder, struct build *build, struct err *err)
{
    static const char *const argv[] = {"/bin/sleep", "600", NULL};
    if (!hung)
        return __real_cuda_build(arena, arch, problem, candidate, tune, baseline, flavour, folder,
                                 build, err);
    *build =
        (struct build){.spec = {.argv = argv, .folder = "/", .timeout_ms = 50, .output_max = 100}};
    return 0;
}

static void emit_and_call(struct kit *kit, const char *mode)
{
    struct err err;
    struct buf command;
    const char *note = "with a cubin";
    if (emitter_cuda.emit(&kit->emission, "pytorch", &note, &err) != 0)
        fail_msg("%s", err.message);
    print_message("%s\n", note);
    buf_init(&command, 4096);
    buf_addf(&command,
             "ln -sf " TEST_BINARY_DIR "/tests/fakes/libfake_cuda_plain.so %s/libcuda.so.1 && "
             "LD_LIBRARY_PATH=%s PYTHONDONTWRITEBYTECODE=1 LD_PRELOAD= /usr/bin/python3 " STUB
             "/call.py %s %s",
             kit->folder, kit->folder, kit->package, mode);
    int status = system(buf_text(&command));
    buf_free(&command);
    assert_int_equal(status, 0);
}

static void open_relu(struct kit *kit)
{
    struct err err;
    struct buf text;
    open_kit(kit);
    if (problem_load(TEST_SOURCE_DIR "/problems/relu", &kit->emission.problem, &err) != 0)
        fail_msg("%s", err.message);
    buf_init(&text, 1 << 20);
    if (file_read(TEST_SOURCE_DIR "/problems/relu/starts/cuda/linear.cu", &text, &err) != 0)
        fail_msg("%s", err.message);
    take_candidate(kit, "linear.cu", buf_text(&text));
    buf_free(&text);
}

static void close_relu(struct kit *kit)
{
    problem_free(kit->emission.problem);
    close_kit(kit);
}

static void test_function(void **state)
{
    struct kit kit;
    (void)state;
    open_relu(&kit);
    emit_limits(&kit.emission);
    assert_string_equal(emit_limits_words(&kit.emission), "M=4096, N=4096");
    emit_and_call(&kit, "function");
    close_relu(&kit);
}

/* What its record says counts; what lacks there is as it was timed. */
static void test_limits(void **state)
{
    static const char *const records[][2] = {
        {"{\"metrics\":{\"checked_up_to\":{\"M\":33,\"N\":70000}}}", "M=33, N=70000"},
        {"{\"metrics\":{\"checked_up_to\":{\"M\":33}}}", "M=33, N=4096"},
        {"{\"metrics\":{}}", "M=4096, N=4096"}};
    struct kit kit;
    (void)state;
    open_relu(&kit);
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        struct value *evaluation;
        struct err err;
        struct emission *e = &kit.emission;
        assert_int_equal(value_parse_json(e->arena, "record", records[i][0], strlen(records[i][0]),
                                          &evaluation, &err),
                         0);
        e->evaluation = evaluation;
        e->checked_up_to.count = 0;
        emit_limits(e);
        assert_string_equal(emit_limits_words(e), records[i][1]);
    }
    close_relu(&kit);
}

static bool has(const struct kit *kit, const char *name)
{
    return file_exists(arena_printf(kit->emission.arena, "%s/%s", kit->package, name));
}

/* Its source as it is, and no cubin of ours: Triton compiles where it is called. */
static void test_triton(void **state)
{
    static const char source[] =
        "\"\"\"---\ntune: {B: [64, 32], num_warps: [2]}\nlaunch:\n  - {entry: "
        "k, grid: \"ceil_div(M * N, B)\", args: [X, Y, M, N], constexpr: {C: "
        "2 * B}}\n---\"\"\"\n@triton.jit\ndef k(x, y, m, n, B, C): pass\n";
    struct kit kit;
    struct err err = {0};
    const char *note = NULL;
    struct buf plan, kept;
    (void)state;
    open_relu(&kit);
    candidate_free(kit.emission.candidate);
    take_candidate(&kit, "k.py", source);
    if (emitter_cuda.emit(&kit.emission, "pytorch", &note, &err) != 0)
        fail_msg("%s", err.message);
    assert_null(note);
    assert_true(has(&kit, "kernel.py") && has(&kit, "test.py") && has(&kit, "reference.py"));
    assert_false(has(&kit, "kernel.cu") || has(&kit, "include"));
    buf_init(&plan, 1 << 20);
    buf_init(&kept, 1 << 20);
    assert_int_equal(
        file_read(arena_printf(kit.emission.arena, "%s/plan.json", kit.package), &plan, &err), 0);
    assert_non_null(strstr(buf_text(&plan), "\"constexpr\":{\"C\":"));
    assert_non_null(strstr(buf_text(&plan), "\"tune\":{\"B\":64,\"num_warps\":2}"));
    assert_int_equal(
        file_read(arena_printf(kit.emission.arena, "%s/source.py", kit.package), &kept, &err), 0);
    assert_string_equal(buf_text(&kept), source);
    buf_free(&plan);
    buf_free(&kept);
    close_relu(&kit);
}

static void test_hung_compiler(void **state)
{
    struct kit kit;
    struct err err = {0};
    const char *note = "";
    (void)state;
    open_relu(&kit);
    hung = true;
    assert_int_equal(emitter_cuda.emit(&kit.emission, "pytorch", &note, &err), 0);
    hung = false;
    print_message("%s\n", note);
    assert_non_null(strstr(note, "no cubin: the compiler took too long; "));
    close_relu(&kit);
}

static void test_module(void **state)
{
    struct kit kit;
    struct err err;
    (void)state;
    open_kit(&kit);
    struct problem *problem = ARENA_NEW(kit.emission.arena, struct problem);
    problem->arena = kit.emission.arena;
    if (problem_take_torch(problem, STUB "/relu_module.py", module, strlen(module), &err) != 0)
        fail_msg("%s", err.message);
    kit.emission.problem = problem;
    take_candidate(&kit, "k.cu", module_source);
    emit_limits(&kit.emission);
    emit_and_call(&kit, "module");
    close_kit(&kit);
}

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "cuda-compile") == 0)
        return cuda_compile_main(argc - 2, argv + 2);
    if (argc >= 2 && strcmp(argv[1], "sandbox") == 0)
        return sandbox_main(argc - 2, argv + 2);
    setenv("TWAGENT_DATA", TEST_SOURCE_DIR, 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_function),
                                       cmocka_unit_test(test_limits), cmocka_unit_test(test_module),
                                       cmocka_unit_test(test_triton),
                                       cmocka_unit_test(test_hung_compiler)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
