"""Runs the kernels of a Triton candidate in Triton's interpreter, in a sandbox: its module code runs here.

    triton_interpret.py CANDIDATE REQUEST

REQUEST is JSON: calls, a list of {memsets, launches}; a launch has entry, grid, constexprs and args: an integer, or
{dtype, from: "inputs" or "outputs", offset}, with {box, shape, strides} of a tensor map. Descriptor 3 is the inputs' memory, which can only be read, 4 that of the
outputs and workspaces. After each call it prints its number. What is wrong goes to stderr as
"candidate.py:LINE: error: ...".
"""

import importlib.util
import inspect
import json
import mmap
import os
import sys
import traceback
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from triton_confine import refuse_processes  # noqa: E402

del sys.path[0]
os.environ["TRITON_INTERPRET"] = "1"
NAME = "candidate.py"


class Type(str):
    """Triton's name of an element type, with what it asks torch's."""

    itemsize = property(lambda self: int("".join(filter(str.isdigit, self))) // 8)


class Memory:
    """What the interpreter takes for a tensor: an address and an element type."""

    def __init__(self, address, dtype):
        self.address, self.dtype = address, Type(dtype)

    def data_ptr(self):
        return self.address


class Unusable:
    """A tensor map of a tensor whose rows are no multiple of 16 bytes: the hardware has none."""

    def __getattr__(self, name):
        if name in ("load", "store", "gather", "scatter") or name.startswith("atomic"):
            raise ValueError("a tensor map of rows that are no multiple of 16 bytes must not be used")
        raise AttributeError(name)


def value_of(arg, bases):
    """An argument as the interpreter takes it."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    if isinstance(arg, int):
        return arg
    memory = Memory(bases[arg["from"]] + arg["offset"], arg["dtype"])
    if "box" not in arg:
        return memory
    if "shape" not in arg:
        return Unusable()
    return TensorDescriptor(memory, arg["shape"], arg["strides"], arg["box"])


def fail(path, error):
    """The candidate's own line where it has one; the interpreter's copy of a function keeps its lines."""
    seen = error
    while seen.__cause__ is not None:
        seen = seen.__cause__
    lines = []
    for each in (error, seen):
        lines += [frame.lineno for frame in traceback.extract_tb(each.__traceback__) if frame.filename == path]
    if isinstance(seen, SyntaxError) and seen.filename == path:
        lines.append(seen.lineno or 1)
    print(f"{NAME}:{lines[-1] if lines else 1}: error: {type(seen).__name__}: {str(seen)[:400]}", file=sys.stderr)
    sys.stderr.flush()
    os._exit(1)


def address_of(descriptor, access):
    """Maps all of a descriptor; its address here."""
    import ctypes

    length = os.fstat(descriptor).st_size
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    address = libc.mmap(None, length, access, mmap.MAP_SHARED, descriptor, 0)
    if address is None or address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    return address


def run(executor, function, launch, bases):
    """One launch: every program of its grid, one after the other."""
    names = list(inspect.signature(function.fn).parameters)
    left = list(launch["args"])
    values = {}
    for name in names:
        if name in launch["constexprs"]:
            values[name] = launch["constexprs"][name]
        elif left and "constexpr" not in str(inspect.get_annotations(function.fn).get(name, "")):
            values[name] = value_of(left.pop(0), bases)

    class Direct(executor):
        """Its arguments lie where they are."""

        def _init_args_hst(self, args, kwargs):
            return list(args), dict(kwargs)

        def _restore_args_dev(self, *_):
            pass

    Direct(function.rewrite(), names, tuple(launch["grid"]))(**values)


def main():
    import ctypes

    path, request = os.path.abspath(sys.argv[1]), sys.argv[2]
    with open(request, encoding="utf-8") as file:
        calls = json.load(file)["calls"]
    warnings.simplefilter("ignore")
    import triton.runtime.interpreter as interpreter
    from triton.runtime import jit

    widen_dot(interpreter)
    take_scalars(interpreter)
    jit.mangle_type = pointer_type(jit.mangle_type)
    interpreter.triton.runtime.jit.mangle_type = jit.mangle_type
    bases = {"inputs": address_of(3, mmap.PROT_READ), "outputs": address_of(4, mmap.PROT_READ | mmap.PROT_WRITE)}
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    refuse_processes()  # what there is of threads is numpy's
    try:
        spec.loader.exec_module(module)
        for number, call in enumerate(calls):
            for memset in call["memsets"]:
                ctypes.memset(bases["outputs"] + memset["offset"], memset["byte"], memset["bytes"])
            for launch in call["launches"]:
                run(interpreter.GridExecutor, getattr(module, launch["entry"]), launch, bases)
            print(number, flush=True)
    except BaseException as error:  # sys.exit() of the candidate's, too
        fail(path, error)
    os._exit(0)


def widen_dot(interpreter):
    """The interpreter has bfloat16 as bits, which its products take for numbers; as float32 they are exact."""
    builder = interpreter.InterpreterBuilder
    usual, tl = builder.create_dot, interpreter.tl

    def create_dot(self, a, b, *rest):
        wide = [self.cast_impl(each, tl.float32) if each.dtype.scalar == tl.bfloat16 else each for each in (a, b)]
        return usual(self, *wide, *rest)

    builder.create_dot = create_dot


def take_scalars(interpreter):
    """Scalars are arrays of one element there, which Triton 3.6 has numpy 2.5 refuse as numbers."""
    usual = interpreter._patch_lang_tensor

    def patch(tensor, *scope):
        usual(tensor, *scope)
        tensor.__index__ = lambda self: int(self.handle.data.item())

    interpreter._patch_lang_tensor = patch


def pointer_type(usual):
    """As the compiler names a pointer's type."""

    def mangle(value, *rest, **more):
        return "*" + value.dtype if isinstance(value, Memory) else usual(value, *rest, **more)

    return mangle


main()
