"""The Python side of a PyTorch problem: computes what src/eval/reference/python.c asks for.

Started as `python3 -I reference_torch.py` inside the sandbox; one JSON request a line on stdin, one
JSON answer a line on stdout. The requests of reference.py, and besides:

    {"op":"describe", "file":..., "device":"cpu"}   before anything else: the file as a problem
    {"op":"open", ..., "binding":..., "device":..., "scratch":FOLDER}
    {"op":"initial", "outputs":[{"name", "offset"}]}  initial values of parameters and buffers
    {"op":"given", "seed":N, "outputs":[{"name", "offset", "shape"}]}  inputs as get_inputs draws them
    {"op":"ahead", "seeds":[N]}                     the same will be asked for under these next
    "baseline": "eager" | "compile" in compute and prepare: how the module is called
    {"op":"open", ..., "warm":{"baseline", "inputs":[{"shape"}]}}: answered once it was called that way

`exact` runs a float64 copy of the module; where the module cannot be cast, its own precision is all
there is. 16-bit types are computed in as the module has it.
"""

import ctypes
import gc
import json
import mmap
import os
import sys
import threading
import time
import warnings

warnings.simplefilter("ignore")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

torch = None  # imported after the number of threads is settled
problem = None  # torch_problem

# How long the device waits for a call to be queued: twice what the last call took, within these. At
# a slower clock it waits longer.
HOLD_S, HOLD_MOST_S, CYCLES_PER_S = 1e-3, 20e-3, 2e9


class Refused(Exception):
    """Ours, before torch_problem's is there."""


def wake_device():
    """The driver's start and the device's context, which PyTorch finds there: a third of a second
    that passes while it is imported."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        context, device = ctypes.c_void_p(), ctypes.c_int()
        if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), 0) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    except (OSError, AttributeError):
        pass  # PyTorch says better what is missing


def keep_memory():
    """Large tensors come from memory that was theirs before, instead of from fresh pages that the
    kernel clears each time: with large inputs half of all time on a CPU. mallopt(3)."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(-4, 0)  # M_MMAP_MAX
        mallopt(-1, -1)  # M_TRIM_THRESHOLD
    except (OSError, AttributeError):
        pass  # not glibc


def prepare_imports(request):
    global torch, problem
    cores = request.get("cores") or []
    count = str(max(1, len(cores)) if cores else os.cpu_count() or 1)
    for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
        os.environ[name + "_NUM_THREADS"] = count
    if cores:
        try:
            os.sched_setaffinity(0, cores)
        except (OSError, AttributeError):
            pass  # the sandbox may refuse it; then they are inherited from the worker
    scratch = request.get("scratch")
    if scratch:
        os.environ.update(
            PATH=os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
            TMPDIR=scratch,
            HOME=scratch,
            LOGNAME="twagent",  # a compiler names its folders by it; there is no list of users here
            TORCHINDUCTOR_CACHE_DIR=os.path.join(scratch, "inductor"),
            TRITON_CACHE_DIR=os.path.join(scratch, "triton"),
            TORCHINDUCTOR_COMPILE_THREADS="1",
        )
    if problem is None:
        waking = threading.Thread(target=wake_device)
        if (request.get("device") or "cpu") != "cpu":
            waking.start()
        if len(sys.argv) > 1:  # byte code that the installed package came without
            sys.pycache_prefix = sys.argv[1]
        gc.disable()  # a collection finds nothing in modules, and an import makes many of them
        import torch as imported
        import torch_problem

        torch, problem = imported, torch_problem
        gc.enable()
        gc.freeze()  # so that one before each timed call has little to look through
        if waking.ident is not None:
            waking.join()
        torch.set_num_threads(int(count))
        # Threads that are made now have all of the cores, whatever the first one is bound to later.
        torch.mm(torch.ones(256, 256), torch.ones(256, 256)).sum()
        torch.ones(1 << 20).add_(1.0)


def round_bits(tensor, bits):
    """To `bits` explicit mantissa bits, ties to even, range untouched."""
    kinds = {2: (torch.int16, 10), 4: (torch.int32, 23), 8: (torch.int64, 52)}
    whole, mantissa = kinds[tensor.element_size()]
    if tensor.dtype == torch.bfloat16:
        mantissa = 7
    drop = mantissa - bits
    if drop <= 0:
        return tensor
    raw = tensor.contiguous().view(whole)
    rounded = raw >> drop
    rounded &= 1
    rounded += raw
    rounded += (1 << (drop - 1)) - 1
    rounded &= -(1 << drop)
    result = rounded.view(tensor.dtype)
    if bool(torch.isfinite(result.sum(dtype=torch.float64))):
        return result  # nothing left the range
    return torch.where(torch.isfinite(result) | ~torch.isfinite(tensor), result, tensor)


