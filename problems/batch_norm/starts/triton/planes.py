"""---
tune:
  BLOCK: [1024, 512, 2048, 4096]
  num_warps: [4, 8, 2]
launch:
  - entry: batch_norm
    grid: ceil_div(H * W, BLOCK), N * C
    args: [X, mean, variance, gamma, beta, Y, C, H, W]
---"""
import triton
import triton.language as tl


@triton.jit
def batch_norm(x, mean, variance, gamma, beta, y, channels, h, w, BLOCK: tl.constexpr):
    plane, count = tl.program_id(1), h * w
    c = plane % channels
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    factor = tl.load(gamma + c) / tl.sqrt(tl.load(variance + c) + 1e-5)
    first = plane.to(tl.int64) * count
    value = (tl.load(x + first + at, mask=inside) - tl.load(mean + c)) * factor + tl.load(beta + c)
    tl.store(y + first + at, value, mask=inside)
