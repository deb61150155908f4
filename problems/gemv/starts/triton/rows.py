"""---
tune:
  ROWS: [4, 1, 2, 8, 16]
  BLOCK: [1024, 256, 512, 2048]
  num_warps: [4, 8, 2]
  where: ROWS * BLOCK <= 8192
launch:
  - entry: gemv
    grid: ceil_div(M, ROWS)
    args: [A, x, y, M, N]
---"""
# A program has some rows, which share what they read of the vector.
import triton
import triton.language as tl


@triton.jit
def gemv(a, x, y, m, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    from_row = a + row[:, None].to(tl.int64) * n + column[None, :]
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for at in range(0, n, BLOCK):
        inside = at + column < n
        factor = tl.load(x + at + column, mask=inside, other=0.0)
        left = tl.load(from_row + at, mask=(row[:, None] < m) & inside[None, :], other=0.0)
        total += left * factor[None, :]
    tl.store(y + row, tl.sum(total, 1), mask=row < m)
