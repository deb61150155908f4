#!/usr/bin/env python3
"""What products say of their inputs' lowest bits: honest ways of summing, and factors that lose some.

usage: bench/soak/low_bits.py [SECONDS [SEED]]      a minute
       bench/soak/low_bits.py slopes                 19 to 21 bits, a minute
       bench/soak/low_bits.py noise                  the rest by K, the lesser of normal and uniform inputs, a minute

The rules of src/eval/measure/low_bits.c, emulated: shapes and inputs are drawn, a way is drawn, and of each factor the
share of its lowest bits that reached the output is measured at the most bits where its standard error is at most 0.1.
A line a way: how often it was asked, could not be told, was refused (by one set; a verdict takes two), the largest
distance of a share from 1, and how large the rest was (what neither the bits nor the result itself explain, over what
is allowed; more than 1 on two sets is refused), where no element is beyond its own bound. Ways that matrix units alone have, whose sums are cut off, are held
against what is allowed on a GPU. `slopes`: the share at 19 bits of a 256 x 256 product of 256 terms, means of six drawings."""

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


def in_unit(a, b, c, step=8):
    """As a matrix unit may add: `step` products at a time, cut off below the largest's last bit."""
    for k in range(0, a.shape[1], step):
        terms = a[:, k:k + step, None].astype(f64) * b[None, k:k + step]
        largest = np.maximum(np.abs(c), np.abs(terms).max(1))
        unit = 2.0 ** (np.floor(np.log2(np.maximum(largest, 1e-300))) - 23)
        c = (np.trunc((c + terms.sum(1)) / unit) * unit).astype(f32)
    return c


def split_in_unit(a, b, bits, step):
    """Three products of rounded parts, as tf32x3 and fp16x3 make them, summed in the unit from end to end."""
    ah, bh = keep(a, bits), keep(b, bits)
    al, bl, c = cut(a - ah, bits), cut(b - bh, bits), np.zeros((len(a), b.shape[1]), f32)
    for k in range(0, a.shape[1], step):
        s = slice(k, k + step)
        for x, y in ((al[:, s], bh[s]), (ah[:, s], bl[s]), (ah[:, s], bh[s])):
            c = in_unit(x, y, c, step)
    return c


def bfloat16_parts(a, b):
    """Three parts of each factor, six products."""
    def parts(x):
        high = keep(x, 7)
        middle = keep(x - high, 7)
        return high, middle, x - high - middle
    a, b = parts(a), parts(b)
    return sum((running(a[i], b[j]) for i, j in ((2, 0), (0, 2), (1, 1), (1, 0), (0, 1), (0, 0))), f32(0))


def strassen(a, b, levels=1):
    if levels == 0 or min(*a.shape, b.shape[1]) < 2:
        return running(a, b)
    h, i, j = a.shape[0] // 2, a.shape[1] // 2, b.shape[1] // 2
    a, b, c, d, e, f, g, x = a[:h, :i], a[:h, i:], a[h:, :i], a[h:, i:], b[:i, :j], b[:i, j:], b[i:, :j], b[i:, j:]
    pairs = (a, f - x), (a + b, x), (c + d, e), (d, g - e), (a + d, e + x), (b - d, g + x), (a - c, e + f)
    p = [strassen(*pair, levels - 1) for pair in pairs]
    return np.block([[p[4] + p[3] - p[1] + p[5], p[0] + p[1]], [p[2] + p[3], p[0] + p[4] - p[2] - p[6]]])


