#!/usr/bin/env python3
"""The CUDA starts on a GPU, without twagent: right on every check shape, and how fast.

usage: bench/cuda/starts.py [--cache FOLDER] [--compile-only] [--points N] [--with A=1,B=2]... [--json FILE] [START ...]

START is PROBLEM or PROBLEM/NAME (softmax, softmax/block). Needs nvcc (or a cache that was filled
with --compile-only elsewhere), and on the GPU's side PyTorch and PyYAML. Each start is compiled at
its first point, at that with A=1 and B=2 in place of its own (for each --with), and at N others drawn
from its tune space. Times are CUDA events, median of 15, after the L2 was overwritten; PyTorch's eager time is beside them. Inputs are normal; the reference is
computed in float64."""

import argparse
import concurrent.futures
import ctypes
import hashlib
import importlib.machinery
import importlib.util
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INT_NAN = 0x7FC00000
WAIT = 800_000  # clocks of the device
GUARD = 1024  # floats on both sides of each buffer that nobody may write
MORE_POINTS = {
    "matmul/simt": 5,
    "matmul/tf32x3": 4,
    "conv2d/fp16x3": 4,
    "matmul_bf16/mma": 3,
    "matmul_bf16/wgmma": 2,
    "matmul_fp16/mma": 3,
    "matmul_tf32/mma": 3,
    "matmul_batched/simt": 3,
    "conv2d/implicit_gemm": 4,
    "attention/flash": 3,
    "attention_fp16/mma": 3,
    "attention_fp16/wgmma": 3,
    "attention_causal/wgmma": 3,
}

SHAPES = {
    "matmul": [{"M": 4096, "N": 4096, "K": 4096}, {}],
    "matmul_bf16": [
        {"M": 4096, "N": 4096, "K": 4096},
        {"M": 8192, "N": 8192, "K": 8192},
        {"M": 1149, "N": 1543, "K": 1933},
        {"M": 62, "N": 1670, "K": 7764},
    ],
    "matmul_fp16": [{"M": 4096, "N": 4096, "K": 4096}, {"M": 1149, "N": 1543, "K": 1933}, {"M": 62, "N": 1670, "K": 7764}],
    "matmul_tf32": [{"M": 4096, "N": 4096, "K": 4096}],
    "matmul_batched": [{"BATCH": 64, "M": 512, "N": 512, "K": 512}],
    "gemv": [{"M": 16384, "N": 16384}],
    "conv2d": [
        {"N": 256, "C": 3, "H": 224, "W": 224, "K": 96, "R": 11, "S": 11, "PAD": 2, "STRIDE": 4},
        {"N": 32, "C": 64, "H": 56, "W": 56, "K": 64, "R": 3, "S": 3, "PAD": 1, "STRIDE": 1},
    ],
    "softmax": [{"M": 4096, "N": 16384}],
    "layernorm": [{"M": 4096, "N": 16384}, {"M": 16, "N": 64 * 256 * 256}],
    "rmsnorm": [{"M": 4096, "N": 16384}],
    "relu": [{"M": 8192, "N": 16384}],
    "sum_rows": [{"M": 16384, "N": 16384}],
    "transpose": [{"M": 8192, "N": 8192}],
    "attention": [{"H": 64, "L": 2048, "D": 64}, {}],
    "attention_fp16": [{"H": 64, "L": 2048, "D": 64}, {"H": 32, "L": 2048, "D": 128}, {"H": 24, "L": 2000, "D": 45}],
    "attention_causal": [{"H": 64, "L": 2048, "D": 64}, {"H": 32, "L": 2048, "D": 128}, {"H": 24, "L": 2000, "D": 45}],
}


def load_tool():
    path = os.path.join(ROOT, "tests/tools/cuda-starts")
    loader = importlib.machinery.SourceFileLoader("cuda_starts", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("cuda_starts", loader))
    loader.exec_module(module)
    return module


TOOL = load_tool()


