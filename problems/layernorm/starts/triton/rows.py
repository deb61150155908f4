"""---
tune:
  BLOCK: [16384, 8192, 4096, 2048]
  num_warps: [16, 8, 4, 32]
launch:
  - entry: layernorm
    grid: M
    args: [X, gamma, beta, Y, N]
---"""
# A program a row, which stays in registers where a block is as long. A longer row is read again from the caches: once
# for the squares of differences from the mean, once for what is written.
import triton
import triton.language as tl


@triton.jit
def layernorm(x, gamma, beta, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * n
    column = tl.arange(0, BLOCK)
    inside = column < n
    value = tl.load(x + row + column, mask=inside, other=0.0)
    total = value
    for at in range(BLOCK, n, BLOCK):
        total += tl.load(x + row + at + column, mask=at + column < n, other=0.0)
    mean = tl.sum(total, 0) / n
    value = tl.where(inside, value - mean, 0.0)
    squares = value * value
    for at in range(BLOCK, n, BLOCK):
        more = tl.load(x + row + at + column, mask=at + column < n, other=0.0)
        more = tl.where(at + column < n, more - mean, 0.0)
        squares += more * more
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / n + 1e-5)
    factor = tl.load(gamma + column, mask=inside)
    tl.store(y + row + column, value * scale * factor + tl.load(beta + column, mask=inside), mask=inside)
    for at in range(BLOCK, n, BLOCK):
        inside = at + column < n
        value = tl.load(x + row + at + column, mask=inside) - mean
        factor = tl.load(gamma + at + column, mask=inside)
        value = value * scale * factor + tl.load(beta + at + column, mask=inside)
        tl.store(y + row + at + column, value, mask=inside)
