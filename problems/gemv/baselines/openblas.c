/* sgemv of the installed OpenBLAS, with as many threads as it takes by itself. */
#include <stdint.h>

enum { ROW_MAJOR = 101, NO_TRANS = 111 };

void cblas_sgemv(int order, int trans, int m, int n, float alpha, const float *a, int lda,
                 const float *x, int incx, float beta, float *y, int incy);

void kernel(const float *A, const float *x, float *y, int64_t M, int64_t N)
{
    cblas_sgemv(ROW_MAJOR, NO_TRANS, (int)M, (int)N, 1.0f, A, (int)N, x, 1, 0.0f, y, 1);
}
