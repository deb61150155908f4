"""The longest sum behind an output element of a module, where it is not one sum alone.

A kernel may turn a chain of linear steps into one running sum over the product of their lengths.
It may not across a step that is not linear: a sigmoid between two sums has to be computed, and
what went wrong before it adds to what goes wrong after it. Rounding errors grow with the root of a
sum's length, so that two sums of m and n terms with such a step between them err as one of
(sqrt(m) + sqrt(n))**2, and not of m * n terms.
"""

import math

from torch.utils._python_dispatch import TorchDispatchMode

from torch_rows import without_compiler

# Each output element is one of the input's, or a sum of a few of them, or of products with numbers
# that are given.
LINEAR = set(
    "view _unsafe_view reshape _reshape_alias unsqueeze squeeze expand permute transpose t clone "
    "slice select alias detach contiguous cat stack repeat add add_ sub sub_ rsub neg div_ mul_ "
    "mul div _to_copy split chunk flatten unbind lift_fresh".split()
)
MAKES = set("ones zeros empty full ones_like zeros_like empty_like full_like arange scalar_tensor".split())
POINTWISE = set(  # not linear; no sum of its own
    "sigmoid tanh relu relu_ gelu silu silu_ mish mish_ softplus hardtanh hardtanh_ hardswish "
    "hardswish_ hardsigmoid leaky_relu leaky_relu_ elu elu_ clamp clamp_ clamp_min clamp_min_ "
    "clamp_max clamp_max_ abs exp log sqrt rsqrt reciprocal pow maximum minimum max min amax amin "
    "max_pool2d_with_indices max_pool3d_with_indices _adaptive_avg_pool2d _adaptive_avg_pool3d".split()
)
SUMS = {"sum", "mean", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d"}
NORMS = {"_softmax", "_log_softmax", "logsumexp", "native_group_norm", "native_layer_norm"}


class Unknown(Exception):
    """An operation of which nothing is said here."""


def sum_length(name, arguments, result):
    """Terms of the sum that one operation makes for one element; 1 where it makes none."""
    if name in ("mm", "bmm"):
        return arguments[0].shape[-1]
    if name in ("addmm", "baddbmm"):
        return arguments[1].shape[-1]
    if name == "convolution":
        weight, transposed, groups = arguments[1], arguments[6], arguments[8]
        if not transposed:
            return weight[0].numel()
        return weight.shape[0] // groups * weight[0, 0].numel()
    if name in ("avg_pool2d", "avg_pool3d"):
        window = list(arguments[1])
        return math.prod(window) if len(window) > 1 else window[0] ** int(name[-2])
    if name in SUMS:
        return max(1, arguments[0].numel() // max(1, result.numel()))
    if name == "native_group_norm":
        return arguments[0].numel() // (arguments[0].shape[0] * arguments[6])
    if name == "native_layer_norm":
        return math.prod(arguments[1])
    if name in ("_softmax", "_log_softmax"):
        return arguments[0].shape[arguments[1]]
    if name == "logsumexp":
        return max(1, arguments[0].numel() // max(1, result.numel()))
    return 1


class Sums(TorchDispatchMode):
    """Of every tensor: roots of the sums behind it that are closed, and the one that goes on."""

    def __init__(self):
        super().__init__()
        self.known = {}  # id: (tensor, closed roots, terms); the tensor so that its id stays its own

    def of(self, tensor):
        return self.known.get(id(tensor), (tensor, 0.0, 1))[1:]

    def combine(self, name, tensors, length):
        states = [self.of(tensor) for tensor in tensors]
        closed = max((c for c, _ in states), default=0.0)
        worked = [terms for c, terms in states if c > 0.0 or terms > 1]
        product = name in ("mm", "bmm", "addmm", "baddbmm", "convolution", "mul", "mul_", "div", "div_")
        if name in POINTWISE - SUMS or name in NORMS or (product and len(worked) > 1):
            root = max((math.sqrt(terms) for _, terms in states if terms > 1), default=0.0)
            closed, open_terms = closed + root, 1
            if name in NORMS:
                return closed + math.sqrt(length), 1
        else:
            open_terms = max((terms for _, terms in states), default=1)
        return closed, open_terms * length

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        result = function(*arguments, **(keywords or {}))
        name = str(function).split(".")[1]
        results = [r for r in (result if isinstance(result, (tuple, list)) else [result]) if hasattr(r, "shape")]
        flat = list(arguments) + list((keywords or {}).values())
        flat += [item for entry in flat if isinstance(entry, (tuple, list)) for item in entry]
        tensors = [item for item in flat if hasattr(item, "numel")]
        sums = name in ("mm", "bmm", "addmm", "baddbmm", "convolution", "avg_pool2d", "avg_pool3d")
        if name in MAKES or not results:
            return result
        if not (sums or name in LINEAR or name in POINTWISE or name in SUMS or name in NORMS):
            raise Unknown(name)
        state = self.combine(name, tensors, sum_length(name, arguments, results[0]))
        for made in results:
            self.known[id(made)] = (made, *state)
        return result


def longest(call):
    """Terms of the one sum that errs as the sums behind what `call` returns, as [(name, tensor)]; 1
    where there is none; None where it cannot be told, or where it is one sum."""
    sums = without_compiler(Sums)()
    try:
        with sums:
            results = call()
        states = [sums.of(tensor) for _, tensor in results]
    except Exception:
        return None
    if not any(closed > 0.0 for closed, _ in states):
        return 1 if states and all(terms == 1 for _, terms in states) else None
    roots = max(closed + (math.sqrt(terms) if terms > 1 else 0.0) for closed, terms in states)
    return math.ceil(round(roots**2, 3))
