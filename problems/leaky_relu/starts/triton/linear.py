"""---
tune:
  BLOCK: [1024, 2048, 4096]
  num_warps: [4, 8]
launch:
  - entry: leaky_relu
    grid: ceil_div(M * N, BLOCK)
    args: [X, Y, M, N]
---"""
import triton
import triton.language as tl


@triton.jit
def leaky_relu(x, y, m, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < tl.full([], n, tl.int64) * m
    v = tl.load(x + at, mask=inside)
    tl.store(y + at, tl.where(v > 0.0, v, v * 0.01), mask=inside)
