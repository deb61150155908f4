"""---
tune:
  BLOCK: [16384, 8192, 4096, 2048]
  num_warps: [16, 8, 4, 32]
launch:
  - entry: softmax
    grid: M
    args: [X, Y, N]
---"""
# A program a row, which stays in registers where a block is as long. A longer row is read again from the caches, with
# one pass for the maximum and the sum.
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    column = tl.arange(0, BLOCK)
    value = tl.load(x + row + column, mask=column < n, other=float("-inf"))
    top = tl.max(value, 0)
    total = tl.sum(tl.exp(value - top), 0)
    for at in range(BLOCK, n, BLOCK):
        more = tl.load(x + row + at + column, mask=at + column < n, other=float("-inf"))
        higher = tl.maximum(top, tl.max(more, 0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(more - higher), 0)
        top = higher
    scale = 1.0 / total
    tl.store(y + row + column, tl.exp(value - top) * scale, mask=column < n)
    for at in range(BLOCK, n, BLOCK):
        inside = at + column < n
        value = tl.load(x + row + at + column, mask=inside, other=float("-inf"))
        tl.store(y + row + at + column, tl.exp(value - top) * scale, mask=inside)
