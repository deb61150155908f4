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
    most, total = tl.full([1024], float("-inf"), tl.float32), tl.zeros([1024], tl.float32)
    for at in range(0, n, 1024):
        inside = at + columns < n
        most = tl.maximum(most, tl.load(x + row + at + columns, mask=inside, other=float("-inf")))
    top = tl.max(most, 0)
    for at in range(0, n, 1024):
        inside = at + columns < n
        value = tl.load(x + row + at + columns, mask=inside, other=float("-inf"))
        total += tl.exp(value.to(tl.float16).to(tl.float32) - top)
    scale = 1.0 / tl.sum(total, 0)
    for at in range(0, n, 1024):
        inside = at + columns < n
        value = tl.load(x + row + at + columns, mask=inside, other=float("-inf"))
        tl.store(y + row + at + columns, tl.exp(value.to(tl.float16).to(tl.float32) - top) * scale, mask=inside)
