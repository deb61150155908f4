/* pairs KERNEL.so WEIGHTS M N: a kernel with an M x N float32 input, WEIGHTS vectors of N beside it
 * and an M x N output, in turns with a plain copy of the same bytes between the same pages, caches
 * empty before each call. On a shared host the rate of memory differs by what pages one has got and
 * by the minute; between two neighbours in one process it does not. Prints the copy's rate, the
 * kernel's, and the median and quartiles of the ratio. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <immintrin.h>
#include <omp.h>

enum { ROUNDS = 61, WEIGHTS_MOST = 2 };

typedef void plain(const float *x, float *y, int64_t m, int64_t n);
typedef void weighted(const float *x, const float *w, const float *b, float *y, int64_t m,
                      int64_t n);

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void flush(const char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        _mm_clflush(at + i);
    _mm_mfence();
}

/* Around the caches, each thread one contiguous share. */
static void copy(const char *from, char *to, size_t bytes)
{
#pragma omp parallel
    {
        size_t threads = (size_t)omp_get_num_threads(), thread = (size_t)omp_get_thread_num();
        size_t begin = bytes / 64 * thread / threads * 64,
               end = bytes / 64 * (thread + 1) / threads * 64;
        for (size_t i = begin; i < end; i += 16)
            _mm_stream_si128((__m128i *)(void *)(to + i),
                             _mm_load_si128((const __m128i *)(const void *)(from + i)));
        _mm_sfence();
    }
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: pairs KERNEL.so WEIGHTS M N\n");
        return 2;
    }
    int64_t m = strtoll(argv[3], NULL, 10), n = strtoll(argv[4], NULL, 10);
    size_t bytes = (size_t)(m * n) * sizeof(float);
    bool weights = strtol(argv[2], NULL, 10) == WEIGHTS_MOST;
    void *library = dlopen(argv[1], RTLD_NOW), *kernel = library ? dlsym(library, "kernel") : NULL;
    /* as a runner's tensors are: shared pages */
    char *memory = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    float *w = calloc((size_t)n * WEIGHTS_MOST, sizeof *w);
    if (kernel == NULL || memory == MAP_FAILED || w == NULL) {
        fprintf(stderr, "pairs: %s\n", kernel == NULL ? dlerror() : "no memory");
        return 1;
    }
    float *x = (float *)(void *)memory, *y = (float *)(void *)(memory + bytes);
    for (int64_t i = 0; i < m * n; i++)
        x[i] = (float)((uint32_t)i * 2654435761u >> 8) * 0x1p-23f - 1.0f;
    memset(y, 0, bytes);
    double copies[ROUNDS], kernels[ROUNDS], ratios[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) { /* the first is not counted: threads start */
        flush(memory, 2 * bytes);
        double begun = seconds();
        copy(memory, memory + bytes, bytes);
        double copied = seconds() - begun;
        flush(memory, 2 * bytes);
        begun = seconds();
        if (weights)
            ((weighted *)kernel)(x, w, w + n, y, m, n);
        else
            ((plain *)kernel)(x, y, m, n);
        double done = seconds() - begun;
        if (round < 0)
            continue;
        copies[round] = copied;
        kernels[round] = done;
        ratios[round] = copied / done;
    }
    qsort(copies, ROUNDS, sizeof *copies, by_size);
    qsort(kernels, ROUNDS, sizeof *kernels, by_size);
    qsort(ratios, ROUNDS, sizeof *ratios, by_size);
    printf("{\"copy_bytes_per_s\": %.0f, \"kernel_bytes_per_s\": %.0f, \"ratio\": %.4f, \"low\": "
           "%.4f, \"high\": %.4f}\n",
           2.0 * (double)bytes / copies[ROUNDS / 2], 2.0 * (double)bytes / kernels[ROUNDS / 2],
           ratios[ROUNDS / 2], ratios[ROUNDS / 4], ratios[ROUNDS * 3 / 4]);
    return 0;
}
