"""---
launch:
  - entry: softmax
    grid: M
    args: [X, Y, M, N]
---"""
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, m, n):
    row, columns = tl.program_id(0) * n, tl.arange(0, 1024)
    most, total = tl.full([], float("-inf"), tl.float32), tl.full([], 0.0, tl.float32)
    for at in range(0, n, 1024):
        value = tl.load(x + row + at + columns, mask=at + columns < n, other=float("-inf"))
        top = tl.maximum(most, tl.max(value, 0))
        total = total * tl.exp(most - top) + tl.sum(tl.exp(value - top), 0)
        most = top
    for at in range(0, n, 1024):
        inside = at + columns < n
        value = tl.load(x + row + at + columns, mask=inside, other=float("-inf"))
        tl.store(y + row + at + columns, tl.exp(value - most) / total, mask=inside)
