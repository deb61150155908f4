"""Other forms of a PyTorch file than KernelBench's: complete() gives them `Model` and `get_inputs`.

    a class ModelNew in place of Model, or one module of any name
    get_init_inputs that returns [positional arguments, named ones]
    a module without get_inputs: its first layer tells what the one input may be
    a function with shapes: a call generate_kernel(torch_source=..., input_shapes=...) at the file's top
    level, or module variables of its arguments' names

Used by torch_module.py.
"""

import inspect
import pathlib
import sys
import textwrap
import types

import torch
from torch import nn
from torch_rows import Refused

ARGUMENTS = "torch_source operation input_shapes output_shapes param_shapes hyperparameters torch_fn config".split()
IMAGE, DEEP, LONG = (56, 56), (16, 56, 56), (1024,)
FIRST_LAYERS = [  # what tells channels, how many, the places of each
    ((nn.Conv1d, nn.ConvTranspose1d), lambda m: m.in_channels, LONG),
    ((nn.Conv2d, nn.ConvTranspose2d), lambda m: m.in_channels, IMAGE),
    ((nn.Conv3d, nn.ConvTranspose3d), lambda m: m.in_channels, DEEP),
    ((nn.BatchNorm2d, nn.InstanceNorm2d), lambda m: m.num_features, IMAGE),
    ((nn.BatchNorm3d, nn.InstanceNorm3d), lambda m: m.num_features, DEEP),
    ((nn.GroupNorm,), lambda m: m.num_channels, IMAGE),
    ((nn.Linear,), lambda m: m.in_features, ()),
    ((nn.BatchNorm1d,), lambda m: m.num_features, ()),
    ((nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.Upsample), lambda m: 32, IMAGE),
]
TOLD = "add def get_inputs(): return [torch.rand(...), ...]"


# --- a function with shapes ---


def listen():
    """Calls of generate_kernel that a file makes while it is loaded; the package need not be there,
    and is not asked where it is."""
    calls = []

    def generate_kernel(*values, **named):
        calls.append(dict(zip(ARGUMENTS, values), **named))
        return pathlib.Path("c_%s.json" % calls[-1].get("operation"))

    def default_config():
        return {name: {} for name in ("llm", "validation", "tolerance", "webgpu")} | {"validation": {"tolerance": {}}}

    package, config = types.ModuleType("yolokernelgen"), types.ModuleType("yolokernelgen.config")
    package.generate_kernel, package.config, config.default_config = generate_kernel, config, default_config
    package.load_kernel = package.execute_kernel = lambda *values: {}
    package.list_kernels = lambda *values, **named: []
    sys.modules.update({"yolokernelgen": package, "yolokernelgen.config": config})
    return calls


def functions_of(namespace):
    own = namespace.get("__name__")
    return {n: f for n, f in namespace.items() if inspect.isfunction(f) and f.__module__ == own}


def pick(functions, operation, where):
    if operation in functions:
        return functions[operation]
    if len(functions) != 1:
        raise Refused("expected one function in %s, or one named %s, found %d" % (where, operation, len(functions)))
    return next(iter(functions.values()))


def from_source(call):
    module = types.ModuleType("torch_source")
    sys.modules["torch_source"] = module  # where torch.compile looks a function's names up
    namespace = module.__dict__
    namespace.update({"torch": torch, "nn": nn, "F": nn.functional})
    text = textwrap.dedent(call["torch_source"])
    exec(compile(text, "torch_source", "exec"), namespace)
    return pick(functions_of(namespace), call.get("operation"), "torch_source")


def shapes_of(call, key):
    shapes = call.get(key)
    if not isinstance(shapes, (list, tuple)) or not all(
        isinstance(s, (list, tuple)) and all(isinstance(n, int) and n > 0 for n in s) for s in shapes
    ):
        raise Refused("%s is %.60r, expected a list of shapes" % (key, shapes))
    return [tuple(shape) for shape in shapes]


