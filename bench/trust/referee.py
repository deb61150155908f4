"""Which mutants are wrong: on the CPU, by numpy in float64, without twagent.

Each mutant is a shared object in a process of its own, called on memory that both share. This process draws inputs,
computes what is right, and compares. A start that was not changed is called beside its mutants: what it errs on a case,
or what numpy errs in float32, is the measure of an honest error. A mutant may err 16 times as much. Up to 64 times is
a grey zone, which is told apart; beyond it the mutant is wrong. So is one that touches what is not its own."""
import ctypes
import mmap
import os
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile

import numpy

from spec import KINDS, Spec, definition, draw, number

PAGE = 4096
ARENA = 1 << 30
OWN = numpy.full(1 << 14, 0x7fa5c3e1, numpy.uint32).view(numpy.uint8)  # around outputs: a NaN that no operation makes
# Elsewhere: NaNs, and numbers of both signs.
GARBAGE = numpy.tile(numpy.array([numpy.nan, 3e38, -3e38, numpy.nan], numpy.float32), 1 << 12).view(numpy.uint8)
HONEST, GREY = 16, 64
SECONDS = 30  # of one call, on a busy machine: for what hangs
FLAGS = ["-O3", "-march=native", "-fopenmp", "-std=gnu17", "-shared", "-fPIC", "-w", "-include", "stdint.h",
         "-include", "stddef.h"]
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def front_matter(text):
    """(tune numbers at their first, workspaces, compile) of a candidate."""
    import yaml
    match = re.match(r'(?:/\*|""")---\n(.*?)---', text, re.S)
    head = yaml.safe_load(match[1]) if match else {}
    tune = {k: v[0] if isinstance(v, list) else v for k, v in (head.get("tune") or {}).items() if k != "where"}
    return tune, head.get("workspace") or {}, head.get("compile") or {}


def build(text, folder, name):
    """The path of a shared object, or None where it does not compile."""
    tune, _, how = front_matter(text)
    path = os.path.join(folder, name)
    with open(path + ".c", "w") as file:
        file.write(text)
    flags = how.get("flags") or []
    flags = flags.split() if isinstance(flags, str) else flags
    command = [how.get("compiler") or "gcc", *FLAGS, *flags, *("-D%s=%d" % one for one in tune.items()), "-o", path + ".so",
               path + ".c", "-lm"]
    done = subprocess.run(command, capture_output=True)
    return path + ".so" if done.returncode == 0 else None


class Placed:
    """Where each tensor of a call lies in the memory that is shared: between pages that can be taken away."""

    def __init__(self, tensors, how, rng):
        self.at, self.guards, offset = [], [], 0
        for dtype, shape in tensors:
            size = int(numpy.prod(shape, dtype=numpy.int64)) * numpy.dtype(dtype).itemsize
            pages = -(-(size + 128) // PAGE) * PAGE + PAGE
            begin, end = offset + PAGE, offset + PAGE + pages
            place = {"end": end - -(-size // 64) * 64, "begin": begin,
                     "own": begin + 64 * int(rng.integers(1, 32))}[how]
            self.at.append((place, size, begin, end))
            if how == "end":
                self.guards.append((end, PAGE))
            elif how == "begin":
                self.guards.append((offset, PAGE))
            offset = end
        self.total = offset + PAGE


class Child:
    """One shared object in a process of its own."""

    def __init__(self, path, arena, base):
        down_read, self.down = os.pipe()
        self.up, up_write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.down), os.close(self.up)
            try:
                self.serve(path, base, os.fdopen(down_read, "rb"), up_write)
            finally:
                os._exit(3)
        os.close(down_read), os.close(up_write)

    @staticmethod
    def serve(path, base, commands, answers):
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, signal.SIG_DFL)
        kernel = ctypes.CDLL(path).kernel
        while True:
            head = commands.read(24)
            if len(head) < 24:
                os._exit(0)
            tensors, guards, dims = struct.unpack("qqq", head)
            numbers = struct.unpack("%dq" % (tensors + 2 * guards + dims), commands.read(8 * (tensors + 2 * guards + dims)))
            walls = numbers[tensors:tensors + 2 * guards]
            for offset, length in zip(walls[::2], walls[1::2]):
                libc.mprotect(base + offset, length, 0)
            kernel(*(ctypes.c_void_p(base + at) for at in numbers[:tensors]),
                   *(ctypes.c_int64(d) for d in numbers[tensors + 2 * guards:]))
            for offset, length in zip(walls[::2], walls[1::2]):
                libc.mprotect(base + offset, length, 3)
            os.write(answers, b"d")

    def call(self, placed, dims):
        """None, or why it did not end."""
        walls = [n for guard in placed.guards for n in guard]
        message = struct.pack("qqq", len(placed.at), len(placed.guards), len(dims))
        message += struct.pack("%dq" % (len(placed.at) + len(walls) + len(dims)), *(p[0] for p in placed.at), *walls,
                               *dims.values())
        try:
            os.write(self.down, message)
        except BrokenPipeError:
            return "died"
        ready, _, _ = select.select([self.up], [], [], SECONDS)
        if not ready:
            return "hangs"
        return None if os.read(self.up, 1) == b"d" else "faults" if placed.guards else "crashes"

    def end(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)
        os.close(self.down), os.close(self.up)


