#!/usr/bin/env python3
"""What an attention whose weights are rounded to 16 bits needs of its tolerance on heavy-tailed inputs.

usage: bench/soak/weights16.py [HEADS [DRAWINGS]]      167 heads of 1040 x 64, three drawings

Inputs are drawn as twagent draws them for attention_fp16 (Student t, 2 degrees, within the ranges of its spec). A line a
drawing: the largest error of an element over its scale (docs/inputs-and-tolerance.md), with weights in float16 and in
bfloat16, beside eight roundings of the result and an eighth of what inputs of 7 bits make."""

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


def drawing(seed, heads):
    rng = np.random.default_rng(seed)
    worst = {"float16": 0.0, "bfloat16": 0.0, "7 bits": 0.0}
    for _ in range(heads):
        q, k, v = (heavy(rng, limit).astype(np.float64) for limit in (4, 4, 1000))
        exact = attention(q, k, v)
        scale = np.maximum(np.abs(exact), np.sqrt((exact * exact).mean(axis=1, keepdims=True)))
        got = {
            "float16": attention(q, k, v, lambda w: w.astype(np.float16)).astype(np.float16),
            "bfloat16": attention(q, k, v, lambda w: bits(w, 7)).astype(np.float16),
            "7 bits": attention(bits(q, 7), bits(k, 7), bits(v, 7)),
        }
        for name, value in got.items():
            worst[name] = max(worst[name], float((np.abs(value - exact) / scale).max()))
    return worst


if __name__ == "__main__":
    HEADS, DRAWINGS = (list(map(int, sys.argv[1:])) + [167, 3][len(sys.argv) - 1:])[:2]
    for s in range(DRAWINGS):
        w = drawing(s, HEADS)
        print(f"{s}: float16 {w['float16']:.5f}, bfloat16 {w['bfloat16']:.5f}; 8 roundings {8 * 2.0**-10:.5f}, l / 8 {w['7 bits'] / 8:.5f}", flush=True)
