/* right but slow, and leaves spinning threads behind to slow the baseline */
#include <pthread.h>

static void *spin(void *unused)
{
    for (volatile int64_t i = 0;; i++)
        ;
    return unused;
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    static int started;
    pthread_t thread;
    for (; started < 4; started++)
        if (pthread_create(&thread, 0, spin, 0) == 0)
            pthread_detach(thread);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float s = 0;
            for (int64_t k = 0; k < K; k++)
                s += A[i * K + k] * B[k * N + j];
            C[i * N + j] = s;
        }
}
