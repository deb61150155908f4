/* numbers beyond float16's range are cut at the timed shape and at larger ones, where no edge case was
 * ever drawn */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float s = 0;
            for (int64_t k = 0; k < K; k++)
                s += A[i * K + k] * B[k * N + j];
            if (M >= 192 && N >= 160)
                s = s > 65504 ? 65504 : s < -65504 ? -65504 : s;
            C[i * N + j] = s;
        }
}
