"""What the definition of reference.py gives, by numpy and in the problem's own types: for calls at
sizes that the kernel was not checked at."""

import inspect
import warnings

try:
    import numpy
except ImportError:  # PyTorch does without, and may have a way of its own
    numpy = None

functions = {}
told = []


def wider(array, dtype):
    """16-bit floats are storage: float32 computes."""
    if dtype == "bfloat16":
        return (array.astype(numpy.uint32) << numpy.uint32(16)).view(numpy.float32)
    return array.astype(numpy.float32) if dtype == "float16" else array


def narrower(array, dtype):
    if dtype != "bfloat16":
        return array.astype(dtype)
    raw = numpy.ascontiguousarray(array, dtype=numpy.float32).view(numpy.uint32)
    odd = (raw >> numpy.uint32(16)) & numpy.uint32(1)
    rounded = ((raw + numpy.uint32(0x7FFF) + odd) >> numpy.uint32(16)).astype(numpy.uint16)
    return numpy.where(numpy.isnan(array), numpy.uint16(0x7FC0), rounded)


def tell(reason, who):
    """Once."""
    if not told:
        told.append(reason)
        warnings.warn("%s, not the kernel: %s" % (who, reason), stacklevel=4)


def compute(shapes, arrays, scope, reason):
    """Arrays in, a list of arrays out, in the plan's dtypes (bfloat16 as uint16). ValueError with
    `reason` where the definition is no Python function."""
    if "definition" not in functions:
        functions["definition"] = shapes.definition()
    function = functions["definition"]
    if function is None or numpy is None:
        raise ValueError(reason)
    tell(reason, "the definition computes it")
    known = dict(scope, **shapes.plan["tune"])
    wide = [wider(a, t["dtype"]) for a, t in zip(arrays, shapes.plan["inputs"])]
    names = list(inspect.signature(function).parameters)[len(wide) :]
    with numpy.errstate(all="ignore"):
        given = function(*wide, **{name: scope[name] for name in names if name in scope})
    given = given if isinstance(given, (tuple, list)) else (given,)
    return [
        narrower(numpy.asarray(array), t["dtype"]).reshape(shapes.extents(t, known))
        for array, t in zip(given, shapes.plan["outputs"])
    ]
