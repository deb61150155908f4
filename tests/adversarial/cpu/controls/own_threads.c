/* threads of its own, joined before it returns */
#include <pthread.h>

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

struct job {
    const float *A, *B;
    float *C;
    int64_t from, to, N, K;
};

static void *half(void *argument)
{
    struct job *j = argument;
    honest(j->A, j->B, j->C, j->from, j->to, j->N, j->K);
    return 0;
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    pthread_t thread;
    struct job second = {A, B, C, M / 2, M, N, K};
    int started = pthread_create(&thread, 0, half, &second) == 0;
    honest(A, B, C, 0, M / 2, N, K);
    if (started)
        pthread_join(thread, 0);
    else
        half(&second);
}
