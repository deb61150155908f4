"""The Python side of a reference: computes what src/eval/reference/python.c asks for.

Started as `python3 -I reference.py` inside the sandbox. One JSON request a line on stdin, one JSON
answer a line on stdout. Tensors do not travel through the pipes: inputs are read from descriptor 3
(shared memory, opened read only), results are written to descriptor 4 (shared memory,
which is made larger where it must) at the offsets asked for.

    {"op":"open", "file":..., "function":..., "name":..., "cores":[...], "threads":N,
     "inputs":[{"name","dtype"}], "outputs":[{"name","dtype"}]}
    {"op":"compute", "precision":"exact"|"wide"|"spec", "bits":null|N, "dims":{...},
     "inputs":[{"offset","shape"}], "outputs":[{"offset","shape"}]}
    {"op":"steps", "rounded":true}   places where the file may compute in float64 in between
    {"op":"prepare", "dims":..., "inputs":...}   then the bare line `go`, answered at once

`exact` converts floating inputs to float64 and answers in float64. `wide` is the same with integers of 64 bits. `spec` keeps the problem's types
(16-bit types are storage: they are widened to float32) and answers in them. `bits` first rounds every floating input to that
many mantissa bits: what a computation in a lower precision would have seen.
"""

import gc
import hashlib
import json
import mmap
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import source_text  # noqa: E402

np = None  # imported at open, after the number of threads is settled


class Refused(Exception):
    """The user's file or function is at fault; the message is for people."""


BLOCK = 1 << 14  # elements that stay in a cache between two steps
LARGE = 1 << 18  # elements from which on memory is worth keeping, and an order of copying it


class Heap:
    """Where large arrays come from. What is computed for checks takes memory that was its own before, instead of fresh pages
    that the kernel clears each time, a quarter of all time where tensors are large; a gibibyte at most stays here. What is
    timed takes it as a user's process does. mallopt(3)."""

    TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
    KEEPING = ((MMAP_THRESHOLD, 1 << 28), (TRIM_THRESHOLD, 1 << 30))
    PLAIN = ((MMAP_THRESHOLD, 1 << 25), (TRIM_THRESHOLD, 1 << 26))  # where a process comes to by itself

    def __init__(self):
        self.libc, self.keeps = None, False
        if "MALLOC_MMAP_MAX_" in os.environ:  # our caller has said
            return
        try:
            import ctypes

            self.libc = ctypes.CDLL(None)
            self.libc.mallopt, self.libc.malloc_trim  # raises where this is not glibc
        except (ImportError, OSError, AttributeError):
            self.libc = None

    def keep(self, keeps):
        if self.libc is None or keeps == self.keeps:
            return
        self.keeps = keeps
        for parameter, value in self.KEEPING if keeps else self.PLAIN:
            self.libc.mallopt(parameter, value)
        if not keeps:
            self.libc.malloc_trim(0)


def round_bits(array, bits):
    """Rounds a contiguous float array to `bits` explicit mantissa bits, ties to even, range
    untouched."""
    if array.size <= BLOCK:
        return round_block(array, bits)
    result = np.empty_like(array)
    flat, rounded = array.reshape(-1), result.reshape(-1)
    for at in range(0, flat.size, BLOCK):
        rounded[at : at + BLOCK] = round_block(flat[at : at + BLOCK], bits)
    return result


def copy(to, array):
    """to[...] = array, as astype() converts. An array whose rows do not lie along `to`'s is copied
    by tiles, since a plain loop would use one number of each cache line at a time."""
    axis = int(np.argmin([abs(stride) for stride in array.strides])) if array.ndim else 0
    if array.size < LARGE or axis == array.ndim - 1 or 0 in array.strides:
        np.copyto(to, array, casting="unsafe")
        return
    rows, columns = np.moveaxis(to, axis, -2), np.moveaxis(array, axis, -2)
    tile = 128
    for i in range(0, rows.shape[-2], tile):
        for j in range(0, rows.shape[-1], tile):
            place = (Ellipsis, slice(i, i + tile), slice(j, j + tile))
            np.copyto(rows[place], columns[place], casting="unsafe")


def round_block(array, bits):
    kinds = {2: (np.uint16, 10), 4: (np.uint32, 23), 8: (np.uint64, 52)}
    unsigned, mantissa = kinds[array.dtype.itemsize]
    drop = mantissa - bits
    if drop <= 0:
        return array
    raw = array.view(unsigned)
    odd = (raw >> unsigned(drop)) & unsigned(1)
    rounded = raw + unsigned((1 << (drop - 1)) - 1) + odd
    rounded &= ~unsigned((1 << drop) - 1)
    # A carry out of the largest finite number would turn it into an infinity: keep that one.
    result = rounded.view(array.dtype)
    return np.where(np.isfinite(result) | ~np.isfinite(array), result, array)


