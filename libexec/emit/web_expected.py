"""python3 web_expected.py PLAN DEFINITION 0,1,4: what a page compares with, as JSON on stdout: for those shapes of
the plan the definition's results in float64 on inputs that the page can draw itself, at KEPT places of an output.

The inputs: element i of the tensor with number t is a hash of (i, t), scaled; web_page.js has the same."""

import base64
import json
import os
import sys

import numpy

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import shapes as module  # noqa: E402

KEPT = 16384
TYPES = {"float32": numpy.float32, "int32": numpy.int32}


def mix(numbers, seed):
    h = numbers.astype(numpy.uint32) * numpy.uint32(0x9E3779B1) + numpy.uint32(seed * 0x85EBCA77 & 0xFFFFFFFF)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h ^= h >> numpy.uint32(shift)
        h *= numpy.uint32(factor)
    return h ^ (h >> numpy.uint32(16))


def draw(tensor, seed, extents):
    low, high = tensor.get("range") or (-1, 1)
    unit = (mix(numpy.arange(int(numpy.prod(extents))), seed) >> numpy.uint32(8)) / 16777216.0
    values = numpy.floor(low + (high - low + 1) * unit) if tensor["dtype"] == "int32" else low + (high - low) * unit
    return values.astype(TYPES[tensor["dtype"]]).reshape(extents)


def places(count):
    at = numpy.arange(min(count, KEPT))
    stride = max(1, count // KEPT)
    return at * stride + mix(at, 1000) % numpy.uint32(stride)


def expected(shapes, function, dims):
    plan = shapes.plan
    scope = {}
    for dim in plan["dims"]:
        scope[dim["name"]] = dims[dim["name"]] if dim["value"] is None else shapes.number(dim["value"], scope)
    inputs = [draw(t, i + 1, shapes.extents(t, scope)) for i, t in enumerate(plan["inputs"])]
    wide = [a.astype(numpy.float64) if a.dtype.kind == "f" else a for a in inputs]
    names = list(function.__code__.co_varnames[len(inputs) : function.__code__.co_argcount])
    exact = function(*wide, *[scope[name] for name in names])
    exact = exact if isinstance(exact, tuple) else (exact,)
    outputs = []
    for tensor, values in zip(plan["outputs"], exact):
        flat = numpy.asarray(values).reshape(-1)
        kept = flat[places(flat.size)].astype(TYPES[tensor["dtype"]])
        outputs.append({"count": int(flat.size), "values": base64.b64encode(kept.tobytes()).decode()})
    free = {dim["name"]: scope[dim["name"]] for dim in plan["dims"] if dim["value"] is None}
    return {"dims": free, "outputs": outputs}


def main():
    shapes = module.Shapes(sys.argv[1])
    module.HERE = os.path.dirname(sys.argv[2])
    os.chdir(module.HERE)
    spec = module.importlib.util.spec_from_file_location("definition", sys.argv[2])
    definition = module.importlib.util.module_from_spec(spec)
    spec.loader.exec_module(definition)
    function = getattr(definition, shapes.plan["reference"])
    wanted = [int(number) for number in sys.argv[3].split(",") if number]
    json.dump([expected(shapes, function, shapes.plan["checks"][i]) for i in wanted], sys.stdout)


if __name__ == "__main__":
    main()
