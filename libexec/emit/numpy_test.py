"""python3 test.py [NAME=NUMBER ...]: the kernel against the function of reference.py in float64, at
the shapes it was checked on: relative L2 error. Exits with 77 where the definition is not Python."""

import importlib
import inspect
import os
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
module = importlib.import_module(os.path.basename(HERE) + ".kernel")
dtype_of, kernel, shapes = module.dtype_of, module.kernel, module.shapes

EPSILON = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1.2e-7, "float64": 2.3e-16, "int32": 0.0}


def draw(random, tensor, scope):
    low, high = tensor.get("range") or (-1, 1)
    values = random.uniform(low, high, shapes.extents(tensor, scope))
    return (values.round() if tensor["dtype"] == "int32" else values).astype(dtype_of(tensor))


def elsewhere(array):
    """The same numbers at an address that is a multiple of the element's size alone."""
    raw = numpy.empty(array.nbytes + 128, dtype=numpy.uint8)
    start = -raw.ctypes.data % 64 + array.itemsize
    moved = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def check(function, random, dims):
    plan = shapes.plan
    for dim in plan["dims"]:
        if dim["value"] is not None:
            dims = dict(dims, **{dim["name"]: shapes.number(dim["value"], dims)})
    inputs = [draw(random, tensor, dims) for tensor in plan["inputs"]]
    free = {dim["name"]: dims[dim["name"]] for dim in plan["dims"] if dim["value"] is None}
    ours = kernel(*inputs, **free)
    ours = ours if isinstance(ours, tuple) else (ours,)
    moved = kernel(*[elsewhere(a) for a in inputs], out=tuple(elsewhere(a) for a in ours), **free)
    moved = moved if isinstance(moved, tuple) else (moved,)
    names = list(inspect.signature(function).parameters)[len(inputs) :]
    wide = [a.astype(numpy.float64) if a.dtype.kind == "f" else a for a in inputs]
    exact = function(*wide, *[dims[name] for name in names])
    exact = exact if isinstance(exact, tuple) else (exact,)
    fine = True
    for a, e, tensor in list(zip(ours, exact, plan["outputs"])) + list(zip(moved, exact, plan["outputs"])):
        size = max(float(numpy.linalg.norm(e)), 1e-300)
        error = float(numpy.linalg.norm(a.astype(numpy.float64) - e)) / size
        bound = 64 * EPSILON[tensor["dtype"]]
        fine = fine and error <= bound
        print("%s %s at %s: error %.1e, at most %.1e" % (
            "ok    " if error <= bound else "FAILED", tensor["name"], free, error, bound))
    return fine


def main():
    function = shapes.definition()
    if function is None or any(
        t["dtype"] == "bfloat16" for t in shapes.plan["inputs"] + shapes.plan["outputs"]
    ):
        print("skipped: no definition here that numpy can compute")
        return 77
    random = numpy.random.default_rng(7)
    given = dict(word.split("=") for word in sys.argv[1:] if "=" in word)
    checks = shapes.plan["checks"]
    if given:
        checks = [dict(checks[0], **{name: int(number) for name, number in given.items()})]
    return 0 if all([check(function, random, dims) for dims in checks]) else 1


if __name__ == "__main__":
    sys.exit(main())
