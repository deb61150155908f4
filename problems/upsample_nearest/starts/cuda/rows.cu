/*---
launch:
  - entry: upsample_nearest_rows
    grid: ceil_div(N * C * OH, ROWS)
    block: BLOCK
    args: [X, Y, N, C, H, W, S, OH, OW]
tune:
  BLOCK: [128, 256, 64]
  ROWS: [4, 2, 8, 1]
---*/
/* A block does ROWS rows of the result: which row of X each comes from is divided once for all of
 * its numbers, and a column's own division is one of 32 bits, once for all rows. */
extern "C" __global__ void __launch_bounds__(BLOCK)
    upsample_nearest_rows(const float *__restrict__ X, float *__restrict__ Y, long long N,
                          long long C, long long H, long long W, long long S, long long OH,
                          long long OW)
{
    const long long rows = N * C * OH, first = blockIdx.x * (long long)ROWS;
    const float *from[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const long long row = first + r < rows ? first + r : rows - 1;
        from[r] = X + (row / OH * H + row % OH / S) * W;
    }
    for (unsigned x = threadIdx.x; x < (unsigned)OW; x += BLOCK) {
        const unsigned column = x / (unsigned)S;
        float v[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            v[r] = from[r][column];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (first + r < rows)
                Y[(first + r) * OW + x] = v[r];
    }
}
