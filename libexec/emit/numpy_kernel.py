"""kernel(inputs..., dim=number...) on numpy arrays: the outputs, new arrays, one or a tuple of them.
Needs numpy and libkernel.so, which build.sh builds beside this file. 16-bit floats that numpy does
not have travel as uint16."""

import ctypes
import os
import subprocess

import numpy

from shapes import HERE, Shapes

DTYPES = {"bfloat16": "uint16"}
ALIGNMENT = 64
shapes = Shapes()


def library():
    path = os.path.join(HERE, "libkernel.so")
    if not os.path.exists(path):
        subprocess.run(["sh", os.path.join(HERE, "build.sh")], check=True)
    return ctypes.CDLL(path)


function = library().kernel
function.restype = None


def dtype_of(tensor):
    return numpy.dtype(DTYPES.get(tensor["dtype"], tensor["dtype"]))


def aligned(shape, dtype):
    count = int(numpy.prod(shape, dtype=numpy.int64))
    raw = numpy.empty(count * dtype.itemsize + ALIGNMENT, dtype=numpy.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + count * dtype.itemsize].view(dtype).reshape(shape)


def as_given(array, tensor):
    array = numpy.ascontiguousarray(array, dtype=dtype_of(tensor)).reshape(numpy.shape(array))
    if array.ctypes.data % ALIGNMENT:
        copy = aligned(array.shape, array.dtype)
        copy[...] = array
        array = copy
    return array


def kernel(*inputs, **dims):
    plan = shapes.plan
    if len(inputs) != len(plan["inputs"]):
        raise TypeError("expected %d arrays, got %d" % (len(plan["inputs"]), len(inputs)))
    inputs = [as_given(array, tensor) for array, tensor in zip(inputs, plan["inputs"])]
    scope = shapes.dims([array.shape for array in inputs], dims)
    known = dict(scope, **plan["tune"])
    made = [aligned(shapes.extents(t, known), dtype_of(t)) for t in plan["outputs"] + plan["workspaces"]]
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in inputs + made]
    function(*pointers, *[ctypes.c_int64(scope[dim["name"]]) for dim in plan["dims"]])
    outputs = made[: len(plan["outputs"])]
    return outputs[0] if len(outputs) == 1 else tuple(outputs)
