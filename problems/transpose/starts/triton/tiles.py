"""---
tune:
  ROWS: [64, 32, 128, 16]
  COLUMNS: [64, 32, 128, 16]
  num_warps: [8, 4, 2]
  where: ROWS * COLUMNS <= 8192
launch:
  - entry: transpose
    grid: ceil_div(M, ROWS) * ceil_div(N, COLUMNS)
    args: [A, B, M, N]
---"""
# A tile a program, turned around in shared memory by the compiler, so that both sides are read and written in rows.
import triton
import triton.language as tl


@triton.jit
def transpose(a, b, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    tiles = tl.cdiv(n, COLUMNS)
    i = (tl.program_id(0) // tiles) * ROWS + tl.arange(0, ROWS)
    j = (tl.program_id(0) % tiles) * COLUMNS + tl.arange(0, COLUMNS)
    tile = tl.load(a + i[:, None].to(tl.int64) * n + j[None, :], mask=(i[:, None] < m) & (j[None, :] < n))
    tl.store(b + j[:, None].to(tl.int64) * m + i[None, :], tl.trans(tile), mask=(j[:, None] < n) & (i[None, :] < m))
