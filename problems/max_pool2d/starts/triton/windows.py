"""---
tune:
  BLOCK: [256, 512, 1024, 128]
  num_warps: [4, 8, 2]
launch:
  - entry: max_pool
    grid: ceil_div(N * C * OH * OW, BLOCK)
    args: [X, Y, N, C, H, W, K, PAD, STRIDE, OH, OW]
---"""
import triton
import triton.language as tl


@triton.jit
def max_pool(x, y, images, channels, h, w, k, pad, stride, oh, ow, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < tl.full([], images, tl.int64) * channels * oh * ow
    column, row = at % ow, at // ow % oh
    plane = at // ow // oh * h * w
    value = tl.full([BLOCK], float("-inf"), tl.float32)
    for r in range(0, k):
        i = row * stride - pad + r
        for s in range(0, k):
            j = column * stride - pad + s
            seen = inside & (i >= 0) & (i < h) & (j >= 0) & (j < w)
            more = tl.load(x + plane + i * w + j, mask=seen, other=float("-inf"))
            value = tl.maximum(value, more, propagate_nan=tl.PropagateNan.ALL)
    tl.store(y + at, value, mask=inside)
