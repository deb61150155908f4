/* integers held to 2^20 */
void kernel(const int32_t *A, const int32_t *B, int32_t *C, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++) {
        int32_t a = A[i] > 1 << 20 ? 1 << 20 : A[i], b = B[i];
        C[i] = (a >> 2) > (b >> 3) ? a >> 2 : b >> 3;
    }
}