class Start:
    def __init__(self, problem, path):
        self.problem, self.path = problem, path
        self.name = f"{problem}/{os.path.splitext(os.path.basename(path))[0]}"
        with open(path, encoding="utf-8") as source:
            self.text = source.read()
        self.plan = yaml.safe_load(TOOL.front_matter(self.text))

    def points(self, count, changes):
        """The first valid point, that with each of `changes`, and `count` others: valid at one of the shapes."""
        space, where = TOOL.tune_space(self.text)
        main = TOOL.shapes_of(self.path)[0]

        def holds(point):
            return any(TOOL.holds(where, {**main, **shape, **point}) for shape in SHAPES[self.problem])

        first = {name: values[0] for name, values in space.items()}
        drawn, rng = [first], random.Random(7)
        for change in changes:
            point = {**first, **{name: value for name, value in change.items() if name in first}}
            if point not in drawn and holds(point):
                drawn.append(point)
        count += len(drawn) - 1
        for _ in range(4000):
            point = {name: rng.choice(values) for name, values in space.items()}
            if len(drawn) <= count and point not in drawn and holds(point):
                drawn.append(point)
        return drawn


def compiled(start, point, cache, arch):
    key = hashlib.sha256(repr((start.text, sorted(point.items()), arch)).encode()).hexdigest()[:24]
    cubin = os.path.join(cache, key + ".cubin")
    if os.path.exists(cubin):
        return cubin
    unit = os.path.join(cache, key + ".cu")
    with open(unit, "w", encoding="utf-8") as out:
        out.writelines(f"#define {name} {value}\n" for name, value in point.items())
        out.write(start.text)
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    subprocess.run([nvcc, f"-arch={arch}", "-std=c++17", "-cubin", "-o", cubin + ".new", unit], check=True)
    os.replace(cubin + ".new", cubin)
    os.remove(unit)
    return cubin


FUNCTIONS = {"min": min, "max": max, "ceil_div": lambda a, b: -(-a // b), "round_up": lambda a, b: -(-a // b) * b}


def number(expression, names):
    if isinstance(expression, int):
        return expression
    text = str(expression).replace("&&", " and ").replace("||", " or ").replace("/", "//")
    return int(eval(text, {"__builtins__": {}}, {**FUNCTIONS, **names}))


def shape_of(expressions, names):
    """What a YAML list splits inside parentheses is joined again."""
    if isinstance(expressions, list):
        expressions = ",".join(map(str, expressions))
    text = str(expressions).replace("/", "//")
    return [int(n) for n in eval(f"({text},)", {"__builtins__": {}}, {**FUNCTIONS, **names})]


def extents(expressions, names):
    found = shape_of(expressions, names)
    return found + [1] * (3 - len(found))


# ---- the driver, as far as it is needed


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint),
    ]


