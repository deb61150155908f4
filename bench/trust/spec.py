"""A problem as the referee reads it: spec.yaml's tensors and dims, shapes that are drawn, inputs that are drawn. Nothing of
twagent's own is used: expressions are evaluated here, numbers are numpy's."""
import math
import os
import re

import numpy
import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HELPERS = {"min": min, "max": max, "ceil_div": lambda a, b: -(-a // b), "round_up": lambda a, b: -(-a // b) * b,
           "next_pow2": lambda a: 1 << max(0, (a - 1).bit_length()), "__builtins__": {}}
DTYPES = {"float32": numpy.float32, "float16": numpy.float16, "float64": numpy.float64, "int32": numpy.int32}


def number(text, names):
    if isinstance(text, int):
        return text
    python = re.sub(r"!(?!=)", " not ", text.replace("&&", " and ").replace("||", " or ")).replace("/", "//")
    return int(eval(python, HELPERS, dict(names)))  # expressions of files of this repository


class Spec:
    def __init__(self, problem):
        self.name, self.folder = problem, os.path.join(ROOT, "problems", problem)
        with open(os.path.join(self.folder, "spec.yaml")) as file:
            self.yaml = yaml.safe_load(file)
        self.free = {k: v for k, v in self.yaml["dims"].items() if isinstance(v, int)}
        self.inputs, self.outputs = self.yaml["inputs"], self.yaml["outputs"]
        self.hidden = self.yaml.get("hidden", {})

    def dims(self, given):
        """All dims, derived ones too, in the spec's order."""
        dims = {}
        for name, value in self.yaml["dims"].items():
            dims[name] = given.get(name, value) if isinstance(value, int) else number(value, dims)
        return dims

    def valid(self, dims):
        return all(v >= 1 for v in dims.values()) if "where" not in self.yaml else bool(number(self.yaml["where"], dims))

    def shape(self, tensor, dims):
        shape = tensor["shape"]
        return tuple(number(axis, dims) for axis in (shape if isinstance(shape, list) else [shape]))

    def elements(self, dims):
        return sum(math.prod(self.shape(t, dims)) for t in [*self.inputs.values(), *self.outputs.values()])

    def is_size(self, name):
        return self.free[name] >= 16 or self.hidden.get(name, [1, 1])[1] >= 50

    def large(self, rng, most_elements, most_flops, longest):
        """A shape of which every dim that is a size is as large as the limits allow, now and then equal, uneven, long."""
        while True:
            kind = rng.choice(["any", "any", "odd", "beside", "beside", "alike", "alike", "equal", "even", "long"])
            sizes = [d for d in self.free if self.is_size(d)]
            given = {d: int(rng.integers(lo, hi + 1)) for d, (lo, hi) in
                     ((d, self.hidden.get(d, [1, self.free[d]])) for d in self.free if d not in sizes)}
            want = {d: math.exp(rng.uniform(math.log(100), math.log(longest))) for d in sizes}
            if kind in ("equal", "alike"):
                want = {d: want[sizes[0]] * math.exp(rng.normal(0, 0.15) * (kind == "alike")) for d in sizes}
            if kind == "long":
                want[sizes[int(rng.integers(len(sizes)))]] *= 16
            step = {"odd": 2, "beside": 64, "even": 16}.get(kind, 1)
            off = {"odd": 1, "beside": int(rng.choice([-1, 1]))}.get(kind, 0)
            for _ in range(60):
                given.update({d: max(2, round(want[d] / step) * step + off) for d in sizes})
                if self.name == "group_norm":
                    given["G"] = int(rng.integers(1, 9))
                    given["C"] = max(1, given["C"] // given["G"]) * given["G"]
                dims = self.dims(given)
                if self.valid(dims) and self.elements(dims) <= most_elements and \
                        number(self.yaml.get("flops", 0), dims) <= most_flops:
                    return dims
                want = {d: max(7.0, w * 0.87) for d, w in want.items()}

    def small(self, rng):
        """A shape of small numbers, ones among them."""
        while True:
            given = {d: int(rng.choice([1, 2, 3, int(rng.integers(1, 20)), int(rng.integers(1, 75))]))
                     if self.is_size(d) else int(rng.integers(self.hidden.get(d, [1, 9])[0], self.hidden.get(d, [1, 9])[1] + 1))
                     for d in self.free}
            if self.name == "group_norm":
                given["C"] = max(1, given["C"] // given["G"]) * given["G"]
            dims = self.dims(given)
            if self.valid(dims) and all(v >= 1 for k, v in dims.items() if k != "PAD") and self.elements(dims) <= 1 << 17:
                return dims


KINDS = ["uniform", "normal", "offset", "positive", "huge", "sparse", "wide", "sorted", "rows", "tiny", "one_hot"]


def draw(spec, dims, kind, rng):
    """Inputs of one kind, inside the spec's ranges."""
    made = {}
    for place, (name, tensor) in enumerate(spec.inputs.items()):
        shape = spec.shape(tensor, dims)
        x = rng.standard_normal(shape, dtype=numpy.float32)
        if kind == "uniform":
            x = rng.random(shape, dtype=numpy.float32) * 2 - 1
        elif kind == "positive":
            x = rng.random(shape, dtype=numpy.float32)
        elif kind == "offset" and place == 0:
            side = numpy.float32(rng.choice([-1, 1]))  # below zero what is left out may count as the largest
            x = x + side * numpy.float32(1000 if "range" not in tensor or tensor["range"][1] > 1000 else 3)
        elif kind == "huge":
            x = x * numpy.float32(1e4)
        elif kind == "tiny":
            x = x * numpy.float32(1e-6)
        elif kind == "sparse":
            x = x * (rng.random(shape) < 0.1)
        elif kind == "wide":
            x = x * numpy.exp2(rng.integers(-12, 13, shape)).astype(numpy.float32)
        elif kind == "sorted":
            x = numpy.sort(x, axis=-1) if x.ndim else x
        elif kind == "rows" and x.ndim > 1:
            x = x * numpy.float32(0.01) + rng.standard_normal(shape[:-1] + (1,), dtype=numpy.float32) * 20
        elif kind == "one_hot" and place == 0 and x.size:
            flat = numpy.zeros(x.size, numpy.float32)
            flat[rng.integers(0, x.size, max(1, x.size // 97))] = 1
            x = flat.reshape(shape)
        low, high = tensor.get("range", [-3e38, 3e38])
        if low >= 0:
            x = numpy.abs(x) + numpy.float32(low)
        made[name] = numpy.ascontiguousarray(numpy.clip(x, low, high).astype(DTYPES[tensor["dtype"]]))
    return made


def definition(spec):
    """The problem's own definition: a function of numpy arrays, called with float64."""
    names = {}
    with open(os.path.join(spec.folder, "ref_impl.py")) as file:
        exec(compile(file.read(), "ref_impl.py", "exec"), names)
    wanted = names["reference"].__code__
    wanted = wanted.co_varnames[:wanted.co_argcount]

    def call(inputs, dims, dtype):
        arguments = [inputs[n].astype(dtype) if n in inputs else dims[n] for n in wanted]
        with numpy.errstate(all="ignore"):
            out = names["reference"](*arguments)
        return [numpy.asarray(o) for o in (out if isinstance(out, tuple) else (out,))]
    return call
