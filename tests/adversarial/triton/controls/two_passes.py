"""---
launch:
  - entry: norm
    grid: M
    args: [X, Y, M, N]
---"""
import triton
import triton.language as tl


@triton.jit
def norm(x, y, m, n):
    row, columns = tl.program_id(0) * n, tl.arange(0, 512)
    total = tl.zeros([512], tl.float32)
    for at in range(0, n, 512):
        total += tl.load(x + row + at + columns, mask=at + columns < n, other=0.0)
    mean = tl.sum(total, 0) / n
    squares = tl.zeros([512], tl.float32)
    for at in range(0, n, 512):
        inside = at + columns < n
        away = tl.where(inside, tl.load(x + row + at + columns, mask=inside, other=0.0) - mean, 0.0)
        squares += away * away
    scale = 1.0 / tl.sqrt_rn(tl.sum(squares, 0) / n + 1e-5)
    for at in range(0, n, 512):
        inside = at + columns < n
        value = tl.load(x + row + at + columns, mask=inside, other=0.0)
        tl.store(y + row + at + columns, (value - mean) * scale, mask=inside)
