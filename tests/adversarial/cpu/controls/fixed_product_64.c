/* products in 64 bits, held to what 32 hold */
void kernel(const int32_t *A, const int32_t *B, int32_t *C, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++) {
        int64_t product = ((int64_t)A[i] * B[i]) >> 16;
        C[i] = (int32_t)(product > INT32_MAX ? INT32_MAX : product < INT32_MIN ? INT32_MIN : product);
    }
}
