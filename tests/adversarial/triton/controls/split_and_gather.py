"""---
workspace:
  W: {shape: [2, M, N], dtype: float32}
launch:
  - entry: mm
    grid: ceil_div(M, 32) * ceil_div(N, 32), 2
    args: [A, B, W, M, N, K]
  - entry: gather
    grid: ceil_div(M * N, 256)
    args: [W, C, M, N]
---"""
import triton
import triton.language as tl


@triton.jit
def mm(a, b, w, m, n, k):
    columns = tl.cdiv(n, 32)
    i = (tl.program_id(0) // columns) * 32 + tl.arange(0, 32)
    j = (tl.program_id(0) % columns) * 32 + tl.arange(0, 32)
    l = tl.arange(0, 32)
    total = tl.zeros([32, 32], tl.float32)
    part = tl.program_id(1)
    for at in range(0, k, 32):
        left = tl.load(a + i[:, None] * k + (at + l)[None, :], mask=(i[:, None] < m) & (at + l[None, :] < k) & ((at // 32) % 2 == part), other=0.0)
        right = tl.load(b + (at + l)[:, None] * n + j[None, :], mask=(at + l[:, None] < k) & (j[None, :] < n), other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
    tl.store(w + part * m * n + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def gather(w, c, m, n):
    at = tl.program_id(0) * 256 + tl.arange(0, 256)
    inside = at < m * n
    tl.store(c + at, tl.load(w + at, mask=inside) + tl.load(w + m * n + at, mask=inside), mask=inside)