class Drawing(threading.Thread):
    """What get_inputs draws under a seed, beside what else is computed; in turns, since there is one
    generator for all."""

    def __init__(self, module, seed, before):
        super().__init__(daemon=True)
        self.module, self.seed, self.before, self.given = module, seed, before, None

    def run(self):
        if self.before is not None:
            self.before.join()
        try:
            self.given = drawn(self.module, self.seed)
        except Exception:
            pass  # who asks for it is told


def drawn(module, seed):
    return problem.given_arguments(module, seed)


class Reference:
    def __init__(self, request):
        self.inputs, self.outputs = request["inputs"], request["outputs"]
        self.binding, self.device = request["binding"], request.get("device") or "cpu"
        if request.get("or_cpu") and not torch.cuda.is_available():
            self.device = "cpu"
        self.sweep = self.device_ns = None
        self.hold_s = HOLD_S
        self.memory = self.written = self.ready = self.compiled = None
        self.pinned, self.ahead = {}, {}
        self.module = problem.load(request["file"])
        problem.GRADIENTS += [True] * bool(self.binding.get("gradients"))
        self.model, _ = problem.build(self.module, self.device)
        self.state = self.state_of(self.model)
        self.initial = {path: t.detach().clone() for path, t in self.state.tensors.items()}
        self.wide = self.wide_state = self.no_wide = None
        self.index = {tensor["name"]: i for i, tensor in enumerate(self.inputs)}
        gc.freeze()

    def state_of(self, model):
        state = problem.State(self.module, model)
        state.convert(lambda tensor: tensor.to(self.device))
        return state

    def view(self, offset, shape, dtype):
        kind = getattr(torch, dtype)
        count = 1
        for extent in shape:
            count *= extent
        end = offset + count * torch.empty(0, dtype=kind).element_size()
        if self.memory is None or len(self.memory) < end:
            self.memory = mmap.mmap(3, os.fstat(3).st_size, mmap.MAP_SHARED, mmap.PROT_READ)
            self.pin("inputs", self.memory, 8)
        return torch.frombuffer(self.memory, dtype=kind, count=count, offset=offset).reshape(shape)

    def pin(self, name, memory, flags):
        """Shared memory that the device reads and writes at the bus's rate. Where that cannot be had
        copies go through the driver's own memory: slower, and right all the same."""
        if self.device == "cpu":
            return
        runtime = torch.cuda.cudart()
        if name in self.pinned:
            runtime.cudaHostUnregister(self.pinned[name])
        self.pinned[name] = torch.frombuffer(memory, dtype=torch.uint8).data_ptr()
        if int(runtime.cudaHostRegister(self.pinned[name], len(memory), flags)) != 0:
            del self.pinned[name]
            try:
                torch.ones(1, device=self.device).add_(1)  # which is told of it, and nobody else
            except RuntimeError:
                pass

    def input(self, request, name, exact):
        index = self.index[name]
        place = request["inputs"][index]
        if "offset" in place:
            values = self.view(place["offset"], place["shape"], self.inputs[index]["dtype"]).to(self.device)
        else:
            kind = getattr(torch, self.inputs[index]["dtype"])
            values = torch.zeros(place["shape"], dtype=kind, device=self.device)
        if values.is_floating_point() and request["bits"] is not None:
            values = round_bits(values, request["bits"])
        return values.double() if exact and values.is_floating_point() else values

    def set_parameters(self, state, request):
        """Every call begins from what it is given, and from the initial values of all the rest: a
        batch norm changes its buffers."""
        values = dict(self.initial)
        for entry in self.binding["parameters"]:
            values[entry["path"]] = self.input(request, entry["input"], False)
        state.set(values)  # which widens as well

    def arguments(self, request, exact):
        arguments = []
        for entry in self.binding["arguments"]:
            if "empty" in entry:
                arguments.append(torch.empty(entry["empty"], dtype=getattr(torch, entry["torch"]), device=self.device))
                continue
            if "number" in entry:
                arguments.append(float(entry["number"]))
                continue
            if "input" not in entry:
                arguments.append(tuple(entry["value"]) if entry.get("tuple") else entry["value"])
                continue
            values = self.input(request, entry["input"], exact)
            if not (exact and values.is_floating_point()):
                values = values.to(getattr(torch, entry["torch"]))
            # A copy: whatever the module does to it in place, the bytes are there for others.
            arguments.append(values.clone())
        return arguments

    def called(self, baseline):
        if baseline != "compile":
            return self.model
        if self.compiled is None:
            self.compiled = torch.compile(self.model)
        return self.compiled

    def exact(self, request):
        """In float64; also tensors that forward makes without a dtype of their own."""
        if self.no_wide is None and self.wide is None:
            self.state.restore()
            self.wide = problem.another(self.module, self.model, self.device).double()
            self.wide_state = self.state_of(self.wide)
            self.wide_state.convert(lambda tensor: tensor.double() if tensor.is_floating_point() else tensor.clone())
        if self.no_wide is None:
            usual = torch.get_default_dtype()
            torch.set_default_dtype(torch.float64)
            try:
                self.set_parameters(self.wide_state, request)
                return problem.run(self.wide, self.arguments(request, True))
            except (RuntimeError, TypeError, ValueError) as fault:
                if "memory" in str(fault):
                    raise
                self.no_wide, self.wide, self.wide_state = str(fault), None, None
            finally:
                torch.set_default_dtype(usual)
        self.set_parameters(self.state, request)
        return problem.run(self.model, self.arguments(request, False))

    def compute(self, request):
        exact = request["precision"] == "exact"
        if exact:
            results = self.exact(request)
        else:
            results = self.run(request)
        if len(results) != len(self.outputs):
            raise problem.Refused("forward gave %d outputs, expected %d" % (len(results), len(self.outputs)))
        for (_, values), tensor, place in zip(results, self.outputs, request["outputs"]):
            self.store(values, tensor["name"], place, "float64" if exact else tensor["dtype"])
        return {"ok": True}

    def store(self, values, name, place, dtype):
        shape = tuple(place["shape"])
        if tuple(values.shape) != shape:
            raise problem.Refused(
                "output %s has shape %s, expected %s" % (name, tuple(values.shape), shape)
            )
        kind = getattr(torch, dtype)
        if values.dtype == torch.int64 and dtype == "int32" and values.numel() > 0:
            if int(values.abs().max()) > 0x7FFFFFFF:
                raise problem.Refused("output %s leaves the range of int32" % name)
        self.place(place["offset"], shape, kind).copy_(values)

    def place(self, offset, shape, kind):
        count = 1
        for extent in shape:
            count *= extent
        end = offset + count * torch.empty(0, dtype=kind).element_size()
        if self.written is None or len(self.written) < end:
            if os.fstat(4).st_size < end:
                os.pwrite(4, b"\0", end - 1)
            before, self.written = self.written, mmap.mmap(4, os.fstat(4).st_size, mmap.MAP_SHARED)
            self.pin("results", self.written, 0)
            del before  # only now: its pages were the device's until they were let go
        return torch.frombuffer(self.written, dtype=kind, count=count, offset=offset).reshape(shape)

    def give_initial(self, request):
        paths = {entry["input"]: entry["path"] for entry in self.binding["parameters"]}
        for place in request["outputs"]:
            values = self.initial[paths[place["name"]]]
            dtype = self.inputs[self.index[place["name"]]]["dtype"]
            self.place(place["offset"], values.shape, getattr(torch, dtype)).copy_(values)
        return {"ok": True}

    def give_inputs(self, request):
        """As the file's get_inputs draws them, under another seed; of more along an axis than asked for, the
        first, and where `repeat` says so of fewer rows the same ones again."""
        ahead = self.ahead.pop(request["seed"], None)
        for drawing in [ahead] if ahead else list(self.ahead.values()):
            drawing.join()
        given = ahead.given if ahead else None
        if given is None:
            given = drawn(self.module, request["seed"])
        named = {}
        for entry, value in zip(self.binding["arguments"], given):
            if "input" in entry:
                named[entry["input"]] = value
        for place in request["outputs"]:
            values, shape = named[place["name"]], tuple(place["shape"])
            if values.dim() and shape[:1] != values.shape[:1]:
                rows = torch.arange(shape[0]) % values.shape[0]
                if shape[0] > values.shape[0] and not request.get("repeat"):
                    raise problem.Refused("get_inputs gives %s no shape %s" % (place["name"], shape))
                values = values[rows.to(values.device)]
            for axis, extent in enumerate(shape[1:], 1):
                if axis < values.dim() and extent < values.shape[axis]:
                    values = values.narrow(axis, 0, extent)
            if tuple(values.shape) != shape:
                raise problem.Refused("get_inputs gives %s no shape %s" % (place["name"], shape))
            dtype = self.inputs[self.index[place["name"]]]["dtype"]
            self.place(place["offset"], shape, getattr(torch, dtype)).copy_(values.detach())
        return {"ok": True}

    def draw_ahead(self, request):
        last = None
        for seed in request["seeds"]:
            last = self.ahead[seed] = Drawing(self.module, seed, last)
            last.start()
        return {"ok": True}

    def run(self, request):
        """What the compiler leaves is some hundred thousand objects, which a collection before each timed
        call would look through: a tenth of a second."""
        first = request.get("baseline") == "compile" and self.compiled is None
        self.set_parameters(self.state, request)
        results = problem.run(self.called(request.get("baseline")), self.arguments(request, False))
        if first:
            gc.collect()
            gc.freeze()
        return results

    def warm(self, request):
        """Shapes and types are all that a compiled module is compiled for. One that cannot be says so
        when it is asked for results."""
        try:
            self.run(request)
            if self.device != "cpu":
                torch.cuda.empty_cache()  # others use the device until this is called again
        except Exception:
            self.compiled = None

    def prepare(self, request):
        """A compiled module is compiled here, and called once: only the next call is timed."""
        baseline = request.get("baseline")
        if baseline == "compile":
            self.run(request)
        self.set_parameters(self.state, request)
        self.ready = self.called(baseline), self.arguments(request, False)
        gc.collect()
        gc.disable()
        self.synchronize()
        return {"ok": True}

    def synchronize(self):
        if self.device != "cpu":
            torch.cuda.synchronize()

    def go(self):
        """The timed call. Its result is dropped only after the answer is on its way."""
        called, arguments = self.ready
        if self.device != "cpu":
            return self.go_on_device(called, arguments)
        with problem.calling():
            returned = called(*arguments)
        self.synchronize()
        return returned

    def go_on_device(self, called, arguments):
        """Between two events, after a sweep of twice the L2: the clock of a kernel's own calls. The
        device waits, before the sweep as there, until the call has been queued, so that what is timed
        is what the device does, and not how long Python takes to ask for it."""
        if self.sweep is None:
            size = 2 * torch.cuda.get_device_properties(0).L2_cache_size
            self.sweep = torch.empty(size, dtype=torch.uint8, device=self.device)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(int(self.hold_s * CYCLES_PER_S))
        self.sweep.fill_(0x5A)
        begin.record()
        asked = time.perf_counter()
        with problem.calling():
            returned = called(*arguments)
        asked = time.perf_counter() - asked
        end.record()
        self.hold_s = min(max(HOLD_S, 2 * asked), HOLD_MOST_S)
        self.synchronize()
        self.device_ns = max(1, round(begin.elapsed_time(end) * 1e6))
        return returned


