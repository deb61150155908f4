"""Every tensor that a module computes with, wherever the file keeps it: parameters, buffers, plain attributes, layers in
a list that are not registered, tensors in lists, closures and defaults, class attributes and globals.

A kernel knows its inputs alone, so that all of these have to be inputs of the problem. A State names each by a path,
puts it back before a call, and lets it be set. Used by torch_problem.py and reference_torch.py.
"""

import functools
import os
import random
import sys
import types

import torch
from torch import nn

DEEPEST = 6
OF_MODULES = set(vars(nn.Module()))  # what every module has
NOT_FORWARD = {"get_inputs", "get_init_inputs"}


def seed_all(seed):
    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % (1 << 32))


# --- what becomes a buffer or a child ---


def adopt(model):
    """Plain tensors of modules become buffers, and modules in lists children, which double() and to() reach. Paths of
    those tensors."""
    todo, seen, plain, held_names = [model], set(), {}, set()
    while todo:
        module = todo.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        for name, value in list(vars(module).items()):
            if name in OF_MODULES:
                continue
            if isinstance(value, torch.Tensor):
                del vars(module)[name]
                module._buffers[name] = own(value)
                module._non_persistent_buffers_set.add(name)
                plain.setdefault(id(module), set()).add(name)
            elif isinstance(value, (list, tuple, dict)) and name not in module._modules:
                held = holder(value, 0, seen)
                if held is not None:
                    module._modules[name] = held
                    held_names.add(id(held))
        todo += list(module.children())
    paths, under = set(), ()
    for path, module in model.named_modules():
        paths |= {join(path, name) for name in plain.get(id(module), ())}
        if id(module) in held_names:
            under += (path + ".",)
        if path.startswith(under):
            paths |= {join(path, name) for name in [*module._parameters, *module._buffers]}
    return paths


def own(tensor):
    """One that can be written to: no view, no step of a graph."""
    plain = tensor.is_leaf and tensor._base is None and tensor.layout == torch.strided and tensor.is_contiguous()
    return tensor if plain else tensor.detach().clone()


def holder(value, depth, seen):
    """A module whose children are the modules in a list, a tuple or a dict; None where there are none."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    held = nn.Module()
    for key, item in items if depth < DEEPEST else ():
        name = str(key).replace(".", "_")
        if isinstance(item, nn.Module) and id(item) not in seen:
            held._modules[name] = item
        elif isinstance(item, (list, tuple, dict)):
            inner = holder(item, depth + 1, seen)
            if inner is not None:
                held._modules[name] = inner
    return held if held._modules else None


# --- where the others are ---


class Search:
    """Tensors in what is no module: found[id] is [path, tensor, [setters]]."""

    def __init__(self, known, own):
        self.known, self.own, self.found, self.seen = known, own, {}, set()

    def look(self, path, value, put, depth=0):
        if isinstance(value, torch.Tensor):
            if id(value) not in self.known:
                self.found.setdefault(id(value), [path, value, []])[2].append(put)
            return
        plain = isinstance(value, (list, tuple, dict))
        if depth > DEEPEST or (id(value) in self.seen and not isinstance(value, tuple)):
            return
        self.seen.add(id(value))
        if isinstance(value, nn.Module):
            if id(value) not in self.known:
                self.look_module(path, value)
        elif plain:
            self.look_container(path, value, put, depth)
        elif isinstance(value, functools.partial):
            self.look_partial(path, value, put, depth)
        elif isinstance(value, types.FunctionType) and value.__module__ in self.own:
            self.look_function(path, value, depth)
        elif isinstance(value, type) and value.__module__ in self.own:
            for name, item in list(vars(value).items()):
                self.look(join(path, name), item, lambda new, n=name: setattr(value, n, new), depth + 1)
        elif type(value).__module__ in self.own and hasattr(value, "__dict__"):
            self.look_container(path, vars(value), put, depth)

    def look_container(self, path, value, put, depth):
        if isinstance(value, tuple):
            for i, item in enumerate(value):
                # A tuple is made anew, from what its holder has by then.
                self.look(join(path, i), item, Part(value, i, put), depth + 1)
            return
        for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
            self.look(join(path, key), item, lambda new, k=key: value.__setitem__(k, new), depth + 1)

    def look_function(self, path, function, depth):
        names = function.__code__.co_freevars
        for name, cell in zip(names, function.__closure__ or ()):
            try:
                self.look(join(path, name), cell.cell_contents, lambda new, c=cell: setattr(c, "cell_contents", new), depth + 1)
            except ValueError:
                continue  # not filled yet
        if function.__defaults__:
            self.look(path, function.__defaults__, lambda new: setattr(function, "__defaults__", new), depth + 1)
        if function.__kwdefaults__:
            self.look(path, function.__kwdefaults__, None, depth + 1)

    def look_partial(self, path, value, put, depth):
        """It is made anew with each tensor that is set, from what its holder has by then."""
        now = {"args": value.args, "keywords": dict(value.keywords)}

        def again(part, new):
            now[part] = new
            put(functools.partial(value.func, *now["args"], **now["keywords"]))

        self.look(path, value.args, lambda new: again("args", new), depth + 1)
        for key, item in now["keywords"].items():
            self.look(join(path, key), item, lambda new, k=key: again("keywords", {**now["keywords"], k: new}), depth + 1)
        self.look(path, value.func, None, depth + 1)

    def look_module(self, path, module):
        """A module that is a global: its tensors by their own names."""
        adopt(module)
        for owner_path, owner in module.named_modules():
            for held in (owner._parameters, owner._buffers):
                for name, tensor in held.items():
                    if tensor is not None:
                        self.look(join(path, owner_path, name), tensor, lambda new, h=held, n=name: h.__setitem__(n, new))


class Part:
    """Sets one item of a tuple; all of a tuple's parts share the tuple as it is now."""

    def __init__(self, value, index, put):
        self.index, self.put = index, put
        self.now = TUPLES.setdefault(id(value), list(value))

    def __call__(self, new):
        self.now[self.index] = new
        self.put(tuple(self.now))


