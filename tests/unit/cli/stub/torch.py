"""As much of torch as an emitted package touches, on the CPU's memory: enough to import it and to
call its kernel through a driver that has no GPU (tests/fakes/fake_cuda.c)."""

import contextlib
import ctypes
import types


class dtype:
    def __init__(self, name, kind):
        self.name, self.kind = name, kind

    def __repr__(self):
        return "torch." + self.name


float32, int32, int64 = dtype("float32", ctypes.c_float), dtype("int32", ctypes.c_int), dtype("int64", ctypes.c_long)


class device:
    type, index = "cuda", 0

    def __eq__(self, other):
        return isinstance(other, device)


class Tensor:
    is_cuda, requires_grad = True, False

    def __init__(self, shape, dtype, values=None):
        self.shape, self.dtype, self.device = tuple(shape), dtype, device()
        count = 1
        for extent in shape:
            count *= extent
        size = ctypes.sizeof(dtype.kind)
        self.raw = ctypes.create_string_buffer(count * size + 256)
        self.start = -ctypes.addressof(self.raw) % 256
        self.cells = (dtype.kind * count).from_buffer(self.raw, self.start)
        for i, value in enumerate(values or []):
            self.cells[i] = value

    def data_ptr(self):
        return ctypes.addressof(self.cells)

    def numel(self):
        return len(self.cells)

    def element_size(self):
        return ctypes.sizeof(self.dtype.kind)

    def detach(self):
        return self

    contiguous = detach

    def to(self, *wanted):
        kind = wanted[-1]
        return self if kind is self.dtype else Tensor(self.shape, kind, list(self.cells))

    def reshape(self, shape):
        return Tensor(shape, self.dtype, list(self.cells))


def empty(shape, dtype=None, device=None):
    return Tensor(shape if isinstance(shape, tuple) else (shape,), dtype)


@contextlib.contextmanager
def no_grad():
    yield


def is_grad_enabled():
    return False


def relu(tensor):  # PyTorch's own way shows by a mark
    return Tensor(tensor.shape, tensor.dtype, [max(cell, 0.0) + 1000.0 for cell in tensor.cells])


class Module:
    def __call__(self, *arguments):
        return self.forward(*arguments)


nn = types.SimpleNamespace(Module=Module)
cuda = types.SimpleNamespace(
    device=lambda where: contextlib.nullcontext(),
    current_stream=lambda: types.SimpleNamespace(device=device(), cuda_stream=0),
)
compiler = types.SimpleNamespace(disable=lambda function: function)
