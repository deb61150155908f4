"""---
launch:
  - entry: rows
    grid: M
    args: [A, B, S, M, N, K]
---"""
import triton
import triton.language as tl


@triton.jit
def rows(a, b, s, m, n, k):
    i, l = tl.program_id(0), tl.arange(0, 64)
    total = tl.zeros([64], tl.float32)
    for at in range(0, k):
        each = tl.zeros([64], tl.float32)
        for j in range(0, n, 64):
            each += tl.load(b + at * n + j + l, mask=j + l < n, other=0.0)
        total += tl.load(a + i * k + at) * each
    tl.store(s + i, tl.sum(total, 0))
