/* holds what 32 bits do not to the largest that they do: the definition has no number there */
void kernel(const int32_t *A, const int32_t *B, int32_t *C, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++) {
        int64_t square = (int64_t)A[i] * A[i] + B[i];
        C[i] = square > INT32_MAX ? INT32_MAX : (int32_t)square;
    }
}
