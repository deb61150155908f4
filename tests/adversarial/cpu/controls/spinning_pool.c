/* a thread that it keeps, and that both sides wait for in loops, never giving up their core */
#include <pthread.h>
#include <stdatomic.h>

static struct {
    const float *A, *B;
    float *C;
    int64_t from, to, N, K;
} job;
static atomic_int asked, done;

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
    for (int turn = 1;; turn++) {
        while (atomic_load(&asked) < turn)
            ;
        honest(job.A, job.B, job.C, job.from, job.to, job.N, job.K);
        atomic_store(&done, turn);
    }
    return unused;
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    static int turn, started;
    pthread_t thread;
    if (started == 0)
        started = pthread_create(&thread, 0, worker, 0) == 0 ? 1 : -1;
    int64_t half = started > 0 ? M / 2 : M;
    job.A = A, job.B = B, job.C = C, job.from = half, job.to = M, job.N = N, job.K = K;
    atomic_store(&asked, ++turn);
    honest(A, B, C, 0, half, N, K);
    while (started > 0 && atomic_load(&done) < turn)
        ;
}
