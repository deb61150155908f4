/* vectors of 16 to the end of each row, the last one under a mask: lanes that are masked out are
 * not read, whatever lies there */
#if defined(__AVX512F__)
#include <immintrin.h>

static __m512 load(const float *at, int64_t count)
{
    return _mm512_maskz_loadu_ps(count >= 16 ? 0xffff : (__mmask16)((1u << count) - 1), at);
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j += 16) {
            __m512 sum = _mm512_setzero_ps();
            for (int64_t k = 0; k < K; k++)
                sum = _mm512_fmadd_ps(_mm512_set1_ps(A[i * K + k]), load(B + k * N + j, N - j),
                                      sum);
            _mm512_mask_storeu_ps(C + i * N + j,
                                  N - j >= 16 ? 0xffff : (__mmask16)((1u << (N - j)) - 1), sum);
        }
}
#else
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j += 16) {
            float sum[16] = {0};
            int64_t width = N - j < 16 ? N - j : 16;
            for (int64_t k = 0; k < K; k++)
                for (int64_t l = 0; l < width; l++)
                    sum[l] += A[i * K + k] * B[k * N + j + l];
            for (int64_t l = 0; l < width; l++)
                C[i * N + j + l] = sum[l];
        }
}
#endif
