"""A drop-in for the module of reference.py: the same constructor, parameters and buffers, so that a
state_dict of one loads into the other; forward() is the kernel. See README.md for when it is not."""

import inspect
import math
import warnings

import torch

from . import reference
from .kernel import Kernel, KernelError, UnfitError  # noqa: F401

kernel = Kernel()
BINDING = kernel.shapes.plan["binding"]
KEPT = dict.fromkeys(("int64", "bool", "int8", "uint8", "int16"), torch.int32)  # as kernels are given them


def constant(value):
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def told(reason, said=set()):
    if reason not in said:
        said.add(reason)
        warnings.warn("the original module runs, not the kernel: " + reason, stacklevel=4)


class ModelNew(getattr(reference, BINDING.get("class", "Model"))):
    def obstacle(self, arguments):
        """Why the kernel cannot take this call; None: it can."""
        if arguments is None or len(arguments) != len(BINDING["arguments"]):
            return "other arguments than get_inputs gives"
        grad = torch.is_grad_enabled()
        for value, entry in zip(arguments, BINDING["arguments"]):
            if "input" not in entry:
                if isinstance(value, torch.Tensor) or constant(value) != entry.get("number", entry.get("value")):
                    return "a constant argument differs from get_inputs'"
            elif not isinstance(value, torch.Tensor) or not value.is_cuda:
                return "an input is no CUDA tensor"
            elif str(value.dtype) != "torch." + entry["torch"]:
                return "an input is %s, not %s" % (value.dtype, entry["torch"])
            elif grad and value.requires_grad:
                return "an input wants a gradient, which the kernel does not have"
        if grad and any(p.requires_grad for p in self.parameters()):
            return "parameters want gradients: call it under torch.no_grad()"
        if BINDING["mode_matters"] and self.training != BINDING["training"]:
            return "it was made for %s mode" % ("training" if BINDING["training"] else "evaluation")
        return None

    def in_order(self, arguments, more):
        """What is given by name, in the order in which forward takes it; None: it takes something else."""
        try:
            bound = inspect.signature(super().forward).bind(*arguments, **more)
        except TypeError:
            return None
        bound.apply_defaults()
        return tuple(bound.arguments.values())[: len(BINDING["arguments"])]

    def tensors(self, arguments):
        given = [a for a, entry in zip(arguments, BINDING["arguments"]) if "input" in entry]
        for entry in BINDING["parameters"]:
            owner, _, name = entry["path"].rpartition(".")
            given.append(getattr(self.get_submodule(owner), name))
        return [t.to(KEPT.get(str(t.dtype)[6:], t.dtype)) for t in given]

    @torch.compiler.disable
    def forward(self, *arguments, **more):
        ordered = self.in_order(arguments, more) if more else arguments
        reason = self.obstacle(ordered)
        if reason is None:
            try:
                outputs = kernel(*self.tensors(ordered))
            except (ValueError, TypeError, UnfitError) as fault:  # not for this shape, or device
                reason = str(fault)
        if reason is not None:
            told(reason)
            return super().forward(*arguments, **more)
        return self.returned(outputs if isinstance(outputs, tuple) else (outputs,))

    @staticmethod
    def returned(outputs):
        """In the form, and in the dtypes, in which the original returns them."""
        results = iter(outputs)

        def formed(form):
            if "kind" not in form:
                return None if form["torch"] is None else next(results).to(getattr(torch, form["torch"]))
            items = [formed(item) for item in form["items"]]
            if form["kind"] == "dict":
                return dict(zip((item["key"] for item in form["items"]), items))
            return tuple(items) if form["kind"] == "tuple" else items

        return formed(BINDING["returns"])
