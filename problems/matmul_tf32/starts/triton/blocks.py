"""---
tune:
  BM: [128, 64, 256]
  BN: [128, 64, 256]
  BK: [32, 16, 64]
  GROUP: [8, 4, 16]
  num_warps: [8, 4]
  num_stages: [3, 4, 2, 5]
  where: (BM * BK + BK * BN) * 4 * num_stages <= shared_bytes_optin && BM * BN <= num_warps * 4096
launch:
  - entry: matmul
    grid: ceil_div(M, BM) * ceil_div(N, BN)
    args: [A, B, C, M, N, K]
---"""
# Blocks of C, walked in groups of rows so that what they share of B stays in the L2. A block over the edge reads rows
# and columns from the beginning again, which nobody stores: no mask stands in the loop.
import triton
import triton.language as tl


@triton.jit
def matmul(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    blocks_m, blocks_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    each = GROUP * blocks_n
    first = tl.program_id(0) // each * GROUP
    rows = min(blocks_m - first, GROUP)
    i = (first + (tl.program_id(0) % each) % rows) * BM + tl.arange(0, BM)
    j = (tl.program_id(0) % each) // rows * BN + tl.arange(0, BN)
    l = tl.arange(0, BK)
    a_at = a + (i % m)[:, None].to(tl.int64) * k + l[None, :]
    b_at = b + l[:, None].to(tl.int64) * n + (j % n)[None, :]
    total = tl.zeros([BM, BN], tl.float32)
    for _ in range(0, k // BK):
        total = tl.dot(tl.load(a_at), tl.load(b_at), total, input_precision="tf32")
        a_at += BK
        b_at += BK * n
    if k % BK != 0:
        left = tl.load(a_at, mask=l[None, :] < k % BK, other=0.0)
        total = tl.dot(left, tl.load(b_at, mask=l[:, None] < k % BK, other=0.0), total, input_precision="tf32")
    tl.store(c + i[:, None].to(tl.int64) * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))
