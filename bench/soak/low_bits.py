#!/usr/bin/env python3
"""What products say of their inputs' lowest bits: honest ways of summing, and factors that lose some.

usage: bench/soak/low_bits.py [SECONDS [SEED]]      a minute
       bench/soak/low_bits.py slopes                 19 to 21 bits, a minute
       bench/soak/low_bits.py noise                  the rest by K, the lesser of normal and uniform inputs, a minute
       bench/soak/low_bits.py honest [SECONDS [SEED]] honest ways that take little time, signed inputs: hundreds of questions a minute
       bench/soak/low_bits.py terms [SEED [K]]       losses in a share of the terms, asked of each eighth; five minutes, or sums of K terms alone
       bench/soak/low_bits.py parts [SEED]           losses in some tiles, rows, columns or terms alone, by their share, two minutes

The rules of src/eval/measure/low_bits.c, emulated: shapes and inputs are drawn, a way is drawn, and of each factor the
share of its lowest bits that reached the output is measured at the most bits where its standard error is at most 0.1.
A line a way: how often it was asked, could not be told, was refused (by one set; a verdict takes two), the largest
distance of a share from 1, and how large the rest was (what neither the bits nor the result itself explain, over what
is allowed; more than 1 on two sets is refused), where no element is beyond its own bound. Ways that matrix units alone have, whose sums are cut off, are held
against what is allowed on a GPU. The same is asked of 16 bits, where a share may lie 0.06 from 1, and of blocks at both: rows,
columns, tiles of 16 to 128, whose largest distance beyond chance stands last. `slopes`: the share at 19 bits of a 256 x 256 product of 256 terms, means of six drawings."""

import sys
import time

import numpy as np

ASKED, COARSE, LEAST, ERROR_MOST, APART, APART_COARSE = 19, 16, 12, 0.1, 0.4, 0.06
TERMS = (17, 0.1), (18, 0.25), (19, 0.4)
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
ROOM = 1.25
CUT = {"sums cut off", "tf32 x 3, sums cut off", "tf32 x 3 in the unit", "16 terms a step"}


def share(got, exact, changed, of_terms=None):
    scale = np.maximum(np.abs(exact), np.sqrt((exact**2).mean(1, keepdims=True)))
    x, d, e = exact / scale, (exact - changed) / scale, (got - exact) / scale
    if of_terms is not None: # what these terms add explains what they are cut off by on the average
        p = of_terms / scale
        x, d, e = (y - p * (p * y).sum() / (p * p).sum() for y in (x, d, e))
    dd, xx, dx, de, xe = (d * d).sum(), (x * x).sum(), (d * x).sum(), (d * e).sum(), (x * e).sum()
    if dd * dd < 256 * (d**4).sum():
        return 1.0, np.inf, 0.0
    slope, own = np.array([de * xx - xe * dx, xe * dd - de * dx]) / (dd * xx - dx * dx)
    d_alone = d - x * dx / xx
    terms = (e - slope * d - own * x) * d_alone
    variance = max((terms**2).sum(), (terms.sum(0)**2).sum(), (terms.sum(1)**2).sum())
    return 1 + slope, np.sqrt(variance) / (d_alone**2).sum(), np.sqrt(((e - slope * d - own * x)**2).mean())


def block_sums(x):
    """Of rows, columns, and tiles of 16, 32, 64 and 128."""
    yield x.sum(1)
    yield x.sum(0)
    for size in (16, 32, 64, 128):
        down, across = np.arange(0, x.shape[0], size), np.arange(0, x.shape[1], size)
        yield np.add.reduceat(np.add.reduceat(x, down, 0), across, 1).ravel()


