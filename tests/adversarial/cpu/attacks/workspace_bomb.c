/*---
workspace: {W: {shape: [983040, 1024], dtype: float32}}
---*/
/* wants 3.75 GiB of workspace, each page of which somebody has to fill */
void kernel(const float *A, const float *B, float *C, float *W, int64_t M, int64_t N, int64_t K)
{
    (void)W;
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            C[i * N + j] = 0;
            for (int64_t k = 0; k < K; k++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
        }
}
