/* Candidates through the NVRTC that is installed; skipped, saying so, where there is none. The unit
 * of every test is built as a worker builds it: a confined child of this program. */
#include "kit.h"

#include "eval/cuda/compile/ptxas.h"

static const char naive[] =
    "/*---\n"
    "launch:\n"
    "  - {entry: mm, grid: 'M, ceil_div(N, T)', block: T, args: [X, Y, N]}\n"
    "tune: {T: [32, 64]}\n"
    "---*/\n"
    "#include <stdint.h>\n"
    "extern \"C\" __global__ void mm(const float *X, float *Y, int64_t N)\n"
    "{\n"
    "    __shared__ float s[T];\n"
    "    int64_t j = blockIdx.y * (int64_t)T + threadIdx.x;\n"
    "    s[threadIdx.x] = j < N ? X[blockIdx.x * N + j] : -INFINITY;\n"
    "    __syncthreads();\n"
    "    if (j < N) Y[blockIdx.x * N + j] = s[threadIdx.x ^ 1];\n"
    "}\n";

static size_t file_size(const char *path)
{
    struct buf bytes;
    struct err err;
    buf_init(&bytes, 64 << 20);
    assert_int_equal(file_read(path, &bytes, &err), 0);
    assert_memory_equal(bytes.data, "\177ELF", 4);
    size_t length = bytes.length;
    buf_free(&bytes);
    return length;
}

static void test_cubin(void **state)
{
    static const char *const archs[] = {"sm_80", "sm_90", "sm_90a", "sm_100"};
    struct kit kit;
    (void)state;
    kit_need_nvrtc();
    kit_open(&kit, NULL);
    kit_parse(&kit, naive);
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        if (kit_build(&kit, archs[i], BUILD_FAST) != 0)
            fail_msg("%s: %s", archs[i], buf_text(&kit.said));
        assert_true(file_size(kit.build.artifact) > 1000);
        assert_string_equal(kit.report.arch, archs[i]);
        assert_int_equal(kit.report.entry_count, 1);
        const struct cuda_resources *entry = ptxas_entry(&kit.report, "mm");
        assert_non_null(entry);
        assert_true(entry->registers > 0 && entry->registers < 256);
        assert_int_equal(entry->shared_bytes, 32 * 4);
        assert_int_equal(entry->spill_store_bytes, 0);
    }
    /* the second point of its tune space is another cubin */
    tune_at(kit.candidate, 1, &kit.tune);
    assert_int_equal(kit_build(&kit, "sm_90a", BUILD_SANITIZED), 0);
    assert_int_equal(ptxas_entry(&kit.report, "mm")->shared_bytes, 64 * 4);
    struct build build;
    assert_int_equal(cuda_build(kit.arena, "sm_90a", kit.problem, kit.candidate, &kit.tune, NULL,
                                BUILD_PORTABLE, kit.folder, &build, &kit.err),
                     -1);
    assert_int_equal(kit.err.code, ERR_UNSUPPORTED);
    kit_close(&kit);
}

/* The headers that docs/candidate-format.md promises. */
static void test_headers(void **state)
{
    static const char *const sources[] = {
        "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <mma.h>\n"
        "extern \"C\" __global__ void k(__half *x) { x[0] = x[0] + x[1]; }\n",
#ifndef __SANITIZE_ADDRESS__ /* what is not ours is in CCCL's, a second of NVRTC each */
        "#include <cub/block/block_reduce.cuh>\n"
        "extern \"C\" __global__ void k(float *x)\n{\n"
        "    typedef cub::BlockReduce<float, T> R;\n    __shared__ R::TempStorage t;\n"
        "    float v = R(t).Sum(x[threadIdx.x]);\n    if (threadIdx.x == 0) x[0] = v;\n}\n",
        "#include <cooperative_groups.h>\n"
        "extern \"C\" __global__ void k(float *x)\n"
        "{ cooperative_groups::this_thread_block().sync(); x[0] = 1; }\n",
        "#include <cuda/pipeline>\n"
        "extern \"C\" __global__ void k(float *x) { auto p = cuda::make_pipeline(); "
        "p.producer_acquire(); p.producer_commit(); p.consumer_wait(); p.consumer_release(); x[0] "
        "= 1; }\n",
#endif
        "#include <cuda.h>\n#include <cstdint>\n#include <cfloat>\n#include <climits>\n"
        "#include <cmath>\n#include <cuda_runtime.h>\n"
        "extern \"C\" __global__ void k(const __grid_constant__ CUtensorMap m, float *x)\n"
        "{ x[0] = FLT_MAX + M_PI + INT_MAX + UINT64_MAX + sqrtf(x[1]) + NAN; }\n",
        "#include <cuda/std/cstdint>\n#include <stdint.h>\n#include <limits.h>\n"
        "extern \"C\" __global__ void k(int64_t *x) { x[0] = INT64_MAX; }\n",
        "#include <stdint.h>\n#include <cuda/std/limits>\n"
        "constexpr float least = -INFINITY;\n"
        "int helper(int a) { return a + 1; }\n"
        "extern \"C\" __global__ void k(int64_t *x) { x[0] = INT64_MAX + helper(least < 0); }\n",
    };
    struct kit kit;
    char text[2000];
    (void)state;
    kit_need_nvrtc();
    kit_open(&kit, NULL);
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        snprintf(text, sizeof text, "/*---\ntune: {T: [128]}\n---*/\n%s", sources[i]);
        if (kit_compile(&kit, text) != 0)
            fail_msg("%s%s", sources[i], buf_text(&kit.said));
    }
    kit_close(&kit);
}

