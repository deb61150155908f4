/* the same, and in its slow calls threads of its own crowd the cores, so that these samples look disturbed and are left out */
#include <pthread.h>
#include <stdatomic.h>
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

/* One call in four. */
static int lucky(void)
{
    static uint64_t state;
    state = (state + __builtin_ia32_rdtsc()) * 6364136223846793005u + 1442695040888963407u;
    return state >> 62 == 0;
}

static atomic_int over;

static void *crowd(void *unused)
{
    while (!atomic_load(&over))
        __builtin_ia32_pause();
    return unused;
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    enum { CROWD = 6 };
    pthread_t threads[CROWD];
    int slow = !lucky(), made = 0;
    atomic_store(&over, 0);
    while (slow && made < CROWD && pthread_create(&threads[made], 0, crowd, 0) == 0)
        made++;
    for (volatile int i = slow ? 40 : 1; i > 0; i--)
        product(A, B, C, M, N, K);
    atomic_store(&over, 1);
    while (made > 0)
        pthread_join(threads[--made], 0);
}
