"""---
launch:
  - entry: norm
    grid: M
    args: [X, Y, M, N]
---"""
import triton
import triton.language as tl


@triton.jit
def join(mean, squares, count, mean_2, squares_2, count_2):
    both = count + count_2
    share = tl.where(both > 0, count_2 / tl.maximum(both, 1.0), 0.0)
    away = mean_2 - mean
    return mean + away * share, squares + squares_2 + away * away * count * share, both


@triton.jit
def norm(x, y, m, n):
    row, columns = tl.program_id(0) * n, tl.arange(0, 512)
    mean, squares, count = tl.zeros([512], tl.float32), tl.zeros([512], tl.float32), tl.zeros([512], tl.float32)
    for at in range(0, n, 512):
        inside = at + columns < n
        value = tl.load(x + row + at + columns, mask=inside, other=0.0)
        count += inside.to(tl.float32)
        away = value - mean
        mean += tl.where(inside, away / tl.maximum(count, 1.0), 0.0)
        squares += tl.where(inside, away * (value - mean), 0.0)
    mean, squares, count = tl.reduce((mean, squares, count), 0, join)
    scale = 1.0 / tl.sqrt_rn(squares / n + 1e-5)
    for at in range(0, n, 512):
        inside = at + columns < n
        value = tl.load(x + row + at + columns, mask=inside, other=0.0)
        tl.store(y + row + at + columns, (value - mean) * scale, mask=inside)
