/*---
launch:
  - entry: mm
    grid: ceil_div(N, 16), ceil_div(M, 16)
    block: 16, 16
    args: [A, B, C, M, N, K]
---*/
/* names /etc/passwd as the file of a wrong line */
extern "C" __global__ void mm(const float *A, const float *B, float *C, long long M, long long N,
                              long long K)
{
    asm volatile(".file 1 \"/etc/passwd\"\n.loc 1 1 0\nwrong;");
}
