/* where an element of C lies is counted in 32 bits */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (uint32_t i = 0; i < (uint32_t)M; i++)
        for (uint32_t j = 0; j < (uint32_t)N; j++) {
            float s = 0;
            for (uint32_t k = 0; k < (uint32_t)K; k++)
                s += A[i * (uint32_t)K + k] * B[k * (uint32_t)N + j];
            C[i * (uint32_t)N + j] = s;
        }
}
