"""---
tune:
  BM: [128, 64]
  BN: [64, 128, 32]
  BD: [64, 128, 32]
  num_warps: [4, 8]
  num_stages: [3, 2, 4]
  where: BD * (BM + 2 * BN * num_stages) * 2 <= shared_bytes_optin
launch:
  - entry: attention
    grid: ceil_div(L, BM), H * ceil_div(D, BD)
    args: [Q, K, V, O, L, D]
---"""
# Blocks of queries over the keys up to theirs, with the running maximum and sum of each row: scores never reach memory.
# Where D is BD the queries stay in registers and blocks of keys before all of them need no mask. Any other D is cut into
# parts of BD: a program sums scores over all of them and has one part of the output.
import triton
import triton.language as tl


@triton.jit
def blocks(q, k, v, i, part, l, d, begin, end, most, total, out, scale, BN: tl.constexpr, BD: tl.constexpr,
           WHOLE: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    """Key blocks from begin to end. WHOLE: q is the block itself, else where its rows begin."""
    column = tl.arange(0, BD)
    for at in range(begin, end, BN):
        j = at + tl.arange(0, BN)
        from_k, from_v = k + j[:, None] * d + column[None, :], v + j[:, None] * d + part + column[None, :]
        if WHOLE:
            keys = tl.load(from_k, mask=j[:, None] < l, other=0.0) if MASKED else tl.load(from_k)
            scores = tl.dot(q, tl.trans(keys))
        else:
            scores = tl.zeros([i.shape[0], BN], tl.float32)
            for m in range(0, d, BD):
                inside = m + column[None, :] < d
                queries = tl.load(q + m + i[:, None] * d + column[None, :], mask=(i[:, None] < l) & inside, other=0.0)
                keys = tl.load(from_k + m, mask=(j[:, None] < l) & inside, other=0.0)
                scores = tl.dot(queries, tl.trans(keys), scores)
        scores *= scale
        if MASKED:
            scores = tl.where((j[None, :] < l) & (j[None, :] <= i[:, None]), scores, float("-inf"))
        higher = tl.maximum(most, tl.max(scores, 1))
        weights = tl.exp2(scores - higher[:, None])
        kept = tl.exp2(most - higher)
        total = total * kept + tl.sum(weights, 1)
        inside = (j[:, None] < l) & (part + column[None, :] < d)
        values = tl.load(from_v, mask=inside, other=0.0) if MASKED else tl.load(from_v)
        out = tl.dot(weights.to(tl.float16), values, out * kept[:, None])
        most = higher
    return most, total, out


@triton.jit
def attention(q, k, v, o, l, d, BM: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    parts = tl.cdiv(d, BD)
    head = (tl.program_id(1) // parts).to(tl.int64) * l * d
    part = (tl.program_id(1) % parts) * BD
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    column = tl.arange(0, BD)
    most = tl.full([BM], float("-inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    out = tl.zeros([BM, BD], tl.float32)
    scale = 1.4426950408889634 / tl.sqrt(tl.full([], d, tl.int32).to(tl.float32))
    free = tl.program_id(0) * BM // BN * BN  # no key up to here is behind a query of these
    last = min(l, tl.program_id(0) * BM + BM)
    if d == BD:
        queries = tl.load(q + head + i[:, None] * d + column[None, :], mask=i[:, None] < l, other=0.0)
        most, total, out = blocks(queries, k + head, v + head, i, 0, l, d, 0, free, most, total, out, scale,
                                  BN, BD, True, False)  # fmt: skip
        most, total, out = blocks(queries, k + head, v + head, i, 0, l, d, free, last, most, total, out, scale,
                                  BN, BD, True, True)  # fmt: skip
    else:
        most, total, out = blocks(q + head, k + head, v + head, i, part, l, d, 0, last, most, total, out, scale,
                                  BN, BD, False, True)  # fmt: skip
    o_at = o + head + i[:, None] * d + part + column[None, :]
    tl.store(o_at, (out / total[:, None]).to(tl.float16), mask=(i[:, None] < l) & (part + column[None, :] < d))
