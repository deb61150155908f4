"""---
launch:
  - entry: mm
    grid: sm_count
    args: [A, B, C, M, N, K]
    constexpr: {PROGRAMS: sm_count}
---"""
import triton
import triton.language as tl


@triton.jit
def mm(a, b, c, m, n, k, PROGRAMS: tl.constexpr):
    columns, l = tl.cdiv(n, 32), tl.arange(0, 32)
    for block in range(tl.program_id(0), tl.cdiv(m, 32) * columns, PROGRAMS):
        i, j = (block // columns) * 32 + l, (block % columns) * 32 + l
        total = tl.zeros([32, 32], tl.float32)
        for at in range(0, k, 32):
            x = tl.load(a + i[:, None] * k + (at + l)[None, :], mask=(i[:, None] < m) & (at + l[None, :] < k), other=0.0)
            y = tl.load(b + (at + l)[:, None] * n + j[None, :], mask=(at + l[:, None] < k) & (j[None, :] < n), other=0.0)
            total = tl.dot(x, y, total, input_precision="ieee")
        tl.store(c + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))
