"""Which tensors of a module are inputs of its problem, and from where their numbers are drawn: parts of torch_problem.py.

A tensor is an input where the outputs depend on it for some numbers of the others: a gate that begins at zero hides
what lies behind it, so that numbers are drawn for all. Twin builds the file once more under other seeds, with the same
numbers in the tensors that are known: where the outputs are others, something else is drawn that no kernel can know.
"""

import math
import sys

import torch
import torch_state
from torch.utils._python_dispatch import TorchDispatchMode
from torch_module import build, check_tensor, is_finite, keep_structure, load, run, spread, structure_of
from torch_rows import SEED, Refused, given_arguments

INPUTS_MOST = 1024  # src/eval/problem/problem.h
MATTERS_MOST = 64  # parameters: a call of the module for each
# Numbers of parameters, and of what get_inputs gives.
ROUNDS = (
    ("initial", "given"),
    ("drawn", "given"),
    ("drawn", "uniform"),
    ("drawn", "mixed"),
    ("wide", "given"),
    ("wide", "uniform"),
    ("drawn", "given"),
)
TRIED_MOST = 1 << 27
COMPARED = 1 << 22  # elements at once
PAIRS_LEAST = 6  # of equal numbers that chance would have brought: once in e^6 it brings none
POSITIVE_MOST = 512  # a matrix's rows, whose eigenvalues are asked for


def alike(results, others):
    """The same, but for the order in which sums are made."""
    return agree(results, others, lambda a, b: torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-5, equal_nan=True))


def identical(results, others):
    return agree(results, others, lambda a, b: bool(((a == b) | ((a != a) & (b != b))).all()))


def agree(results, others, same):
    """Part by part: a large output's numbers, once more in float64, would be all the memory there is."""
    return len(results) == len(others) and all(
        a.shape == b.shape and all(map(same, a.reshape(-1).split(COMPARED), b.reshape(-1).split(COMPARED)))
        for (_, a), (_, b) in zip(results, others)
    )


class OtherNumbers(TorchDispatchMode):
    """Whatever draws random numbers draws others than its own seed says."""

    def __init__(self):
        super().__init__()
        self.drawn = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        keywords = dict(keywords or {})
        if torch.Tag.nondeterministic_seeded in function.tags:
            self.drawn += 1
            keywords.update({"generator": None} if "generator" in keywords else {})
            torch.default_generator.manual_seed(SEED + 100 + self.drawn)
        return function(*arguments, **keywords)


# --- numbers for parameters ---


def finite_part(tensor):
    values = tensor.detach().reshape(-1)
    return values[torch.isfinite(values)] if values.is_floating_point() else values


def limits(tensor):
    """(lowest, highest) of what is finite."""
    values = finite_part(tensor)
    return (float(values.min()), float(values.max())) if values.numel() else (0.0, 0.0)


def has_infinities(tensor):
    return tensor.is_floating_point() and not bool(torch.isfinite(tensor).all())


def parameter_range(low, high):
    """Of the same scale as the initial values; what is all one number is spread around it."""
    if low == high:
        size = abs(low) / 2 if low else 0.5
        return (low - size, low + size)
    if low < 0 < high:
        size = max(-low, high)
        return (-size, size)
    return (low, high)


def drawn_like(tensor):
    """Other numbers of a parameter's scale."""
    low, high = parameter_range(*limits(tensor))
    values = low + torch.rand(tensor.shape, dtype=torch.float32) * (high - low)
    return keep_structure(values, structure_of(tensor)).to(tensor)


def changed(tensor, now):
    """Numbers that differ from `now` everywhere; a mask's are turned."""
    if tensor.dtype == torch.bool:
        return ~now
    if not tensor.is_floating_point():
        return now + 1
    if has_infinities(now):
        return torch.where(torch.isfinite(now), now * 1.25 + 0.125, torch.zeros_like(now))
    return (now.float() * (1.25 + torch.rand(now.shape).to(now.device)) + 0.125 + torch.rand(now.shape).to(now.device)).to(now)


