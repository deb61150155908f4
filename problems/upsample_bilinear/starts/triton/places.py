"""---
tune:
  BLOCK: [1024, 512, 256, 2048]
  num_warps: [4, 8, 2]
launch:
  - entry: upsample
    grid: ceil_div(N * C * OH * OW, BLOCK)
    args: [X, Y, N, C, H, W, S, OH, OW]
---"""
import triton
import triton.language as tl


@triton.jit
def upsample(x, y, images, channels, h, w, s, oh, ow, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < tl.full([], images, tl.int64) * channels * oh * ow
    row, column = at // ow % oh, at % ow
    image = x + at // ow // oh * h * w
    # Twice S times the place, in whole numbers: nothing is rounded.
    down, right = tl.maximum(2 * row + 1 - s, 0), tl.maximum(2 * column + 1 - s, 0)
    top, left = down // (2 * s), right // (2 * s)
    bottom, end = tl.minimum(top + 1, h - 1), tl.minimum(left + 1, w - 1)
    v = (down % (2 * s)).to(tl.float32) / (2 * s)
    u = (right % (2 * s)).to(tl.float32) / (2 * s)
    above = tl.load(image + top * w + left, mask=inside) * (1 - u) + tl.load(image + top * w + end, mask=inside) * u
    below = tl.load(image + bottom * w + left, mask=inside) * (1 - u)
    below += tl.load(image + bottom * w + end, mask=inside) * u
    tl.store(y + at, above * (1 - v) + below * v, mask=inside)
