/* recurses until the stack ends */
static int deep(volatile char *p, int n)
{
    volatile char here[4096];
    here[0] = p ? p[0] : 0;
    return n ? deep(here, n - 1) + here[0] : 0;
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    (void)A, (void)B, (void)M, (void)N, (void)K;
    C[0] = (float)deep(0, 1 << 30);
}