static void test_errors(void **state)
{
    static const struct {
        const char *text, *shown[3];
    } cases[] = {
        {"int x;\nextern \"C\" __global__ void k(float *p) { p[0] = nothing; }\n",
         {"candidate.cu(2): error: identifier \"nothing\" is undefined", "     2 | extern \"C\""}},
        {"extern \"C\" __global__ void k(float *p) { asm(\"foo.bar %0;\" :: \"r\"(1)); }\n",
         {"PTX assembly: ", "foo"}},
        {"extern \"C\" __global__ void k(float *p) { __shared__ float s[60000];\n"
         "s[threadIdx.x] = p[0]; __syncthreads(); p[1] = s[threadIdx.x ^ 1]; }\n",
         {"240000 bytes of static shared memory", "beyond 49152"}},
        {"/*---\nlaunch: [{entry: other, grid: 1, block: 1}]\n---*/\n"
         "extern \"C\" __global__ void k(float *p) { p[0] = 1; }\n",
         {"the launch names other", "there are: k"}},
        {"/*---\nlaunch: [{entry: k, grid: 1, block: 1}]\n---*/\n"
         "__global__ void k(float *p) { p[0] = 1; }\n",
         {"the launch names k", "_Z1kPf"}},
        {"#include <cub/block/nothing.cuh>\n", {"candidate.cu(1): ", "cannot open source file"}},
    };
    struct kit kit;
    (void)state;
    kit_need_nvrtc();
    kit_open(&kit, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (kit_compile(&kit, cases[i].text) != 1)
            fail_msg("compiles: %s", cases[i].text);
        for (size_t k = 0; k < 3 && cases[i].shown[k] != NULL; k++)
            if (!kit_shows(&kit, cases[i].shown[k]))
                fail_msg("case %zu shows:\n%s\nof:\n%s", i, buf_text(&kit.shown),
                         buf_text(&kit.said));
    }
    kit_close(&kit);
}

/* What lies on this machine stays unknown to whoever writes sources. */
static void test_leaks(void **state)
{
    static const char *const sources[] = {
        "#include \"/etc/passwd\"\n",
        "#include \"/proc/self/environ\"\n",
        "#include \"/proc/self/cmdline\"\n",
        "#include \"/dev/zero\"\n",
        "#include \"/dev/stdin\"\n",
        "#include \"../../../../../../../../etc/passwd\"\n",
        "#line 1 \"/etc/passwd\"\nfoo bar;\n",
        "#if __has_include(\"/etc/passwd\")\n#error leak\n#endif\nfoo bar;\n",
        "#if __has_include(\"/usr/bin/gcc\")\n#error leak\n#endif\nfoo bar;\n",
        "#define P </etc/passwd>\n#include P\n",
        "extern \"C\" __global__ void k() { asm(\".include \\\"/etc/passwd\\\"\"); }\n",
        "extern \"C\" __global__ void k() { asm(\".file 1 \\\"/etc/passwd\\\"\"); foo; }\n",
    };
    struct kit kit;
    (void)state;
    kit_need_nvrtc();
    kit_open(&kit, NULL);
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        assert_int_equal(kit_compile(&kit, sources[i]), 1);
        if (strstr(buf_text(&kit.said), "root:") != NULL || strstr(buf_text(&kit.said), "PATH=") ||
            kit_shows(&kit, "leak") || kit_shows(&kit, "denied"))
            fail_msg("%s shows:\n%s\nof:\n%s", sources[i], buf_text(&kit.shown),
                     buf_text(&kit.said));
    }
    kit_close(&kit);
}

