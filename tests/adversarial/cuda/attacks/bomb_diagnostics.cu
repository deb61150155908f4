/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* a hundred thousand errors */
#define E1     wrong_name = 1;
#define E10    E1 E1 E1 E1 E1 E1 E1 E1 E1 E1
#define E100   E10 E10 E10 E10 E10 E10 E10 E10 E10 E10
#define E1000  E100 E100 E100 E100 E100 E100 E100 E100 E100 E100
#define E10000 E1000 E1000 E1000 E1000 E1000 E1000 E1000 E1000 E1000 E1000
extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    E10000 E10000 E10000 E10000 E10000
}
