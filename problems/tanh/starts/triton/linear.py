"""---
tune:
  BLOCK: [1024, 2048, 4096]
  num_warps: [4, 8]
launch:
  - entry: tanh
    grid: ceil_div(M * N, BLOCK)
    args: [X, Y, M, N]
---"""
import triton
import triton.language as tl


@triton.jit
def apply(v):
    s = v * v  # a difference of exponentials would lose digits where this is small
    p = (((-0.00605451 * s + 0.02097388) * s - 0.05384749) * s + 0.1333276) * s - 0.33333329
    e = tl.exp(-2.0 * tl.abs(v))
    far = (1.0 - e) / (1.0 + e)
    return tl.where(s < 0.4, v * s * p + v, tl.where(v < 0.0, -far, far))


@triton.jit
def tanh(x, y, m, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < tl.full([], n, tl.int64) * m
    tl.store(y + at, apply(tl.load(x + at, mask=inside)), mask=inside)