/* The limits are lowered, so that the test is short. */
static int compile_bounded(struct kit *kit, const char *text, const char *cpu_s, const char *mib)
{
    const char *argv[160];
    size_t count = 0;
    kit_parse(kit, text);
    if (cuda_build(kit->arena, "sm_90a", kit->problem, kit->candidate, &kit->tune, NULL, BUILD_FAST,
                   kit->folder, &kit->build, &kit->err) != 0)
        fail_msg("%s", kit->err.message);
    for (; kit->build.spec.argv[count] != NULL; count++)
        argv[count] = kit->build.spec.argv[count];
    const char *const more[] = {"--cpu-s", cpu_s, "--memory-mib", mib, NULL};
    memcpy(argv + count, more, sizeof more);
    kit->build.spec.argv = argv;
    int code = kit_run(kit);
    buf_reset(&kit->shown);
    cuda_diagnostics(kit->candidate, buf_text(&kit->said), kit->said.length, &kit->shown);
    return code;
}

static void test_bombs(void **state)
{
    static const char time_bomb[] =
        "template <int N, int M> struct A {\n"
        "    static constexpr int v = A<N - 1, M * 2>::v + "
        "A<N - 1, M * 2 + 1>::v;\n};\n"
        "template <int M> struct A<0, M> { static constexpr int v = 1; };\n"
        "int x = A<30, 0>::v;\n";
    struct kit kit;
    (void)state;
    kit_need_nvrtc();
    kit_open(&kit, NULL);
    assert_int_equal(compile_bounded(&kit, time_bomb, "1", "4096"), 1);
    if (!kit_shows(&kit, "took more than 1 s of CPU time"))
        fail_msg("%s", buf_text(&kit.said));
#if !defined(__SANITIZE_ADDRESS__) /* which has no bound on its addresses */
    assert_int_equal(compile_bounded(&kit, time_bomb, "20", "700"), 1);
    if (!kit_shows(&kit, "memory"))
        fail_msg("%s", buf_text(&kit.said));
#endif
    assert_int_equal(
        kit_compile(&kit, "template <int N> struct A { static constexpr int v = A<N + 1>::v; };\n"
                          "int z = A<0>::v;\n"),
        1);
    assert_true(kit_shows(&kit, "excessive recursion"));
    assert_true(kit.said.length < (48 << 10) + 200);
    /* a unit that includes itself, a macro that doubles */
    assert_int_equal(kit_compile(&kit, "#include \"unit.cu\"\n"), 1);
    kit_close(&kit);
}

static void test_unroll(void **state)
{
    static const char text[] =
        "extern \"C\" __global__ void k(float *p)\n{\n    float v = p[0];\n#pragma unroll\n"
        "    for (int i = 0; i < 2000000; i++)\n        v = v * p[i] + sinf(v);\n    p[0] = "
        "v;\n}\n";
    struct kit kit;
    (void)state;
    kit_need_nvrtc();
    kit_open(&kit, NULL);
    int code = compile_bounded(&kit, text, "2", "4096"); /* cut, or the compiler knew better */
    assert_true(code == 0 || kit_shows(&kit, "took more than 2 s of CPU time"));
    kit_close(&kit);
}

static void test_baseline(void **state)
{
    struct kit kit;
    char path[128];
    (void)state;
    kit_need_nvrtc();
    kit_open(&kit, NULL);
    snprintf(path, sizeof path, "%s/theirs.cu", kit.folder);
    assert_int_equal(file_write(path, naive, strlen(naive), &kit.err), 0);
    const struct baseline_spec baseline = {.name = "theirs", .file = path};
    assert_int_equal(cuda_build(kit.arena, "sm_90a", kit.problem, NULL, NULL, &baseline, BUILD_FAST,
                                kit.folder, &kit.build, &kit.err),
                     0);
    assert_int_equal(kit_run(&kit), 0);
    assert_int_equal(cuda_report_read(kit.arena, kit.build.log, &kit.report, &kit.err), 0);
    assert_non_null(ptxas_entry(&kit.report, "mm"));
    kit_close(&kit);
}

int main(int argc, char **argv)
{
    int code;
    if (kit_internal(argc, argv, &code))
        return code;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cubin),    cmocka_unit_test(test_headers),
        cmocka_unit_test(test_errors),   cmocka_unit_test(test_leaks),
        cmocka_unit_test(test_bombs),    cmocka_unit_test(test_unroll),
        cmocka_unit_test(test_baseline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
