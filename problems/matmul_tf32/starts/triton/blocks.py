"""---
workspace:
  BT: {shape: [N, K], dtype: float32}
tune:
  BM: [128, 64, 256]
  BN: [128, 64, 256]
  BK: [32, 64, 16]
  GROUP: [8, 4, 16]
  SIDE: [64, 32]
  num_warps: [8, 4]
  num_stages: [4, 3, 2, 5]
  where: (BM * BK + BK * BN) * 4 * num_stages <= shared_bytes_optin && BM * BN <= num_warps * 4096
launch:
  - entry: turn
    grid: ceil_div(K, SIDE), ceil_div(N, SIDE)
    args: [B, BT, N, K]
  - entry: matmul
    grid: ceil_div(M, BM) * ceil_div(N, BN)
    args: [A, BT, C, M, N, K]
---"""
# Tensor cores take factors of 32 bits by K alone, unlike those of 16: from a B that lies by N each number went to shared
# memory by itself, with four bank conflicts in five, and a product took five times as long as the tensor cores need. So
# B is turned first. Blocks of C are walked in groups of rows so that what they share of B stays in the L2. A block over
# the edge reads rows and columns from the beginning again, which nobody stores: no mask stands in the loop.
import triton
import triton.language as tl


@triton.jit
def turn(b, bt, n, k, SIDE: tl.constexpr):
    i = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    j = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    inside = (i[:, None] < k) & (j[None, :] < n)
    tile = tl.load(b + i[:, None].to(tl.int64) * n + j[None, :], mask=inside)
    tl.store(bt + j[:, None].to(tl.int64) * k + i[None, :], tl.trans(tile), mask=tl.trans(inside))


@triton.jit
def matmul(a, bt, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    blocks_m, blocks_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    each = GROUP * blocks_n
    first = tl.program_id(0) // each * GROUP
    rows = min(blocks_m - first, GROUP)
    i = (first + (tl.program_id(0) % each) % rows) * BM + tl.arange(0, BM)
    j = (tl.program_id(0) % each) // rows * BN + tl.arange(0, BN)
    l = tl.arange(0, BK)
    a_at = a + (i % m)[:, None].to(tl.int64) * k + l[None, :]
    b_at = bt + (j % n)[:, None].to(tl.int64) * k + l[None, :]
    total = tl.zeros([BM, BN], tl.float32)
    for _ in range(0, k // BK):
        total = tl.dot(tl.load(a_at), tl.trans(tl.load(b_at)), total, input_precision="tf32")
        a_at += BK
        b_at += BK
    if k % BK != 0:
        left = tl.load(a_at, mask=l[None, :] < k % BK, other=0.0)
        right = tl.load(b_at, mask=l[None, :] < k % BK, other=0.0)
        total = tl.dot(left, tl.trans(right), total, input_precision="tf32")
    tl.store(c + i[:, None].to(tl.int64) * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))
