"""Which mutants are wrong, on a GPU: PyTorch in float64, launches by `launch_cuda.py`, without twagent.

As `referee.py`, with these differences. A process launches all mutants of a problem, case by case, and is replaced
where one faults or hangs. Tensors lie in memory that ends where nothing is mapped, in half of the cases at its very end.
    python3 referee_cuda.py JOB.json      a line for each mutant: its verdict"""
import ctypes
import importlib.util
import json
import multiprocessing
import os
import select
import signal
import subprocess
import sys
import tempfile

import numpy

from referee import GREY, HONEST
from spec import KINDS, Spec

SECONDS, FIRST = 10, 90  # of one case of one mutant, the wait for a GPU that others use included; until the first one
DEVICE = "cuda"
ARENA = 1 << 28
LIMITS = (1 << 22, 1 << 32, 6000), (1 << 25, 1 << 35, 6000)  # as of referee.py
MARGIN = 4096
OWN, GARBAGE = 0x7fa5c3e1, 0x7fffffff  # around outputs, a NaN that no operation makes; elsewhere


def cases_of(spec, large, small, seed, at=None):
    if at:
        return [(i, spec.dims(at), kind, "own") for i, kind in enumerate(KINDS * 2)]
    rng = numpy.random.default_rng([seed, 1])
    dims = [d for d in map(spec.dims, spec.yaml.get("check", [])) if spec.elements(d) <= LIMITS[0][0]]
    dims += [spec.small(rng) for _ in range(small)]
    dims += [spec.large(rng, *LIMITS[i % 4 == 3]) for i in range(large)]
    return [(i, d, KINDS[i % len(KINDS)], ("own", "end")[i // 2 % 2]) for i, d in enumerate(dims)]


def draw(torch, spec, dims, kind, seed):
    generator = torch.Generator(DEVICE).manual_seed(seed)
    normal = lambda shape: torch.randn(shape, generator=generator, device=DEVICE)
    uniform = lambda shape: torch.rand(shape, generator=generator, device=DEVICE)
    made = []
    for place, tensor in enumerate(spec.inputs.values()):
        shape = spec.shape(tensor, dims)
        x = normal(shape)
        if kind == "uniform":
            x = uniform(shape) * 2 - 1
        elif kind == "positive":
            x = uniform(shape)
        elif kind == "offset" and place == 0:
            x = x + (1 - 2 * (seed // 2 % 2)) * (1000 if "range" not in tensor or tensor["range"][1] > 1000 else 3)
        elif kind == "huge":
            x = x * 1e4
        elif kind == "tiny":
            x = x * 1e-6
        elif kind == "sparse":
            x = x * (uniform(shape) < 0.1)
        elif kind == "wide":
            x = x * torch.exp2(torch.floor(uniform(shape) * 25 - 12))
        elif kind == "sorted" and x.ndim:
            x = x.sort(-1)[0]
        elif kind == "rows" and x.ndim > 1:
            x = x * 0.01 + normal(shape[:-1] + (1,)) * 20
        elif kind == "one_hot" and place == 0:
            x = (uniform(shape) < 0.01).float()
        low, high = tensor.get("range", [-3e38, 3e38])
        if low >= 0:
            x = x.abs() + low
        if tensor["dtype"] == "float16":
            low, high = max(low, -60000), min(high, 60000)
        made.append(x.clamp(low, high).to(getattr(torch, tensor["dtype"])).contiguous())
    return made


def error(torch, got, exact, normwise):
    width = exact.shape[-1] if exact.ndim and exact.shape[-1] >= 16 else 64
    got, exact = got.double().reshape(-1), exact.reshape(-1)
    squares = torch.nn.functional.pad(exact * exact, (0, -exact.numel() % width)).reshape(-1, width)
    rows = squares.mean(1).sqrt().repeat_interleave(width)[:exact.numel()]
    least = float(squares.mean().sqrt()) * (1 if normwise else 2.0**-20)
    off = (got - exact).abs() / torch.maximum(exact.abs(), rows).clamp(min=max(least, 1e-30))
    off = torch.where(got == exact, torch.zeros_like(off), off)
    return float(torch.nan_to_num(off, nan=float("inf"), posinf=float("inf")).max()) if off.numel() else 0.0


class Bench:
    """In a child: the GPU, memory, and everything loaded."""

    every = False  # whether a mutant goes on behind its first wrong case

    def __init__(self, spec, cubins, plans, names, tell):
        import torch
        from launch_cuda import Fault, Kernel, Walled, driver, facts
        self.torch, self.spec, self.driver, self.tell = torch, spec, driver, tell
        self.normwise = spec.yaml.get("accuracy") == "normwise"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.zeros(1, device=DEVICE)
        torch.cuda.synchronize()
        known, self.kernels = facts(), {}
        for name in names:
            try:
                self.kernels[name] = Kernel(cubins[name], plans[name], known)
            except Fault as fault:
                tell({"name": name, "wrong": "does not load: %s" % fault, "place": 0, "dims": spec.dims({}), "inputs": ""})
        self.walled, self.make = [], Walled
        path = os.path.join(spec.folder, "baselines/torch.py")
        module = importlib.util.module_from_spec(importlib.util.spec_from_file_location("definition", path))
        module.__spec__.loader.exec_module(module)
        self.model = module.Model()

    def place(self, index, size, how):
        while len(self.walled) <= index:
            self.walled.append(self.make(ARENA))
        arena = self.walled[index]
        if size + 3 * MARGIN > arena.size:
            return None
        return arena.begin + (arena.size - -(-size // 256) * 256 if how == "end" else MARGIN)

    def copy(self, to, source, size):
        self.driver("cuMemcpyDtoD_v2", ctypes.c_ulonglong(to), ctypes.c_ulonglong(source), ctypes.c_size_t(size))

    def call(self, kernel, dims, inputs, how):
        """Outputs; or why not."""
        torch, spec = self.torch, self.spec
        tensors = {n: (t["dtype"], spec.shape(t, dims)) for n, t in [*spec.inputs.items(), *spec.outputs.items()]}
        tensors.update(kernel.workspaces(dims))
        pointers, sizes = {}, {}
        for i, (name, (dtype, shape)) in enumerate(tensors.items()):
            size = torch.empty(0, dtype=getattr(torch, dtype)).element_size()
            for axis in shape:
                size *= axis
            pointers[name], sizes[name] = self.place(i, size, how), size
            if pointers[name] is None:
                return "too large", None
            begin, end = self.around(pointers[name], size, how)
            self.driver("cuMemsetD32_v2", ctypes.c_ulonglong(begin), ctypes.c_uint(OWN if name in spec.outputs else GARBAGE),
                        ctypes.c_size_t((end - begin) // 4))
        for name, x in zip(spec.inputs, inputs):
            self.copy(pointers[name], x.data_ptr(), sizes[name])
        torch.cuda.synchronize()
        kernel(pointers, dims, tensors)
        torch.cuda.synchronize()
        got = []
        for name in tensors:
            begin, end = self.around(pointers[name], sizes[name], how)
            for low, high in ((begin, pointers[name]), (-(-(pointers[name] + sizes[name]) // 4) * 4, end)):
                if high > low:
                    seen = torch.empty((high - low) // 4, dtype=torch.int32, device=DEVICE)
                    self.copy(seen.data_ptr(), low, high - low)
                    if not bool((seen == (OWN if name in spec.outputs else GARBAGE)).all()):
                        return "writes out of bounds", None
            if name in spec.outputs or name in spec.inputs:
                dtype, shape = tensors[name]
                out = torch.empty(shape, dtype=getattr(torch, dtype), device=DEVICE)
                self.copy(out.data_ptr(), pointers[name], sizes[name])
                if name in spec.outputs:
                    got.append(out)
                elif not same(torch, out, inputs[list(spec.inputs).index(name)]):
                    return "changes an input", None
        return None, got

    def around(self, pointer, size, how):
        end = pointer + -(-size // 256) * 256
        return (pointer - MARGIN, end) if how == "end" else (pointer - MARGIN, end + MARGIN)

    def case(self, case, starts, mutants, racy, seed):
        place, dims, kind, how = case
        torch = self.torch
        inputs = draw(torch, self.spec, dims, kind, 1000 * seed + place)
        numbers = [dims[d] for d in dims]
        with torch.no_grad():
            exact = self.model(*(x.double() for x in inputs), *numbers)
            plain = self.model(*inputs, *numbers)
            torch.backends.cuda.matmul.allow_tf32 = False
        largest = float(exact.abs().max())
        out = next(iter(self.spec.outputs.values()))["dtype"]
        if not largest < (60000 if out == "float16" else 1e37):
            return
        honest = max(error(torch, plain, exact, self.normwise), 2.0**-24)
        told = {}
        for name in [*starts, *mutants]:
            if name not in self.kernels:
                continue
            path = name if name in starts else mutants[name][0]
            for _ in range(3 if name in racy else 1):
                self.tell({"at": place, "name": name})
                why, got = self.call(self.kernels[name], dims, inputs, how)
                if why is None:
                    if name != path and path in told and same(torch, got[0], told[path][0]):
                        continue
                    worst = error(torch, got[0], exact, self.normwise)
                    if name in starts:
                        told[name] = (got[0], worst)
                    ratio = worst / max(honest, told[path][1] if path in told and name != path else 0)
                    if ratio <= (ratio if name in starts and worst < 2.0**-6 else GREY):
                        self.tell({"name": name, "ratio": ratio})
                        continue
                    why = "precision" if worst < 2.0**-6 else "values"
                elif why == "too large":  # its workspace
                    break
                self.tell({"name": name, "wrong": why, "place": place, "dims": dims, "inputs": kind})
                if not self.every:
                    del self.kernels[name]
                break


def same(torch, a, b):
    kind = torch.int16 if a.element_size() == 2 else torch.int32
    return torch.equal(a.view(kind), b.view(kind))


def compiled(one):
    from launch_cuda import compile_source
    return one[0], compile_source(one[1], one[2])


def architecture():
    done = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], capture_output=True, text=True)
    number = done.stdout.split()[0].replace(".", "")
    return "sm_%s%s" % (number, "a" if int(number) >= 90 else "")


class Served:
    """A child that launches; lines of JSON come from it."""

    def __init__(self, work):
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read)
            tell = lambda record: os.write(write, (json.dumps(record) + "\n").encode())
            try:
                work(tell)
                tell({"end": True})
            except BaseException as fault:  # the GPU's context is gone, or a call of the driver's was refused
                tell({"fault": "%s: %s" % (type(fault).__name__, str(fault)[:300])})
            finally:
                os._exit(0)
        os.close(write)
        self.read, self.rest = read, b""

    def lines(self):
        patience = FIRST
        while True:
            ready, _, _ = select.select([self.read], [], [], patience)
            if not ready:
                yield {"fault": "hangs"}
                return
            patience = SECONDS
            data = os.read(self.read, 1 << 16)
            if not data:
                return
            *whole, self.rest = (self.rest + data).split(b"\n")
            yield from map(json.loads, whole)

    def end(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)
        os.close(self.read)


def run(job):
    import torch  # noqa: F401  once, before the forks
    from launch_cuda import plan_of
    spec = Spec(job["problem"])
    cases = cases_of(spec, job["large"], job["small"], job["seed"], job["at"])
    starts, mutants = job["starts"], job["mutants"]
    texts = {**starts, **{name: text for name, (_, text) in mutants.items()}}
    arch = architecture()
    with multiprocessing.Pool(job.get("jobs", 3)) as pool:
        cubins = dict(pool.imap_unordered(compiled, [(n, t, arch) for n, t in texts.items()]))
    verdicts = {name: {"verdict": "right", "ratio": 0.0} if cubins[name] else {"verdict": "unbuilt"} for name in texts}
    plans = {name: plan_of(text) for name, text in texts.items()}
    alive, begin = [n for n in texts if cubins[n]], 0
    racy = [n for n in mutants if ":barrier_dropped:" in n]
    while begin < len(cases) and any(n in mutants for n in alive):
        def work(tell):
            bench = Bench(spec, cubins, plans, alive, tell)
            bench.every = job["every"]
            for case in cases[begin:]:
                tell({"at": case[0], "name": None})
                bench.case(case, [s for s in starts if s in alive], {n: mutants[n] for n in alive if n in mutants}, racy,
                           job["seed"])
        child, at, name, why = Served(work), begin, None, "dies"
        for line in child.lines():
            if "at" in line:
                at, name = line["at"], line["name"]
            elif "end" in line:
                why, at = None, len(cases)
            elif "fault" in line:
                why = line["fault"]
            elif "wrong" in line:
                found = verdicts[line["name"]]
                if found["verdict"] != "wrong":
                    found.update(verdict="wrong", kind=line["wrong"], case=line["place"], inputs=line["inputs"],
                                 dims={d: line["dims"][d] for d in spec.free})
                found.setdefault("all", []).append({d: line["dims"][d] for d in spec.free})
                if not job["every"] and line["name"] in alive:
                    alive.remove(line["name"])
            else:
                found = verdicts[line["name"]]
                found["ratio"] = max(found["ratio"], line["ratio"])
        child.end()
        if why is not None and name is None:
            print("%s: case %d: %s" % (spec.name, at, why), file=sys.stderr)
            at += 1  # ours, not a mutant's
        elif why is not None:
            case = cases[at]
            verdicts[name].update(verdict="wrong", kind=("hangs" if why == "hangs" else "faults"), case=at, reason=why,
                                  dims={d: case[1][d] for d in spec.free}, inputs=case[2])
            verdicts[name].setdefault("all", []).append({d: case[1][d] for d in spec.free})
            alive.remove(name)
        begin = at
    for name, found in verdicts.items():
        if name in mutants and found["verdict"] == "right" and found["ratio"] > HONEST:
            found["verdict"] = "grey"
    return verdicts


class Referee:
    """As referee.Referee; the work is done by a process of its own."""

    def __init__(self, problem, large, small, seed, at=None):
        self.job = {"problem": problem, "large": large, "small": small, "seed": seed, "at": at}

    def judge(self, starts, mutants, say=lambda text: None, every=False):
        job = {**self.job, "starts": starts, "mutants": mutants, "every": every}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(job, file)
            file.flush()
            done = subprocess.run([sys.executable, "-B", os.path.abspath(__file__), file.name], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0 or not done.stdout.strip():
            raise RuntimeError("the referee of %s ended with %d" % (job["problem"], done.returncode))
        return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    with open(sys.argv[1]) as job_file:
        print(json.dumps(run(json.load(job_file))))