def error(got, exact, normwise=False):
    """The largest error, over the element's own size or its row's root mean square, short rows joined, or 2^-20 of the
    tensor's; where the spec says that a kernel's errors may be by norms, over the tensor's."""
    with numpy.errstate(all="ignore"):
        width = exact.shape[-1] if exact.ndim and exact.shape[-1] >= 16 else 64
        got, exact = got.astype(numpy.float64).ravel(), exact.ravel()
        squares = numpy.pad(exact**2, (0, -exact.size % width)).reshape(-1, width)
        rows = numpy.repeat(numpy.sqrt(squares.mean(axis=1)), width)[:exact.size]
        least = numpy.sqrt(squares.mean()) * (1 if normwise else 2.0**-20)
        scale = numpy.maximum(numpy.maximum(numpy.abs(exact), rows), least)
        off = numpy.where(got == exact, 0, numpy.abs(got - exact) / numpy.maximum(scale, 1e-30))
        off = numpy.where(numpy.isnan(off), numpy.inf, off)
    return float(off.max()) if off.size else 0.0


class Referee:
    LIMITS = (1 << 19, 1 << 26, 4000), (1 << 22, 1 << 29, 4000)  # elements, flops, a dim; of three in four shapes, of the rest

    def __init__(self, problem, large, small, seed, at=None):
        """`at`: dims to be asked alone, by inputs of each kind, twice: an offset has two signs."""
        self.spec, self.seed, self.large = Spec(problem), seed, large
        self.define, self.normwise = definition(self.spec), self.spec.yaml.get("accuracy") == "normwise"
        rng = numpy.random.default_rng([seed, 1])
        dims = [self.spec.dims(d) for d in self.spec.yaml.get("check", [])]
        dims = [d for d in dims if self.spec.elements(d) <= self.LIMITS[0][0]]
        dims += [self.spec.small(rng) for _ in range(small)]
        dims += [self.spec.large(rng, *self.LIMITS[i % 4 == 3]) for i in range(large)]
        self.cases = [(i, d, KINDS[i % len(KINDS)], ("own", "end", "own", "begin")[i // 3 % 4]) for i, d in enumerate(dims)]
        if at:
            dims = self.spec.dims(at)
            self.cases = [(i, dims, kind, "own") for i, kind in enumerate(KINDS * 2)] if self.fits(dims) else []

    def fits(self, dims):
        return 5 * self.spec.elements(dims) < ARENA

    def judge(self, starts, mutants, say=lambda text: None, every=False):
        """starts: {path: text}; mutants: {name: (path, text)}. Returns {name: {verdict, kind, ...}}; with `every`, all
        wrong cases of each in place of the first."""
        verdicts = {}
        arena = mmap.mmap(-1, ARENA)
        base = ctypes.addressof(ctypes.c_char.from_buffer(arena))
        with tempfile.TemporaryDirectory() as folder:
            os.environ.update(OMP_NUM_THREADS=str(min(4, os.cpu_count())), OMP_WAIT_POLICY="passive")
            subjects, children = {}, {}
            for i, (name, (path, text)) in enumerate([*((p, (p, t)) for p, t in starts.items()), *mutants.items()]):
                library = build(text, folder, "k%d" % i)
                if library is None:
                    verdicts[name] = {"verdict": "unbuilt"}
                    continue
                subjects[name] = (path, front_matter(text), library)
            for name, (_, _, library) in subjects.items():
                children[name] = Child(library, arena, base)
            memory = numpy.frombuffer(arena, numpy.uint8)
            try:
                for case in self.cases:
                    if not any(name in children for name in mutants):
                        break
                    self.one_case(case, starts, subjects, children, memory, verdicts, every)
                    say("%s: case %d of %d, %d left" % (self.spec.name, case[0] + 1, len(self.cases), len(children)))
            finally:
                for child in children.values():
                    child.end()
        for name in subjects:
            found = verdicts.setdefault(name, {"verdict": "right"})
            if name in mutants and found["verdict"] == "right" and found.get("ratio", 0) > HONEST:
                found["verdict"] = "grey"
        return verdicts

    def one_case(self, case, starts, subjects, children, memory, verdicts, every):
        place, dims, kind, how = case
        spec = self.spec
        rng = numpy.random.default_rng([self.seed, 2, place])
        inputs = draw(spec, dims, kind, rng)
        exact = self.define(inputs, dims, numpy.float64)
        plain = self.define(inputs, dims, numpy.float32)
        shapes = [(x.dtype, x.shape) for x in inputs.values()]
        outs = [(numpy.float32, spec.shape(t, dims)) for t in spec.outputs.values()]
        if any(e.shape != o[1] for e, o in zip(exact, outs)):
            raise SystemExit("%s: the definition gives %s at %s" % (spec.name, [e.shape for e in exact], dims))
        if not all(numpy.isfinite(e).all() and numpy.abs(e).max(initial=0) < 1e37 for e in exact):
            return
        honest = max(max(error(p.astype(numpy.float32), e, self.normwise) for p, e in zip(plain, exact)), 2.0**-24)
        told, seed = {}, int(rng.integers(1 << 30))
        for name in [*starts, *(n for n in subjects if n not in starts)]:
            if name not in children:
                continue
            path, (tune, workspaces, _), _ = subjects[name]
            works = [(numpy.float32, tuple(number(a, {**dims, **tune}) for a in
                                           (w["shape"] if isinstance(w["shape"], list) else [w["shape"]])))
                     for w in workspaces.values()]
            why, got = self.call(children[name], dims, inputs, shapes, outs, works, how, memory, seed)
            if why is None:
                if path in told and path != name and all(numpy.array_equal(a.view(numpy.uint8), b.view(numpy.uint8))
                                                         for a, b in zip(got, told[path][0])):
                    continue
                worst = max(error(g, e, self.normwise) for g, e in zip(got, exact))
                if name in starts:
                    told[name] = (got, worst)
                    ratio = worst / honest
                    limit = ratio if worst < 2.0**-6 else GREY  # it is the measure
                else:
                    ratio = worst / max(honest, told[path][1]) if path in told else worst / honest
                    limit = GREY
                found = verdicts.setdefault(name, {"verdict": "right", "ratio": 0.0})
                if ratio <= limit:
                    found["ratio"] = max(found.get("ratio", 0.0), ratio)
                    continue
                why = "precision" if worst < 2.0**-6 else "values"
                found["ratio"] = ratio
            found = verdicts.setdefault(name, {})
            found.update(verdict="wrong", kind=found.get("kind", why), large=place >= len(self.cases) - self.large)
            found.setdefault("case", place)
            found.setdefault("dims", {d: dims[d] for d in spec.free})
            found.setdefault("inputs", kind)
            found.setdefault("all", []).append({d: dims[d] for d in spec.free})
            if not every or why in ("hangs", "crashes", "faults", "died"):
                children.pop(name).end()

    @staticmethod
    def call(child, dims, inputs, shapes, outs, works, how, memory, seed):
        rng = numpy.random.default_rng(seed)
        placed = Placed([*shapes, *outs, *works], how, rng)
        if placed.total > ARENA:
            raise SystemExit("a case of %d bytes" % placed.total)
        memory[:placed.total].reshape(-1, 16)[:] = GARBAGE[:16]
        for (at, size, _, _), x in zip(placed.at, inputs.values()):
            memory[at:at + size] = x.reshape(-1).view(numpy.uint8)
        first = len(inputs)
        for _, _, begin, end in placed.at[first:first + len(outs)]:
            memory[begin:end].view(numpy.uint32)[:] = OWN[:4].view(numpy.uint32)
        why = child.call(placed, dims)
        if why is not None:
            return why, None
        got = []
        for i, (at, size, begin, end) in enumerate(placed.at):
            if i < first:
                if not numpy.array_equal(memory[at:at + size], list(inputs.values())[i].reshape(-1).view(numpy.uint8)):
                    return "changes an input", None
            elif i < first + len(outs):
                got.append(memory[at:at + size].copy().view(numpy.float32))
            expected = OWN if first <= i < first + len(outs) else GARBAGE
            for low, high in ((begin, at), (at + size, end)):
                for place in range(low, high, len(OWN) - 16):
                    many, off = min(high - place, len(OWN) - 16), place % 16
                    if not numpy.array_equal(memory[place:place + many], expected[off:off + many]):
                        return "writes out of bounds", None
        return None, got


if __name__ == "__main__":
    sys.exit("this is bench/trust/mutants' referee")
