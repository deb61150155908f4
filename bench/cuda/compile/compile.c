/* How long a candidate takes from its text to a cubin, from outside: cuda_build() and the process
 * that it prepares. Without and with the server that a worker starts; every repetition has another
 * number in its source, so that nothing is answered from disk.
 *   bench_cuda_compile REPETITIONS      a Markdown table on stdout */
#include "eval/cuda/compile/compile.h"
#include "base/file.h"
#include "base/mem.h"
#include "eval/cpu/cpu.h"
#include "eval/cuda/cuda.h"
#include "eval/cuda/target.h"
#include "process/sandbox.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REPETITIONS_MAX = 100 };

static const struct {
    const char *name, *text;
} kernels[] = {
    {"naive matmul, 32x32 tile",
     "extern \"C\" __global__ void k(const float *A, const float *B, float *C, int64_t n)\n"
     "{\n"
     "    __shared__ float a[32][32], b[32][32];\n"
     "    int64_t i = blockIdx.y * 32 + threadIdx.y, j = blockIdx.x * 32 + threadIdx.x;\n"
     "    float sum = V;\n"
     "    for (int64_t at = 0; at < n; at += 32) {\n"
     "        a[threadIdx.y][threadIdx.x] = A[i * n + at + threadIdx.x];\n"
     "        b[threadIdx.y][threadIdx.x] = B[(at + threadIdx.y) * n + j];\n"
     "        __syncthreads();\n"
     "        for (int k = 0; k < 32; k++)\n"
     "            sum += a[threadIdx.y][k] * b[k][threadIdx.x];\n"
     "        __syncthreads();\n"
     "    }\n"
     "    C[i * n + j] = sum;\n"
     "}\n"},
    {"cuda_fp16, mma",
     "#include <cuda_fp16.h>\n#include <mma.h>\n"
     "extern \"C\" __global__ void k(const __half *A, const __half *B, float *C)\n"
     "{\n"
     "    using namespace nvcuda::wmma;\n"
     "    fragment<matrix_a, 16, 16, 16, __half, row_major> a;\n"
     "    fragment<matrix_b, 16, 16, 16, __half, row_major> b;\n"
     "    fragment<accumulator, 16, 16, 16, float> c;\n"
     "    fill_fragment(c, V);\n"
     "    load_matrix_sync(a, A, 16);\n    load_matrix_sync(b, B, 16);\n"
     "    mma_sync(c, a, b, c);\n"
     "    store_matrix_sync(C, c, 16, mem_row_major);\n"
     "}\n"},
    {"cooperative_groups", "#include <cooperative_groups.h>\n"
                           "extern \"C\" __global__ void k(float *x)\n"
                           "{ cooperative_groups::this_thread_block().sync(); x[0] = V; }\n"},
    {"cub::BlockReduce", "#include <cub/block/block_reduce.cuh>\n"
                         "extern \"C\" __global__ void k(float *x)\n"
                         "{\n"
                         "    typedef cub::BlockReduce<float, 256> R;\n"
                         "    __shared__ R::TempStorage t;\n"
                         "    float v = R(t).Sum(x[threadIdx.x]);\n"
                         "    if (threadIdx.x == 0)\n        x[0] = v + V;\n"
                         "}\n"},
    {"cuda/pipeline",
     "#include <cuda/pipeline>\n"
     "extern \"C\" __global__ void k(float *x)\n"
     "{ auto p = cuda::make_pipeline(); p.producer_acquire(); p.producer_commit();\n"
     "  p.consumer_wait(); p.consumer_release(); x[0] = V; }\n"},
};

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void must(bool fine, const char *what)
{
    if (fine)
        return;
    fprintf(stderr, "bench_cuda_compile: %s\n", what);
    exit(3);
}

static int run(const struct process_spec *spec)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        for (size_t i = 0; i < spec->pass_count; i++)
            dup2(fcntl(spec->pass_fds[i], F_DUPFD_CLOEXEC, 16), 3 + (int)i);
        if (chdir(spec->folder) == 0)
            execve(spec->argv[0], (char *const *)(uintptr_t)spec->argv,
                   (char *const *)(uintptr_t)spec->env);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0)
        ;
    return status;
}

