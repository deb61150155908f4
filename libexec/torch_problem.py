"""A PyTorch module in a file as a problem: loads it, and says what its inputs and outputs are.

The file has `Model`, `get_inputs` and, where the constructor takes arguments, `get_init_inputs`.
describe() answers with the text of a spec.yaml and with the binding: how the spec's tensors become
arguments, parameters and buffers again. Used by reference_torch.py, which imports torch first.
"""

import copy
import inspect
import json
import math
import os
import re

import torch
import torch_shipped
import torch_sums
from torch_inputs import Draws, OtherNumbers, Parameters, Twin, alike, limits
from torch_module import (
    DTYPES,
    Names,
    argument_names,
    build,
    GRADIENTS,
    another,
    calling,
    check_layout,
    check_tensor,
    dtype_of,
    is_finite,
    load,
    pairs_of,
    run,
    structure_of,
)
from torch_rows import SEED, Refused, check_size, few_rows, given_arguments, without_compiler
from torch_state import State

OUTPUTS_MOST = 16  # src/eval/problem/problem.h
ROWS_MOST, PROBED_MOST = 6, 1 << 21  # of what is probed: rows, elements


def plain(name, value):
    """An argument that is no tensor: part of the definition."""
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        value = value.item()
    numbers = isinstance(value, (list, tuple)) and type(value) in (list, tuple)
    for each in value if numbers else [value]:
        if not (each is None or isinstance(each, (bool, int, float, str))):
            what = "holds a" if numbers else "is a"
            raise Refused("argument %s %s %s, expected a tensor, a number, a truth, a text or None" % (name, what, type(each).__name__))
        if isinstance(each, float) and not math.isfinite(each) and numbers:
            raise Refused("argument %s holds a number that is not finite" % name)
    return value


def form_of(returned):
    """What forward returned, for who gives the same of other tensors: {"kind", "items"}; of a tuple's item that is one
    again the same."""
    if returned is None or isinstance(returned, torch.Tensor):
        return {"torch": None if returned is None else dtype_of(returned)}
    pairs = pairs_of(returned)
    kind = "dict" if isinstance(returned, dict) else "tuple" if isinstance(returned, tuple) else "list"
    return {"kind": kind, "items": [{"key": key if kind == "dict" else None, **form_of(item)} for key, item in pairs]}