def from_bfloat16(raw):
    return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)


def to_bfloat16(array):
    raw = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32)
    odd = (raw >> np.uint32(16)) & np.uint32(1)
    rounded = ((raw + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(array), np.uint16(0x7FC0), rounded)


class Reference:
    def __init__(self, request):
        global np
        cores = request["cores"]
        for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
            os.environ[name + "_NUM_THREADS"] = str(max(1, request["threads"]))
        if cores:
            try:
                os.sched_setaffinity(0, cores)
            except (OSError, AttributeError):
                pass  # the sandbox may refuse it; then they are inherited from the worker
        if len(sys.argv) > 1:  # byte code that the installed package came without
            sys.pycache_prefix = sys.argv[1]
        import numpy

        np = numpy
        self.heap = Heap()
        self.inputs = request["inputs"]
        self.outputs = request["outputs"]
        self.memory = None
        self.ready = None
        self.kept = {}  # float64 copies of large inputs, by index
        self.written = None  # descriptor 4, mapped
        self.wider = False  # it gave float64 for float32
        self.function = self.load(request["file"], request.get("function"), request["name"])
        self.parameters = self.parameter_names()

    def load(self, path, function, name):
        import types

        module = types.ModuleType("reference_of_problem")
        module.__file__ = path
        try:
            with open(path, "rb") as file:
                text = file.read()
        except OSError as problem:
            raise Refused("cannot read %s: %s" % (path, problem.strerror)) from None
        folder = os.path.dirname(path)
        sys.path.insert(0, folder)  # first while it is loaded, as Python has it; last for what it imports later
        try:
            exec(compile(source_text.clean(text, path), path, "exec"), module.__dict__)
        finally:
            sys.path.remove(folder)
            sys.path.append(folder)
        found = {
            key: thing
            for key, thing in module.__dict__.items()
            if callable(thing) and getattr(thing, "__module__", None) == module.__name__
        }
        # "reference" is also what the spec says when the user named none.
        if function and function != "reference":
            wanted = [function]
        else:
            wanted = ["reference", name, name.replace("-", "_")]
        for candidate in wanted:
            if callable(module.__dict__.get(candidate)):
                return module.__dict__[candidate]
        public = [key for key in found if not key.startswith("_")]
        if function and function != "reference":
            raise Refused("no function \"%s\" in %s" % (function, os.path.basename(path)))
        if len(public) == 1:
            return found[public[0]]
        raise Refused(
            "expected a function named \"reference\" or \"%s\" in %s, found %s"
            % (name, os.path.basename(path), ", ".join(sorted(public)) or "none")
        )

    def parameter_names(self):
        import inspect

        try:
            return list(inspect.signature(self.function).parameters)
        except (TypeError, ValueError):
            return []

    def view(self, offset, shape, dtype):
        storage = "uint16" if dtype == "bfloat16" else dtype
        count = 1
        for extent in shape:
            count *= extent
        end = offset + count * np.dtype(storage).itemsize
        if self.memory is None or len(self.memory) < end:
            self.memory = mmap.mmap(3, os.fstat(3).st_size, mmap.MAP_SHARED, mmap.PROT_READ)
        array = np.frombuffer(self.memory, dtype=storage, count=count, offset=offset)
        return array.reshape(shape)

    def arguments(self, request, exact, bits):
        arrays = []
        wide = request.get("precision") == "wide"
        for tensor, place in zip(self.inputs, request["inputs"]):
            array = self.view(place["offset"], place["shape"], tensor["dtype"])
            if tensor["dtype"] == "bfloat16":
                array = from_bfloat16(array)
            elif tensor["dtype"] == "float16":
                array = array.astype(np.float32)
            if wide and array.dtype.kind == "i":
                array = array.astype(np.int64)
            if array.dtype.kind == "f":
                if bits is not None:
                    array = round_bits(np.ascontiguousarray(array), bits).reshape(array.shape)
                    if bits == 23 and array.dtype == np.float64:
                        array = array.astype(np.float32)
                if exact:
                    array = self.widened(len(arrays), array)
            arrays.append(array)
        # Parameters after the inputs that are named like a dim get its number.
        later = self.parameters[len(arrays) :]
        return arrays, {name: request["dims"][name] for name in later if name in request["dims"]}

    def widened(self, index, array):
        """As float64, in memory that is kept: fresh pages cost more than the conversion."""
        if array.size < LARGE:
            return array.astype(np.float64)
        kept = self.kept.get(index)
        if kept is None or kept.size < array.size:
            kept = self.kept[index] = np.empty(array.size, np.float64)
        wide = kept[: array.size].reshape(array.shape)
        np.copyto(wide, array)
        return wide

    def results(self, returned):
        if isinstance(returned, dict):
            missing = [o["name"] for o in self.outputs if o["name"] not in returned]
            if missing:
                raise Refused("the reference returned no \"%s\"" % missing[0])
            returned = [returned[o["name"]] for o in self.outputs]
        elif isinstance(returned, list) and len(self.outputs) == 1:
            # A list of one array is one output; any other list is the output's own rows.
            one = len(returned) == 1 and isinstance(returned[0], np.ndarray)
            returned = returned if one else [returned]
        elif not isinstance(returned, (tuple, list)):
            returned = [returned]
        if any(one is None for one in returned):
            raise Refused("%s, expected %s" % (self.returns_nothing(), self.wanted()))
        if len(returned) != len(self.outputs):
            raise Refused(
                "the reference returned %d results, expected %s" % (len(returned), self.wanted())
            )
        return returned

    def wanted(self):
        names = ", ".join(o["name"] for o in self.outputs)
        return names + (": one array" if len(self.outputs) == 1 else ": %d arrays" % len(self.outputs))

    def returns_nothing(self):
        """With the line, where the function has one: a `return` that was forgotten."""
        code = getattr(self.function, "__code__", None)
        name = getattr(self.function, "__name__", "the reference")
        where = " (%s:%d)" % (os.path.basename(code.co_filename), code.co_firstlineno) if code else ""
        return "%s%s returned None: is a `return` missing?" % (name, where)

    def store(self, array, tensor, place, exact, dims):
        shape = tuple(place["shape"])
        array = np.asarray(array)
        if array.shape != shape and not (array.size == 1 and shape == (1,)):
            raise Refused(
                "output %s has shape %s, expected %s at %s (a shape that cannot be: say so in `where`)"
                % (tensor["name"], array.shape, shape, ", ".join("%s=%d" % dim for dim in dims.items()))
            )
        if array.dtype.kind not in "fiub":
            raise Refused("output %s has dtype %s" % (tensor["name"], array.dtype))
        dtype = "float64" if exact else tensor["dtype"]
        self.wider = self.wider or (array.dtype == np.float64 and dtype in ("float32", "float16", "bfloat16"))
        if dtype == "bfloat16":
            array = to_bfloat16(array)
            dtype = "uint16"
        count = 1
        for extent in shape:
            count *= extent
        end = place["offset"] + count * np.dtype(dtype).itemsize
        if self.written is None or len(self.written) < end:
            if os.fstat(4).st_size < end:
                os.pwrite(4, b"\0", end - 1)
            self.written = mmap.mmap(4, os.fstat(4).st_size, mmap.MAP_SHARED)
        to = np.frombuffer(self.written, dtype=dtype, count=count, offset=place["offset"])
        copy(to.reshape(shape), array.reshape(shape))

    def compute(self, request):
        exact = request["precision"] != "spec"
        self.heap.keep(True)
        with np.errstate(all="ignore"):
            arrays, named = self.arguments(request, exact, request["bits"])
            returned = self.results(self.function(*arrays, **named))
            for array, tensor, place in zip(returned, self.outputs, request["outputs"]):
                self.store(array, tensor, place, exact, request["dims"])
        return {"ok": True}

    def prepare(self, request):
        self.heap.keep(False)
        self.ready = self.arguments(request, False, request["bits"])
        gc.collect()
        gc.disable()
        return {"ok": True}

    def go(self):
        """The timed call. Its result is dropped only after the answer is on its way."""
        arrays, named = self.ready
        returned = self.function(*arrays, **named)
        return returned


DOUBLE_NAMES = {"float", "float64", "double", "longdouble", "float128", "vectorize", "item", "tolist"}
CONSTANTS = {"pi", "e", "tau", "inf", "nan"}
MAKERS = {"zeros", "ones", "empty", "full", "arange", "linspace", "eye"}


def double_step(node):
    """What makes float64 of float32, or None. A function of constants alone does not."""
    import ast

    if isinstance(node, ast.Attribute):
        math = getattr(node.value, "id", "") == "math" and node.attr not in CONSTANTS
        return "math.%s" % node.attr if math else None
    if not isinstance(node, ast.Call) or all(isinstance(a, ast.Constant) for a in node.args):
        return None
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    owner = getattr(getattr(called, "value", None), "id", "")
    if name in DOUBLE_NAMES:
        return "%s.%s" % (owner, name) if owner else name
    typed = [k for k in node.keywords if k.arg == "dtype"]
    if owner in ("np", "numpy") and name in MAKERS and not typed and len(node.args) < 3:
        return "%s.%s without a dtype" % (owner, name)
    given = [k.value for k in typed] + (node.args[:1] if name == "astype" else [])
    if any(getattr(g, "id", getattr(g, "attr", "")) in ("float", "float64", "double") for g in given):
        return "%s to float64" % (name or "a call")
    return None


def double_steps(path):
    import ast

    with open(path, "rb") as file:
        tree = ast.parse(file.read())
    nodes = list(ast.walk(tree))
    plain = [n.func for n in nodes if isinstance(n, ast.Call) and all(isinstance(a, ast.Constant) for a in n.args)]
    found = [(n.lineno, double_step(n)) for n in nodes if hasattr(n, "lineno") and n not in plain]
    name = os.path.basename(path)
    steps = ["%s:%d: %s" % (name, line, what) for line, what in sorted(set(f for f in found if f[1]))]
    return {"ok": True, "steps": ", ".join(steps[:6])}


def describe(problem, path):
    """One line for people: what was raised, and the line of the user's that led to it: the innermost
    one of their file, or of a file beside it. Where numpy was by then is nobody's concern."""
    if isinstance(problem, Refused):
        return str(problem)
    import traceback

    where = ""
    folder = os.path.dirname(path) + os.sep
    for frame in traceback.extract_tb(problem.__traceback__):
        if frame.filename.startswith(folder):
            line = ": " + frame.line if frame.line else ""
            where = " (%s:%d%s)" % (frame.filename[len(folder) :], frame.lineno, line)
    if isinstance(problem, SyntaxError) and problem.filename:
        where = " (%s:%s)" % (os.path.basename(problem.filename), problem.lineno)
        return "%s: %s%s" % (type(problem).__name__, problem.msg, where)
    text = str(problem).split("\n")[0]
    return "%s: %s%s" % (type(problem).__name__, text, where)


# How OpenBLAS calls it, plain and as numpy's wheels bring it; its text has the version and the
# processor that it chose kernels for.
BLAS_SAYS = ("openblas_get_config", "openblas_get_config64_", "scipy_openblas_get_config", "scipy_openblas_get_config64_")


def loaded_libraries():
    """Paths of the shared objects in this process that compute for numpy."""
    import ctypes

    class Info(ctypes.Structure):
        _fields_ = [("address", ctypes.c_size_t), ("name", ctypes.c_char_p)]

    paths = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Info), ctypes.c_size_t, ctypes.c_void_p)
    def take(info, size, data):
        path = os.fsdecode(info.contents.name or b"")
        if any(word in os.path.basename(path) for word in ("multiarray_umath", "blas", "blis", "mkl")):
            paths.append(os.path.realpath(path))
        return 0

    ctypes.CDLL(None).dl_iterate_phdr(take, None)
    return sorted(set(paths))