class Parameters:
    """A part of Described."""

    def is_fixed(self, path, tensor, twin):
        """Part of the definition, never other numbers: a mask, a table, what is the same whenever the file is loaded
        and no parameter."""
        if not tensor.is_floating_point() or has_infinities(tensor):
            return True
        structure = structure_of(tensor)
        role = self.state.roles[path]
        if structure == "whole" or (role == "buffer" and structure in ("upper", "lower")):
            return True
        return path in self.hidden and twin.same(path)

    def numbers(self, round_, fixed):
        """Values of all parameters in one round; wide: of no scale that they begin with."""
        kind = ROUNDS[round_][0]
        if kind == "initial":
            return {}
        torch.manual_seed(SEED + 30 + round_)
        free = {path: tensor for path, tensor in self.initial.items() if path not in fixed and tensor.numel()}
        wide = kind == "wide"
        return {path: (2 * torch.randn(t.shape)).to(t) if wide else drawn_like(t) for path, t in free.items()}

    def arguments_of(self, kind):
        elements = sum(value.numel() for value in self.small if isinstance(value, torch.Tensor))
        if kind == "given" or elements > TRIED_MOST:
            return self.small
        return [
            spread(value, kind).to(value) if isinstance(value, torch.Tensor) and value.is_floating_point() and not has_infinities(value) else value
            for value in self.small
        ]

    def attempt(self, arguments, values):
        """Results, or None where it fails."""
        try:
            return self.try_run(arguments, values)
        except Exception:
            return None

    def that_matter(self, fixed):
        """Paths of tensors that the outputs depend on."""
        open_, found = [path for path, tensor in self.initial.items() if tensor.numel()], set()
        if len(open_) - len(self.state.loose) > MATTERS_MOST:
            found, open_ = {p for p in open_ if p not in self.state.loose}, [p for p in open_ if p in self.state.loose]
        for round_, (_, kind) in enumerate(ROUNDS):
            if not open_:
                break  # drawing for nobody would take as long as large inputs are
            values, arguments = self.numbers(round_, fixed), self.arguments_of(kind)
            base = self.attempt(arguments, values)
            if base is None:
                continue
            for path in list(open_):
                now = values.get(path, self.initial[path])
                results = self.attempt(arguments, {**values, path: changed(self.initial[path], now)})
                if results is None or not identical(base, results):
                    found.add(path)
                    open_.remove(path)
        return found

    def bind_parameters(self, twin):
        fixed = {path for path, tensor in self.initial.items() if tensor.numel() and self.is_fixed(path, tensor, twin)}
        self.fixed = fixed
        matter = self.that_matter(fixed)
        unused = [path for path in self.initial if path not in matter and path not in self.hidden]
        for path, tensor in self.initial.items():
            if path not in matter:
                continue
            role = self.state.roles[path]
            check_tensor("%s %s" % ("tensor" if path in self.hidden else role, path), tensor)
            own = self.names.take(path.replace(".", "_"))
            entry = {"input": own, "path": path, "role": role, "initial": True}
            if path in fixed:
                entry["structure"] = "given"
            self.binding["parameters"].append(entry)
            place = {"index": None, "name": own, "tensor": tensor, "shape": tuple(tensor.shape)}
            self.inputs.append(place)
        hidden = [entry["path"] for entry in self.binding["parameters"] if entry["path"] in self.hidden]
        if hidden:
            self.notes.append("no parameter and no buffer in the file, and an input here: %s" % ", ".join(hidden)[:200])
        if unused:
            self.notes.append("without effect on the outputs: %s" % ", ".join(unused)[:200])
        if len(self.inputs) > INPUTS_MOST:
            raise Refused(
                "%d inputs, parameters and buffers, expected at most %d"
                % (len(self.inputs), INPUTS_MOST)
            )


# --- the file once more ---


def plain_values(state, file):
    """Numbers and texts of the file that are no tensors: {path: value}."""
    found = {}
    for path, module in state.model.named_modules():
        for name, value in vars(module).items():
            if name not in torch_state.OF_MODULES:
                found[torch_state.join(path, name)] = value
    for name, value in vars(file).items():
        if not name.startswith("__"):
            found[name] = value
    kinds = (int, float, complex, str)
    return {
        path: value.tolist() if type(value).__module__ == "numpy" else value
        for path, value in found.items()
        if isinstance(value, kinds) or type(value).__module__ == "numpy" and hasattr(value, "tolist")
    }


