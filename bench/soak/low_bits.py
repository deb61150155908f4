#!/usr/bin/env python3
"""What products say of their inputs' lowest bits: honest ways of summing, and factors that lose some.

usage: bench/soak/low_bits.py [SECONDS [SEED]]      a minute

The rule of src/eval/measure/low_bits.c, emulated: shapes and inputs are drawn, a way is drawn, and of each factor the
share of its lowest bits that reached the output is measured at the most bits where its standard error is at most 0.1.
A line a way: how often it was asked, could not be told, was refused (by one set; a verdict takes two), and the largest
distance of a share from 1."""

import sys
import time

import numpy as np

ASKED, LEAST, ERROR_MOST, APART = 19, 12, 0.1, 0.4
f32, f64 = np.float32, np.float64


def keep(x, bits, add=lambda step, word: (step >> 1) - 1 + (word // step & 1)):
    """To nearest even; add: what goes to the word before the rest is cut off."""
    word, step = x.view(np.uint32).astype(np.uint64), 1 << (23 - bits)
    return ((word + add(step, word)) // step * step).astype(np.uint32).view(f32)


def cut(x, bits):
    return keep(x, bits, lambda step, word: 0)


def at_random(x, bits):
    return keep(x, bits, lambda step, word: np.random.default_rng(int(word.sum()) % 2**32).integers(0, step, word.shape, np.uint64))


def middle(x, bits):
    word, low = x.view(np.uint32), np.uint32((1 << (23 - bits)) - 1)
    return np.where(word & low, (word & ~low) | (low // 2 + 1), word).astype(np.uint32).view(f32)


def running(a, b, toward_zero=False):
    c = np.zeros((len(a), b.shape[1]), f32)
    for k in range(a.shape[1]):
        exact = c + a[:, k:k + 1].astype(f64) * b[k]
        c = exact.astype(f32)
        if toward_zero:
            c = np.where(np.abs(c) > np.abs(exact), np.nextafter(c, f32(0)), c)
    return c


def blocked(a, b):
    return sum((running(a[:, k:k + 64], b[k:k + 64]) for k in range(0, a.shape[1], 64)), f32(0))


def halves(a, b, to=lambda x: keep(x, 10), toward_zero=False):
    ah, bh = to(a), to(b)
    return running(ah, to(b - bh), toward_zero) + running(to(a - ah), bh, toward_zero) + running(ah, bh, toward_zero)


def float16s(x):
    return x.astype(np.float16).astype(f32)


HONEST = {
    "running sum, fused": running, "blocked": blocked, "BLAS": lambda a, b: a @ b,
    "sums cut off": lambda a, b: running(a, b, True), "tf32 x 3": halves,
    "tf32 x 3, cut off": lambda a, b: halves(a, b, lambda x: cut(x, 10)),
    "tf32 x 3, sums cut off": lambda a, b: halves(a, b, toward_zero=True),
    "float16 x 3": lambda a, b: halves(a, b, lambda x: np.where(np.abs(x) < 2.0**-8, float16s(x * 2048) / 2048, float16s(x)).astype(f32)),
    "21 bits": lambda a, b: running(keep(a, 21), keep(b, 21)), "21 bits, cut off": lambda a, b: running(cut(a, 21), cut(b, 21)),
}
LOST = {f"{bits} bits": lambda a, b, bits=bits: running(keep(a, bits), keep(b, bits)) for bits in (16, 17, 18, 19)}
LOST |= {f"{bits} bits, cut off": lambda a, b, bits=bits: running(cut(a, bits), cut(b, bits)) for bits in (16, 18, 19)}
LOST["bfloat16 x 3"] = lambda a, b: halves(a, b, lambda x: keep(x, 7))
UNSEEN = {"18 bits, at random": lambda a, b: running(at_random(a, 18), at_random(b, 18))}


def share(got, exact, changed):
    scale = np.maximum(np.abs(exact), np.sqrt((exact**2).mean(1, keepdims=True)))
    x, d, e = exact / scale, (exact - changed) / scale, (got - exact) / scale
    dd, xx, dx, de, xe = (d * d).sum(), (x * x).sum(), (d * x).sum(), (d * e).sum(), (x * e).sum()
    if dd * dd < 256 * (d**4).sum():
        return 1.0, np.inf
    slope, own = np.array([de * xx - xe * dx, xe * dd - de * dx]) / (dd * xx - dx * dx)
    d_alone = d - x * dx / xx
    terms = (e - slope * d - own * x) * d_alone
    variance = max((terms**2).sum(), (terms.sum(0)**2).sum(), (terms.sum(1)**2).sum())
    return 1 + slope, np.sqrt(variance) / (d_alone**2).sum()


def told(a, b, got, first):
    """The share and its error; None: it cannot be told."""
    exact, bits = a.astype(f64) @ b.astype(f64), ASKED
    while bits >= LEAST:
        changed = [middle(x, bits).astype(f64) if first == at else x.astype(f64) for at, x in ((True, a), (False, b))]
        part, error = share(got, exact, changed[0] @ changed[1])
        if error <= ERROR_MOST or np.isinf(error):
            return None if np.isinf(error) else (part, error)
        bits -= max(1, int(np.log2(error / ERROR_MOST)))
    return None


def draw(rng, shape):
    kind = rng.integers(4)
    x = rng.standard_normal(shape) if kind == 0 else rng.uniform(-1 if kind == 1 else 0, 1, shape)
    return (x + 1 if kind == 3 else x).astype(f32)


def main(seconds=60.0, seed=1):
    rng, end = np.random.default_rng(int(seed)), time.monotonic() + float(seconds)
    ways = HONEST | LOST | UNSEEN
    seen = {name: [0, 0, 0, 0.0] for name in ways}
    while time.monotonic() < end:
        name = rng.choice(list(ways))
        m, n, k = (int(rng.choice(sizes)) for sizes in ((32, 64, 128, 256), (32, 64, 128, 256), (16, 64, 256, 1024)))
        a, b = draw(rng, (m, k)), draw(rng, (k, n))
        got = ways[name](a, b).astype(f64)
        for first in (True, False):
            answer, row = told(a, b, got, first), seen[name]
            row[0] += 1
            row[1] += answer is None
            if answer is not None:
                row[2] += abs(answer[0] - 1) > APART + 4 * answer[1]
                row[3] = max(row[3], abs(answer[0] - 1))
    for name, (asked, untold, refused, most) in seen.items():
        kind = "honest" if name in HONEST else "lost" if name in LOST else "unseen"
        print(f"{kind:7} {name:24} asked {asked:5}  not told {untold:4}  refused {refused:5}  at most {most:.2f} from 1", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
