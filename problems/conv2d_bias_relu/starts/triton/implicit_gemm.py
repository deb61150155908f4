"""---
tune:
  PIXELS: [128, 64, 256]
  FILTERS: [64, 32, 128]
  CHANNELS: [32, 16]
  num_warps: [4, 8]
  num_stages: [3, 2, 4]
  where: (PIXELS + FILTERS) * CHANNELS * 4 * num_stages <= shared_bytes_optin
launch:
  - entry: conv2d_bias_relu
    grid: ceil_div(N * OH * OW, PIXELS) * ceil_div(K, FILTERS)
    args: [X, F, bias, Y, N, C, H, W, K, R, S, PAD, STRIDE, OH, OW]
---"""
# A product of filters with patches that are never written down: one tap of the filter after the other, some channels at
# a time. Products as three of tf32: one alone is less exact than float32.
import triton
import triton.language as tl


@triton.jit
def conv2d_bias_relu(x, f, bias, y, n, c, h, w, k, r, s, pad, stride, oh, ow,
                     PIXELS: tl.constexpr, FILTERS: tl.constexpr, CHANNELS: tl.constexpr):  # fmt: skip
    blocks = tl.cdiv(k, FILTERS)
    pixel = (tl.program_id(0) // blocks) * PIXELS + tl.arange(0, PIXELS)
    filters = (tl.program_id(0) % blocks) * FILTERS + tl.arange(0, FILTERS)
    channel = tl.arange(0, CHANNELS)
    image, place = pixel // (oh * ow), pixel % (oh * ow)
    top, left = place // ow * stride - pad, place % ow * stride - pad
    is_pixel, is_filter = pixel < n * oh * ow, filters < k
    parts = tl.cdiv(c, CHANNELS)
    total = tl.zeros([PIXELS, FILTERS], tl.float32)
    for step in range(0, r * s * parts):
        tap = step // parts
        here = step % parts * CHANNELS + channel
        i, j = top + tap // s, left + tap % s
        inside = is_pixel & (i >= 0) & (i < h) & (j >= 0) & (j < w)
        x_at = (image[:, None].to(tl.int64) * c + here[None, :]) * h * w + (i * w + j)[:, None]
        f_at = (filters[None, :].to(tl.int64) * c + here[:, None]) * r * s + tap
        patch = tl.load(x + x_at, mask=inside[:, None] & (here[None, :] < c), other=0.0)
        weight = tl.load(f + f_at, mask=is_filter[None, :] & (here[:, None] < c), other=0.0)
        total = tl.dot(patch, weight, total, input_precision="tf32x3")
    total = total + tl.load(bias + filters, mask=is_filter, other=0.0)[None, :]
    total = tl.maximum(total, 0.0, propagate_nan=tl.PropagateNan.ALL)
    y_at = (image[:, None].to(tl.int64) * k + filters[None, :]) * oh * ow + place[:, None]
    tl.store(y + y_at, total, mask=is_pixel[:, None] & is_filter[None, :])
