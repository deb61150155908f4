"""The arguments that a file's get_inputs gives; of large ones only some rows.

Used by torch_problem.py: gigabytes need not be made to tell what they are, and what does not fit
this machine's memory is refused before anything is made.
"""

import contextlib
import inspect
import math
import os
import sys

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch_state import seed_all

SEED = 20210


class Refused(Exception):
    """The user's file is at fault, or cannot be a problem; the message is for people."""


class TooLarge(Refused):
    """It is this machine that cannot."""


def without_compiler(mode):
    """PyTorch has its compiler told to leave a dispatch mode alone, and imports all of that compiler
    for it: 900 modules, where nothing is compiled."""
    plain = getattr(mode.__torch_dispatch__, "__wrapped__", None)
    if plain is not None and "torch._dynamo" not in sys.modules:
        plain.__dynamo_disable = plain
    return mode


class WithoutGpu(TorchFunctionMode):
    """On a machine that has no GPU, what a file puts on one stays where all the rest is: while it is loaded, built and
    makes its inputs. What forward itself puts there is refused in PyTorch's words."""

    meta = False  # on_meta()

    def __new__(cls, module):
        return super().__new__(cls) if getattr(module, "problem_without_gpu", False) else contextlib.nullcontext()

    def __init__(self, module):
        super().__init__()

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        keywords, name = dict(keywords or {}), getattr(function, "__name__", "")
        here = "meta" if WithoutGpu.meta else "cpu"
        if name == "cuda":
            return arguments[0]
        if is_gpu(keywords.get("device")):
            keywords["device"] = here
        return function(*(here if is_gpu(each) else each for each in arguments), **keywords)


def is_gpu(value):
    return isinstance(value, (str, torch.device)) and str(value).partition(":")[0] == "cuda"


@contextlib.contextmanager
def on_meta():
    """Tensors have no numbers, wherever a file puts them."""
    WithoutGpu.meta = True
    try:
        with torch.device("meta"):
            yield
    finally:
        WithoutGpu.meta = False


def by_position(model, given):
    """What get_inputs gives by name, as {name: value} or as [[positional], {name: value}], in the order in which forward
    takes it; all else as it is."""
    positional, named = [], given
    if isinstance(given, (list, tuple)) and len(given) == 2 and isinstance(given[0], (list, tuple)):
        positional, named = list(given[0]), given[1]
    if not isinstance(named, dict):
        return given
    try:
        bound = inspect.signature(model.forward).bind(None, *positional, **named)
    except (TypeError, ValueError, AttributeError) as fault:
        if positional:
            return given  # a list and a dict are its arguments
        raise Refused("get_inputs returned a dict that forward cannot be called with: %s" % fault) from None
    bound.apply_defaults()
    taken = list(bound.arguments.items())[1:]
    last = max([at for at, (name, _) in enumerate(taken) if name in named], default=-1)
    return [value for _, value in taken[: max(last + 1, len(positional))]]


def given_arguments(module, seed=SEED + 1):
    seed_all(seed)
    with WithoutGpu(module):
        arguments = module.get_inputs()
    if isinstance(arguments, torch.Tensor):
        arguments = [arguments]
    arguments = by_position(module.Model, arguments)
    if not isinstance(arguments, (tuple, list)):
        raise Refused("get_inputs returned a %s, expected a list" % type(arguments).__name__)
    for index, value in enumerate(arguments):
        if isinstance(value, torch.Tensor) and value.is_nested:
            raise Refused("input %d is a sparse, nested or quantized tensor" % index)
    return list(arguments)


class FewRows(TorchDispatchMode):
    """New tensors of `whole` rows that are large get ROWS of them: enough to tell what they are."""

    ROWS, LARGE = 6, 1 << 20
    SIZE_AT = {"rand": 0, "randn": 0, "zeros": 0, "ones": 0, "empty": 0, "full": 0}

    def __init__(self, whole):
        super().__init__()
        self.whole = whole

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        name = str(function)  # "aten.rand.default"
        place = self.SIZE_AT.get(name.split(".")[1])
        if name.startswith("aten.randint."):
            place = 1 if name == "aten.randint.default" else 2
        size = list(arguments[place]) if place is not None and len(arguments) > place else []
        if size and size[0] == self.whole and math.prod(size) > self.LARGE:
            size[0] = self.ROWS
            arguments = (*arguments[:place], size, *arguments[place + 1 :])
        return function(*arguments, **(keywords or {}))


def few_rows(module):
    """(arguments, shapes that they have in the file): of large inputs only some rows; or None where
    they are small, or made in another way."""
    try:
        with on_meta():
            meta = given_arguments(module)
        tensors = [a for a in meta if isinstance(a, torch.Tensor)]
        if sum(a.numel() for a in tensors) <= 1 << 24 or tensors[0].shape[0] <= FewRows.ROWS:
            return None
        with without_compiler(FewRows)(tensors[0].shape[0]):
            few = given_arguments(module)
    except Refused:
        raise
    except Exception:
        return None
    for small, whole in zip(few, meta):
        if isinstance(small, torch.Tensor) != isinstance(whole, torch.Tensor):
            return None
        if isinstance(small, torch.Tensor) and (
            small.dim() != whole.dim() or small.shape[1:] != whole.shape[1:] or small.dtype != whole.dtype
        ):
            return None
    return few, [tuple(a.shape) if isinstance(a, torch.Tensor) else None for a in meta]


def check_size(module):
    """Before the values are made: their sizes alone."""
    try:
        with on_meta():
            arguments = given_arguments(module)
    except TooLarge:
        raise
    except Exception:
        return  # it makes them in a way that has no shapes without values
    elements = sum(a.numel() for a in arguments if isinstance(a, torch.Tensor))
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if elements * 16 > 0.8 * there:
        raise TooLarge(
            "its inputs alone are %.0f GiB, this machine has %.0f"
            % (elements * 4 / 2**30, there / 2**30)
        )