def bind(function, count, call):
    """How the function is called: names of its inputs, whether parameters have names, constants."""
    try:
        accepted = inspect.signature(function).parameters
    except (TypeError, ValueError):
        accepted = {}
    positional = [n for n, p in accepted.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    any_name = any(p.kind == p.VAR_KEYWORD for p in accepted.values())
    parameters = call.get("param_shapes") or {}
    named = any_name or all(name in accepted for name in parameters)
    taken = set(positional[:count]) | set(parameters)
    constants = {n: v for n, v in (call.get("hyperparameters") or {}).items() if n in accepted and n not in taken}
    names = [positional[i] if i < len(positional) else "x%d" % i for i in range(count)]
    return names, named, constants


def model_of(function, names, named, constants, parameters, doc):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            for name, shape in parameters.items():
                self.register_parameter(name, nn.Parameter(torch.rand(shape) - 0.5))

        def forward(self, *inputs):
            own = {name: getattr(self, name) for name in parameters}
            if named:
                return function(*inputs, **own, **constants)
            return function(*inputs, *own.values(), **constants)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    own = inspect.Parameter("self", kind)
    Model.forward.__signature__ = inspect.Signature([own] + [inspect.Parameter(n, kind) for n in names])
    Model.__doc__ = doc
    return Model


def check_outputs(model, shapes, wanted):
    with torch.device("meta"):
        try:
            results = model()(*[torch.empty(shape) for shape in shapes])
        except Exception:
            return  # no shapes without values
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    got, wanted = [list(result.shape) for result in results], list(map(list, wanted))
    if got != wanted:
        raise Refused("output_shapes is %s, but the function gives %s" % (wanted, got))


def check_alike(models, get_inputs):
    """torch_fn is what counts; where it is not what torch_source says, one of the two is a mistake."""
    results = []
    for model in models:
        torch.manual_seed(7)
        with torch.no_grad():
            result = model()(*get_inputs())
        results.append(result if isinstance(result, torch.Tensor) else result[0])
    a, b = results
    if a.shape != b.shape or not torch.allclose(a, b, rtol=1e-3, atol=1e-5):
        raise Refused("torch_source and torch_fn give different results on the same inputs")


def complete_function(module, call):
    shapes = shapes_of(call, "input_shapes")
    parameters = dict(call.get("param_shapes") or {})
    shapes_of({"param_shapes": list(parameters.values())}, "param_shapes")
    functions = [call["torch_fn"]] if call.get("torch_fn") is not None else []
    if call.get("torch_source"):
        functions.append(from_source(call))
    if not functions:
        functions.append(pick(functions_of(module.__dict__), call.get("operation"), "the file"))
    doc = str(call.get("operation") or getattr(functions[0], "__name__", ""))
    models = [model_of(f, *bind(f, len(shapes), call), parameters, doc) for f in functions]

    def get_inputs():
        return [torch.rand(shape) * 2 - 1 for shape in shapes]

    if call.get("output_shapes") is not None:
        check_outputs(models[0], shapes, shapes_of(call, "output_shapes"))
    if len(models) > 1 and sum(torch.Size(s).numel() for s in shapes) <= 1 << 22:
        check_alike(models, get_inputs)
    if call.get("config"):
        module.problem_notes.append("its config is not taken: the tolerance is derived")
    module.Model, module.get_inputs, module.get_init_inputs = models[0], get_inputs, list


# --- a module alone ---


def first_input(model):
    for layer in model.modules():
        for kinds, channels, places in FIRST_LAYERS:
            if isinstance(layer, kinds):
                count = channels(layer)
                if places == IMAGE and count <= 4:
                    places = (224, 224)
                return (16 if places else 128, count, *places)
        if isinstance(layer, (nn.LayerNorm, getattr(nn, "RMSNorm", nn.LayerNorm))):
            return (128, *layer.normalized_shape)
    return (128, 4096) if not any(True for _ in model.parameters()) else None


def complete_inputs(module):
    """The one input that its first layer suggests."""
    arguments, named = init_arguments(module)
    with torch.device("meta"):
        try:
            model = module.Model(*arguments, **named)
        except TypeError as fault:
            raise Refused("no get_init_inputs in the file, and %s" % fault) from None
        names = [
            p.name
            for p in inspect.signature(model.forward).parameters.values()
            if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        if len(names) != 1:
            raise Refused("no get_inputs in the file, and forward takes %s: %s" % (", ".join(names) or "nothing", TOLD))
        shape = first_input(model)
        try:
            model(torch.empty(shape or ()))
        except Exception:
            shape = None
    if shape is None:
        raise Refused("no get_inputs in the file, and no layer tells what %s is: %s" % (names[0], TOLD))
    size = "x".join(map(str, shape))
    module.problem_notes.append(
        "no get_inputs in the file: %s is taken as %s, as its first layer suggests" % (names[0], size)
    )
    module.get_inputs = lambda: [torch.rand(shape)]


# --- a class of any name ---


def modules_of(module):
    """Classes of the file that are modules: {name: class}."""
    own = module.__dict__.items()
    return {n: c for n, c in own if isinstance(c, type) and issubclass(c, nn.Module) and c.__module__ == module.__name__}


def named_in(value):
    """Names that a class's own code has."""
    functions = [getattr(f, "__func__", f) for f in vars(value).values()]
    return {name for f in functions if inspect.isfunction(f) for name in f.__code__.co_names}


def pick_module(module):
    """The module that is not a part of another one, where there is one such."""
    found = modules_of(module)
    stem = pathlib.Path(module.__file__).stem
    if stem in found:
        return found[stem]
    parts = set().union(*(named_in(each) for each in found.values()))
    parts |= {base.__name__ for each in found.values() for base in each.__mro__[1:]}
    whole = [name for name in found if name not in parts] or list(found)
    if len(whole) > 1:
        names = ", ".join(whole[:8])
        raise Refused("no class is named Model, and these are modules: %s; call the one that is meant Model" % names)
    return found[whole[0]] if whole else None


def made_module(found):
    """The one module that the file has made, as an nn.Sequential, where it has no class of its own."""
    made = [value for value in found.values() if isinstance(value, nn.Module)]
    return made[0] if len(made) == 1 else None


def init_arguments(module):
    """What Model is constructed with: (list, dict)."""
    given = getattr(module, "get_init_inputs", list)()
    if given is None:
        return [], {}
    if isinstance(given, dict):
        return [], given
    if not isinstance(given, (list, tuple)):
        return [given], {}
    if len(given) == 2 and isinstance(given[0], (list, tuple)) and isinstance(given[1], dict):
        try:
            inspect.signature(module.Model).bind(*given[0], **given[1])
            return list(given[0]), given[1]
        except (TypeError, ValueError):
            pass  # a list and a dict are its arguments
    return list(given), {}


def refuse_backward(module):
    """A file whose kernel is to be the backward pass: its Model is there to compare with."""
    for name, value in list(module.__dict__.items()):
        if isinstance(value, type) and issubclass(value, torch.autograd.Function) and "backward_fn" in vars(value):
            raise Refused(
                "it asks for a backward pass (%s.backward_fn), its Model is the forward one: write a Model whose forward "
                "returns the gradients (torch.autograd.grad)" % name
            )


def take_by_position(module):
    """forward's arguments that have a name alone can be given in their order, too."""
    forward = getattr(module.Model, "forward", None)
    try:
        accepted = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        return
    by_name = [p.name for p in accepted if p.kind == p.KEYWORD_ONLY]
    before = [p for p in accepted if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not by_name or not isinstance(module.Model, type) or any(p.kind == p.VAR_POSITIONAL for p in accepted):
        return

    class Model(module.Model):
        def forward(self, *given):
            count = len(before) - 1
            return super().forward(*given[:count], **dict(zip(by_name, given[count:])))

    kind, left = inspect.Parameter.POSITIONAL_OR_KEYWORD, []
    for each in accepted:
        if each.kind != each.VAR_KEYWORD:
            open_ = each.default is each.empty and any(one.default is not one.empty for one in left)
            left.append(each.replace(kind=kind, default=None) if open_ else each.replace(kind=kind))
    Model.forward.__signature__ = inspect.Signature(left)
    Model.__doc__, Model.__module__ = module.Model.__doc__, module.Model.__module__
    module.Model = Model


def complete(module, calls):
    module.problem_notes = []
    found = module.__dict__
    refuse_backward(module)
    if "Model" not in found and "ModelNew" in found:
        module.Model = module.ModelNew
    if "Model" not in found and not calls and "input_shapes" not in found and "reference" not in found:
        picked = pick_module(module) or made_module(found)
        if picked is not None:
            module.Model = picked
            module.problem_notes.append("its module is %s" % getattr(picked, "__name__", "made when it is loaded"))
    if isinstance(found.get("Model"), nn.Module):
        made = module.Model
        module.Model = lambda: made
    if "Model" not in found and not calls and "input_shapes" in found:
        calls.append({name: found[name] for name in ARGUMENTS if name in found})
    if "Model" in found:
        if "get_inputs" not in found and isinstance(vars(module.Model).get("get_inputs"), (staticmethod, classmethod)):
            module.get_inputs = module.Model.get_inputs
        if "get_inputs" not in found:
            complete_inputs(module)
        module.problem_class = getattr(module.Model, "__name__", "Model")
        take_by_position(module)
    elif len(calls) > 1:
        named = ", ".join(str(call.get("operation")) for call in calls)
        raise Refused("calls generate_kernel %d times (%.100s): expected once a file" % (len(calls), named))
    elif calls:
        complete_function(module, calls[0])
