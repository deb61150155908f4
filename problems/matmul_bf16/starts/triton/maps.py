"""---
tune:
  BM: [128, 64, 256]
  BN: [256, 128, 64]
  BK: [64, 32, 128]
  GROUP: [8, 4, 16]
  num_warps: [8, 4]
  num_stages: [3, 4, 2, 5]
  where: (BM * BK + BK * BN) * 2 * num_stages <= shared_bytes_optin && BM * BN <= num_warps * 4096
tma:
  left: {tensor: A, box: [BM, BK]}
  right: {tensor: B, box: [BK, BN]}
  out: {tensor: C, box: [BM, BN]}
launch:
  - entry: matmul
    grid: ceil_div(M, BM) * ceil_div(N, BN)
    args: [left, right, out, A, B, C, M, N, K]
---"""
# Blocks of C, walked in groups of rows so that what they share of B stays in the L2. The copy engine fetches and stores
# them by tensor maps, which the hardware has for rows of whole 16 bytes. Other rows are loaded by threads: a block over
# the edge reads from the beginning again, which nobody stores.
import triton
import triton.language as tl


@triton.jit
def by_threads(a, b, c, i, j, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j, l = i + tl.arange(0, BM), j + tl.arange(0, BN), tl.arange(0, BK)
    a_at = a + (i % m)[:, None].to(tl.int64) * k + l[None, :]
    b_at = b + l[:, None].to(tl.int64) * n + (j % n)[None, :]
    total = tl.zeros([BM, BN], tl.float32)
    for _ in range(0, k // BK):
        total = tl.dot(tl.load(a_at), tl.load(b_at), total)
        a_at += BK
        b_at += BK * n
    if k % BK != 0:
        left = tl.load(a_at, mask=l[None, :] < k % BK, other=0.0)
        total = tl.dot(left, tl.load(b_at, mask=l[:, None] < k % BK, other=0.0), total)
    inside = (i[:, None] < m) & (j[None, :] < n)
    tl.store(c + i[:, None].to(tl.int64) * n + j[None, :], total.to(tl.bfloat16), mask=inside)


@triton.jit
def matmul(left, right, out, a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    blocks_m, blocks_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    each = GROUP * blocks_n
    first = tl.program_id(0) // each * GROUP
    rows = min(blocks_m - first, GROUP)
    i = (first + (tl.program_id(0) % each) % rows) * BM
    j = (tl.program_id(0) % each) // rows * BN
    if (n % 8 == 0) & (k % 8 == 0):
        total = tl.zeros([BM, BN], tl.float32)
        for at in range(0, k, BK):
            total = tl.dot(left.load([i, at]), right.load([at, j]), total)
        out.store([i, j], total.to(tl.bfloat16))
    else:
        by_threads(a, b, c, i, j, m, n, k, BM, BN, BK)
