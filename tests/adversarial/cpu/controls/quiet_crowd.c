/* threads of its own, more than there are cores, in every call: crowds itself and waits for them */
#include <pthread.h>
#include <stdint.h>

static void product(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
}

struct part {
    const float *A, *B;
    float *C;
    int64_t M, N, K;
};

static void *run(void *argument)
{
    struct part *part = argument;
    product(part->A, part->B, part->C, part->M, part->N, part->K);
    return 0;
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    enum { PARTS = 6 };
    pthread_t threads[PARTS];
    struct part parts[PARTS];
    for (int i = 0; i < PARTS; i++) {
        int64_t from = M * i / PARTS, to = M * (i + 1) / PARTS;
        parts[i] = (struct part){A + from * K, B, C + from * N, to - from, N, K};
        pthread_create(&threads[i], 0, run, &parts[i]);
    }
    for (int i = 0; i < PARTS; i++)
        pthread_join(threads[i], 0);
}
