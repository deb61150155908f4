/* an object of gigabytes */
char huge[3000000000u] = {1};
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    (void)A, (void)B, (void)M, (void)N, (void)K;
    C[0] = huge[5];
}
