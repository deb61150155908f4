"""---
tune:
  BM: [64, 128, 32]
  BN: [64, 128, 32]
  BK: [32, 16, 64]
  num_warps: [4, 8]
  num_stages: [3, 2, 4]
  where: (BM * BK + BK * BN) * 4 * num_stages <= shared_bytes_optin
launch:
  - entry: matmul_batched
    grid: ceil_div(M, BM) * ceil_div(N, BN), min(BATCH, 65535)
    args: [A, B, C, BATCH, M, N, K]
---"""
# Blocks of C, those of one product side by side. Products as three of tf32: one alone is less exact than float32.
import triton
import triton.language as tl


@triton.jit
def matmul_batched(a, b, c, batch, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    blocks_n = tl.cdiv(n, BN)
    i = (tl.program_id(0) // blocks_n) * BM + tl.arange(0, BM)
    j = (tl.program_id(0) % blocks_n) * BN + tl.arange(0, BN)
    l = tl.arange(0, BK)
    for each in range(tl.program_id(1), batch, tl.num_programs(1)):
        product = tl.full([], each, tl.int64) * m
        a_at = a + product * k + i[:, None].to(tl.int64) * k + l[None, :]
        b_at = b + tl.full([], each, tl.int64) * k * n + l[:, None].to(tl.int64) * n + j[None, :]
        total = tl.zeros([BM, BN], tl.float32)
        for at in range(0, k, BK):
            left = tl.load(a_at, mask=(i[:, None] < m) & (l[None, :] < k - at), other=0.0)
            right = tl.load(b_at, mask=(l[:, None] < k - at) & (j[None, :] < n), other=0.0)
            total = tl.dot(left, right, total, input_precision="tf32x3")
            a_at += BK
            b_at += BK * n
        c_at = c + product * n + i[:, None].to(tl.int64) * n + j[None, :]
        tl.store(c_at, total, mask=(i[:, None] < m) & (j[None, :] < n))
