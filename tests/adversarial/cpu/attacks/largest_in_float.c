/* integers held in float, which has 24 bits */
#include <math.h>

void kernel(const int32_t *A, const int32_t *B, int32_t *C, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++)
        C[i] = (int32_t)fmaxf(floorf((float)A[i] / 4), floorf((float)B[i] / 8));
}
