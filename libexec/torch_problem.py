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
from torch_module import (
    DTYPES,
    Names,
    argument_names,
    build,
    check_tensor,
    dtype_of,
    is_finite,
    keep_structure,
    load,
    run,
    spread,
    structure_of,
)
from torch_rows import SEED, Refused, check_size, few_rows, given_arguments, without_compiler

INPUTS_MOST, OUTPUTS_MOST = 1024, 16  # src/eval/problem/problem.h
MATTERS_MOST = 64  # parameters: a call of the module for each


class Described:
    """One file, described step by step."""

    def __init__(self, path, device):
        module = load(path)
        self.path, self.notes, self.names = path, list(module.problem_notes), Names()
        few = few_rows(module)
        if few is None:
            check_size(module)
        self.model = build(module, device)
        self.device = device
        self.few = few is not None
        self.arguments = few[0] if few else given_arguments(module)
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
        self.bind_parameters()
        self.check_deterministic()
        self.choose_ranges()
        self.bind_returns()

    def bind_arguments(self):
        names = argument_names(self.model, len(self.arguments))
        for index, (name, value) in enumerate(zip(names, self.arguments)):
            if isinstance(value, torch.Tensor):
                check_tensor("input %s" % name, value)
                own = self.names.take(name)
                self.arguments[index] = value = value.detach().to(self.device)
                shape = tuple(self.shapes[index])
                self.inputs.append({"index": index, "name": own, "tensor": value, "shape": shape})
                self.binding["arguments"].append({"input": own, "torch": dtype_of(value)})
                if dtype_of(value) in ("int64", "bool"):
                    self.notes.append("%s is %s in the file, int32 here" % (own, dtype_of(value)))
            elif value is None or isinstance(value, (bool, int, float, str)):
                if isinstance(value, float) and not math.isfinite(value):
                    raise Refused("argument %s is not finite" % name)
                self.binding["arguments"].append({"value": value})
                self.notes.append("%s is always %r" % (name, value))
            else:
                raise Refused(
                    "argument %s is a %s, expected a tensor, a number, a truth, a text or None"
                    % (name, type(value).__name__)
                )
        if not self.inputs:
            raise Refused("get_inputs gives no tensor")

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
        model = copy.deepcopy(self.meta)
        return run(model, [a.to("meta") if isinstance(a, torch.Tensor) else a for a in arguments])

    def open_meta(self):
        try:
            self.meta = copy.deepcopy(self.model).to("meta")
            self.run_meta(self.arguments)
        except Exception:
            self.meta = None  # a tensor that forward makes itself, or an operation without shapes

    def try_run(self, arguments):
        model = copy.deepcopy(self.model)
        return run(model, [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments])

    def probe_batch(self):
        """Does the module take another first dimension? Two small ones tell how outputs follow."""
        self.open_meta()
        first = self.inputs[0]["shape"]
        whole = first[0] if first else 0
        sizes = [size for size in (2, 3, 5) if size < whole][:2]
        same = [i["index"] for i in self.inputs if i["shape"][:1] == first[:1]]
        groups = [same] if len(same) == 1 else [same, [self.inputs[0]["index"]]]
        for group in groups if len(sizes) == 2 else []:
            if any(self.is_matrix(index) for index in group):
                continue
            try:
                low, high = (self.shapes_at(group, size) for size in sizes)
            except Refused:
                raise
            except Exception:
                continue
            if len(low) != len(high) or any(len(a) != len(b) for a, b in zip(low, high)):
                continue
            self.take_batch(group, whole, sizes, low, high)
            return
        if self.few:
            raise ValueError("the first dimension cannot vary")  # for describe_whole()
        self.small = self.arguments
        self.notes.append("only this shape is checked: the first dimension cannot vary")
        results = self.try_run(self.arguments)
        self.take_outputs(results, [[str(extent) for extent in t.shape] for _, t in results])

    def is_matrix(self, index):
        """A triangular or symmetric matrix would not be one with fewer rows."""
        value = self.arguments[index]
        return value.dim() == 2 and structure_of(value) in ("upper", "lower", "symmetric")

    def take_batch(self, group, whole, sizes, low, high):
        name = self.names.take("B" if "B" not in self.names.used else "BATCH")
        least = sizes[0]
        try:
            results = self.try_run(self.sliced(group, 1))
            least = 1
        except Exception:  # a batch norm, for one
            self.notes.append("the first dimension is at least %d" % least)
            results = self.try_run(self.sliced(group, least))
        self.batch = (name, whole, group, least)
        self.small = self.sliced(group, least)
        shapes = []
        for a, b in zip(low, high):
            shape = []
            for small, large in zip(a, b):
                step = (large - small) // (sizes[1] - sizes[0])
                rest = small - step * sizes[0]
                text = "%d" % rest if step == 0 else name if step == 1 else "%d*%s" % (step, name)
                shape.append(text if step == 0 or rest == 0 else "%s + %d" % (text, rest))
            shapes.append(shape)
        self.take_outputs(results, shapes)

    def take_outputs(self, results, shapes):
        self.outputs, self.results = [], results
        if not results or len(results) > OUTPUTS_MOST:
            raise Refused("%d outputs, expected 1 to %d" % (len(results), OUTPUTS_MOST))
        for (name, tensor), shape in zip(results, shapes):
            check_tensor("output %s" % name, tensor)
            own = self.names.take(name)
            self.outputs.append((own, shape, DTYPES[dtype_of(tensor)]))
            self.binding["outputs"].append(own)
            if dtype_of(tensor) in ("int64", "bool"):
                self.notes.append("%s is %s in the file, int32 here" % (own, dtype_of(tensor)))

    # --- parameters and buffers ---

    def matters(self, path):
        """Would the outputs change with it, on the given values or on others? At a small batch."""
        for kind in (None, "uniform", "mixed"):
            arguments = list(self.small)
            for index, value in enumerate(arguments):
                if kind and isinstance(value, torch.Tensor) and value.is_floating_point():
                    arguments[index] = spread(value, kind).to(value)
            model = copy.deepcopy(self.model)
            tensor = dict(list(model.named_parameters()) + list(model.named_buffers()))[path]
            with torch.no_grad():
                if tensor.is_floating_point():
                    tensor.mul_(1.25).add_(0.125)
                elif tensor.dtype == torch.bool:
                    tensor.logical_not_()
                else:
                    tensor.add_(1)
            try:
                results = self.try_run(arguments) if kind else self.results
                changed = run(model, [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments])
            except Exception:
                continue
            if any(not torch.equal(a, b) for (_, a), (_, b) in zip(results, changed)):
                return True
        return False

    def bind_parameters(self):
        named = [(path, tensor, "parameter") for path, tensor in self.model.named_parameters()]
        named += [(path, tensor, "buffer") for path, tensor in self.model.named_buffers()]
        unused = []
        for path, tensor, role in named:
            check_tensor("%s %s" % (role, path), tensor)
            if len(named) <= MATTERS_MOST and not self.matters(path):
                unused.append(path)
                continue
            own = self.names.take(path.replace(".", "_"))
            structure = structure_of(tensor)
            entry = {"input": own, "path": path, "role": role, "initial": True}
            if structure == "whole" or (role == "buffer" and structure in ("upper", "lower")):
                entry["structure"] = "given"  # a mask or a table: part of the definition
            self.binding["parameters"].append(entry)
            place = {"index": None, "name": own, "tensor": tensor.detach(), "shape": tuple(tensor.shape)}
            self.inputs.append(place)
        if unused:
            self.notes.append("without effect on the outputs: %s" % ", ".join(unused)[:200])
        if len(self.inputs) > INPUTS_MOST:
            raise Refused(
                "%d inputs, parameters and buffers, expected at most %d"
                % (len(self.inputs), INPUTS_MOST)
            )

    def check_deterministic(self):
        torch.manual_seed(SEED + 2)
        for (name, a), (_, b) in zip(self.results, self.try_run(self.small)):
            if not torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-5, equal_nan=True):
                raise Refused(
                    "output %s is random: two calls on the same inputs differ (dropout?)" % name
                )
        if not is_finite(self.results):
            self.notes.append("its outputs on get_inputs' values are not all finite")

    # --- for who calls a kernel in the module's place ---

    def bind_returns(self):
        """In which form forward returns its outputs, and whether its mode changes them."""
        arguments = [a.clone() if isinstance(a, torch.Tensor) else a for a in self.small]
        with torch.no_grad():
            returned = copy.deepcopy(self.model)(*arguments)
        if isinstance(returned, torch.Tensor):
            kind, items = "tensor", [(None, returned)]
        elif isinstance(returned, dict):
            kind, items = "dict", list(returned.items())
        else:
            kind = "tuple" if isinstance(returned, tuple) else "list"
            items = [(None, item) for item in returned]
        form = [{"key": k, "torch": None if v is None else dtype_of(v)} for k, v in items]
        self.binding["returns"] = {"kind": kind, "items": form}
        self.binding["training"] = self.model.training
        other = copy.deepcopy(self.model).train(not self.model.training)
        try:
            changed = run(other, [a.clone() if isinstance(a, torch.Tensor) else a for a in self.small])
            same = all(torch.equal(a, b) for (_, a), (_, b) in zip(self.results, changed))
        except Exception:
            same = False
        self.binding["mode_matters"] = not same

    # --- what is drawn ---

    def choose_ranges(self):
        self.ranges, self.structures = {}, {}
        free = []
        for place in self.inputs:
            values = place["tensor"].detach()
            structure = structure_of(values)
            low, high = float(values.min()), float(values.max())
            if place["index"] is None:
                self.ranges[place["name"]] = parameter_range(low, high)
                continue
            if structure == "constant":
                self.ranges[place["name"]] = parameter_range(low, high)
                structure = "free"
            elif structure == "whole":
                self.ranges[place["name"]] = (low, high)
            else:
                free.append(place)
            self.structures[place["name"]] = structure
        if not free or self.fits(free, {}):
            return
        names = [place["name"] for place in free]
        given = {p["name"]: (float(p["tensor"].min()), float(p["tensor"].max())) for p in free}
        size = {n: (-max(map(abs, given[n])), max(map(abs, given[n]))) for n in names}
        if self.fits(free, size):
            self.ranges.update(size)
            self.notes.append("drawn no larger than get_inputs has it: larger numbers overflow")
            return
        chosen = dict(given)
        for name in names if len(names) > 1 else []:
            wider = dict(chosen)
            wider.pop(name)
            if self.fits(free, wider):
                chosen = wider
        self.ranges.update(chosen)
        self.notes.append(
            "drawn from the range that get_inputs has: %s" % ", ".join(sorted(chosen)) + "; elsewhere "
            "the module fails or is not finite"
        )

    def fits(self, free, ranges):
        """Do all distributions inside these ranges leave the outputs finite?"""
        if sum(a.numel() for a in self.small if isinstance(a, torch.Tensor)) > 1 << 27:
            return bool(ranges)  # too large to be tried: stay at the size of the given values
        for kind in ("mixed", "uniform"):
            torch.manual_seed(SEED + 4)
            arguments = list(self.small)
            for place in free:
                like = arguments[place["index"]]
                values = spread(like, kind)
                if place["name"] in ranges:
                    low, high = ranges[place["name"]]
                    wide = 2.0 if kind == "uniform" else 6.0
                    center = min(max(0.0, low), high) if high - low >= wide else (low + high) / 2
                    values = (center + values * min(1.0, (high - low) / wide)).clamp(low, high)
                values = keep_structure(values, self.structures[place["name"]])
                arguments[place["index"]] = values.to(like)
            try:
                if not is_finite(self.try_run(arguments)):
                    return False
            except Exception:
                return False
        return True

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
            elements += sum(t.numel() for _, t in self.results) // least * whole
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
        flops = self.flops()
        if flops:
            spec["flops"] = flops
        longest = self.longest_sum()
        if longest == 1 or (flops and longest):
            spec["reduction"] = longest
        return json.dumps(spec)


def parameter_range(low, high):
    """Of the same scale as the initial values; what is all one number is spread around it."""
    if low == high:
        size = abs(low) / 2 if low else 0.5
        return (low - size, low + size)
    if low < 0 < high:
        size = max(-low, high)
        return (-size, size)
    return (low, high)


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
        "shipped": torch_shipped.find(described, shipped),
    }