class Described(Parameters, Draws):
    """One file, described step by step."""

    def __init__(self, path, device):
        module = load(path)
        self.path, self.file, self.notes, self.names = path, module, list(module.problem_notes), Names()
        few = few_rows(module)
        if few is None:
            check_size(module)
        self.device = device
        self.model, adopted = build(module, device)
        self.few = few is not None
        self.arguments = few[0] if few else given_arguments(module)
        self.state = State(module, self.model)
        for path, tensor in self.state.tensors.items():
            check_layout("tensor %s" % path, tensor)
        self.state.convert(lambda tensor: tensor.to(device))
        self.initial = {path: t.detach().clone() for path, t in self.state.tensors.items()}
        self.hidden = self.state.loose | adopted
        self.shapes = few[1] if few else [getattr(a, "shape", None) for a in self.arguments]
        try:
            self.describe(module)
        except (Refused, MemoryError):
            raise
        except Exception:
            if not self.few:
                raise
            self.describe_whole(module)

    def describe_whole(self, module):
        """Some rows were not enough."""
        check_size(module)
        self.few, self.notes, self.names = False, list(module.problem_notes), Names()
        self.arguments = given_arguments(module)
        self.shapes = [getattr(a, "shape", None) for a in self.arguments]
        self.describe(module)

    def describe(self, module):
        self.inputs = []  # {"index", "name", "tensor"}
        self.binding = {"arguments": [], "parameters": [], "outputs": []}
        doc = (inspect.getdoc(module.Model) or "") if module.Model.__doc__ else ""
        self.doc = " ".join(doc.split("\n\n")[0].split())[:200]
        self.bind_arguments()
        self.batch = None  # (name, default, group of argument indices, least)
        self.probe_batch()
        self.check_deterministic()
        self.check_shapes()
        twin = Twin(self)
        self.bind_parameters(twin)
        twin.check()
        self.choose_ranges()
        self.bind_returns(module)

    def bind_arguments(self):
        names = argument_names(self.model, len(self.arguments))
        for index, (name, value) in enumerate(zip(names, self.arguments)):
            if isinstance(value, torch.Tensor):
                if value.numel() == 0:
                    self.binding["arguments"].append({"empty": list(value.shape), "torch": dtype_of(value)})
                    self.notes.append("%s has no elements" % name)
                    continue
                check_tensor("input %s" % name, value)
                own = self.names.take(name)
                self.arguments[index] = value = value.detach().to(self.device)
                shape = tuple(self.shapes[index])
                self.inputs.append({"index": index, "name": own, "tensor": value, "shape": shape})
                self.binding["arguments"].append({"input": own, "torch": dtype_of(value)})
                self.note_type(own, value)
            else:
                self.arguments[index] = value = plain(name, value)
                entry = {"value": value, "tuple": True} if isinstance(value, tuple) else {"value": value}
                if isinstance(value, float) and not math.isfinite(value):
                    entry = {"number": str(value)}  # JSON has none
                self.binding["arguments"].append(entry)
                self.notes.append("%s is always %r" % (name, value))
        if not self.inputs:
            empty = ["%s is %s" % (n, "x".join(map(str, v.shape))) for n, v in zip(names, self.arguments) if hasattr(v, "shape")]
            raise Refused("no input has elements: %s" % ", ".join(empty) if empty else "get_inputs gives no tensor")

    def note_type(self, name, tensor):
        kind = dtype_of(tensor)
        if DTYPES[kind] != kind:
            self.notes.append("%s is %s in the file, %s here" % (name, kind, DTYPES[kind]))

    # --- the batch ---

    def sliced(self, group, batch):
        return [
            value[:batch].contiguous() if index in group else value
            for index, value in enumerate(self.arguments)
        ]

    def shapes_at(self, group, batch):
        arguments = self.sliced(group, batch)
        results = self.run_meta(arguments) if self.meta else self.try_run(arguments)
        return [tuple(t.shape) for _, t in results]

    def run_meta(self, arguments):
        """Shapes alone, at no cost."""
        self.meta_state.restore()
        try:
            return run(self.meta, [a.to("meta") if isinstance(a, torch.Tensor) else a for a in arguments])
        finally:
            self.state.restore()

    def open_meta(self):
        try:
            self.state.restore()
            self.meta = copy.deepcopy(self.model).to("meta")
            self.meta_state = State(self.file, self.meta)
            self.meta_state.convert(lambda tensor: tensor.to("meta"))
            self.run_meta(self.arguments)
        except Exception:
            self.meta = None  # a tensor that forward makes itself, or an operation without shapes
            self.state.restore()

    def try_run(self, arguments, values=None):
        """With these values of parameters; of all the rest their initial ones."""
        self.state.set({**self.initial, **(values or {})})
        results = run(self.model, [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments])
        return [(name, tensor.clone()) for name, tensor in results]

    def probe_batch(self):
        """Does the module take another first dimension? Two small ones tell how outputs follow."""
        self.open_meta()
        first = self.inputs[0]["shape"]
        whole = first[0] if first else 0
        same = [i["index"] for i in self.inputs if i["shape"][:1] == first[:1]]
        groups = [same] if len(same) == 1 else [same, [self.inputs[0]["index"]]]
        pairs = [pair for pair in ((2, 3), (3, 5), (5, 6)) if pair[1] < whole] or [(1, 2)] * (whole in (2, 3))
        for group, sizes in [(group, pair) for group in groups for pair in pairs]:
            if any(self.is_matrix(index) for index in group):
                continue
            try:
                low, high = (self.shapes_at(group, size) for size in sizes)
                if not self.follows(group, sizes, low, high):
                    continue
                self.made = sum(map(math.prod, high)) // sizes[1]  # elements of outputs, a row
                least, results = self.least_rows(group, self.probe_rows(group))
            except Refused:
                raise
            except Exception:  # also one that fails with few rows of numbers: indices of rows, bounds
                continue
            self.take_batch(group, whole, least)
            self.take_outputs(results, self.follow(sizes, low, high))
            return
        if self.few:
            raise ValueError("the first dimension cannot vary")  # for describe_whole()
        self.small = self.arguments
        self.notes.append("only this shape is checked: the first dimension %s" % ("is 1" if whole == 1 else "cannot vary"))
        results = self.try_run(self.arguments)
        self.take_outputs(results, [[str(extent) for extent in t.shape] for _, t in results])

    def follows(self, group, sizes, low, high):
        """Whether a line through two sizes tells the shapes at others: no pooling over rows."""
        if len(low) != len(high) or any(len(a) != len(b) for a, b in zip(low, high)):
            return False
        rows = min(self.arguments[index].shape[0] for index in group)
        for size in sorted({5, 6, rows} - set(sizes)):
            if size > rows:
                continue
            for a, b, c in zip(low, high, self.shapes_at(group, size)):
                if any((z - x) * (sizes[1] - sizes[0]) != (y - x) * (size - sizes[0]) for x, y, z in zip(a, b, c)):
                    return False
        return True

    def is_matrix(self, index):
        """A triangular or symmetric matrix would not be one with fewer rows."""
        value = self.arguments[index]
        return value.dim() == 2 and structure_of(value) in ("upper", "lower", "symmetric")

    def probe_rows(self, group):
        """How many rows what is probed has: of one or two alone some modules make nothing, or NaN."""
        row = self.made + sum(self.arguments[index][:1].numel() for index in group)
        rows = min(self.arguments[index].shape[0] for index in group)
        return max(1, min(rows, ROWS_MOST, max(3, PROBED_MOST // max(1, row))))

    def least_rows(self, group, rows):
        """The fewest that the module takes as it takes `rows`; with its results there."""
        results = self.try_run(self.sliced(group, rows))
        fine = is_finite(results)
        for least in range(1, rows):
            try:
                if is_finite(self.try_run(self.sliced(group, least))) or not fine:
                    return least, results
            except Exception:  # a batch norm, for one
                continue
        return rows, results

    def take_batch(self, group, whole, least):
        name = self.names.take("B" if "B" not in self.names.used else "BATCH")
        if least > 1:
            self.notes.append("the first dimension is at least %d" % least)
        self.batch = (name, whole, group, least)
        self.small = self.sliced(group, self.probe_rows(group))

    def follow(self, sizes, low, high):
        """Shapes of the outputs, by their extents at two sizes."""
        name, shapes = self.batch[0], []
        for a, b in zip(low, high):
            shape = []
            for small, large in zip(a, b):
                step = (large - small) // (sizes[1] - sizes[0])
                rest = small - step * sizes[0]
                text = "%d" % rest if step == 0 else name if step == 1 else "%d*%s" % (step, name)
                shape.append(text if step == 0 or rest == 0 else "%s + %d" % (text, rest))
            shapes.append(shape)
        return shapes

    def take_outputs(self, results, shapes):
        self.outputs, self.results = [], results
        if not results or len(results) > OUTPUTS_MOST:
            raise Refused("%d outputs, expected 1 to %d" % (len(results), OUTPUTS_MOST))
        for (name, tensor), shape in zip(results, shapes):
            check_tensor("output %s" % name, tensor)
            own = self.names.take(name)
            self.outputs.append((own, shape, DTYPES[dtype_of(tensor)]))
            self.binding["outputs"].append(own)
            self.note_type(own, tensor)

    def check_deterministic(self):
        torch.manual_seed(SEED + 2)
        for (name, a), (_, b) in zip(self.results, self.try_run(self.small)):
            if not alike([(name, a)], [(name, b)]):
                raise Refused(
                    "output %s is random: two calls on the same inputs differ (dropout?)" % name
                )
        drawn = self.try_drawn()
        if drawn is not None and not alike(self.results, drawn):
            raise Refused(
                "its forward draws random numbers, under a seed of its own: no kernel can know them; make them a buffer"
            )
        if not is_finite(self.results):
            self.notes.append("its outputs on get_inputs' values are not all finite")

    def check_shapes(self):
        """A kernel is told dims, and writes outputs of the shapes that follow from them."""
        for arguments in self.other_arguments():
            for (name, tensor), (_, other) in zip(self.results, self.attempt(arguments, {}) or []):
                if tensor.shape != other.shape:
                    told = ["x".join(map(str, t.shape)) or "a number" for t in (tensor, other)]
                    raise Refused(
                        "output %s is %s or %s, as the numbers of the inputs are: a kernel writes shapes that follow from "
                        "dims" % (name, *told)
                    )

    def other_arguments(self):
        """Of other numbers than get_inputs gives, all alike at last."""
        yield self.arguments_of("uniform")
        again = self.drawn_again()
        if again is not None:
            group, rows = (self.batch[2], self.probe_rows(self.batch[2])) if self.batch else ((), 0)
            yield [value[:rows].contiguous() if i in group else value for i, value in enumerate(again)]
        yield [
            torch.full_like(value, 0 if value.is_floating_point() else limits(value)[0]) if isinstance(value, torch.Tensor) and value.numel() else value
            for value in self.small
        ]

    def try_drawn(self):
        """Results where everything that is drawn on the way is drawn otherwise; None: nothing is drawn."""
        other = without_compiler(OtherNumbers)()
        try:
            with other:
                results = self.try_run(self.small)
        except Exception:
            return None
        return results if other.drawn else None

    # --- for who calls a kernel in the module's place ---

    def bind_returns(self, module):
        """In which form forward returns its outputs, and whether its mode changes them."""
        arguments = [a.clone() if isinstance(a, torch.Tensor) else a for a in self.small]
        self.state.set(self.initial)
        with calling():
            self.binding["returns"] = form_of(self.model(*arguments))
        self.binding["gradients"] = bool(GRADIENTS)
        self.binding["class"] = getattr(module, "problem_class", "Model")
        self.binding["training"] = self.model.training
        self.state.restore()
        try:
            other = another(module, self.model, self.device).train(not self.model.training)
            changed = run(other, [a.clone() if isinstance(a, torch.Tensor) else a for a in self.small])
            same = all(torch.equal(a, b) for (_, a), (_, b) in zip(self.results, changed))
        except Exception:
            same = False
        self.binding["mode_matters"] = not same

    # --- the spec ---

    def flops(self):
        """Products and sums of matrix products and convolutions; on no memory at all."""
        try:
            from torch.utils import flop_counter

            without_compiler(getattr(flop_counter, "_FlopCounterMode", flop_counter.FlopCounterMode))
            if self.meta is None:
                return None

            def count(arguments):
                counter = flop_counter.FlopCounterMode(display=False)
                with counter:
                    self.run_meta(arguments)
                return counter.get_total_flops()

            if self.batch is None:
                total = count(self.arguments)
                return str(total) if total else None
            name, _, group, _ = self.batch
            two, three = count(self.sliced(group, 2)), count(self.sliced(group, 3))
            step, rest = three - two, two - 2 * (three - two)
            if step <= 0 or rest < 0:
                return None
            return "%d*%s%s" % (step, name, " + %d" % rest if rest else "")
        except Exception:
            return None

    def longest_sum(self):
        """Where it is not what the operations' number tells; None where it follows the batch."""
        if self.meta is None:
            return None
        shapes = [self.arguments] if self.batch is None else [self.sliced(self.batch[2], b) for b in (2, 3)]
        lengths = {torch_sums.longest(lambda: self.run_meta(arguments)) for arguments in shapes}
        return lengths.pop() if len(lengths) == 1 else None

    def shape_of(self, place):
        shape = [str(extent) for extent in place["shape"]]
        if self.batch is not None and place["index"] in self.batch[2]:
            shape[0] = self.batch[0]
        return shape

    def spec(self):
        stem = re.sub(r"[^A-Za-z0-9_.-]", "_", os.path.splitext(os.path.basename(self.path))[0])
        name = stem if stem[:1].isalnum() else "p" + stem
        family = re.sub(r"^[0-9]+_*", "", stem).strip("_").lower() or name
        text = [self.doc or "the module of %s" % os.path.basename(self.path)] + self.notes
        spec = {"name": name[:63], "family": family[:63]}
        spec["description"] = "; ".join(part.rstrip(".") for part in text)[:1500]
        if self.batch is not None:
            dim, whole, _, least = self.batch
            spec["dims"] = {dim: whole}
            if least > 1:
                spec["where"] = "%s >= %d" % (dim, least)
            spec["hidden"] = {dim: [least, whole]}
            elements = sum(math.prod(i["shape"]) for i in self.inputs)
            elements += sum(t.numel() for _, t in self.results) // self.small[self.batch[2][0]].shape[0] * whole
            sizes = [least, 3 if least < 3 else 5] + ([whole // 2] if elements <= 1 << 24 else [])
            spec["check"] = [{dim: b} for b in sorted(set(sizes)) if least <= b < whole]
        spec["inputs"] = {}
        for place in self.inputs:
            dtype = DTYPES[dtype_of(place["tensor"])]
            entry = {"shape": self.shape_of(place), "dtype": dtype}
            if place["name"] in self.ranges:
                entry["range"] = list(self.ranges[place["name"]])
            spec["inputs"][place["name"]] = entry
        spec["outputs"] = {n: {"shape": shape, "dtype": d} for n, shape, d in self.outputs}
        spec["reference"] = os.path.basename(self.path)
        # Kernels of such files are written with fmaxf and fast math, and most files say nothing of NaN.
        spec["non_finite"] = getattr(self.file, "non_finite", "ignore")
        if spec["non_finite"] not in ("reference", "propagate", "ignore"):
            raise Refused('expected non_finite = "reference", "propagate" or "ignore", not %r' % (spec["non_finite"],))
        flops = self.flops()
        if flops:
            spec["flops"] = flops
        longest = self.longest_sum()
        if longest == 1 or (flops and longest):
            spec["reduction"] = longest
        return json.dumps(spec)


def describe(path, device, shipped=()):
    described = Described(path, device)
    draws = dict(described.structures)
    for entry in described.binding["parameters"]:
        draws[entry["input"]] = entry.get("structure", "free")
    initial = [entry["input"] for entry in described.binding["parameters"]]
    return {
        "spec": described.spec(),
        "binding": described.binding,
        "draws": {n: s for n, s in draws.items() if s != "free"},
        "initial": initial,
        "notes": described.notes,
        "beside": sorted(module.__file__ for module in described.file.problem_siblings.values()),
        "shipped": torch_shipped.find(described, shipped),
    }