def pairwise(a, b):
    k = a.shape[1]
    return running(a, b) if k <= 8 else pairwise(a[:, :k // 2], b[:k // 2]) + pairwise(a[:, k // 2:], b[k // 2:])


def not_fused(a, b):
    c = np.zeros((len(a), b.shape[1]), f32)
    for k in range(a.shape[1]):
        c = c + a[:, k:k + 1] * b[k]
    return c


def float16s(x):
    return x.astype(np.float16).astype(f32)


HONEST = {
    "running sum, fused": running, "running sum": not_fused, "pairwise": pairwise, "Strassen": strassen, "blocked": blocked,
    "bfloat16 x 6": bfloat16_parts, "tf32 x 3 in the unit": lambda a, b: split_in_unit(a, b, 10, 8),
    "16 terms a step": lambda a, b: split_in_unit(a, b, 10, 16), "BLAS": lambda a, b: a @ b,
    "sums cut off": lambda a, b: running(a, b, True), "tf32 x 3": halves,
    "tf32 x 3, cut off": lambda a, b: halves(a, b, lambda x: cut(x, 10)),
    "tf32 x 3, sums cut off": lambda a, b: halves(a, b, toward_zero=True),
    "float16 x 3": lambda a, b: halves(a, b, lambda x: np.where(np.abs(x) < 2.0**-8, float16s(x * 2048) / 2048, float16s(x)).astype(f32)),
    "21 bits": lambda a, b: running(keep(a, 21), keep(b, 21)), "21 bits, cut off": lambda a, b: running(cut(a, 21), cut(b, 21)),
}
LOST = {f"{bits} bits": lambda a, b, bits=bits: running(keep(a, bits), keep(b, bits)) for bits in (16, 17, 18, 19)}
LOST |= {f"{bits} bits, cut off": lambda a, b, bits=bits: running(cut(a, bits), cut(b, bits)) for bits in (16, 18, 19)}
LOST["bfloat16 x 3"] = lambda a, b: halves(a, b, lambda x: keep(x, 7))
RANDOM = {f"{bits} bits, at random": lambda a, b, bits=bits: running(at_random(a, bits), at_random(b, bits)) for bits in (16, 17, 18, 19, 20)}
CUT = {"sums cut off", "tf32 x 3, sums cut off", "tf32 x 3 in the unit", "16 terms a step"}


def share(got, exact, changed):
    scale = np.maximum(np.abs(exact), np.sqrt((exact**2).mean(1, keepdims=True)))
    x, d, e = exact / scale, (exact - changed) / scale, (got - exact) / scale
    dd, xx, dx, de, xe = (d * d).sum(), (x * x).sum(), (d * x).sum(), (d * e).sum(), (x * e).sum()
    if dd * dd < 256 * (d**4).sum():
        return 1.0, np.inf, 0.0
    slope, own = np.array([de * xx - xe * dx, xe * dd - de * dx]) / (dd * xx - dx * dx)
    d_alone = d - x * dx / xx
    terms = (e - slope * d - own * x) * d_alone
    variance = max((terms**2).sum(), (terms.sum(0)**2).sum(), (terms.sum(1)**2).sum())
    return 1 + slope, np.sqrt(variance) / (d_alone**2).sum(), np.sqrt(((e - slope * d - own * x)**2).mean())


def told(a, b, got, first):
    """The share, its error and the rest; None: it cannot be told."""
    exact, bits = a.astype(f64) @ b.astype(f64), ASKED
    while bits >= LEAST:
        changed = [middle(x, bits).astype(f64) if first == at else x.astype(f64) for at, x in ((True, a), (False, b))]
        part, error, rest = share(got, exact, changed[0] @ changed[1])
        if error <= ERROR_MOST or np.isinf(error):
            return None if np.isinf(error) else (part, error, rest)
        bits -= max(1, int(np.log2(error / ERROR_MOST)))
    return None


def draw(rng, shape):
    kind = rng.integers(4)
    x = rng.standard_normal(shape) if kind == 0 else rng.uniform(-1 if kind == 1 else 0, 1, shape)
    return (x + 1 if kind == 3 else x).astype(f32)


def most_rest(name, k):
    return 2.0**-23 * max(np.sqrt(k) / 2, 3, k / 4 if name in CUT else 0)


def most_error(name, k):
    return 2.0**-23 * max(4 * np.sqrt(k), 8, k / 2 if name in CUT else 0)


def slopes():
    rng = np.random.default_rng(1)
    for name, to in (("rounded", keep), ("cut off", cut)):
        for bits in (19, 20, 21):
            shares = []
            for kind in range(6):
                a, b = (rng.standard_normal((256, 256)) if kind % 2 else rng.uniform(-1, 1, (256, 256)) for _ in "ab")
                a, b = a.astype(f32), b.astype(f32)
                got, exact = running(to(a, bits), to(b, bits)).astype(f64), a.astype(f64) @ b.astype(f64)
                shares.append(share(got, exact, middle(a, ASKED).astype(f64) @ b.astype(f64))[:2])
            off = np.array([1 - part for part, _ in shares])
            print(f"{bits} bits, {name}: share off 1 by {off.mean():+.3f} ({off.min():+.3f} to {off.max():+.3f}), standard error {max(e for _, e in shares):.3f}", flush=True)


def noise():
    rng = np.random.default_rng(1)
    names = ("running sum, fused", "21 bits, cut off", "Strassen", "tf32 x 3", *RANDOM)
    for k in (16, 64, 224, 1024, 4096):
        told = []
        for name in names:
            rests = []
            for signed in (rng.standard_normal, lambda shape: rng.uniform(-1, 1, shape)):
                a, b = signed((64, k)).astype(f32), signed((k, 64)).astype(f32)
                exact, changed = a.astype(f64) @ b.astype(f64), middle(a, ASKED).astype(f64) @ b.astype(f64)
                rests.append(share((HONEST | RANDOM)[name](a, b).astype(f64), exact, changed)[2] / most_rest(name, k))
            told.append(f"{name} {min(rests):.2f}")
        print(f"K = {k}: {'; '.join(told)}", flush=True)


def main(seconds=60.0, seed=1):
    if seconds in ("slopes", "noise"):
        return slopes() if seconds == "slopes" else noise()
    rng, end = np.random.default_rng(int(seed)), time.monotonic() + float(seconds)
    ways = HONEST | LOST | RANDOM
    seen = {name: [0, 0, 0, 0.0, np.inf, 0.0, 0] for name in ways}
    while time.monotonic() < end:
        name = rng.choice(list(ways))
        m, n, k = (int(rng.choice(sizes)) for sizes in ((32, 64, 128, 256), (32, 64, 128, 256), (16, 64, 256, 1024)))
        a, b = draw(rng, (m, k)), draw(rng, (k, n))
        got, exact = ways[name](a, b).astype(f64), a.astype(f64) @ b.astype(f64)
        scale = np.maximum(np.abs(exact), np.sqrt((exact**2).mean(1, keepdims=True)))
        for first in (True, False):
            answer, row = told(a, b, got, first), seen[name]
            row[0] += 1
            row[1] += answer is None
            if answer is not None:
                row[2] += abs(answer[0] - 1) > APART + 4 * answer[1]
                row[3] = max(row[3], abs(answer[0] - 1))
                rest = answer[2] / most_rest(name, k)
                if (np.abs(got - exact) / scale).max() <= most_error(name, k): # or it is refused for that
                    row[4], row[5], row[6] = min(row[4], rest), max(row[5], rest), row[6] + (rest > 1)
    for name, (asked, untold, refused, most, least, rest, noisy) in seen.items():
        kind = "honest" if name in HONEST else "lost" if name in LOST else "random"
        print(f"{kind:7} {name:24} asked {asked:5}  not told {untold:4}  refused {refused:5}  at most {most:.2f} from 1"
              f"  rest {least:.2f} to {rest:.2f}, refused {noisy:4}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
