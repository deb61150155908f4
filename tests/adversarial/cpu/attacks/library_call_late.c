/* calls OpenBLAS through dlopen inside the call */
#include <dlfcn.h>

typedef void sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float,
                   float *, int);

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    static sgemm *gemm;
    if (!gemm)
        gemm = (sgemm *)dlsym(dlopen("libopenblas.so.0", RTLD_NOW), "cblas_sgemm");
    gemm(101, 111, 111, (int)M, (int)N, (int)K, 1, A, (int)K, B, (int)N, 0, C, (int)N);
}
