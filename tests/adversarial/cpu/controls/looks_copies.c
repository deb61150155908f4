/* the thread of attacks/looks_copies.c, whose rows are copied when it is done with them */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static struct {
    const float *A, *B;
    float *C;
    int64_t from, M, N, K;
} job;
static atomic_int asked, done;
static float own[1 << 20];

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

static void *worker(void *unused)
{
    for (int turn = 0;;) {
        while (atomic_load(&asked) == turn)
            __builtin_ia32_pause();
        turn = atomic_load(&asked);
        honest(job.A + job.from * job.K, job.B, own, 0, job.M - job.from, job.N, job.K);
        atomic_store(&done, turn);
    }
    return unused;
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    static int started;
    pthread_t thread;
    if (started == 0)
        started = pthread_create(&thread, 0, worker, 0) == 0 ? 1 : -1;
    int64_t from = started > 0 ? M - (M + 3) / 4 : M;
    job.A = A, job.B = B, job.C = C, job.from = from, job.M = M, job.N = N, job.K = K;
    int turn = atomic_fetch_add(&asked, 1) + 1;
    honest(A, B, C, 0, from, N, K);
    while (started > 0 && atomic_load(&done) != turn)
        __builtin_ia32_pause();
    memcpy(C + from * N, own, (size_t)((M - from) * N) * sizeof *own);
}