def explain(fault):
    """One line for people: what was raised and where in the user's file."""
    if isinstance(fault, Refused) or (problem is not None and isinstance(fault, problem.Refused)):
        return str(fault)
    import traceback

    own = os.path.dirname(os.path.abspath(__file__))
    where = ""
    for frame in traceback.extract_tb(fault.__traceback__):
        installed = "site-packages" in frame.filename or "dist-packages" in frame.filename
        ours = os.path.dirname(frame.filename) == own or frame.filename.startswith(sys.base_prefix)
        if not ours and not installed:
            where = " (%s:%d)" % (os.path.basename(frame.filename), frame.lineno)
    if isinstance(fault, SyntaxError):
        where = " (%s:%s)" % (os.path.basename(fault.filename or "?"), fault.lineno)
    lines = [line for line in str(fault).split("\n") if line.strip()] or [""]
    # A compiler's own words say more than that it failed.
    lines = [line for line in lines if "error: " in line][:1] or lines
    return "%s: %s%s" % (type(fault).__name__, lines[0][:300], where)


def answer_to(state, request):
    op = request["op"]
    if op in ("describe", "open"):
        prepare_imports(request)
    if op == "describe":
        return dict(
            problem.describe(request["file"], request.get("device") or "cpu", request.get("shipped") or ()), ok=True
        )
    if op == "open":
        state["reference"] = Reference(request)
        if "warm" in request:
            state["reference"].warm(request["warm"])
        version = ".".join(str(part) for part in sys.version_info[:3])
        versions = {"python": version, "torch": str(torch.__version__)}
        if state["reference"].device != "cpu":
            versions["torch_device"] = torch.cuda.get_device_name()
        return {"ok": True, "versions": versions}
    reference = state["reference"]
    return {
        "compute": reference.compute,
        "prepare": reference.prepare,
        "initial": reference.give_initial,
        "given": reference.give_inputs,
        "ahead": reference.draw_ahead,
    }[op](request)


def main():
    # What the user's file prints or reads must not mix with the protocol.
    source = os.fdopen(os.dup(0), "rb", buffering=65536)
    sink = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    state = {}

    def answer(record):
        os.write(sink, json.dumps(record).encode() + b"\n")

    keep_memory()
    for line in source:
        try:
            if line == b"go\n":
                kept = state["reference"].go()
                device_ns = state["reference"].device_ns
                os.write(sink, b"done\n" if device_ns is None else b"done %d\n" % device_ns)
                del kept
                gc.enable()
                continue
            answer(answer_to(state, json.loads(line)))
        except (Exception, SystemExit) as fault:
            gc.enable()
            large = isinstance(fault, MemoryError) or type(fault).__name__ == "TooLarge"
            answer({"error": explain(fault), "limit": large})


if __name__ == "__main__":
    main()
