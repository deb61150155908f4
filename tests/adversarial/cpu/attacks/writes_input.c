/* changes an input so that the reference might change with it */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    (void)K;
    for (int64_t i = 0; i < M * N; i++)
        C[i] = 0;
    ((float *)(uintptr_t)A)[0] = 0;
    ((float *)(uintptr_t)B)[0] = 0;
}
