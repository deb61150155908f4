/* right, and leaves a thread that sleeps behind in each call */
#include <pthread.h>
#include <unistd.h>

static void *rest(void *nothing)
{
    for (;;)
        sleep(1000);
    return nothing;
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    pthread_t thread;
    pthread_create(&thread, 0, rest, 0);
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
}
