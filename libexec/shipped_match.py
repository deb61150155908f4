"""Does a definition compute what a problem that ships computes? Then the starts of that one are starts of it.

find() compares shapes, and then numbers: both definitions on the same normal inputs. Names, and the order of tensors and
dims, may differ. A start is only where a search begins, and is checked like any candidate, so that this need not be beyond
doubt. Used by torch_shipped.py, of a PyTorch module, and by plain_shipped.py, of a numpy function or one in C.

Either problem is {"inputs": [{"name", "dtype", "shape": [texts], "range"}], "outputs", "dims"}; the other definition has
"shapes", too: numbers of its dims at some sizes.
"""

import inspect
import itertools
import keyword
import math
import re
import types

import numpy as np

INPUTS_MOST, FREE_MOST, SIZES_MOST, FLIPPED_MOST = 6, 3, 2, 3
FREE_TRIED = ("0", "1", "2", "3", "4", "5", "7", "8", "16", "32")  # of what no shape says: paddings, steps, groups
APART = {"float64": 1e-6, "float32": 2e-5, "float16": 2e-2, "bfloat16": 1e-1}  # how far numbers may be
FUNCTIONS = {
    "__builtins__": {},
    "min": min,
    "max": max,
    "ceil_div": lambda a, b: -(-a // b),
    "round_up": lambda a, b: -(-a // b) * b,
    "next_pow2": lambda a: 1 << max(0, a - 1).bit_length(),
}


def evaluate(text, dims):
    """An expression of a spec's: whole numbers, divisions that round down."""
    if any(map(keyword.iskeyword, dims)):  # a dim may be called `in`
        text = re.sub(r"[A-Za-z_]\w*", lambda name: name.group() + "_" * keyword.iskeyword(name.group()), str(text))
        dims = {name + "_" * keyword.iskeyword(name): number for name, number in dims.items()}
    return eval(str(text).replace("/", "//"), FUNCTIONS, dims)


def enclosed(text):
    return text if re.fullmatch(r"\w+", text) else "(%s)" % text


def product(texts):
    """One extent for several axes."""
    texts = [text for text in texts if text != "1"] or ["1"]
    if all(text.isdigit() for text in texts):
        return str(math.prod(int(text) for text in texts))
    return "*".join(map(enclosed, texts))


def leading(texts, rank):
    """Rows are rows, however many indices they have."""
    extra = len(texts) - rank
    return ["1"] * -extra + texts if extra < 0 else [product(texts[: extra + 1])] + texts[extra + 1 :]


def trailing(texts, rank):
    """A row is a row, however many axes it has. Where one is missing it is the one before the last, as of an image with a
    single row."""
    extra = len(texts) - rank
    return texts[:-1] + ["1"] * -extra + texts[-1:] if extra < 0 else texts[: rank - 1] + [product(texts[rank - 1 :])]


def folded(texts, rank, fold):
    return texts if len(texts) == rank else None if rank == 0 else fold(texts, rank)


def alike(mine, theirs):
    """As many tensors of the same types."""
    inputs = sorted(t["dtype"] for t in mine["inputs"])
    outputs = [t["dtype"] for t in mine["outputs"]]
    return (
        len(inputs) <= INPUTS_MOST
        and inputs == sorted(t["dtype"] for t in theirs["inputs"])
        and outputs == [t["dtype"] for t in theirs["outputs"]]
        and set(inputs + outputs) <= set(APART)
    )


class Pair:
    """A definition beside a problem that ships, whose inputs are the definition's in some order; some, by their places,
    lie transposed in the definition."""

    def __init__(self, mine, theirs, order, fold, flipped=()):
        self.mine, self.theirs, self.order, self.flipped = mine, theirs, order, flipped
        self.own = [dim["name"] for dim in theirs["dims"] if not dim["derived"]]
        ours = [mine["inputs"][index] for index in order] + mine["outputs"]
        self.tensors = []
        for place, (their, our) in enumerate(zip(theirs["inputs"] + theirs["outputs"], ours)):
            shape = our["shape"][:-2] + our["shape"][-2:][::-1] if place in flipped else our["shape"]
            self.tensors.append((their["shape"], folded(shape, len(their["shape"]), fold)))

    def same(self, texts):
        """Do these say the same at all sizes?"""
        return len({tuple(evaluate(text, size) for size in self.mine["shapes"]) for text in texts}) == 1

    def known(self):
        """{dim: text} by the axes that a dim names; None: they contradict."""
        said = {}
        for their, our in self.tensors:
            for dim, text in zip(their, our or ()):
                if dim in self.own:
                    said.setdefault(dim, []).append(text)
        if any(our is None for _, our in self.tensors) or not all(self.same(texts) for texts in said.values()):
            return None
        return {dim: min(texts, key=len) for dim, texts in said.items()}

    def numbers(self, texts, size):
        """All dims of the problem that ships at one size, or None."""
        dims = {dim: evaluate(text, size) for dim, text in texts.items()}
        for dim in self.theirs["dims"]:
            if dim["derived"]:
                dims[dim["name"]] = evaluate(dim["value"], dims)
        for their, our in self.tensors:
            if [evaluate(text, dims) for text in their] != [evaluate(text, size) for text in our]:
                return None
        return dims

    def solutions(self):
        """Texts for all dims by which the shapes come out at every size."""
        known = self.known()
        if known is None:
            return
        free = [dim for dim in self.own if dim not in known]
        if len(free) > FREE_MOST:
            return
        tried = {dim: sorted(self.mine["dims"], key=lambda name: name.lower() != dim.lower()) for dim in free}
        for texts in itertools.product(*(tried[dim] + list(FREE_TRIED) for dim in free)):
            texts = dict(known, **dict(zip(free, texts)))
            try:
                if all(self.numbers(texts, size) is not None for size in self.mine["shapes"]):
                    yield texts
            except ArithmeticError:
                continue

    def values(self, size, random):
        """Normal numbers for the definition's inputs, in its order, as both take them."""
        values = [None] * len(self.order)
        for their, index in zip(self.theirs["inputs"], self.order):
            our = self.mine["inputs"][index]
            value = random.standard_normal([evaluate(text, size) for text in our["shape"]])
            for tensor in (their, our):
                value = np.clip(value, *tensor.get("range", (-math.inf, math.inf)))
            values[index] = value.astype("float16" if our["dtype"] == "float16" else "float32")
        return values

    def computes(self, texts, function, run):
        """The same numbers at some of the sizes."""
        later = list(inspect.signature(function).parameters)[len(self.order) :]
        random = np.random.default_rng(17)
        for size in self.mine["shapes"][:SIZES_MOST]:
            dims, values = self.numbers(texts, size), self.values(size, random)
            given = []
            for place, (tensor, index) in enumerate(zip(self.theirs["inputs"], self.order)):
                value = values[index].swapaxes(-1, -2) if place in self.flipped else values[index]
                given.append(value.astype("float64").reshape([evaluate(t, dims) for t in tensor["shape"]]))
            try:
                wanted = function(*given, **{name: dims[name] for name in later if name in dims})
            except ValueError:  # numbers that were tried and that it does not take: 3 groups of 16 channels
                return False
            wanted = wanted if isinstance(wanted, tuple) else (wanted,)
            results = run(size, values)
            if len(results) != len(wanted) or not all(map(close, self.theirs["outputs"], wanted, results)):
                return False
        return True


def close(tensor, want, got):
    want, got = (np.asarray(a).astype("float64").reshape(-1) for a in (want, got))
    if want.size != got.size or not np.isfinite(want).all():
        return False
    return bool((np.abs(want - got) <= APART[tensor["dtype"]] * np.abs(want).max()).all())


def definition(problem):
    module = types.ModuleType("shipped")
    with open(problem["reference"], "rb") as file:
        exec(compile(file.read(), problem["reference"], "exec"), module.__dict__)
    return module.__dict__[problem["function"]]


def flips(mine, theirs, order):
    """Which inputs may lie transposed, where there are several: none first, then one, then more."""
    matrices = [place for place, index in enumerate(order) if len(mine["inputs"][index]["shape"]) >= 2]
    most = len(matrices) if 1 < len(theirs["inputs"]) <= FLIPPED_MOST else 0
    return [chosen for count in range(1, most + 1) for chosen in itertools.combinations(matrices, count)]


def pairs(mine, shipped):
    fitting = [theirs for theirs in shipped if alike(mine, theirs)]
    if not fitting:  # a network's 123 tensors have more orders than memory holds
        return
    orders = list(itertools.permutations(range(len(mine["inputs"]))))
    ways = [(theirs, fold, order) for theirs in fitting for fold in (leading, trailing) for order in orders]
    for theirs, fold, order in ways:
        yield Pair(mine, theirs, order, fold)
    for theirs, fold, order in ways:
        for flipped in flips(mine, theirs, order):
            yield Pair(mine, theirs, order, fold, flipped)


def whole(pair, texts):
    """With the derived dims: as a tensor's axis has them, or as the spec says."""
    texts = dict(texts)
    for dim in pair.theirs["dims"]:
        if not dim["derived"]:
            continue
        axes = [our for their, ours in pair.tensors for t, our in zip(their, ours) if t == dim["name"]]
        text = re.sub(r"[A-Za-z_]\w*", lambda name: enclosed(texts.get(name.group(), name.group())), str(dim["value"]))
        texts[dim["name"]] = axes[0] if axes else text if re.search("[A-Za-z]", text) else str(evaluate(text, {}))
    return texts


def find(mine, shipped, run):
    """{"name", "tensors": {theirs: ours}, "dims": {theirs: text over ours}, "flipped": [theirs that lie transposed]}, or
    None. run(size, values): what the definition gives for its inputs."""
    for pair in pairs(mine, shipped):
        for texts in pair.solutions():
            if pair.computes(texts, definition(pair.theirs), run):
                theirs = pair.theirs
                tensors = {t["name"]: mine["inputs"][i]["name"] for t, i in zip(theirs["inputs"], pair.order)}
                tensors.update({t["name"]: o["name"] for t, o in zip(theirs["outputs"], mine["outputs"])})
                flipped = [theirs["inputs"][place]["name"] for place in pair.flipped]
                return {"name": theirs["name"], "tensors": tensors, "dims": whole(pair, texts), "flipped": flipped}
    return None
