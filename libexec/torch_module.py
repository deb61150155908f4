"""A PyTorch module in a file: loaded, built and run, and what its tensors are. Used by torch_problem.py."""

import inspect
import math
import os
import re
import sys
import types

import source_text
import torch
import torch_forms
import torch_state
from torch_rows import SEED, Refused, given_arguments

DTYPES = {  # PyTorch's name: the spec's
    "float32": "float32",
    "float64": "float64",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "int32": "int32",
    "int64": "int32",  # as indices are passed to kernels
    "bool": "int32",
}
TAKEN = set(
    "alignas alignof asm auto bool break case catch char class const constexpr continue decltype "
    "default delete do double else enum explicit export extern false float for friend goto if "
    "inline int kernel long main mutable namespace new noexcept nullptr operator private protected "
    "public register restrict return short signed sizeof static struct switch template this "
    "thread_local throw true try typedef typeid typename typeof union unsigned using virtual void "
    "volatile wchar_t while min max ceil_div round_up next_pow2".split()
)


# --- loading ---


def strict_float32():
    """float32 means float32, also after a file that says otherwise."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def load(path, seed=SEED):
    """Everything that the file's own code draws is drawn under the seed."""
    module = types.ModuleType("problem_file")
    sys.modules["problem_file"] = module  # where torch.compile looks a function's names up
    module.__file__ = path
    with open(path, "rb") as file:
        text = source_text.clean(file.read(), os.path.basename(path))
    calls = torch_forms.listen()
    folder = os.path.dirname(os.path.abspath(path))
    for name in torch_state.siblings(path):
        del sys.modules[name]
    sys.path.insert(0, folder)  # first while it is loaded, as Python has it; last for imports of forward's
    torch_state.seed_all(seed)
    try:
        exec(compile(text, path, "exec"), module.__dict__)
    except Exception:
        if not calls:
            raise  # else it was about what generate_kernel gave it
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)
    module.problem_siblings = torch_state.siblings(path)
    torch_forms.complete(module, calls)
    for name in ("Model", "get_inputs"):
        if not callable(module.__dict__.get(name)):
            raise Refused("expected a callable named %s, found none" % name)
    strict_float32()
    return module


def build(module, device, seed=SEED):
    """The module, and which of its tensors it does not call parameters or buffers."""
    torch_state.seed_all(seed)
    arguments, named = torch_forms.init_arguments(module)
    torch_state.seed_all(seed)
    model = module.Model(*arguments, **named)
    if not isinstance(model, torch.nn.Module):
        raise Refused("expected Model to be a torch.nn.Module")
    strict_float32()
    adopted = torch_state.adopt(model)
    if any(torch.nn.parameter.is_lazy(each) for each in model.parameters()):
        with torch.no_grad():  # layers that take their sizes from the first input have them after one call
            model(*given_arguments(module))
    return model.to(device), adopted


def flatten(result):
    """[(name, tensor)] of what forward returned; None in it is left out."""
    if isinstance(result, torch.Tensor):
        return [("out", result)]
    if isinstance(result, dict):
        pairs = list(result.items())
    elif isinstance(result, (tuple, list)):
        pairs = [("out%d" % i, item) for i, item in enumerate(result)]
    else:
        missing = ": is a `return` missing?" if result is None else ""
        what = "None" if result is None else "a " + type(result).__name__
        raise Refused("Model.forward returned %s%s, expected tensors" % (what, missing))
    pairs = [(str(name), item) for name, item in pairs if item is not None]
    for name, item in pairs:
        if not isinstance(item, torch.Tensor):
            raise Refused("output %s is a %s, expected a tensor" % (name, type(item).__name__))
    return pairs if len(pairs) != 1 else [("out", pairs[0][1])]


def run(model, arguments):
    with torch.no_grad():
        return flatten(model(*arguments))


def dtype_of(tensor):
    return str(tensor.dtype).replace("torch.", "")


def check_tensor(what, tensor):
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise Refused("%s is a sparse or quantized tensor" % what)
    if dtype_of(tensor) not in DTYPES:
        raise Refused("%s has dtype %s, which kernels are not given" % (what, dtype_of(tensor)))
    if tensor.numel() == 0:
        raise Refused("%s has no elements" % what)
    if tensor.dim() > 8:
        raise Refused("%s has %d axes, expected at most 8" % (what, tensor.dim()))


class Names:
    """C identifiers, each once."""

    def __init__(self):
        self.used = set()

    def take(self, wish):
        name = re.sub(r"[^A-Za-z0-9_]", "_", wish)
        if not name[:1].isalpha():
            name = "p" + ("" if name[:1] == "_" else "_") + name
        name = name[:56]
        base, number = name, 1
        while name in self.used or name in TAKEN:
            name = base + ("_" if number == 1 else str(number))
            number += 1
        self.used.add(name)
        return name


# --- the arguments ---


def argument_names(model, count):
    try:
        parameters = inspect.signature(model.forward).parameters.values()
    except (TypeError, ValueError):
        parameters = []
    fixed = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [fixed[i] if i < len(fixed) else "x%d" % i for i in range(count)]


def spread(values, kind):
    """Other values of the same shape, as the evaluator will draw them: "uniform", or heavy tails,
    normal ones and zeros mixed."""
    shape = values.shape
    a = torch.rand(shape, dtype=torch.float32) * 2 - 1
    if kind == "uniform":
        return a
    heavy = (a * math.sqrt(2.0) / torch.sqrt(1.0000001 - a * a)).clamp(-1e4, 1e4)
    return torch.where(torch.rand(shape) < 0.5, heavy, torch.zeros(()))


def structure_of(tensor):
    """What a draw of other values has to keep: "whole", "upper", "lower", "symmetric" or "free". Of
    a large tensor the beginning is looked at."""
    if not tensor.is_floating_point():
        return "whole"
    flat = tensor.detach().reshape(-1)[: 1 << 20].float()
    if flat.numel() > 1 and bool((flat == flat.round()).all()):
        low, high = float(tensor.min()), float(tensor.max())
        return "constant" if low == high else "whole"
    if tensor.dim() < 2 or min(tensor.shape[-2:]) < 2:
        return "free"
    values = tensor.detach().reshape(-1, *tensor.shape[-2:])[0]
    square = values.shape[0] == values.shape[1]
    lower = bool(values[1:, 0].any()) or bool(values[-1, : min(values.shape) - 1].any())
    upper = bool(values[0, 1:].any()) or bool(values[: min(values.shape) - 1, -1].any())
    if not lower and upper and not bool(torch.tril(values, -1).any()):
        return "upper"
    if not upper and lower and not bool(torch.triu(values, 1).any()):
        return "lower"
    if square and values[0, 1] == values[1, 0] and bool((values == values.T).all()):
        return "symmetric"
    return "free"


def keep_structure(values, structure):
    if structure == "upper":
        return torch.triu(values)
    if structure == "lower":
        return torch.tril(values)
    if structure == "symmetric":
        return torch.triu(values) + torch.triu(values, 1).transpose(-1, -2)
    return values


def is_finite(results):
    return all(bool(torch.isfinite(t).all()) for _, t in results if t.is_floating_point())