class Twin:
    """The file loaded and built under other seeds."""

    def __init__(self, described):
        self.described = described
        ours = sys.modules["problem_file"]
        siblings = described.file.problem_siblings
        try:
            self.file = load(described.path, SEED + 1000)
            self.model, _ = build(self.file, described.device, SEED + 2000)
            self.state = torch_state.State(self.file, self.model)
            self.state.convert(lambda tensor: tensor.to(described.device))
            self.initial = {path: tensor.detach().clone() for path, tensor in self.state.tensors.items()}
        finally:
            sys.modules["problem_file"] = ours
            for name in torch_state.siblings(described.path):
                del sys.modules[name]
            sys.modules.update(siblings)
        if {p: t.shape for p, t in self.initial.items()} != {p: t.shape for p, t in described.initial.items()}:
            raise Refused("it is built otherwise each time: %s" % self.differs())

    def same(self, path):
        """Whether a tensor has the same numbers under other seeds."""
        a, b = self.described.initial[path], self.initial[path]
        return bool(((a == b) | ((a != a) & (b != b))).all())

    def differs(self):
        """What is not the same in both, for people."""
        one = plain_values(self.described.state, self.described.file)
        other = plain_values(self.state, self.file)
        for path in one:
            if path in other and one[path] != other[path]:
                return "%s is %.40r or %.40r" % (path, one[path], other[path])
        return "under two seeds its outputs differ, though all tensors that are known hold the same numbers"

    def check(self):
        """The same numbers in every tensor that is an input: the same outputs, or no kernel could know them."""
        described = self.described
        known = {entry["path"] for entry in described.binding["parameters"]}
        for round_, (_, kind) in enumerate(ROUNDS if described.initial else ROUNDS[:1]):
            values = {**described.initial, **described.numbers(round_, described.fixed)}
            arguments = described.arguments_of(kind)
            results = described.attempt(arguments, values)
            if results is None:
                continue
            self.state.set({path: value for path, value in values.items() if path in known})
            try:
                others = run(self.model, [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments])
            except Exception as fault:
                raise Refused("built under another seed it fails (%s): %s" % (type(fault).__name__, self.differs())) from None
            if not alike(results, others):
                raise Refused("its outputs depend on what is drawn when it is built, and is no tensor of it: " + self.differs())
        described.state.restore()


# --- what is drawn ---


def is_sorted(values):
    """Pointers into something, or bounds: ascending, and no row of one number."""
    if values.dim() != 1 or values.numel() < 3:
        return False
    return bool((values[1:] >= values[:-1]).all()) and bool(values[0] < values[-1])


def is_distinct(values):
    """Rows in which no whole number comes twice: an order, places to be written to."""
    if values.is_floating_point() or values.dtype == torch.bool or not values.dim() or values.shape[-1] < 4:
        return False
    rows = values.reshape(-1, values.shape[-1]).sort(-1)[0]
    return bool((rows[:, 1:] != rows[:, :-1]).all())


def is_positive(values):
    """Matrices that are symmetric and positive definite."""
    if not values.is_floating_point() or values.dim() < 2 or values.shape[-1] != values.shape[-2] or values.shape[-1] < 2:
        return False
    wide = values.detach().double()
    if wide.shape[-1] > POSITIVE_MOST or not torch.allclose(wide, wide.transpose(-1, -2), rtol=1e-4, atol=1e-5):
        return False
    return bool((torch.linalg.eigvalsh(wide) > 0).all())


def is_levels(values):
    """A float mask as numbers that stand for an infinity: they are no range."""
    return values.is_floating_point() and float(values.abs().max()) >= 2**24


