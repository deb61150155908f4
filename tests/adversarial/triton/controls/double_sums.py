"""---
launch:
  - entry: mm
    grid: M, ceil_div(N, 64)
    args: [A, B, C, M, N, K]
---"""
import triton
import triton.language as tl


@triton.jit
def mm(a, b, c, m, n, k):
    i, j = tl.program_id(0), tl.program_id(1) * 64 + tl.arange(0, 64)
    total = tl.zeros([64], tl.float64)
    for l in range(0, k):
        total += tl.load(a + i * k + l).to(tl.float64) * tl.load(b + l * n + j, mask=j < n, other=0.0).to(tl.float64)
    tl.store(c + i * n + j, total.to(tl.float32), mask=j < n)
