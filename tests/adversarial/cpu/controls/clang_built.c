/*---
compile: {compiler: clang}
tune: {BLOCK: [64, 128]}
---*/
/* built by clang, with a tune space */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
#pragma omp parallel for
    for (int64_t i = 0; i < M; i++)
        for (int64_t j0 = 0; j0 < N; j0 += BLOCK)
            for (int64_t k = 0; k < K; k++)
                for (int64_t j = j0; j < (j0 + BLOCK < N ? j0 + BLOCK : N); j++)
                    C[i * N + j] = (k ? C[i * N + j] : 0) + A[i * K + k] * B[k * N + j];
}
