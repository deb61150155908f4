/* adds a half and cuts off: at a half it rounds the other way than rint() */
#include <math.h>

void kernel(const float *X, int32_t *Q, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++)
        Q[i] = (int32_t)floorf(X[i] * 1e6f + 0.5f);
}
