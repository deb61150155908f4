"""---
launch:
  - entry: mm
    grid: ceil_div(M, 128) * ceil_div(N, 128)
    args: [A, B, C, M, N, K]
    constexpr: {num_stages: 4, num_warps: 8}
---"""
import triton
import triton.language as tl


@triton.jit
def mm(a, b, c, m, n, k):
    columns = tl.cdiv(n, 128)
    i = (tl.program_id(0) // columns) * 128 + tl.arange(0, 128)
    j = (tl.program_id(0) % columns) * 128 + tl.arange(0, 128)
    l = tl.arange(0, 128)
    total = tl.zeros([128, 128], tl.float32)
    for at in range(0, k, 128):
        left = tl.load(a + i[:, None] * k + (at + l)[None, :], mask=(i[:, None] < m) & (at + l[None, :] < k), other=0.0)
        right = tl.load(b + (at + l)[:, None] * n + j[None, :], mask=(at + l[:, None] < k) & (j[None, :] < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="tf32x3")
    tl.store(c + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))
