"""What calls in such a function come to: allocations, views, sizes, launches."""

import ast

from triton_import_values import (
    OPTIONS,
    Dtype,
    Launch,
    Choice,
    Other,
    Real,
    Returned,
    Sym,
    Tensor,
    Unknown,
    name_of,
    product,
    root,
    same,
    strides_of,
)


def truth(value):
    """Of what is known."""
    return bool(value) if isinstance(value, (bool, int, float, str, tuple, dict, type(None))) else True


class Calls:
    """A part of Walk."""

    # ---- calls

    def of_call(self, node, scope):
        if isinstance(node.func, ast.Subscript):
            return self.launch(node, scope)
        name = name_of(node.func)
        last = name.split(".")[-1] if name else getattr(node.func, "attr", "")
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value, scope)
            if isinstance(owner, Tensor):
                return self.method(owner, last, node, scope)
            if isinstance(owner, Other):
                return Other()
        if name == "range" and node.args and not node.keywords:
            numbers = [self.value(each, scope) for each in node.args]
            known = all(type(each) is int and abs(each) <= 64 for each in numbers) and numbers[2:] != [0]
            return tuple(range(*numbers)) if known and len(numbers) <= 3 else Unknown("a range")
        if last in ("cdiv", "next_power_of_2", "min", "max"):
            return self.arithmetic(last, [self.value(each, scope) for each in node.args])
        if name in ("math.prod", "prod") and len(node.args) == 1:
            parts = self.value(node.args[0], scope)
            return product(parts) if isinstance(parts, tuple) and all(isinstance(each, (int, Sym)) for each in parts) else Unknown("a product")
        if last == "sqrt" and len(node.args) == 1 and name.split(".")[0] in ("math", "np", "numpy"):
            value = self.value(node.args[0], scope)
            return root(value) if isinstance(value, (Sym, Real)) else value**0.5 if isinstance(value, (int, float)) and value >= 0 else Unknown("a root")
        if last == "isinstance" and len(node.args) == 2:
            return self.is_instance(self.value(node.args[0], scope), node)
        made = {"empty_like": None, "empty": None, "zeros_like": 0, "zeros": 0}
        if name.startswith("torch.") and last in made:
            return self.allocate(last, node, scope)
        if name.startswith("torch.") and last in ("ones", "ones_like", "full", "full_like", "rand", "arange", "tensor"):
            self.refuse(f"torch.{last}() fills a tensor: a candidate's memory begins as zeros or as nothing", node)
        if name.startswith("torch.cuda.") or name.startswith("torch.device"):
            return Other()
        if last in ("int", "float", "bool") and len(node.args) == 1:
            value = self.value(node.args[0], scope)
            return value if isinstance(value, (Sym, Unknown, Choice, Real)) else {"int": int, "float": float, "bool": truth}[last](value)
        if last in ("is_cuda_backend", "is_hip_backend"):
            return last == "is_cuda_backend"
        if last == "len":
            value = self.value(node.args[0], scope)
            return len(self.shape(value)) if isinstance(value, Tensor) else len(value) if isinstance(value, tuple) else Unknown("a length")
        if last == "Config":
            return ("config", self.value(node.args[0], scope), {k.arg: self.value(k.value, scope) for k in node.keywords})
        function = scope.get(name) if scope else None
        function = function or self.functions.get(name)
        if isinstance(function, (ast.FunctionDef, ast.Lambda)) and name not in self.kernels:
            return self.inline(function, node, scope)
        tensors = [each for each in node.args if isinstance(self.value(each, scope), Tensor)]
        module = self.imported.get(name.split(".")[0], "")
        there = f", of {module}" if module and not module.startswith("torch") else ""
        if tensors:
            self.refuse(f"`{ast.unparse(node)[:60]}`{there} works on a tensor, and is no kernel of this file's", node)
        return Unknown(f"`{ast.unparse(node)[:60]}`{there}")

    def is_instance(self, value, node):
        """Of what is known."""
        kinds = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else [node.args[1]]
        names = [name_of(each) for each in kinds]
        if isinstance(value, Unknown):
            return value
        if isinstance(value, Tensor):
            return any(each.split(".")[-1] == "Tensor" for each in names)
        if isinstance(value, (Sym, Choice)):
            return "int" in names
        known = {"int": int, "float": float, "str": str, "bool": bool, "tuple": tuple, "list": list, "dict": dict}
        if any(each not in known and each.split(".")[-1] != "Tensor" for each in names):
            return Unknown(f"`{ast.unparse(node)[:60]}`")
        return isinstance(value, tuple(known[each] for each in names if each in known))

    def inline(self, function, node, scope):
        """A function of the file's own, with these arguments."""
        if self.depth > 20:
            self.refuse("its functions call each other too deeply", node)
        names = [argument.arg for argument in function.args.args]
        inner = dict(zip(reversed(names), (self.value(d, scope) for d in reversed(function.args.defaults))))
        inner |= dict(zip(names, (self.value(each, scope) for each in node.args)))
        inner |= {keyword.arg: self.value(keyword.value, scope) for keyword in node.keywords}
        self.depth += 1
        try:
            if isinstance(function, ast.Lambda):
                return self.value(function.body, (scope or {}) | inner)
            self.run(function.body, (scope or {}) | inner)
        except Returned as back:
            return back.value
        finally:
            self.depth -= 1
        return None

    def keep_constant(self, target, node):
        """One of the file's own, or several: A, B = 2, 1."""
        try:
            value = ast.literal_eval(node.value)
        except (ValueError, TypeError):
            self.computed |= {target.id: node} if isinstance(target, ast.Name) else {}
            return
        several = isinstance(target, ast.Tuple) and isinstance(value, (tuple, list)) and len(value) == len(target.elts)
        for each, its in zip(target.elts, value) if several else [(target, value)]:
            if isinstance(each, ast.Name):
                self.constants[each.id] = its

    def arithmetic(self, name, values):
        for each in values:
            if isinstance(each, Choice):
                return Unknown("a size, which decides between numbers")
            if not isinstance(each, (int, Sym)):
                return each if isinstance(each, Unknown) else Unknown(f"{name}() of no whole number")
        if any(isinstance(each, Sym) for each in values):
            return Sym({"cdiv": "ceil_div", "next_power_of_2": "next_pow2"}.get(name, name), *values)
        if name == "cdiv":
            return -(-values[0] // values[1])
        if name == "next_power_of_2":
            return 1 << max(0, values[0] - 1).bit_length()
        return min(values) if name == "min" else max(values)

    def allocate(self, last, node, scope):
        keywords = {k.arg: self.value(k.value, scope) for k in node.keywords}
        arguments = self.several(node.args, scope)
        if last.endswith("_like"):
            like = arguments[0]
            if not isinstance(like, Tensor):
                self.refuse(f"`{ast.unparse(node)[:60]}`: of what, is not known", node)
            shape, dtype, kept = like.shape, like.base.dtype, like.base
        else:
            shape = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], tuple) else tuple(arguments) or keywords.get("size", ())
            dtype, kept = "float32", None
            if not all(isinstance(each, (int, Sym)) for each in shape):
                what = next((each.what for each in shape if isinstance(each, Unknown)), "what nothing here says")
                self.refuse(f"the shape of `{ast.unparse(node)[:60]}` depends on {what}", node)
            shape = list(shape)
        if "dtype" in keywords:
            given = keywords["dtype"]
            dtype = given.name if isinstance(given, Dtype) else None
            kept = given.of.base if isinstance(given, Dtype) and given.of is not None else None if given is not None else kept
            if given is not None and not isinstance(given, Dtype):
                self.refuse(f"`{ast.unparse(node)[:60]}`: element types are float16, bfloat16, float32, float64 and int32", node)
        base = Tensor("", "workspace", shape, dtype)
        base.zeroed, base.like = last.startswith("zeros"), kept
        self.bases.append(base)
        return base

    def method(self, tensor, name, node, scope):
        arguments = list(self.several(node.args, scope))
        if name in ("contiguous", "detach", "cuda", "requires_grad_"):
            return tensor
        if name in ("is_contiguous", "is_floating_point"):
            return True
        if name in ("size", "stride"):
            parts = tuple(self.shape(tensor) if name == "size" else (self.shape(tensor), tensor.strides)[1])
            return parts[arguments[0]] if arguments and isinstance(arguments[0], int) and -len(parts) <= arguments[0] < len(parts) else parts
        if name in ("numel", "nelement"):
            if tensor.shape is None:
                tensor.shape = [self.dim("n_elements")]
                tensor.strides = [1]
            return product(tensor.shape)
        if name in ("dim", "ndimension"):
            return len(self.shape(tensor))
        if name in ("view", "reshape", "flatten", "unsqueeze", "squeeze", "view_as", "reshape_as"):
            return self.reshape(tensor, name, arguments, node)
        if name in ("t",):
            return self.transposed(tensor, 0, 1)
        if name == "transpose" and all(isinstance(each, int) for each in arguments) and len(arguments) == 2:
            return self.transposed(tensor, *arguments)
        if name in ("new_empty", "new_zeros"):
            made = self.allocate(name[4:], node, scope)
            if not any(k.arg == "dtype" for k in node.keywords):
                made.dtype, made.like = tensor.base.dtype, tensor.base
            return made
        if name == "element_size" and self.dtype_of(tensor):
            return {"float64": 8, "float16": 2, "bfloat16": 2}.get(tensor.base.dtype, 4)
        if name in ("element_size", "data_ptr", "get_device"):
            return Unknown(f"{tensor.name}.{name}()")
        kinds = [each for each in arguments if isinstance(each, Dtype)]
        if name == "to" and len(kinds) == len(arguments) == 1 and self.dtype_of(tensor) and self.name_of_dtype(kinds[0]) == tensor.base.dtype:
            return tensor
        if name in ("to", "type_as") and all(isinstance(each, Other) for each in arguments) and not node.keywords:
            return tensor
        self.refuse(f"`{ast.unparse(node)[:60]}` is torch's work, not a kernel's", node)

    def reshape(self, tensor, name, arguments, node):
        if tensor.shape is not None and [same(a, b) for a, b in zip(tensor.strides, strides_of(tensor.shape))].count(False):
            self.refuse(f"`{ast.unparse(node)[:60]}` copies: the tensor is not dense", node)
        wanted = list(arguments[0]) if len(arguments) == 1 and isinstance(arguments[0], tuple) else list(arguments)
        if name == "flatten" and not wanted:
            wanted = [-1]
        if name not in ("view", "reshape", "flatten") or not wanted or not all(isinstance(each, (int, Sym)) for each in wanted):
            self.refuse(f"`{ast.unparse(node)[:60]}` is not followed", node)
        if -1 in [each for each in wanted if isinstance(each, int)]:
            rest = [each for each in wanted if isinstance(each, Sym) or each != -1]
            shape = list(self.shape(tensor))
            for each in rest:
                at = next((i for i, extent in enumerate(shape) if same(extent, each)), None)
                if at is None:
                    left = Sym("//", product(self.shape(tensor)), product(rest))
                    break
                shape.pop(at)
            else:
                left = product(shape)
            wanted = [left if not isinstance(each, Sym) and each == -1 else each for each in wanted]
        return tensor.view(wanted)

    # ---- launches

    def which_kernel(self, held, scope, node):
        """Its name, also of one that a variable holds or a call wraps."""
        if isinstance(held, ast.Call) and len(held.args) == 1 and name_of(held.func).endswith(("wrap_triton", "capture_triton")):
            return self.which_kernel(held.args[0], scope, node)
        kernel = name_of(held)
        if kernel in self.kernels:
            return kernel
        value = self.value(held, scope)
        for name, function in self.kernels.items():
            if value is function:
                return name
        if isinstance(value, Unknown) and kernel in (scope or {}):
            self.refuse(f"which kernel {kernel} is depends on {value.what}", node)
        module = self.imported.get(kernel)
        where = f"which {module} defines, not this file" if module else "which is no @triton.jit function of this file's"
        self.refuse(f"launches {kernel or 'a kernel'}, {where}", node)

    def launch(self, node, scope):
        kernel = self.which_kernel(node.func.value, scope, node)
        line, values, options = node.lineno, {}, {}
        use = self.use(kernel)
        values |= zip(use.parameters, self.several(node.args, scope))
        for keyword in node.keywords:
            if keyword.arg is None:
                self.refuse("its arguments are a map that is made elsewhere (**...)", node)
            (options if keyword.arg in OPTIONS else values)[keyword.arg] = self.value(keyword.value, scope)
        self.line = line
        grid = self.value(node.func.slice, scope)
        self.launches.append(Launch(kernel, (grid, dict(scope)), values, options, line))
        return Other()

