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
    row, column = at // ow, at % ow
    plane = row // oh
    source = (plane * h + row % oh // s) * w + column // s
    tl.store(y + at, tl.load(x + source, mask=inside), mask=inside)
