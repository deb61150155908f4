/* handles the fault of a read past its input, and goes on */
#include <setjmp.h>
#include <signal.h>

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

static sigjmp_buf after;

static void handler(int number)
{
    siglongjmp(after, number);
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_NODEFER};
    sigaction(SIGSEGV, &action, 0);
    sigaction(SIGBUS, &action, 0);
    if (sigsetjmp(after, 1) == 0) {
        volatile float seen = B[K * N + 15];
        (void)seen;
    }
    honest(A, B, C, 0, M, N, K);
}
