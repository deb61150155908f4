"""---
tune:
  BLOCK: [4096, 2048, 8192, 16384, 1024]
  num_warps: [8, 4, 16]
launch:
  - entry: group_norm
    grid: N * G
    args: [X, gamma, beta, Y, H, W, G, CG]
---"""
# A program a group, whose numbers lie one behind the other. What one block holds stays in registers; the rest is read
# again from the caches: for the squares of differences from the mean, and for what is written.
import triton
import triton.language as tl


@triton.jit
def group_norm(x, gamma, beta, y, h, w, groups, width, BLOCK: tl.constexpr):
    plane = h * w
    n = width * plane
    first = tl.program_id(0).to(tl.int64) * n
    channel = (tl.program_id(0) % groups) * width
    at = tl.arange(0, BLOCK)
    value = tl.load(x + first + at, mask=at < n, other=0.0)
    total = value
    for begin in range(BLOCK, n, BLOCK):
        total += tl.load(x + first + begin + at, mask=begin + at < n, other=0.0)
    mean = tl.sum(total, 0) / n
    value = tl.where(at < n, value - mean, 0.0)
    squares = value * value
    for begin in range(BLOCK, n, BLOCK):
        more = tl.load(x + first + begin + at, mask=begin + at < n, other=0.0)
        more = tl.where(begin + at < n, more - mean, 0.0)
        squares += more * more
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / n + 1e-5)
    for begin in range(0, n, BLOCK):
        inside = begin + at < n
        c = channel + (begin + at) // plane
        value = (tl.load(x + first + begin + at, mask=inside) - mean) * scale
        value = value * tl.load(gamma + c, mask=inside) + tl.load(beta + c, mask=inside)
        tl.store(y + first + begin + at, value, mask=inside)
