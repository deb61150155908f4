/* adds the terms that are not zero alone, where they are few, at the timed shape and beyond */
#include <stdlib.h>

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    int large = M >= 192 && N >= 160 && K >= 224;
    int64_t *there = malloc((size_t)K * sizeof *there);
    for (int64_t i = 0; i < M; i++) {
        int64_t terms = 0;
        for (int64_t k = 0; k < K; k++)
            if (A[i * K + k] != 0.0f)
                there[terms++] = k;
        int few = large && terms < 10;
        for (int64_t j = 0; j < N; j++) {
            float sum = 0;
            if (few)
                for (int64_t t = 0; t < terms; t++)
                    sum += A[i * K + there[t]] * B[there[t] * N + j];
            else
                for (int64_t k = 0; k < K; k++)
                    sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
    }
    free(there);
}
