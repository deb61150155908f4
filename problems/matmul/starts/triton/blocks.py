"""---
tune:
  BM: [64, 128, 32]
  BN: [64, 128, 32]
  BK: [32, 16, 64]
  GROUP: [8, 1, 4]
  num_warps: [4, 8]
  num_stages: [3, 2, 4]
  where: (BM * BK + BK * BN) * 4 * num_stages <= shared_bytes_optin
launch:
  - entry: matmul
    grid: ceil_div(M, BM) * ceil_div(N, BN)
    args: [A, B, C, M, N, K]
---"""
# Blocks of C, walked in groups of rows so that what they share of B stays in the L2. Products as three of tf32: one
# alone is less exact than float32.
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    blocks_m, blocks_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    each = GROUP * blocks_n
    group = tl.program_id(0) // each
    first = group * GROUP
    rows = min(blocks_m - first, GROUP)
    block_m = first + (tl.program_id(0) % each) % rows
    block_n = (tl.program_id(0) % each) // rows
    i = block_m * BM + tl.arange(0, BM)
    j = block_n * BN + tl.arange(0, BN)
    l = tl.arange(0, BK)
    a_at = a + i[:, None].to(tl.int64) * k + l[None, :]
    b_at = b + l[:, None].to(tl.int64) * n + j[None, :]
    total = tl.zeros([BM, BN], tl.float32)
    for at in range(0, k, BK):
        left = tl.load(a_at, mask=(i[:, None] < m) & (l[None, :] < k - at), other=0.0)
        right = tl.load(b_at, mask=(l[:, None] < k - at) & (j[None, :] < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="tf32x3")
        a_at += BK
        b_at += BK * n
    tl.store(c + i[:, None].to(tl.int64) * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))
