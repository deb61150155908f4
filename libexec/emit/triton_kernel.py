"""Launches the kernels of source.py as plan.json says, by Triton's own launcher on PyTorch's tensors, device and
current stream, as an operator of torch.library, which torch.compile takes as it is. Needs torch with triton."""

import importlib
import os
import threading
from typing import List

import torch
import triton

from .shapes import Shapes

OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # on the CPU, to be looked into
FACTS = {  # by the names of torch's properties; the numbers are an H100's, for the interpreter
    "sm_count": ("multi_processor_count", 132),
    "warp_size": ("warp_size", 32),
    "l2_bytes": ("L2_cache_size", 52428800),
    "shared_bytes_optin": ("shared_memory_per_block_optin", 232448),
    "sm_shared_bytes": ("shared_memory_per_multiprocessor", 233472),
    "max_threads_per_sm": ("max_threads_per_multi_processor", 2048),
    "registers_per_sm": ("regs_per_multiprocessor", 65536),
}


class KernelError(RuntimeError):
    pass


class UnfitError(KernelError):
    """Before anything was launched: it is not for this device, or not at these dims."""


class BeyondError(UnfitError):
    """It was not checked at such a size."""


def scratch(size, _alignment, _stream):
    """What a kernel's tensor descriptors lie in."""
    return torch.zeros(size, dtype=torch.int8, device="cuda")


def facts_of(device):
    """What launch expressions may use of a device."""
    if device.type != "cuda":
        return {name: number for name, (_, number) in FACTS.items()} | {"compute_capability": 90}
    properties = torch.cuda.get_device_properties(device)
    facts = {name: getattr(properties, theirs, number) for name, (theirs, number) in FACTS.items()}
    return facts | {"compute_capability": 10 * properties.major + properties.minor}


class Kernel:
    """kernel(tensors..., dim=number...): the outputs, new tensors, one or a tuple of them."""

    def __init__(self):
        self.shapes = Shapes()
        plan = self.shapes.plan
        self.inputs, self.outputs = plan["inputs"], plan["outputs"]
        self.names = [tensor["name"] for tensor in self.inputs + self.outputs + plan["workspaces"]]
        self.dims = [dim["name"] for dim in plan["dims"]]
        self.source = importlib.import_module(".source", __package__)
        self.lock, self.scopes, self.facts = threading.Lock(), {}, {}
        name = "twagent::" + "".join(c if c.isalnum() else "_" for c in plan["id"])
        self.operator = torch.library.custom_op(name, self.compute, mutates_args=())
        self.operator.register_fake(self.describe)

    def scope(self, device, shapes_of, given):
        """Dims, tune numbers and the device's facts by name."""
        key = (device, shapes_of, tuple(sorted(given.items())))
        if key not in self.scopes:
            with self.lock:
                facts = self.facts.setdefault(device, facts_of(device))
                dims = self.shapes.dims(shapes_of, given)
                if self.shapes.beyond(dims) is not None:
                    raise BeyondError(self.shapes.beyond(dims))
                scope = dict(facts, **self.shapes.plan["tune"], **dims)
                if not self.shapes.valid_tune(scope):
                    raise KernelError("its tune numbers are not for this device at %s" % dims)
                self.scopes[key] = scope
        return self.scopes[key]

    def empty(self, tensors, scope, device):
        """New tensors of the plan's."""
        return [torch.empty(self.shapes.extents(t, scope), dtype=getattr(torch, t["dtype"]), device=device) for t in tensors]

    def descriptor(self, each, scope, tensors):
        """A tensor map. The hardware has none for rows that are no multiple of 16 bytes, and the kernel then uses none:
        one of as many zeros."""
        from triton.tools.tensor_descriptor import TensorDescriptor

        tensor = tensors[each["tensor"]]
        box = [self.shapes.number(text, scope) for text in each["box"]]
        seen = tensor.view([self.shapes.number(text, scope) for text in each["shape"]] or tensor.shape)
        if any(stride * seen.element_size() % 16 for stride in seen.stride()[:-1]):
            seen = torch.zeros([max(n, 16) for n in box], dtype=tensor.dtype, device=tensor.device)
        return TensorDescriptor.from_tensor(seen, box)

    def launch(self, launch, scope, tensors):
        """By Triton's launcher, which compiles for what it sees of the arguments."""
        function = getattr(self.source, launch["entry"])
        constants = dict(self.shapes.plan["tune"])
        constants |= {name: self.shapes.number(text, scope) for name, text in launch["constexpr"].items()}
        known = {n: v for n, v in constants.items() if n in function.arg_names or (n in OPTIONS and not INTERPRETED)}
        maps = {each["name"]: each for each in self.shapes.plan["maps"]}
        values = [
            self.descriptor(maps[name], scope, tensors) if name in maps
            else tensors[name] if name in tensors else scope[name] if name in scope else int(name, 16 if "x" in name else 10)
            for name in launch["args"]
        ]
        places = [name for name in function.arg_names if name not in known]
        grid = tuple(self.shapes.number(text, scope) for text in launch["grid"])
        function[grid](**dict(zip(places, values)), **known)

    def compute(self, tensors: List[torch.Tensor], dims: List[int]) -> List[torch.Tensor]:
        """The operator. `dims`: numbers in the plan's order, those that inputs' shapes say included."""
        plan, device = self.shapes.plan, tensors[0].device
        scope = self.scope(device, tuple(t.shape for t in tensors), dict(zip(self.dims, dims)))
        made = self.empty(self.outputs + plan["workspaces"], scope, device)
        by_name = dict(zip(self.names, list(tensors) + made))
        if hasattr(triton, "set_allocator") and not INTERPRETED:
            triton.set_allocator(scratch)
        for each in plan["memsets"]:
            by_name[each["tensor"]].view(torch.uint8).fill_(each["byte"])
        for launch in plan["launches"]:
            self.launch(launch, scope, by_name)
        return made[: len(self.outputs)]

    def describe(self, tensors, dims):
        """Shapes and types of the outputs alone."""
        scope = dict(self.shapes.plan["tune"], **dict(zip(self.dims, dims)))
        return self.empty(self.outputs, scope, tensors[0].device)

    def __call__(self, *tensors, **dims):
        if len(tensors) != len(self.inputs):
            raise TypeError("expected %d tensors, got %d" % (len(self.inputs), len(tensors)))
        where = tensors[0].device
        for tensor, spec in zip(tensors, self.inputs):
            if tensor.device != where or (where.type != "cuda" and not INTERPRETED):
                raise TypeError("%s is on %s, expected one CUDA device" % (spec["name"], tensor.device))
            if tensor.dtype != getattr(torch, spec["dtype"]):
                raise TypeError("%s is %s, expected %s" % (spec["name"], tensor.dtype, spec["dtype"]))
        with torch.no_grad():
            tensors = [t.detach().contiguous() for t in tensors]
            try:
                numbers = self.shapes.dims(tuple(t.shape for t in tensors), dims)
                self.scope(where, tuple(t.shape for t in tensors), dims)
            except BeyondError:
                raise
            except KernelError as fault:
                raise UnfitError(str(fault)) from fault
            if where.type == "cuda":
                with torch.cuda.device(where):
                    outputs = self.operator(tensors, [numbers[name] for name in self.dims])
            else:
                outputs = self.operator(tensors, [numbers[name] for name in self.dims])
        return outputs[0] if len(outputs) == 1 else tuple(outputs)
