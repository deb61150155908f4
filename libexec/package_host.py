"""A package of `twagent emit` in a process as its user has one: what src/eval/emit/package.c starts.

Started as `python3 -I package_host.py` inside the sandbox. One JSON request a line on stdin, one JSON answer
a line on stdout. Inputs are read from descriptor 3 (shared memory, read only), outputs are written to
descriptor 4. Nothing that is said here is believed: the worker compares the outputs.

    {"op":"open", "folder":..., "device":"cpu"|"cuda", "threads":N}    -> {"library":"PyTorch 2.9.1"}
    {"op":"call", "dims":{...}, "inputs":[{"name","dtype","offset","shape"}], "outputs":[...]}    -> {}

An answer {"error":..., "ours":true} is no fault of the package.

Tensors are the library's own, from its own allocator, among memory that other work has used before. A CPU
package has a build for aligned arrays and one for any: calls take turns between the two. Arrays lie at multiples
of 2 MiB, as in large pages, then where PyTorch puts them or the package's empty() does; and where numpy puts
them, or at an odd place in a page.
"""

import importlib.util
import json
import mmap
import os
import sys

HUGE = 2 << 20
STORED = {"bfloat16": "uint16"}


class Memory:
    """A descriptor's bytes, mapped as far as they go."""

    def __init__(self, descriptor, writes):
        self.descriptor, self.prot = descriptor, mmap.PROT_READ | (mmap.PROT_WRITE if writes else 0)
        self.bytes = None

    def view(self, place):
        import numpy

        dtype = numpy.dtype(STORED.get(place["dtype"], place["dtype"]))
        count = 1
        for extent in place["shape"]:
            count *= extent
        size = os.fstat(self.descriptor).st_size
        if self.bytes is None or len(self.bytes) < size:
            self.bytes = mmap.mmap(self.descriptor, size, mmap.MAP_SHARED, self.prot)
        return numpy.frombuffer(self.bytes, dtype, count, place["offset"]).reshape(place["shape"])


def load(folder):
    """The package, by its own files: what lies beside its folder cannot be read here."""
    spec = importlib.util.spec_from_file_location(
        "package", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    module = sys.modules["package"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Host:
    def __init__(self, request):
        for name in ("OMP", "OPENBLAS", "MKL"):
            os.environ[name + "_NUM_THREADS"] = str(max(1, request["threads"]))
        import numpy

        self.numpy, self.torch, self.device = numpy, None, request["device"]
        try:
            import torch

            self.torch = torch
        except ImportError:
            if self.device != "cpu":
                raise
        self.other_work()
        self.package = load(request["folder"])
        self.calls, self.kept = 0, []
        self.inputs, self.outputs = Memory(3, False), Memory(4, True)

    def version(self):
        if self.torch is not None:
            return "PyTorch " + str(self.torch.__version__)
        return "numpy " + self.numpy.__version__

    def other_work(self):
        """Threads, allocator and caches as a program has them that does something else, too."""
        numpy, torch = self.numpy, self.torch
        a = numpy.random.default_rng(1).standard_normal((257, 129)).astype(numpy.float32)
        for _ in range(4):
            a = numpy.sort(a @ a.T @ a, axis=0) / 1e3
        if torch is None:
            return
        kept = []
        for extent in (33, 1 << 10, 1 << 16, 1 << 20):
            x = torch.rand(extent, device=self.device, requires_grad=True)
            (x * 2).relu().sum().backward()
            kept.append(torch.empty(extent, device=self.device))
        y = torch.rand(64, 64, device=self.device)
        (y @ y).softmax(-1).cpu()

    def memory(self, shape, dtype):
        """An array in the library's own memory, or at a place of its choice."""
        numpy, torch = self.numpy, self.torch
        dtype = numpy.dtype(dtype)
        size = dtype.itemsize
        for extent in shape:
            size *= extent
        kind = self.calls % 4
        if kind == 2 and torch is not None:
            self.kept.append(torch.empty(size, dtype=torch.uint8))
            return self.kept[-1].numpy().view(dtype).reshape(shape)
        if kind == 2:
            return self.package.empty(shape, dtype)
        if kind == 1 and torch is None:
            return numpy.empty(shape, dtype)
        raw = numpy.empty(size + 2 * HUGE, numpy.uint8)
        start = -raw.ctypes.data % HUGE + (0 if kind == 0 else 4096 + 5 * dtype.itemsize)
        return raw[start : start + size].view(dtype).reshape(shape)

    def call(self, request):
        self.kept = []
        given = [self.inputs.view(place) for place in request["inputs"]]
        if self.device == "cpu":
            results = self.on_cpu(given, request)
        else:
            results = self.on_device(given, request)
        for place, result in zip(request["outputs"], results):
            self.outputs.view(place)[...] = result
        self.calls += 1

    def on_cpu(self, given, request):
        arrays = []
        for values in given:
            array = self.memory(values.shape, values.dtype)
            array[...] = values
            arrays.append(array)
        outs = None
        if self.calls % 2:  # as the caller's own arrays
            outs = [self.memory(p["shape"], STORED.get(p["dtype"], p["dtype"])) for p in request["outputs"]]
            outs = outs[0] if len(outs) == 1 else tuple(outs)
        results = self.package.kernel(*arrays, out=outs, **request["dims"])
        return results if isinstance(results, tuple) else (results,)

    def on_device(self, given, request):
        torch = self.torch
        tensors = []
        for values, place in zip(given, request["inputs"]):
            if place["dtype"] == "bfloat16":
                tensors.append(torch.from_numpy(values.view("int16").copy()).view(torch.bfloat16).to(self.device))
            else:
                tensors.append(torch.from_numpy(values.copy()).to(self.device))
        run = getattr(self.package, "run", None) or self.package.kernel
        results = run(*tensors, **request["dims"])
        results = results if isinstance(results, tuple) else (results,)
        self.kept = [r.cpu() for r in results]
        return [
            r.view(torch.int16).numpy().view("uint16") if r.dtype == torch.bfloat16 else r.numpy() for r in self.kept
        ]


def main():
    source = os.fdopen(os.dup(0), "rb", buffering=65536)
    sink = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    host = None

    def answer(record):
        os.write(sink, json.dumps(record).encode() + b"\n")

    for line in source:
        request = json.loads(line)
        try:
            if request["op"] == "open":
                host = Host(request)
                answer({"library": host.version()})
            else:
                host.call(request)
                answer({})
        except (Exception, SystemExit) as problem:
            words = "%s: %s" % (type(problem).__name__, problem)
            answer({"error": words[:300], "ours": host is None or isinstance(problem, MemoryError)})


main()
