"""---
tune:
  BLOCK_SIZE: [4096, 2048, 1024, 512, 256]
  num_warps: [8, 4, 16]
launch:
  - entry: softmax
    grid: M
    args: [X, Y, N]
---"""
# A program a row, which it reads three times: the maximum, the sum, what is written. The second and third come from the
# caches.
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, n, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    columns = tl.arange(0, BLOCK_SIZE)
    most = tl.full([BLOCK_SIZE], float("-inf"), tl.float32)
    for at in range(0, n, BLOCK_SIZE):
        inside = at + columns < n
        most = tl.maximum(most, tl.load(x + row + at + columns, mask=inside, other=float("-inf")))
    top = tl.max(most, 0)
    total = tl.zeros([BLOCK_SIZE], tl.float32)
    for at in range(0, n, BLOCK_SIZE):
        inside = at + columns < n
        total += tl.exp(tl.load(x + row + at + columns, mask=inside, other=float("-inf")) - top)
    scale = 1.0 / tl.sum(total, 0)
    for at in range(0, n, BLOCK_SIZE):
        inside = at + columns < n
        value = tl.load(x + row + at + columns, mask=inside, other=float("-inf"))
        tl.store(y + row + at + columns, tl.exp(value - top) * scale, mask=inside)
