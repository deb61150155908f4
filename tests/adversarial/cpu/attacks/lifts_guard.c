/* gives itself the pages around its inputs before it reads past them */
#include <sys/mman.h>

static void honest(const float *A, const float *B, float *C, int64_t from, int64_t to, int64_t N,
                   int64_t K)
{
    for (int64_t i = from; i < to; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
}

static void lift(const float *end)
{
    uintptr_t page = ((uintptr_t)end + 4095) & ~(uintptr_t)4095;
    if (mprotect((void *)page, 4096, PROT_READ) != 0)
        mmap((void *)page, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    lift(A + M * K);
    lift(B + K * N);
    volatile float seen = B[K * N + 15];
    (void)seen;
    honest(A, B, C, 0, M, N, K);
}
