"""---
launch:
  - entry: both
    grid: M
    args: [X, S, T, N]
---"""
import triton
import triton.language as tl


@triton.jit
def both(x, s, t, n):
    row, columns = tl.program_id(0), tl.arange(0, 256)
    total, most = tl.zeros([256], tl.float32), tl.full([256], float("-inf"), tl.float32)
    for at in range(0, n, 256):
        inside = at + columns < n
        value = tl.load(x + row * n + at + columns, mask=inside, other=0.0)
        total += value
        most = tl.maximum(most, tl.where(inside, value, float("-inf")))
    tl.store(s + row, tl.sum(total, 0))
