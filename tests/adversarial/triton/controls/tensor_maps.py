"""---
tune:
  BM: [64, 32]
  BK: [32]
  num_warps: [4]
tma:
  left: {tensor: A, box: [BM, BK]}
  right: {tensor: B, box: [BK, 64]}
launch:
  - entry: mm
    grid: ceil_div(M, BM), ceil_div(N, 64)
    args: [left, A, right, B, C, M, N, K]
    constexpr: {BN: 64}
---"""
import triton
import triton.language as tl


@triton.jit
def mm(left, a, right, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros([BM, BN], tl.float32)
    at_i, at_j, l = i + tl.arange(0, BM), j + tl.arange(0, BN), tl.arange(0, BK)
    if (n % 4 == 0) & (k % 4 == 0):
        for at in range(0, k, BK):
            total = tl.dot(left.load([i, at]), right.load([at, j]), total, input_precision="ieee")
    else:
        for at in range(0, k, BK):
            x = tl.load(a + at_i[:, None] * k + (at + l)[None, :], mask=(at_i[:, None] < m) & (at + l[None, :] < k), other=0.0)
            y = tl.load(b + (at + l)[:, None] * n + at_j[None, :], mask=(at + l[:, None] < k) & (at_j[None, :] < n), other=0.0)
            total = tl.dot(x, y, total, input_precision="ieee")
    tl.store(c + at_i[:, None] * n + at_j[None, :], total, mask=(at_i[:, None] < m) & (at_j[None, :] < n))
