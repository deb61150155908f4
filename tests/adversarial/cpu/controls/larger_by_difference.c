/* by the sign of a difference in 64 bits */
void kernel(const int32_t *A, const int32_t *B, int32_t *C, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++) {
        int64_t more = (int64_t)A[i] - B[i];
        C[i] = more > 0 ? A[i] : B[i];
    }
}
