"""---
launch:
  - entry: mm
    grid: ceil_div(M, 32) * ceil_div(N, 32)
    args: [A, B, C, M, N, K]
---"""
import triton
import triton.language as tl

# Triton 3.9 has them no more: there its blocks are gathered by hand.
KNOWN = tl.constexpr(tuple(map(int, triton.__version__.split(".")[:2])) < (3, 9))


@triton.jit
def gather(x, m, n, i, j):
    at_i, at_j = i + tl.arange(0, 32), j + tl.arange(0, 32)
    return tl.load(x + at_i[:, None] * n + at_j[None, :], mask=(at_i[:, None] < m) & (at_j[None, :] < n), other=0.0)


@triton.jit
def mm(a, b, c, m, n, k):
    columns = tl.cdiv(n, 32)
    i, j = (tl.program_id(0) // columns) * 32, (tl.program_id(0) % columns) * 32
    total = tl.zeros([32, 32], tl.float32)
    if KNOWN:
        left = tl.make_block_ptr(a, (m, k), (k, 1), (i, 0), (32, 32), (1, 0))
        right = tl.make_block_ptr(b, (k, n), (n, 1), (0, j), (32, 32), (1, 0))
        for _ in range(0, k, 32):
            x = tl.load(left, boundary_check=(0, 1), padding_option="zero")
            y = tl.load(right, boundary_check=(0, 1), padding_option="zero")
            total = tl.dot(x, y, total, input_precision="ieee")
            left, right = tl.advance(left, (0, 32)), tl.advance(right, (32, 0))
        tl.store(tl.make_block_ptr(c, (m, n), (n, 1), (i, j), (32, 32), (1, 0)), total, boundary_check=(0, 1))
    else:
        for at in range(0, k, 32):
            total = tl.dot(gather(a, m, k, i, at), gather(b, k, n, at, j), total, input_precision="ieee")
        at_i, at_j = i + tl.arange(0, 32), j + tl.arange(0, 32)
        tl.store(c + at_i[:, None] * n + at_j[None, :], total, mask=(at_i[:, None] < m) & (at_j[None, :] < n))
