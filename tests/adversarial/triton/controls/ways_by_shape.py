"""---
launch:
  - entry: mm
    grid: ceil_div(M, 32) * ceil_div(N, 32)
    args: [A, B, C, M, N, K]
---"""
import triton
import triton.language as tl


@triton.jit
def mm(a, b, c, m, n, k):
    columns = tl.cdiv(n, 32)
    i = (tl.program_id(0) // columns) * 32 + tl.arange(0, 32)
    j = (tl.program_id(0) % columns) * 32 + tl.arange(0, 32)
    l = tl.arange(0, 32)
    total = tl.zeros([32, 32], tl.float32)
    for at in range(0, k, 32):
        left = tl.load(a + i[:, None] * k + (at + l)[None, :], mask=(i[:, None] < m) & (at + l[None, :] < k), other=0.0)
        right = tl.load(b + (at + l)[:, None] * n + j[None, :], mask=(at + l[:, None] < k) & (j[None, :] < n), other=0.0)
        if m == 1:
            total += tl.sum(left[:, :, None] * right[None, :, :], axis=1)
        else:
            total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(c + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))
