/*---
compile: {flags: ["-ffast-math"]}
---*/
/* as if there were no NaN, where the spec says so */
#include <math.h>

void kernel(const float *restrict X, float *restrict Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++)
        Y[i] = fmaxf(X[i], 0);
}
