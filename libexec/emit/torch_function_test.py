"""python3 test.py: run() on a CUDA device against the numpy function of reference.py, in float64, at
the shape that the kernel was timed at or --dims NAME=NUMBER,...: relative L2 error, in 64 calls of
the kernel as it was loaded once, on inputs that change from call to call."""

import importlib
import inspect
import os
import sys

import torch

DEVICE = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
package = importlib.import_module(os.path.basename(HERE))
shapes = package.run.shapes
CALLS, DRAWINGS = 64, 4


def drawn(function, scope):
    """One drawing of the inputs on the device, with the exact outputs in float64 beside it."""
    inputs = []
    for tensor in shapes.plan["inputs"]:
        low, high = tensor.get("range") or (-1, 1)
        dtype = getattr(torch, tensor["dtype"])
        values = torch.rand(shapes.extents(tensor, scope), dtype=torch.float64) * (high - low) + low
        inputs.append(values.round().to(dtype) if not dtype.is_floating_point else values.to(dtype))
    names = list(inspect.signature(function).parameters)[len(inputs) :]
    arrays = [t.double().numpy() if t.is_floating_point() else t.numpy() for t in inputs]
    exact = function(*arrays, *[scope[name] for name in names])
    exact = exact if isinstance(exact, tuple) else (exact,)
    return [t.to(DEVICE) for t in inputs], [torch.as_tensor(e).double().to(DEVICE) for e in exact]


def main():
    if DEVICE == "cuda" and not torch.cuda.is_available():
        print("skipped: no CUDA device")
        return 77
    function = shapes.definition()
    if function is None:
        print("skipped: its definition is no Python function")
        return 77
    given = dict(pair.split("=") for word in sys.argv[1:] if "=" in word for pair in word.split(","))
    scope = {dim["name"]: int(given.get(dim["name"], dim["default"])) for dim in shapes.plan["dims"]}
    for dim in shapes.plan["dims"]:
        if dim["value"] is not None:
            scope[dim["name"]] = shapes.number(dim["value"], scope)
    torch.manual_seed(7)
    free = {d["name"]: scope[d["name"]] for d in shapes.plan["dims"] if d["value"] is None}
    drawings = [drawn(function, scope) for _ in range(DRAWINGS)]
    worst = 0.0
    for call in range(CALLS):
        inputs, exact = drawings[call % DRAWINGS]
        ours = package.run(*[t.clone() for t in inputs], **free)
        ours = ours if isinstance(ours, tuple) else (ours,)
        bound = 64 * max(torch.finfo(t.dtype).eps if t.is_floating_point() else 0.0 for t in ours)
        errors = [float((a.double() - e).norm() / max(float(e.norm()), 1e-300)) for a, e in zip(ours, exact)]
        worst = max([worst] + errors)
        if not all(error <= bound for error in errors):  # a NaN is none either
            print("FAILED call %d: relative L2 error %.2e, at most %.2e, at %s" % (call + 1, max(errors), bound, scope))
            return 1
    print("ok     %d calls: relative L2 error %.2e, at most %.2e, at %s" % (CALLS, worst, bound, scope))
    return 0


if __name__ == "__main__":
    sys.exit(main())
