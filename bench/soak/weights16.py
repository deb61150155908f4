#!/usr/bin/env python3
"""What an attention whose weights are rounded to 16 bits needs of its tolerance on heavy-tailed inputs.

usage: bench/soak/weights16.py [HEADS [DRAWINGS]]      167 heads of 1040 x 64, three drawings

Inputs are drawn as twagent draws them for attention_fp16 (Student t, 2 degrees; normal; sparse; within the ranges of
its spec). Three lines a drawing: the largest error of an element over its scale (docs/inputs-and-tolerance.md), with weights
in float16, in bfloat16, and these with values in bfloat16, as a matrix unit needs them, beside what is allowed: eight
roundings of the result, or an eighth of what inputs of 7 bits make where that is more and tails are heavy. Then the
same of the relative L2, beside half of what inputs of 7 bits make."""

import math
import sys

import numpy as np

LENGTH, DEPTH = 1040, 64


def heavy(rng, limit):
    a = rng.uniform(-1, 1, (LENGTH, DEPTH)).astype(np.float32)
    return np.clip(a * np.float32(math.sqrt(2)) / np.sqrt(np.float32(1.0000001) - a * a), -limit, limit).astype(np.float16)


def bits(x, count):
    mantissa, exponent = np.frexp(x.astype(np.float64))
    return np.ldexp(np.round(mantissa * 2.0 ** (count + 1)) / 2.0 ** (count + 1), exponent)


def attention(q, k, v, rounded=None):
    scores = q @ k.T / math.sqrt(DEPTH)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (rounded(weights) if rounded else weights) @ v / weights.sum(axis=1, keepdims=True)


def normal(rng, limit):
    return np.clip(rng.standard_normal((LENGTH, DEPTH)), -limit, limit).astype(np.float16)


def sparse(rng, limit):
    return normal(rng, limit) * (rng.random((LENGTH, DEPTH)) < 0.1).astype(np.float16)


def drawing(seed, heads, draw):
    rng = np.random.default_rng(seed)
    names = ("float16", "bfloat16", "both", "7 bits")
    worst, squares, size = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0), 0.0
    for _ in range(heads):
        q, k, v = (draw(rng, limit).astype(np.float64) for limit in (4, 4, 1000))
        exact = attention(q, k, v)
        scale = np.maximum(np.abs(exact), np.sqrt((exact * exact).mean(axis=1, keepdims=True)))
        size += (exact * exact).sum()
        got = {
            "float16": attention(q, k, v, lambda w: w.astype(np.float16)).astype(np.float16),
            "bfloat16": attention(q, k, v, lambda w: bits(w, 7)).astype(np.float16),
            "both": attention(q, k, bits(v, 7), lambda w: bits(w, 7)).astype(np.float16),
            "7 bits": attention(bits(q, 7), bits(k, 7), bits(v, 7)),
        }
        for name, value in got.items():
            worst[name] = max(worst[name], float((np.abs(value - exact) / scale).max()))
            squares[name] += float(((value - exact) ** 2).sum())
    return worst, {name: math.sqrt(square / size) for name, square in squares.items()}


if __name__ == "__main__":
    HEADS, DRAWINGS = (list(map(int, sys.argv[1:])) + [167, 3][len(sys.argv) - 1:])[:2]
    for s in range(DRAWINGS):
        for kind in (heavy, normal, sparse):
            w, norm = drawing(s, HEADS, kind)
            allowed = max(8 * 2.0**-10, w["7 bits"] / 8 if kind is heavy else 0.0)
            of = [f"{name} {w[name] / allowed:.2f} and {norm[name] / norm['7 bits'] * 2:.2f}" for name in ("float16", "bfloat16", "both")]
            print(f"{s} {kind.__name__:6} element of what is allowed, norm of half of 7 bits': {', '.join(of)}", flush=True)
