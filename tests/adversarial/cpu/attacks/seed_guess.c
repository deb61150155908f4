/* writes what the random generators would give for the time of day */
#include <stdlib.h>
#include <time.h>

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    srand((unsigned)time(0));
    (void)A, (void)B, (void)K;
    for (int64_t i = 0; i < M * N; i++)
        C[i] = (float)rand() / (float)RAND_MAX;
}
