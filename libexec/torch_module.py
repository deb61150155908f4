"""A PyTorch module in a file: loaded, built and run, and what its tensors are. Used by torch_problem.py."""

import copy
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
from torch_rows import SEED, Refused, WithoutGpu, given_arguments

DTYPES = {  # PyTorch's name: the spec's
    "float32": "float32",
    "float64": "float64",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "int32": "int32",
    "int64": "int32",  # as indices are passed to kernels
    "bool": "int32",
    "int8": "int32",
    "uint8": "int32",
    "int16": "int32",
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
    arguments, sys.argv = sys.argv, [path]  # a script that reads its own
    GRADIENTS.clear()
    module.problem_without_gpu = b"cuda" in (text if isinstance(text, bytes) else text.encode()) and not torch.cuda.is_available()
    try:
        with WithoutGpu(module):
            exec(compile(text, path, "exec"), module.__dict__)
    except Exception:
        if not calls:
            raise  # else it was about what generate_kernel gave it
    except SystemExit:
        if not callable(module.__dict__.get("Model")):
            raise
    finally:
        sys.argv = arguments
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
    with WithoutGpu(module):
        arguments, named = torch_forms.init_arguments(module)
        torch_state.seed_all(seed)
        model = module.Model(*arguments, **named)
    if not isinstance(model, torch.nn.Module):
        raise Refused("expected Model to be a torch.nn.Module")
    if not hasattr(model, "_modules"):
        raise Refused("Model.__init__ does not call super().__init__()")
    strict_float32()
    adopted = torch_state.adopt(model)
    if any(torch.nn.parameter.is_lazy(each) for each in model.parameters()):
        with torch.no_grad():  # layers that take their sizes from the first input have them after one call
            model(*given_arguments(module))
    return model.to(device), adopted


def another(module, model, device):
    """One more of the same; where it holds what cannot be copied (a lock) it is built again."""
    try:
        return copy.deepcopy(model)
    except Exception:
        built = build(module, device)[0]
        if built is model:
            raise
        return built


def pairs_of(result):
    """[(name, item)] of a container that forward returns; None: it is none."""
    if isinstance(result, dict):
        return [(str(key), item) for key, item in result.items()]
    return list(enumerate(result)) if isinstance(result, (tuple, list)) else None


def leaves(name, value):
    """[(name, tensor)] of one item of what forward returned, which may be a tuple, a list or a dict again."""
    pairs = pairs_of(value)
    if pairs is not None:
        return [leaf for key, item in pairs for leaf in leaves("%s_%s" % (name, key), item)]
    if value is not None and not isinstance(value, torch.Tensor):
        raise Refused("output %s is of type %s, expected a tensor" % (name, type(value).__name__))
    return [] if value is None else [(name, value)]


def flatten(result):
    """[(name, tensor)] of what forward returned; None in it is left out."""
    if isinstance(result, torch.Tensor):
        return [("out", result)]
    pairs = pairs_of(result)
    if pairs is None:
        what = "None, expected tensors: is a `return` missing?"
        raise Refused("Model.forward returned %s" % (
            what if result is None else "something of type %s, expected tensors" % type(result).__name__
        ))
    named = isinstance(result, dict)
    found = [leaf for key, item in pairs for leaf in leaves(key if named else "out%d" % key, item)]
    return found if len(found) != 1 else [("out", found[0][1])]


GRADIENTS = []  # not empty: forward asks for gradients of its own


def calling():
    """How forward is called: without a graph, but where it makes use of one itself."""
    return torch.enable_grad() if GRADIENTS else torch.no_grad()


def run(model, arguments):
    try:
        with calling():
            results = flatten(model(*arguments))
    except RuntimeError as fault:
        if GRADIENTS or "does not require grad" not in str(fault):
            raise
        GRADIENTS.append(True)
        return run(model, arguments)
    return [(name, tensor.detach()) for name, tensor in results]


def dtype_of(tensor):
    return str(tensor.dtype).replace("torch.", "")


def check_layout(what, tensor):
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_nested:
        raise Refused("%s is a sparse, nested or quantized tensor" % what)


def check_tensor(what, tensor):
    check_layout(what, tensor)
    if dtype_of(tensor) not in DTYPES:
        raise Refused("%s has dtype %s, which kernels are not given" % (what, dtype_of(tensor)))
    if tensor.numel() == 0:
        raise Refused("%s has no elements" % what)
    if tensor.dim() > 8:
        raise Refused("%s has %d axes, expected at most 8" % (what, tensor.dim()))
    if tensor.dtype == torch.int64 and not -0x80000000 <= int(tensor.min()) <= int(tensor.max()) <= 0x7FFFFFFF:
        raise Refused("%s holds numbers beyond int32, as which kernels are given int64" % what)


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
    fixed = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name != "self"]
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
