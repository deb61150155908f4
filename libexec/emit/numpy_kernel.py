"""kernel(inputs..., out=None, dim=number...) on numpy arrays, and empty(shape, dtype), an array that
lies as the kernel likes it best. Needs numpy and what build.sh builds beside this file. 16-bit floats
that numpy does not have travel as uint16."""

import ctypes
import os
import subprocess

import numpy

from . import own_way
from .shapes import HERE, Shapes

DTYPES = {"bfloat16": "uint16"}
ALIGNMENT = 64
shapes = Shapes()


def library(name):
    library = ctypes.CDLL(os.path.join(HERE, name))
    return library.kernel


if not os.path.exists(os.path.join(HERE, "libkernel.so")):
    subprocess.run(["sh", os.path.join(HERE, "build.sh")], check=True)
fast = library("libkernel.so")
# The same source for arrays that lie anywhere; missing where its code relies on the alignment.
anywhere = library("libanywhere.so") if os.path.exists(os.path.join(HERE, "libanywhere.so")) else None


def dtype_of(tensor):
    return numpy.dtype(DTYPES.get(tensor["dtype"], tensor["dtype"]))


def empty(shape, dtype):
    """As numpy.empty, at a multiple of 64 bytes."""
    dtype = numpy.dtype(dtype)
    count = int(numpy.prod(shape, dtype=numpy.int64))
    raw = numpy.empty(count * dtype.itemsize + ALIGNMENT, dtype=numpy.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + count * dtype.itemsize].view(dtype).reshape(shape)


def is_aligned(array):
    return array.ctypes.data % ALIGNMENT == 0


def as_given(array, tensor):
    """The array itself where the kernel can read it where it lies, else a copy."""
    array = numpy.asarray(array)
    if array.dtype != dtype_of(tensor):
        raise TypeError(
            "%s is %s, the kernel takes %s: convert it with .astype(numpy.%s)"
            % (tensor["name"], array.dtype, dtype_of(tensor), dtype_of(tensor))
        )
    if array.flags.c_contiguous and (anywhere or is_aligned(array)) and array.ctypes.data % array.itemsize == 0:
        return array
    copy = empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def check_out(out, expected):
    """`out` as a list of arrays of the outputs' shapes and dtypes; ValueError, TypeError."""
    given = list(out) if isinstance(out, (tuple, list)) else [out]
    if len(given) != len(expected):
        raise ValueError("out: expected %d arrays, got %d" % (len(expected), len(given)))
    for array, (shape, dtype, name) in zip(given, expected):
        if not isinstance(array, numpy.ndarray) or array.dtype != dtype:
            raise TypeError("out: %s is an array of %s" % (name, dtype))
        if array.shape != shape or not array.flags.writeable:
            raise ValueError("out: %s has shape %s and is writable, got %s" % (name, shape, array.shape))
    return given


def takes(array, inputs):
    """Whether the kernel can write to it directly: outputs overlap nothing."""
    return (
        array.flags.c_contiguous
        and (anywhere or is_aligned(array))
        and array.ctypes.data % array.itemsize == 0
        and not any(numpy.may_share_memory(array, other) for other in inputs)
    )


def kernel(*inputs, out=None, **dims):
    """The outputs, one or a tuple of them: new arrays, or those of `out`. TypeError for another dtype,
    ValueError for shapes that do not fit together. Beyond the sizes that the kernel was checked at the
    definition computes them, and one warning says so."""
    plan = shapes.plan
    if len(inputs) != len(plan["inputs"]):
        raise TypeError("expected %d arrays, got %d" % (len(plan["inputs"]), len(inputs)))
    inputs = [as_given(array, tensor) for array, tensor in zip(inputs, plan["inputs"])]
    scope = shapes.dims([array.shape for array in inputs], dims)
    known = dict(scope, **plan["tune"])
    expected = [(shapes.extents(t, known), dtype_of(t), t["name"]) for t in plan["outputs"]]
    wanted = check_out(out, expected) if out is not None else [empty(*e[:2]) for e in expected]
    beyond = shapes.beyond(scope)
    if beyond is not None:
        for array, result in zip(wanted, own_way.compute(shapes, inputs, scope, beyond)):
            array[...] = result
        return wanted[0] if len(wanted) == 1 else tuple(wanted)
    written = []
    for array in wanted:
        written.append(array if takes(array, inputs + written) else empty(array.shape, array.dtype))
    scratch = [empty(shapes.extents(t, known), dtype_of(t)) for t in plan["workspaces"]]
    arrays = inputs + written + scratch
    function = fast if all(map(is_aligned, arrays)) else anywhere
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    if function(*pointers, *[ctypes.c_int64(scope[dim["name"]]) for dim in plan["dims"]]) != 0:
        raise RuntimeError("libkernel.so and plan.json are not of one package")
    for array, result in zip(wanted, written):
        if array is not result:
            array[...] = result
    return wanted[0] if len(wanted) == 1 else tuple(wanted)