COOPERATIVE, CLUSTER, MAX_DYNAMIC_SHARED, NON_PORTABLE_CLUSTER, PORTABLE_CLUSTER = 2, 4, 8, 14, 8


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.modules = {}

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")

    def function(self, cubin, entry):
        if cubin not in self.modules:
            module = ctypes.c_void_p()
            self.call("cuModuleLoad", ctypes.byref(module), cubin.encode())
            self.modules[cubin] = module
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.modules[cubin], entry.encode())
        return function

    def tensor_map(self, tma, tensor, pointer, names):
        """What a `tma` entry describes; zeros where the rows are not aligned to 16 bytes."""
        if "shape" in tma:
            tensor = tensor.view(shape_of(tma["shape"], names))
        memory = (ctypes.c_char * 192)()
        at = -(-ctypes.addressof(memory) // 64) * 64
        rank, size = tensor.dim(), tensor.element_size()
        strides = [stride * size for stride in tensor.stride()][-2::-1]
        if all(stride % 16 == 0 for stride in strides):
            wide, narrow = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
            box = shape_of(tma["box"], names)[::-1]
            swizzle = {"none": 0, "32B": 1, "64B": 2, "128B": 3}[tma.get("swizzle", "none")]
            promotion = {"none": 0, "64B": 1, "128B": 2, "256B": 3}[tma.get("l2", "none")]
            kind = 11 if tma.get("type") == "tf32" else {2: 9, 4: 7}[size]
            self.call("cuTensorMapEncodeTiled", ctypes.c_void_p(at), kind, rank, ctypes.c_void_p(pointer),
                      wide(*list(tensor.shape)[::-1]), wide(*strides), narrow(*box), narrow(*[1] * rank),
                      0, swizzle, promotion, 0)
        return memory, at

    def prepare(self, start, cubin, names, pointers, tensors, sizes):
        """A function that launches the start's whole list."""
        steps, maps, fills = [], {}, []
        for name, byte in (start.plan.get("memset") or {}).items():
            fills.append((ctypes.c_ulonglong(pointers[name]), byte, sizes[name]))
        for name, tma in (start.plan.get("tma") or {}).items():
            maps[name] = self.tensor_map(tma, tensors[tma["tensor"]], pointers[tma["tensor"]], names)
        for launch in start.plan["launch"]:
            function = self.function(cubin, launch["entry"])
            shared = number(launch.get("shared", 0), names)
            if shared > 48 << 10:
                self.call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, shared)
            config, attributes = Config(), (Attribute * 2)()
            config.grid = (ctypes.c_uint * 3)(*extents(launch["grid"], names))
            config.block = (ctypes.c_uint * 3)(*extents(launch["block"], names))
            config.shared = shared
            if "cluster" in launch:
                attributes[config.count].id = CLUSTER
                cluster = extents(launch["cluster"], names)
                for axis, extent in enumerate(cluster):
                    attributes[config.count].value[axis] = extent
                if math.prod(cluster) > PORTABLE_CLUSTER:
                    self.call("cuFuncSetAttribute", function, NON_PORTABLE_CLUSTER, 1)
                config.count += 1
            if launch.get("cooperative"):
                attributes[config.count].id, attributes[config.count].value[0] = COOPERATIVE, 1
                config.count += 1
            config.attributes = attributes
            values = [
                ctypes.c_void_p(pointers[name]) if name in pointers else ctypes.c_longlong(names.get(name, 0))
                for name in launch["args"]
            ]
            array = (ctypes.c_void_p * len(values))(
                *[maps[name][1] if name in maps else ctypes.addressof(value) for name, value in zip(launch["args"], values)]
            )
            # its workspaces, too: who keeps the function to time it later has nothing else that holds them
            steps.append((config, function, array, values, (attributes, maps, tensors)))

        def run():
            for pointer, byte, size in fills:
                self.call("cuMemsetD8Async", pointer, ctypes.c_ubyte(byte), ctypes.c_size_t(size), None)
            for config, function, array, _, _ in steps:
                self.call("cuLaunchKernelEx", ctypes.byref(config), function, array, None)

        return run


# ---- what PyTorch is for: memory, references, events


