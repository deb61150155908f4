"""---
tune:
  ROWS: [4, 1, 2, 8, 16]
  BLOCK: [1024, 256, 512, 2048]
  num_warps: [4, 8, 2]
  where: ROWS * BLOCK <= 8192
launch:
  - entry: sum_rows
    grid: ceil_div(M, ROWS)
    args: [X, y, M, N]
---"""
# A program sums some rows side by side, each in as many streams as a block has columns.
import triton
import triton.language as tl


@triton.jit
def sum_rows(x, y, m, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    from_row = x + row[:, None].to(tl.int64) * n + column[None, :]
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for at in range(0, n, BLOCK):
        inside = (row[:, None] < m) & (at + column[None, :] < n)
        total += tl.load(from_row + at, mask=inside, other=0.0)
    tl.store(y + row, tl.sum(total, 1), mask=row < m)
