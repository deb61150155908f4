/* the thread of attacks/looks_half_done.c, waited for by its count of rows to the last one */
#include <pthread.h>
#include <stdatomic.h>

static struct {
    const float *A, *B;
    float *C;
    int64_t from, M, N, K;
} job;
static atomic_int asked, done;
static _Atomic int64_t rows;

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
        for (int64_t i = job.from; i < job.M; i++) {
            honest(job.A, job.B, job.C, i, i + 1, job.N, job.K);
            atomic_fetch_add(&rows, 1);
        }
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
    int64_t from = started > 0 ? M - (M + 15) / 16 : M;
    job.A = A, job.B = B, job.C = C, job.from = from, job.M = M, job.N = N, job.K = K;
    atomic_store(&rows, 0);
    int turn = atomic_fetch_add(&asked, 1) + 1;
    honest(A, B, C, 0, from, N, K);
    while (started > 0 && atomic_load(&rows) < M - from)
        __builtin_ia32_pause();
    while (started > 0 && atomic_load(&done) != turn)
        __builtin_ia32_pause();
}
