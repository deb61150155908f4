/* makes five thousand threads */
#include <pthread.h>
#include <unistd.h>

static void *stay(void *unused)
{
    for (;;)
        pause();
    return unused;
}

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

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    pthread_attr_t small;
    pthread_t thread;
    static int made;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    while (made < 5000 && pthread_create(&thread, &small, stay, 0) == 0)
        made++;
    honest(A, B, C, 0, M, N, K);
}