/* One compile of a text nobody has seen; milliseconds. *inside: the compiler's own part of it. */
static double compile(const struct problem *problem, const char *text, const char *folder,
                      double *inside)
{
    static int number;
    struct arena *arena = arena_new();
    struct candidate *candidate = NULL;
    struct names tune;
    struct build build;
    struct cuda_report report;
    struct err err = {0};
    char *source =
        arena_printf(arena,
                     "/*---\ntune: {V: [%d]}\nlaunch: [{entry: k, grid: \"1\", block: 32, "
                     "args: [A, B, C]}]\n---*/\n%s",
                     ++number, text);
    must(candidate_parse(problem, "k.cu", source, strlen(source), &candidate, &err) == 0,
         err.message);
    tune_at(candidate, 0, &tune);
    double began = now_ms();
    must(cuda_build(arena, "sm_90a", problem, candidate, &tune, NULL, BUILD_FAST, folder, &build,
                    &err) == 0,
         err.message);
    must(run(&build.spec) == 0, "a kernel does not compile");
    double elapsed = now_ms() - began;
    must(cuda_report_read(arena, build.log, &report, &err) == 0, err.message);
    *inside = report.compile_ms;
    candidate_free(candidate);
    arena_free(arena);
    return elapsed;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void row(const struct problem *problem, size_t kernel, const char *folder, int times)
{
    double cold[REPETITIONS_MAX], warm[REPETITIONS_MAX], inside, first, second;
    const char *text = kernels[kernel].text;
    setenv("TWAGENT_CUDA_CACHE", "0", 1);
    setenv("TWAGENT_CUDA_SERVER", "0", 1);
    for (int i = 0; i < times; i++)
        cold[i] = compile(problem, text, folder, &inside);
    unsetenv("TWAGENT_CUDA_SERVER");
    first = compile(problem, text, folder, &inside);
    second = compile(problem, text, folder, &inside); /* makes the precompiled header */
    for (int i = 0; i < times; i++)
        warm[i] = compile(problem, text, folder, &inside);
    qsort(cold, (size_t)times, sizeof cold[0], compare);
    qsort(warm, (size_t)times, sizeof warm[0], compare);
    printf("| %s | %.0f (%.0f to %.0f) | %.0f | %.0f | %.0f (%.0f to %.0f) | %.0f |\n",
           kernels[kernel].name, cold[times / 2], cold[0], cold[times - 1], first, second,
           warm[times / 2], warm[0], warm[times - 1], inside);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct problem *problem = NULL;
    struct cuda_compiler compiler;
    struct err err = {0};
    char folder[] = "/tmp/twagent-bench-XXXXXX";
    if (argc >= 2 && strcmp(argv[1], "cuda-compile") == 0)
        return cuda_compile_main(argc - 2, argv + 2);
    if (argc >= 2 && strcmp(argv[1], "sandbox") == 0)
        return sandbox_main(argc - 2, argv + 2);
    int times = argc >= 2 ? (int)strtol(argv[1], NULL, 10) : 9;
    times = times < 1 ? 1 : times < REPETITIONS_MAX ? times : REPETITIONS_MAX;
    static const struct target *const targets[] = {&target_cuda, NULL};
    targets_use(targets);
    struct arena *arena = arena_new();
    must(cuda_compiler_find(arena, &compiler, &err) == 0, err.message);
    must(problem_load("matmul", &problem, &err) == 0, err.message);
    must(mkdtemp(folder) != NULL, "no temporary folder");
    printf("NVRTC %d.%d, sm_90a, %d repetitions.\n\n", compiler.version_major,
           compiler.version_minor, times);
    printf("| kernel | alone, ms | server: first | second | later | of which NVRTC |\n"
           "| --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        row(problem, i, folder, times);
    must(file_remove_tree(folder, &err) == 0, err.message);
    problem_free(problem);
    arena_free(arena);
    return 0;
}
