"""---
tune:
  BLOCK: [256, 512, 1024, 128]
  num_warps: [4, 8, 2]
launch:
  - entry: depthwise
    grid: ceil_div(N * C * OH * OW, BLOCK)
    args: [X, F, Y, N, C, H, W, R, S, PAD, STRIDE, OH, OW]
---"""
import triton
import triton.language as tl


@triton.jit
def depthwise(x, f, y, images, channels, h, w, rows, columns, pad, stride, oh, ow, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < tl.full([], images, tl.int64) * channels * oh * ow
    column, row = at % ow, at // ow % oh
    plane = at // ow // oh
    weights = f + plane % channels * rows * columns
    image = x + plane * h * w
    value = tl.full([BLOCK], 0.0, tl.float32)
    for r in range(0, rows):
        i = row * stride - pad + r
        for s in range(0, columns):
            j = column * stride - pad + s
            seen = inside & (i >= 0) & (i < h) & (j >= 0) & (j < w)
            more = tl.load(image + i * w + j, mask=seen, other=0.0)
            value = value + more * tl.load(weights + r * columns + s, mask=inside)
    tl.store(y + at, value, mask=inside)
