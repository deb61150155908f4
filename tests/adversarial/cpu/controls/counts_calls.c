/* counts its calls in a process, and changes how it computes after 200, not what */
static int calls;

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    int backwards = ++calls > 200;
    for (int64_t row = 0; row < M; row++) {
        int64_t i = backwards ? M - 1 - row : row;
        for (int64_t j = 0; j < N; j++) {
            float sum = 0.0f;
            for (int64_t k = 0; k < K; k++)
                sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
    }
}