def blocks(got, exact, changed, families=1e6):
    """How far from 1 a block's share lies at most, beyond chance; how large its rest is."""
    scale = np.maximum(np.abs(exact), np.sqrt((exact**2).mean(1, keepdims=True)))
    x, d, e = exact / scale, (exact - changed) / scale, (got - exact) / scale
    dd, xx, dx, de, xe = (d * d).sum(), (x * x).sum(), (d * x).sum(), (d * e).sum(), (x * e).sum()
    own = (xe * dd - de * dx) / (dd * xx - dx * dx)
    d, r, off, rest = d - x * dx / xx, e - own * x, 0.0, 0.0
    for axis in (0, 1): # alike in a row or a column: then blocks differ by more than chance
        for numbers in (d, r):
            if (numbers.mean(axis)**2).mean() > (0.1 + 2 / d.shape[axis]) * (numbers**2).mean():
                return off, rest
    for rd, dd, rr, r1, d1, count in zip(*map(block_sums, (r * d, d * d, r * r, r, d, np.ones_like(d)))):
        slope, weight, square = rd - r1 * d1 / count, np.maximum(dd - d1**2 / count, 1e-300), rr - r1**2 / count
        if len(slope) < 8:
            continue
        told = count >= 64
        sigma = 1.4826 * np.sort(np.abs(slope) / np.sqrt(weight))[len(slope) // 2]
        chance = np.sqrt(2 * np.log(len(slope) * families)) * sigma
        if told.any():
            off = max(off, (np.abs(slope) / weight - chance / np.sqrt(weight))[told].max())
        large = count >= 1024
        if large.any():
            rest = max(rest, np.sqrt(np.maximum(0, square - slope**2 / weight) / count)[large].max())
    return off, rest


def told(a, b, got, first):
    """The share, its error, the rest, the share of the lowest 7 bits with its error, the largest of a block and its rest;
    None: it cannot be told."""
    exact, bits, answer, most, rest = a.astype(f64) @ b.astype(f64), ASKED, None, 0.0, 0.0
    while bits >= LEAST:
        changed = [middle(x, bits).astype(f64) if first == at else x.astype(f64) for at, x in ((True, a), (False, b))]
        result = changed[0] @ changed[1]
        part, error, left = share(got, exact, result)
        if np.isinf(error):
            return None
        off, left_of = blocks(got, exact, result)
        most, rest = max(most, off), max(rest, left_of)
        lower = bits - COARSE if bits > COARSE else 0
        if error > ERROR_MOST:
            least = max(1, int(np.log2(error / ERROR_MOST)))
            lower = min(lower or least, least)
        elif answer is None:
            answer = part, error, left
        if lower == 0:
            return None if answer is None else (*answer, part, error, most, rest)
        bits -= lower
    return None


def in_terms(a, b, got, first):
    """Of each eighth of the terms, side by side and every eighth: by how much more than is allowed a share lies from 1, at
    the most; how far beyond chance."""
    exact, most, off, k = a.astype(f64) @ b.astype(f64), -np.inf, 0.0, np.arange(a.shape[1])
    for bits, apart in TERMS:
        for eighths in (k * 8 // len(k), k % 8):
            for which in range(8):
                some = eighths == which
                lost = a[:, some] if first else b[some]
                moved = (lost.astype(f64) - middle(lost, bits))
                changed = exact - (moved @ b[some] if first else a[:, some].astype(f64) @ moved)
                part, error, _ = share(got, exact, changed, a[:, some].astype(f64) @ b[some])
                if error <= ERROR_MOST:
                    most, off = max(most, abs(part - 1) - 4 * error - apart), max(off, abs(part - 1) - 4 * error)
    return most, off


def refused(answer):
    part, error, _, coarse, coarse_error, most, _ = answer
    return abs(part - 1) > APART + 4 * error or abs(coarse - 1) > APART_COARSE + 4 * coarse_error or most > APART


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


def parts(seed=1):
    """Of a 128 x 128 product of 1,024 terms: how many of five pairs of a normal and a uniform set are refused, where all
    but this share is computed in float32."""
    rng, m, n, k, tries = np.random.default_rng(int(seed)), 128, 128, 1024, 5

    def mixed(low, high, where):
        return np.where(where, low, high)

    def some(count, part):
        return rng.permutation(count) < max(1, round(count * part))

    def tiles(size, part):
        across = n // size
        return np.kron(some(m // size * across, part).reshape(-1, across), np.ones((size, size), bool)).astype(bool)

    places = {
        "tiles of 32": lambda part: tiles(32, part), "tiles of 16": lambda part: tiles(16, part),
        "rows": lambda part: np.repeat(some(m, part)[:, None], n, 1), "columns": lambda part: np.repeat(some(n, part)[None], m, 0),
        "elements": lambda part: rng.random((m, n)) < part,
    }
    terms = {"each so many terms": lambda part: np.arange(k) % round(1 / part) == 0, "one stretch of terms": lambda part: np.arange(k) < k * part}
    losses = {"16 bits, rounded": lambda x: keep(x, 16), "17 bits, rounded": lambda x: keep(x, 17), "18 bits, rounded": lambda x: keep(x, 18),
              "16 bits, at random": lambda x: at_random(x, 16)}
    for loss, to in losses.items():
        for place in [*places, *terms]:
            found = []
            for part in (1 / 3, 1 / 8, 1 / 64):
                wrong = 0
                for _ in range(tries):
                    both = []
                    for signed in (rng.standard_normal, lambda shape: rng.uniform(-1, 1, shape)):
                        a, b = signed((m, k)).astype(f32), signed((k, n)).astype(f32)
                        if place in terms:
                            where = terms[place](part)
                            got = blas(mixed(to(a), a, where[None]), mixed(to(b), b, where[:, None]))
                        else:
                            got = mixed(blas(to(a), to(b)), blas(a, b), places[place](part))
                        answers = [told(a, b, got.astype(f64), first) for first in (True, False)]
                        rests = max(max(x[2], x[6] / ROOM) for x in answers if x) / most_rest("", k) if any(answers) else 0
                        both.append(any(x is not None and refused(x) for x in answers) or rests > 1)
                    wrong += all(both)
                found.append(f"1/{round(1 / part)}: {wrong}")
            print(f"{loss:20} {place:22} {'  '.join(found)}", flush=True)


def terms(seed=1, only=0):
    """Of a 96 x 96 product: how many of five pairs of a normal and a uniform set are refused by an eighth of their terms,
    where this share of the terms loses bits: a stretch that begins anywhere, and each so many terms."""
    rng, m, n, tries = np.random.default_rng(int(seed)), 96, 96, 5
    losses = {"16 bits, rounded": lambda x: keep(x, 16), "17 bits, rounded": lambda x: keep(x, 17), "17 bits, cut off": lambda x: cut(x, 17),
              "18 bits, rounded": lambda x: keep(x, 18), "18 bits, cut off": lambda x: cut(x, 18)}
    for k in (int(only),) if only else (224, 1024, 4096):
        for loss, to in losses.items():
            for place in ("stretch", "each so many"):
                found = []
                for part in (8, 16, 32, 64):
                    wrong = 0
                    for _ in range(tries):
                        size, at = max(1, round(k / part)), int(rng.integers(k))
                        low = (np.arange(k) - at) % k < size if place == "stretch" else (np.arange(k) - at) % part == 0
                        both = []
                        for signed in (rng.standard_normal, lambda shape: rng.uniform(-1, 1, shape)):
                            a, b = signed((m, k)).astype(f32), signed((k, n)).astype(f32)
                            got = blas(np.where(low, to(a), a), np.where(low[:, None], to(b), b)).astype(f64)
                            both.append(any(in_terms(a, b, got, first)[0] > 0 for first in (True, False)))
                        wrong += all(both)
                    found.append(f"1/{part}: {wrong}")
                print(f"K = {k:5} {loss:18} {place:14} {'  '.join(found)}", flush=True)


def blas(a, b):
    """Rounded as a sum in blocks of 64 is."""
    return sum((a[:, at:at + 64] @ b[at:at + 64] for at in range(0, a.shape[1], 64)), f32(0))


def honest(seconds=60.0, seed=1):
    def in_one(a, b):
        """Exact, then cut off."""
        exact = a.astype(f64) @ b.astype(f64)
        return np.where(np.abs(exact.astype(f32)) > np.abs(exact), np.nextafter(exact.astype(f32), f32(0)), exact.astype(f32))

    def tf32(a, b):
        ah, bh = keep(a, 10), keep(b, 10)
        return blas(ah, keep(b - bh, 10)) + blas(keep(a - ah, 10), bh) + blas(ah, bh)

    rng, end = np.random.default_rng(int(seed)), time.monotonic() + float(seconds)
    ways = {"blocks of 64": blas, "BLAS": lambda a, b: a @ b, "tf32 x 3": tf32, "cut off at the end": in_one,
            "21 bits": lambda a, b: blas(keep(a, 21), keep(b, 21))}
    seen = {name: [0, 0, 0, 0.0, 0.0, 0.0, 0, 0.0] for name in ways}
    while time.monotonic() < end:
        name = str(rng.choice(list(ways)))
        m, n, k = (int(rng.choice(sizes)) for sizes in ((48, 64, 96, 128), (48, 64, 96, 128), (64, 224, 512, 1024, 4096)))
        signed = rng.standard_normal if rng.integers(2) else lambda shape: rng.uniform(-1, 1, shape)
        a, b = signed((m, k)).astype(f32), signed((k, n)).astype(f32)
        for first in (True, False):
            answer, row = told(a, b, ways[name](a, b).astype(f64), first), seen[name]
            over, off = in_terms(a, b, ways[name](a, b).astype(f64), first)
            row[0] += 1
            row[1] += answer is None
            row[6], row[7] = row[6] + (over > 0), max(row[7], off)
            if answer is not None:
                row[2] += int(refused(answer))
                row[3], row[4] = max(row[3], abs(answer[3] - 1)), max(row[4], answer[5])
                row[5] = max(row[5], answer[6] / ROOM / most_rest("", k))
    for name, (asked, untold, wrong, coarse, block, rest, by_terms, term) in seen.items():
        print(f"{name:20} asked {asked:5}  not told {untold:4}  refused {wrong:4}  of 7 bits {coarse:.3f}, of a block {block:.2f}, its rest {rest:.2f}"
              f"  refused by an eighth of the terms {by_terms:4}, beyond chance {term:.3f}")


def main(seconds=60.0, seed=1, *more):
    if seconds == "honest":
        return honest(seed if seed != 1 else 60.0, *more)
    if seconds in ("parts", "terms"):
        return (parts if seconds == "parts" else terms)(seed, *more)
    if seconds in ("slopes", "noise"):
        return slopes() if seconds == "slopes" else noise()
    rng, end = np.random.default_rng(int(seed)), time.monotonic() + float(seconds)
    ways = HONEST | LOST | RANDOM
    seen = {name: [0, 0, 0, 0.0, np.inf, 0.0, 0, 0.0, 0.0] for name in ways}
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
                row[2] += refused(answer)
                row[3] = max(row[3], abs(answer[0] - 1))
                row[7], row[8] = max(row[7], abs(answer[3] - 1)), max(row[8], answer[5])
                rest = max(answer[2], answer[6] / ROOM) / most_rest(name, k)
                if (np.abs(got - exact) / scale).max() <= most_error(name, k): # or it is refused for that
                    row[4], row[5], row[6] = min(row[4], rest), max(row[5], rest), row[6] + (rest > 1)
    for name, (asked, untold, wrong, most, least, rest, noisy, coarse, block) in seen.items():
        kind = "honest" if name in HONEST else "lost" if name in LOST else "random"
        print(f"{kind:7} {name:24} asked {asked:5}  not told {untold:4}  refused {wrong:5}  at most {most:.2f} from 1, of 7 bits {coarse:.3f}, of a block {block:.2f}"
              f"  rest {least:.2f} to {rest:.2f}, refused {noisy:4}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
