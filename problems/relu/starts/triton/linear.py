"""---
tune:
  BLOCK: [1024, 2048, 4096]
  num_warps: [4, 8]
launch:
  - entry: relu
    grid: ceil_div(M * N, BLOCK)
    args: [X, Y, M, N]
---"""
import triton
import triton.language as tl


@triton.jit
def relu(x, y, m, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < tl.full([], n, tl.int64) * m
    tl.store(y + at, tl.maximum(tl.load(x + at, mask=inside), 0.0, propagate_nan=tl.PropagateNan.ALL), mask=inside)
