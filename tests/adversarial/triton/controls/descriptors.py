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
    i, j = (tl.program_id(0) // columns) * 32, (tl.program_id(0) % columns) * 32
    total = tl.zeros([32, 32], tl.float32)
    if (n % 4 == 0) & (k % 4 == 0):
        left = tl.make_tensor_descriptor(a, shape=[m, k], strides=[k, 1], block_shape=[32, 32])
        right = tl.make_tensor_descriptor(b, shape=[k, n], strides=[n, 1], block_shape=[32, 32])
        for at in range(0, k, 32):
            total = tl.dot(left.load([i, at]), right.load([at, j]), total, input_precision="ieee")
    else:
        l = tl.arange(0, 32)
        for at in range(0, k, 32):
            x = tl.load(a + (i + l)[:, None] * k + (at + l)[None, :], mask=(i + l[:, None] < m) & (at + l[None, :] < k), other=0.0)
            y = tl.load(b + (at + l)[:, None] * n + (j + l)[None, :], mask=(at + l[:, None] < k) & (j + l[None, :] < n), other=0.0)
            total = tl.dot(x, y, total, input_precision="ieee")
    at_i, at_j = i + tl.arange(0, 32), j + tl.arange(0, 32)
    tl.store(c + at_i[:, None] * n + at_j[None, :], total, mask=(at_i[:, None] < m) & (at_j[None, :] < n))