class Draws:
    """A part of Described."""

    def choose_ranges(self):
        self.ranges, self.structures = {}, {}
        free, whole = [], []
        again = self.drawn_again()
        for place in self.inputs:
            name, values = place["name"], place["tensor"].detach()
            low, high = limits(values)
            if place["index"] is None:
                self.ranges[name] = parameter_range(low, high)
                continue
            structure = structure_of(values)
            if has_infinities(values):
                structure = self.masked(place, low, high)
            elif is_sorted(values) and (again is None or is_sorted(again[place["index"]])):
                self.structures[name] = structure = "sorted" if self.takes_any(place) else "own"
                self.ranges[name] = (low, high)
            elif structure == "constant":
                self.ranges[name] = parameter_range(low, high)
                structure = "free"
            elif self.has_condition(place, structure, again):
                structure, self.ranges[name] = "own", (low, high)
            elif structure == "whole":
                self.ranges[name] = (low, high)
                whole.append(place)
            else:
                free.append(place)
            self.structures[name] = structure
        self.drop_sorted()
        self.settle(free, whole)
        owned = [name for name, structure in self.structures.items() if structure == "own"]
        if owned:
            self.notes.append("always as get_inputs draws it: %s" % ", ".join(owned))

    def has_condition(self, place, structure, again):
        """What get_inputs gives each time and other numbers of its range would not: no number twice, positive definite,
        a mask's levels. Definitions and kernels rest on it."""
        both = [place["tensor"]] + ([] if again is None else [again[place["index"]]])
        if structure == "whole":
            return all(map(is_levels, both)) or self.is_order(place)
        return again is not None and all(map(is_positive, both))

    def is_order(self, place):
        """No number twice in any row, drawing after drawing, though chance would have brought some."""
        first = place["tensor"]
        if not is_distinct(first):
            return False
        low, high = limits(first)
        pairs = first.numel() * (first.shape[-1] - 1) / 2 / (high - low + 1)  # alike, in one drawing by chance
        drawings, most, moves = 1, 8 if self.given_elements() <= 1 << 22 else 2, False
        while drawings < most and (drawings < 2 or pairs * drawings < PAIRS_LEAST):
            other = self.drawn_again(10 + drawings)
            if other is None or not is_distinct(other[place["index"]]):
                return False
            moves = moves or not torch.equal(first.cpu(), other[place["index"]].cpu())
            drawings += 1
        return moves and pairs * drawings >= PAIRS_LEAST

    def given_elements(self):
        return sum(a.numel() for a in self.arguments if isinstance(a, torch.Tensor))

    def drawn_again(self, seed=9):
        """What get_inputs gives under another seed; None: too much to be made twice, or some rows alone are known."""
        if self.few or self.given_elements() > TRIED_MOST:
            return None
        return given_arguments(self.file, SEED + seed)

    def masked(self, place, low, high):
        """With infinities: their places are kept, and where the rest is one number that, too."""
        self.notes.append("%s keeps the places of its infinities" % place["name"])
        self.ranges[place["name"]] = parameter_range(low, high)
        return "own" if low == high else "mask"

    def takes_any(self, place):
        """An ascending row that is 0, 1, 2, ...: positions, which may be any others, where the module takes those."""
        values = place["tensor"]
        if not bool((values == torch.arange(values.numel(), device=values.device)).all()):
            return False
        arguments = list(self.small)
        mixed = arguments[place["index"]]
        arguments[place["index"]] = mixed[torch.randperm(mixed.numel())].contiguous()
        results = self.attempt(arguments, {})
        return results is not None and is_finite(results)

    def drop_sorted(self):
        for name, structure in self.structures.items():
            if structure == "sorted":
                self.structures[name] = "whole" if self.ranges[name][0] != self.ranges[name][1] else "free"

    def settle(self, free, whole):
        """The widest draws that the module takes."""
        if not free and not whole or self.fits(free + whole, {}):
            return
        if whole and self.fits(free, {}):  # labels, indices or masks that go with each other
            self.own(whole)
            return
        names = [place["name"] for place in free]
        given = {p["name"]: limits(p["tensor"]) for p in free}
        size = {n: (-max(map(abs, given[n])), max(map(abs, given[n]))) for n in names}
        if self.fits(free + whole, size):
            self.ranges.update(size)
            self.notes.append("drawn no larger than get_inputs has it: larger numbers overflow")
            return
        if not self.fits(free + whole, given):
            if whole:
                self.own(whole)
                self.settle(free, [])
            else:
                self.settle_own(free)
            return
        chosen = dict(given)
        for name in names if len(names) > 1 else []:
            wider = dict(chosen)
            wider.pop(name)
            if self.fits(free + whole, wider):
                chosen = wider
        self.ranges.update(chosen)
        self.notes.append(
            "drawn from the range that get_inputs has: %s" % ", ".join(sorted(chosen)) + "; elsewhere "
            "the module fails or is not finite"
        )

    def own(self, places):
        for place in places:
            self.structures[place["name"]] = "own"
            self.ranges[place["name"]] = limits(place["tensor"])

    def settle_own(self, free):
        """Numbers of the right size are not enough (positive definite, one way round): those that get_inputs makes."""
        if not is_finite(self.results):  # nor are those: it is not the draw
            self.ranges.update({p["name"]: limits(p["tensor"]) for p in free})
            return
        for place in free if len(free) > 1 else []:
            rest = [each for each in free if each is not place]
            if self.fits(rest, {}):
                self.own([place])
                return
        self.own(free)

    def fits(self, places, ranges):
        """Do all distributions inside these ranges leave the outputs finite?"""
        if sum(a.numel() for a in self.small if isinstance(a, torch.Tensor)) > TRIED_MOST:
            return bool(ranges)  # too large to be tried: stay at the size of the given values
        usual = is_finite(self.results)
        for kind in ("mixed", "uniform"):
            torch.manual_seed(SEED + 4)
            arguments = list(self.small)
            for place in places:
                arguments[place["index"]] = self.tried(place, kind, ranges, arguments[place["index"]])
            results = self.attempt(arguments, {})
            if results is None or usual and not is_finite(results):
                return False
        return True

    def tried(self, place, kind, ranges, like):
        """Numbers as the evaluator will draw them."""
        structure = self.structures.get(place["name"], "free")
        if structure == "whole":
            low, high = self.ranges[place["name"]]
            return torch.randint(int(low), int(high) + 1, like.shape).to(like)
        values = spread(like, kind)
        if place["name"] in ranges:
            low, high = ranges[place["name"]]
            wide = 2.0 if kind == "uniform" else 6.0
            center = min(max(0.0, low), high) if high - low >= wide else (low + high) / 2
            values = (center + values * min(1.0, (high - low) / wide)).clamp(low, high)
        return keep_structure(values, structure).to(like)
