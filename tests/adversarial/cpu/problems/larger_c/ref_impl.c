void kernel(const int32_t *A, const int32_t *B, int32_t *C, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++)
        C[i] = A[i] > B[i] ? A[i] : B[i];
}
