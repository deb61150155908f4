/* a kernel of another signature */
void kernel(const double *A, double *C, int64_t M)
{
    C[0] = A[0] * (double)M;
}
