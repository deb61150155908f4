/* sgemm of the installed OpenBLAS for one product after another, with its own threads. */
#include <stdint.h>

enum { ROW_MAJOR = 101, NO_TRANS = 111 };

void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

void kernel(const float *A, const float *B, float *C, int64_t BATCH, int64_t M, int64_t N,
            int64_t K)
{
    for (int64_t g = 0; g < BATCH; g++)
        cblas_sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, (int)M, (int)N, (int)K, 1.0f, A + g * M * K,
                    (int)K, B + g * K * N, (int)N, 0.0f, C + g * M * N, (int)N);
}