TUPLES = {}


def join(*parts):
    return ".".join(str(part) for part in parts if part != "")


def names_used(namespace):
    """Of globals that any code of a namespace names, but for what only makes inputs."""
    found, todo = set(), []
    for name, value in namespace.items():
        if name not in NOT_FORWARD:
            todo += codes_of(value, namespace.get("__name__"))
    while todo:
        code = todo.pop()
        found |= set(code.co_names)
        todo += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return found


def codes_of(value, own):
    value = getattr(value, "__func__", value)
    value = getattr(value, "__wrapped__", value)
    if isinstance(value, property):
        return [each.__code__ for each in (value.fget, value.fset) if each]
    if getattr(value, "__module__", None) != own:
        return []
    if isinstance(value, types.FunctionType):
        return [value.__code__]
    if isinstance(value, type):
        return [code for item in vars(value).values() for code in codes_of(item, own)]
    return []


def siblings(path):
    """Modules that were imported from the file's own folder."""
    folder = os.path.dirname(os.path.abspath(path)) + os.sep
    here = os.path.dirname(os.path.abspath(__file__)) + os.sep
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name != "problem_file" and file and file.startswith(folder) and not file.startswith(here) and "-packages" + os.sep not in file:
            found[name] = module
    return found


class State:
    """Of one module of a file: tensors[path], what every place holds before a call, and attributes besides."""

    def __init__(self, file, model):
        self.model, self.tensors, self.places, self.roles = model, {}, [], {}
        adopt(model)
        known = {id(module): None for module in model.modules()}
        for owner_path, owner in model.named_modules():
            for role, held in (("parameter", owner._parameters), ("buffer", owner._buffers)):
                for name, tensor in held.items():
                    if tensor is not None:
                        path = join(owner_path, name)
                        if id(tensor) not in known:
                            known[id(tensor)] = path
                            self.tensors[path], self.roles[path] = tensor, role
                        self.places.append((known[id(tensor)], lambda new, h=held, n=name: h.__setitem__(n, new)))
        self.order_parameters_first()
        self.attributes = [(vars(each), {k: v for k, v in vars(each).items() if k not in OF_MODULES or k == "training"}) for each in model.modules()]
        self.loose = set()
        self.find_loose(file, known)

    def order_parameters_first(self):
        order = sorted(self.tensors, key=lambda path: self.roles[path] == "buffer")
        self.tensors = {path: self.tensors[path] for path in order}

    def find_loose(self, file, known):
        TUPLES.clear()
        spaces = [file, *getattr(file, "problem_siblings", {}).values()]
        search = Search(known, {space.__name__ for space in spaces} | {"torch_source"})
        for owner_path, owner in self.model.named_modules():
            for name, value in list(vars(owner).items()):
                if name not in OF_MODULES:
                    search.look(join(owner_path, name), value, lambda new, o=owner, n=name: vars(o).__setitem__(n, new))
        for space in spaces:
            used = names_used(vars(space))
            for name, value in list(vars(space).items()):
                whole = isinstance(value, (type, types.FunctionType))
                if not name.startswith("__") and name not in NOT_FORWARD and (whole or name in used):
                    search.look("" if name == "Model" else name, value, lambda new, s=space, n=name: setattr(s, n, new))
        for path, tensor, puts in search.found.values():
            while path in self.tensors:
                path += "_"
            self.tensors[path], self.roles[path] = tensor, "buffer"
            self.loose.add(path)
            self.places += [(path, put) for put in puts if put is not None]

    def restore(self):
        """Every place holds the tensor that it held when this was made, and attributes their values."""
        for now, before in self.attributes:
            for name in [name for name in now if name not in OF_MODULES and name not in before]:
                del now[name]
            for name, value in before.items():
                if now.get(name, now) is not value:
                    now[name] = value
        for path, put in self.places:
            put(self.tensors[path])

    def convert(self, function):
        """Of tensors that the module's own double() and to() do not reach."""
        for path in self.loose:
            self.tensors[path] = function(self.tensors[path].detach())

    def set(self, values):
        self.restore()
        with torch.no_grad():
            for path, tensor in self.tensors.items():
                if path in values:
                    tensor.copy_(values[path])
