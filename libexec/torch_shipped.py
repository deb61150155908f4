"""Is what a module computes a problem that ships? Then the starts of that one are starts of it.

find() compares shapes, and then numbers: the shipped numpy definition on the module's own inputs. A
start is only where a search begins, and is checked against the module like any candidate, so that it
need not be beyond doubt. Used by torch_problem.py.
"""

import inspect
import itertools
import math
import types

import torch

INPUTS_MOST, ELEMENTS_MOST, FREE_MOST = 6, 1 << 25, 3
FREE_TRIED = (0, 1, 2, 3, 4, 5, 7, 8, 16, 32)  # of what no shape says: paddings, steps, groups
NUMPY = {"float32": 1e-3, "float16": 2e-2}  # and how far apart the numbers may be


def evaluate(text, dims):
    """An expression of a spec of ours: whole numbers, divisions that round down."""
    return eval(str(text).replace("/", "//"), {"__builtins__": {}, "min": min, "max": max}, dims)


def folded(shape, rank):
    """Leading axes as one: rows are rows, however many indices they have."""
    extra = len(shape) - rank
    if rank == 0 or extra < 0:
        return None
    return [math.prod(shape[: extra + 1])] + list(shape[extra + 1 :])


def solutions(problem, tensors):
    """Numbers for all dims by which [(texts, shape)] come out; what no shape says is tried."""
    own = [dim["name"] for dim in problem["dims"] if not dim["derived"]]
    known = {}
    for texts, shape in tensors:
        if shape is None:
            return
        for text, extent in zip(texts, shape):
            if text in own and known.setdefault(text, extent) != extent:
                return
    free = [name for name in own if name not in known]
    if len(free) > FREE_MOST:
        return
    for numbers in itertools.product(FREE_TRIED, repeat=len(free)):
        dims = dict(known, **dict(zip(free, numbers)))
        try:
            for dim in problem["dims"]:
                if dim["derived"]:
                    dims[dim["name"]] = evaluate(dim["value"], dims)
            if all([evaluate(t, dims) for t in texts] == list(shape) for texts, shape in tensors):
                yield dims
        except ArithmeticError:
            continue


class Module:
    """What torch_problem has described, at a batch of our choice."""

    def __init__(self, described):
        self.described = described
        self.paths = {e["input"]: e["path"] for e in described.binding["parameters"]}
        batch = described.batch
        least = max(2, batch[3]) if batch else 0
        self.sizes = [least, least + 1, batch[1]] if batch and batch[1] > least else []

    def shapes(self, size):
        dims = {self.described.batch[0]: size} if self.described.batch else {}
        inputs = [[evaluate(t, dims) for t in self.described.shape_of(p)] for p in self.described.inputs]
        outputs = [[evaluate(t, dims) for t in shape] for _, shape, _ in self.described.outputs]
        return inputs, outputs

    def run(self, size, values):
        described = self.described
        arguments, parameters = list(described.arguments), {}
        for place, value in zip(described.inputs, values):
            value = value.to(described.device)
            if place["index"] is None:
                parameters[self.paths[place["name"]]] = value
            else:
                arguments[place["index"]] = value.to(place["tensor"].dtype)
        return [result for _, result in described.try_run(arguments, parameters)]


def definition(problem):
    module = types.ModuleType("shipped")
    with open(problem["reference"], "rb") as file:
        exec(compile(file.read(), problem["reference"], "exec"), module.__dict__)
    return module.__dict__[problem["function"]]


def computes(module, problem, order, dims, size):
    """The same numbers, on normal ones."""
    function = definition(problem)
    shapes, _ = module.shapes(size)
    torch.manual_seed(17)
    values = [None] * len(shapes)
    for tensor, index in zip(problem["inputs"], order):
        normal = torch.randn(shapes[index]).clamp(*tensor.get("range", (-math.inf, math.inf)))
        values[index] = normal.to(getattr(torch, tensor["dtype"]))
    given = []
    for tensor, index in zip(problem["inputs"], order):
        given.append(values[index].numpy().reshape([evaluate(t, dims) for t in tensor["shape"]]))
    more = list(inspect.signature(function).parameters)[len(given) :]
    try:
        wanted = function(*given, **{name: dims[name] for name in more if name in dims})
    except ValueError:  # numbers that were tried and that it does not take: 3 groups of 16 channels
        return False
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    results = module.run(size, values)
    for tensor, want, got in zip(problem["outputs"], wanted, results):
        want = torch.as_tensor(want).double().reshape(-1)
        got = got.detach().cpu().double().reshape(-1)
        if want.numel() != got.numel() or not bool(torch.isfinite(want).all()):
            return False
        if float((want - got).abs().max()) > NUMPY[tensor["dtype"]] * float(want.abs().max()):
            return False
    return len(results) == len(wanted)


def expression(name, sizes, numbers):
    """The number as one of the batch: "4096", "B", "B*64 + 3"; None where it is none."""
    if not sizes:
        return str(numbers[0])
    step = numbers[1] - numbers[0]
    rest = numbers[0] - step * sizes[0]
    if step * sizes[2] + rest != numbers[2] or step < 0:
        return None
    text = "%s*%d" % (name, step) if step > 1 else name
    return str(rest) if step == 0 else "%s + %d" % (text, rest) if rest > 0 else text if rest == 0 else None


def match(module, problem, order):
    """{dim: expression}, or None."""
    each = []
    for size in module.sizes or [None]:
        inputs, outputs = module.shapes(size)
        tensors = [(t["shape"], folded(inputs[i], len(t["shape"]))) for t, i in zip(problem["inputs"], order)]
        tensors += [(t["shape"], folded(s, len(t["shape"]))) for t, s in zip(problem["outputs"], outputs)]
        each.append(list(solutions(problem, tensors)))
        if not each[-1]:
            return None
    small = (module.sizes or [None])[0]
    inputs, outputs = module.shapes(small)
    if sum(math.prod(shape) for shape in inputs + outputs) > ELEMENTS_MOST:
        return None
    for found in zip(*each):  # in the same order of what was tried at each size
        texts = {
            dim: expression(module.sizes and module.described.batch[0], module.sizes, [f[dim] for f in found])
            for dim in found[0]
        }
        if None not in texts.values() and computes(module, problem, order, found[0], small):
            return texts
    return None


def alike(problem, described):
    """As many tensors of the same types."""
    inputs = sorted(str(p["tensor"].dtype).replace("torch.", "") for p in described.inputs)
    outputs = [dtype for _, _, dtype in described.outputs]
    return (
        inputs == sorted(t["dtype"] for t in problem["inputs"])
        and outputs == [t["dtype"] for t in problem["outputs"]]
        and set(inputs) <= set(NUMPY)
    )


def find(described, shipped):
    """{"name", "tensors": {theirs: ours}, "dims": {theirs: text over ours}}, or None."""
    count = len(described.inputs)
    if count > INPUTS_MOST:
        return None
    try:
        module = Module(described)
        for problem in shipped:
            for order in itertools.permutations(range(count)) if alike(problem, described) else []:
                dims = match(module, problem, order)
                if dims is None:
                    continue
                tensors = {t["name"]: described.inputs[i]["name"] for t, i in zip(problem["inputs"], order)}
                tensors.update({t["name"]: o[0] for t, o in zip(problem["outputs"], described.outputs)})
                return {"name": problem["name"], "tensors": tensors, "dims": dims}
    except Exception:  # no numpy, a module that takes nothing else: it has no starts, that is all
        pass
    return None