def numpy_versions():
    """numpy's version; a mark of its own build and its BLAS, which a distribution, a wheel or
    update-alternatives changes under the same version; and what that BLAS says of itself."""
    mark, blas = hashlib.sha256(), []
    try:
        import ctypes

        paths = loaded_libraries()
    except (ImportError, AttributeError, OSError):  # no ctypes, or not this C library
        return {"numpy": np.__version__}
    for path in paths:
        about = os.stat(path)
        mark.update(("%s %d %d\n" % (path, about.st_size, about.st_mtime_ns)).encode())
        if "multiarray" in path:
            continue
        library = ctypes.CDLL(path)
        says = [getattr(library, name) for name in BLAS_SAYS if hasattr(library, name)]
        for function in says:
            function.restype = ctypes.c_char_p
        words = says[0]().decode(errors="replace") if says else os.path.basename(path)
        blas += [] if words in blas else [words]
    return {"numpy": np.__version__, "numpy_build": mark.hexdigest()[:12], "blas": "; ".join(blas)}


def main():
    # What the user's function prints or reads must not mix with the protocol.
    source = os.fdopen(os.dup(0), "rb", buffering=65536)
    sink = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    reference = None
    path = ""

    def answer(record):
        os.write(sink, json.dumps(record).encode() + b"\n")

    for line in source:
        try:
            if line == b"go\n":
                kept = reference.go()
                os.write(sink, b"done\n")
                del kept
                gc.enable()
                continue
            request = json.loads(line)
            if request["op"] == "open":
                path = request["file"]
                reference = Reference(request)
                version = ".".join(str(part) for part in sys.version_info[:3])
                answer({"ok": True, "versions": dict(numpy_versions(), python=version)})
            elif request["op"] == "compute":
                answer(reference.compute(request))
            elif request["op"] == "steps":
                doubtful = request["rounded"] or reference.wider
                answer(double_steps(path) if doubtful else {"ok": True, "steps": ""})
            else:
                answer(reference.prepare(request))
        except (Exception, SystemExit) as problem:
            gc.enable()
            answer({"error": describe(problem, path)})


if __name__ == "__main__":
    main()