class Bench:
    def __init__(self, driver):
        import torch

        self.torch, self.driver = torch, driver
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        torch.manual_seed(5)
        device = torch.cuda.get_device_properties(0)
        self.facts = {"sm_count": device.multi_processor_count, "warp_size": 32, "l2_bytes": device.L2_cache_size}
        self.flush = torch.empty(max(device.L2_cache_size, 1 << 26) // 2, dtype=torch.float32, device="cuda")

    def buffer(self, shape, dtype="float32"):
        count = math.prod(shape)
        fill = INT_NAN if dtype == "int32" else float("nan")
        whole = self.torch.full((count + 2 * GUARD,), fill, dtype=getattr(self.torch, dtype), device="cuda")
        return whole, whole[GUARD : GUARD + count].view(shape)

    def guarded(self, whole):
        isnan = self.torch.isnan if whole.is_floating_point() else lambda numbers: numbers == INT_NAN
        return bool(isnan(whole[:GUARD]).all() and isnan(whole[-GUARD:]).all())

    def reference(self, problem, tensors, dims):
        """Eager PyTorch, in the precision of the tensors."""
        f, torch = self.torch.nn.functional, self.torch
        t = tensors
        if problem.startswith("matmul"):
            torch.backends.cuda.matmul.allow_tf32 = problem == "matmul_tf32"
            return t["A"] @ t["B"]
        if problem == "gemv":
            return t["A"] @ t["x"]
        if problem == "conv2d":
            return f.conv2d(t["X"], t["F"], stride=dims["STRIDE"], padding=dims["PAD"])
        if problem == "softmax":
            return torch.softmax(t["X"], -1)
        if problem == "layernorm":
            return f.layer_norm(t["X"], (dims["N"],), t["gamma"], t["beta"], 1e-5)
        if problem == "rmsnorm":
            return f.rms_norm(t["X"], (dims["N"],), t["gamma"], 1e-6)
        if problem == "relu":
            return torch.relu(t["X"])
        if problem == "sum_rows":
            return t["X"].sum(-1)
        if problem == "transpose":
            return t["A"].t().contiguous()
        causal = problem == "attention_causal"
        return f.scaled_dot_product_attention(t["Q"][None], t["K"][None], t["V"][None], is_causal=causal)[0]

    def copy_rate(self):
        """Terabytes a second, read and written, of a copy of 256 MiB."""
        source = self.torch.empty(1 << 26, dtype=self.torch.float32, device="cuda").normal_()
        target = self.torch.empty_like(source)
        return 2 * 4 * source.numel() / self.time(lambda: target.copy_(source)) / 1e9

    def time(self, run, most=15):
        torch = self.torch
        run()
        torch.cuda.synchronize()
        samples, began = [], time.monotonic()
        while len(samples) < most and (len(samples) < 3 or time.monotonic() - began < 0.25):
            self.flush.fill_(1.0)
            torch.cuda._sleep(WAIT)  # until the host has asked for everything: what Python takes is nobody's time
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run()
            end.record()
            end.synchronize()
            samples.append(begin.elapsed_time(end))
        return statistics.median(samples)


class Case:
    """A problem at a shape: its tensors, what is right, what PyTorch needs."""

    def __init__(self, bench, spec, shape, timed):
        self.bench, self.spec, self.dims = bench, spec, {}
        for name, value in spec["dims"].items():
            self.dims[name] = shape[name] if name in shape else number(value, self.dims)
        self.wholes, self.inputs, self.outputs = {}, {}, {}
        for kind, tensors in (("inputs", self.inputs), ("outputs", self.outputs)):
            for name, tensor in spec[kind].items():
                sizes = [number(extent, self.dims) for extent in tensor["shape"]]
                self.wholes[name], tensors[name] = bench.buffer(sizes, tensor["dtype"])
        for tensor in self.inputs.values():
            tensor.normal_()
        self.want, self.eager, self.last = None, None, None
        problem = spec["name"]
        if timed:
            self.eager = bench.time(lambda: bench.reference(problem, self.inputs, self.dims))
        try:
            doubles = {name: tensor.double() for name, tensor in self.inputs.items()}
            with bench.torch.backends.cudnn.flags(enabled=False):
                self.want = bench.reference(problem, doubles, self.dims)
        except RuntimeError:  # no memory, or no such kernel in float64
            self.want = bench.reference(problem, self.inputs, self.dims).double()

    def measure(self, start, point, cubin, timed):
        bench, names = self.bench, {**self.bench.facts, **self.dims, **point}
        wholes, pointers, sizes, spaces = dict(self.wholes), {}, {}, {}
        for name, tensor in (start.plan.get("workspace") or {}).items():
            wholes[name], spaces[name] = bench.buffer(shape_of(tensor["shape"], names), tensor["dtype"])
        for name, whole in wholes.items():
            pointers[name] = whole.data_ptr() + whole.element_size() * GUARD
            sizes[name] = whole.element_size() * (whole.numel() - 2 * GUARD)
        for tensor in self.outputs.values():
            tensor.fill_(float("nan"))
        run = bench.driver.prepare(start, cubin, names, pointers, {**self.inputs, **self.outputs, **spaces}, sizes)
        run()
        self.last = run
        bench.torch.cuda.synchronize()
        (output,) = self.outputs.values()
        error = float(((output.double() - self.want).norm() / self.want.norm().clamp(min=1e-30)).item())
        most = 2e-3 if self.spec.get("precision") == "tf32" else 3e-6 if output.element_size() == 4 else 3e-3
        fine = error < most and all(bench.guarded(whole) for whole in wholes.values())
        return fine, error, bench.time(run) if timed and fine else None


def figures(spec, dims, milliseconds):
    flops = number(spec.get("flops", 0), dims) / milliseconds / 1e9
    moved = number(spec["bytes"], dims) / milliseconds / 1e9
    return f"{flops:7.2f} Tflop/s {moved:6.3f} TB/s"


def run_problem(bench, problem, starts, cubins, rows):
    with open(os.path.join(ROOT, "problems", problem, "spec.yaml"), encoding="utf-8") as source:
        spec = yaml.safe_load(source)
    for shape in spec["check"]:
        case = Case(bench, spec, shape, False)
        for start in starts:
            for point in start.points_used:
                fine, error, _ = case.measure(start, point, cubins[start.name, str(point)], False)
                start.checked += 1
                if not fine:
                    start.wrong.append((shape, point, error))
    for shape in SHAPES[problem]:
        case = Case(bench, spec, shape, True)
        text = " ".join(f"{name}={value}" for name, value in case.dims.items())
        print(f"\n{problem} {text}: eager {case.eager:.4f} ms {figures(spec, case.dims, case.eager)}", flush=True)
        for start in starts:
            found, where = [], TOOL.tune_space(start.text)[1]
            for point in start.points_used:
                if not TOOL.holds(where, {**bench.facts, **case.dims, **point}):
                    continue
                try:
                    fine, error, ms = case.measure(start, point, cubins[start.name, str(point)], True)
                except RuntimeError as problem_met:
                    print(f"  {start.name} {point}: {problem_met}", flush=True)
                    continue
                if fine:
                    found.append((ms, point))
                else:
                    start.wrong.append((case.dims, point, error))
            if not found:
                continue
            best = min(found, key=lambda pair: pair[0])
            rows.append({"start": start.name, "dims": case.dims, "eager_ms": case.eager, "first_ms": found[0][0],
                         "best_ms": best[0], "best": best[1], "all": found})
            print(f"  {start.name:24} first {found[0][0]:.4f} best {best[0]:.4f} ms {figures(spec, case.dims, best[0])} "
                  f"{case.eager / best[0]:5.2f} x eager  {best[1]}", flush=True)
        del case


def changed(text):
    return {name: int(value) for name, value in (pair.split("=") for pair in text.split(","))}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("starts", nargs="*", metavar="START")
    options.add_argument("--cache", default=os.path.join(ROOT, "build", "cubins"))
    options.add_argument("--arch", default="sm_90a")
    options.add_argument("--points", type=int, default=5)
    options.add_argument("--with", dest="changes", action="append", default=[], type=changed, metavar="A=1,B=2")
    options.add_argument("--jobs", type=int, default=os.cpu_count())
    options.add_argument("--compile-only", action="store_true")
    options.add_argument("--json")
    given = options.parse_args()
    os.makedirs(given.cache, exist_ok=True)
    by_problem = {}
    for problem in SHAPES:
        folder = os.path.join(ROOT, "problems", problem, "starts", "cuda")
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            start = Start(problem, os.path.join(folder, name))
            if not given.starts or problem in given.starts or start.name in given.starts:
                by_problem.setdefault(problem, []).append(start)
    jobs, cubins = {}, {}
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for start in (start for starts in by_problem.values() for start in starts):
            start.points_used = start.points(given.points * MORE_POINTS.get(start.name, 1), given.changes)
            start.wrong, start.checked = [], 0
            for point in start.points_used:
                jobs[start.name, str(point)] = pool.submit(compiled, start, point, given.cache, given.arch)
        for key, job in jobs.items():
            cubins[key] = job.result()
    print(f"{len(cubins)} cubins")
    if given.compile_only:
        return 0
    bench, rows, wrong = Bench(Driver()), [], 0
    print(bench.torch.cuda.get_device_name(0), "PyTorch", bench.torch.__version__, bench.facts)
    print(f"a copy moves {bench.copy_rate():.3f} TB/s")
    for problem, starts in by_problem.items():
        run_problem(bench, problem, starts, cubins, rows)
    print("\nchecks (every point at every check shape):")
    for start in (start for starts in by_problem.values() for start in starts):
        print(f"  {'ok ' if not start.wrong else 'BAD'} {start.name}: {start.checked} checks, {len(start.wrong)} wrong",
              *start.wrong[:4])
        wrong += len(start.wrong)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as out:
            json.dump(rows, out)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
