"""What the calls of a wrapper in its own file say of its parameters: how many dims a tensor has, its element type, a
number that has no default. Tests and benchmarks beside a kernel hold such calls. They are read, not run: straight
through, both ways of an `if`, a loop's body once."""

import ast

from triton_import_values import DTYPES, Dtype, Example, Returned, Unknown, name_of

FILLED = {"randn", "rand", "empty", "zeros", "ones", "full", "randint", "normal"}
SAME = {"cuda", "contiguous", "requires_grad_", "detach", "clone", "normal_", "uniform_", "half", "float", "bfloat16", "abs"}
STEPS_MOST = 20000


class Examples:
    """Of one wrapper: found[parameter] is [(value, line)] in the order of the file's calls."""

    def __init__(self, tree, functions, wrapper, name):
        self.functions, self.wrapper, self.name = dict(functions), wrapper, name
        self.found, self.steps, self.line = {}, 0, 1
        self.aliases = {}
        kind = name.split(".")[0]
        for node in tree.body:  # layer_norm = LayerNorm.apply
            if isinstance(node, ast.Assign) and name_of(node.value) == f"{kind}.apply" and isinstance(node.targets[0], ast.Name):
                self.aliases[node.targets[0].id] = True
        self.aliases[f"{kind}.apply"] = True
        scope = {}
        self.body([node for node in tree.body if not isinstance(node, (ast.FunctionDef, ast.ClassDef))], scope, 0)
        for each in list(self.functions.values()):
            if not self.found and each is not wrapper:
                self.enter(each, ast.Call(func=ast.Name(id=each.name), args=[], keywords=[], lineno=each.lineno), scope, 0)

    def of(self, parameter):
        """(value, line) of the first call that says it; None."""
        return next((each for each in self.found.get(parameter, []) if not isinstance(each[0], Unknown)), None)

    # ---- statements

    def body(self, nodes, scope, depth):
        for node in nodes:
            self.steps += 1
            if self.steps > STEPS_MOST:
                return
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                value = self.value(node.value, scope, depth)
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self.assign(target, value, scope)
            elif isinstance(node, ast.Return):
                raise Returned(self.value(node.value, scope, depth) if node.value is not None else None)
            elif isinstance(node, ast.Expr):
                self.value(node.value, scope, depth)
            elif isinstance(node, ast.FunctionDef):
                self.functions.setdefault(node.name, node)
            elif isinstance(node, ast.For):
                items = self.value(node.iter, scope, depth)
                self.assign(node.target, items[0] if isinstance(items, tuple) and items else Unknown("a loop"), scope)
                self.inner(node.body, scope, depth)
            elif isinstance(node, ast.If) and (way := self.way(node.test, scope, depth)) is not None:
                self.inner(node.body if way else node.orelse, scope, depth)
            else:
                for field in ("body", "orelse", "finalbody"):
                    self.inner(getattr(node, field, None) or [], scope, depth)

    def way(self, test, scope, depth):
        """Of `x is None` and `x is not None`; None: not known, and of all else."""
        if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Is, ast.IsNot))):
            return None
        value = self.value(test.left, scope, depth)
        return None if isinstance(value, Unknown) else (value is None) == isinstance(test.ops[0], ast.Is)

    def inner(self, nodes, scope, depth):
        """What ends one way of a branch does not end what follows."""
        try:
            self.body([node for node in nodes if isinstance(node, ast.stmt)], scope, depth)
        except Returned:
            pass

    def assign(self, target, value, scope):
        if isinstance(target, ast.Name):
            scope[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            parts = value if isinstance(value, tuple) and len(value) == len(target.elts) else [Unknown("a part")] * len(target.elts)
            for each, part in zip(target.elts, parts):
                self.assign(each, part, scope)

    # ---- expressions

    def value(self, node, scope, depth):
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return scope.get(node.id, Unknown(node.id))
        if isinstance(node, (ast.Tuple, ast.List)):
            return tuple(self.value(each, scope, depth) for each in node.elts)
        if isinstance(node, ast.Dict):
            return {self.value(k, scope, depth): self.value(v, scope, depth) for k, v in zip(node.keys, node.values) if isinstance(k, ast.Constant)}
        if isinstance(node, ast.Call):
            return self.call(node, scope, depth)
        if isinstance(node, ast.Subscript):
            owner, index = self.value(node.value, scope, depth), self.value(node.slice, scope, depth)
            try:
                return owner[index] if isinstance(owner, (dict, tuple)) else Unknown("a part")
            except (KeyError, IndexError, TypeError):
                return Unknown("a part")
        if isinstance(node, ast.Attribute):
            if node.attr in DTYPES and name_of(node).startswith("torch."):
                return Dtype(DTYPES[node.attr])
            owner = self.value(node.value, scope, depth)
            return {"shape": owner.shape, "dtype": Dtype(owner.dtype)}.get(node.attr, Unknown("")) if isinstance(owner, Example) else Unknown(node.attr)
        if isinstance(node, (ast.UnaryOp, ast.BinOp, ast.Compare)):
            return self.number(node, scope, depth)
        for child in ast.iter_child_nodes(node):  # a call may stand anywhere
            if isinstance(child, ast.expr):
                self.value(child, scope, depth)
        return Unknown("an expression")

    def number(self, node, scope, depth):
        """Of known numbers; arithmetic on a tensor is a tensor."""
        sides = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right] if isinstance(node, ast.BinOp) else [node.left, *node.comparators]
        values = [self.value(each, scope, depth) for each in sides]
        tensors = [each for each in values if isinstance(each, Example)]
        if tensors or isinstance(node, ast.Compare) or not all(isinstance(each, (int, float)) for each in values):
            return tensors[0] if tensors else Unknown("a number")
        return arithmetic(node.op, *values)

    def call(self, node, scope, depth):
        name = name_of(node.func)
        arguments = [self.value(each, scope, depth) for each in node.args]
        keywords = {each.arg: self.value(each.value, scope, depth) for each in node.keywords}
        keywords |= keywords.pop(None, {}) if isinstance(keywords.get(None), dict) else {}
        if name.startswith("torch.") and name.split(".")[-1].removesuffix("_like") in FILLED:
            return self.tensor(name.split(".")[-1], arguments, keywords)
        if name in ("torch.arange", "torch.tensor", "torch.linspace"):
            listed = arguments[0] if arguments and isinstance(arguments[0], tuple) else ()
            extent = len(listed) if listed else next((a for a in arguments[:1] if isinstance(a, int)), 1)
            return Example((extent,), keywords["dtype"].name if isinstance(keywords.get("dtype"), Dtype) else "int64")
        if name in self.aliases or name == self.name:
            return self.record(self.wrapper, arguments, keywords, scope, depth, node)
        if name in self.functions and depth < 6:
            return self.enter(self.functions[name], node, scope, depth, arguments, keywords)
        if isinstance(node.func, ast.Attribute):
            owner = self.value(node.func.value, scope, depth)
            if isinstance(owner, dict) and node.func.attr in ("items", "values"):
                return tuple(owner.items() if node.func.attr == "items" else owner.values())
            if isinstance(owner, Example):
                return self.method(owner, node.func.attr, arguments, keywords)
        return Unknown(name)

    @staticmethod
    def tensor(name, arguments, keywords):
        """As torch makes it."""
        kind = keywords.get("dtype")
        dtype = kind.name if isinstance(kind, Dtype) else "int64" if name == "randint" else "float32"
        if name.endswith("_like"):
            like = arguments[0] if arguments else None
            return Example(like.shape, like.dtype if kind is None else dtype) if isinstance(like, Example) else Unknown(name)
        shape = next((a for a in arguments if isinstance(a, tuple)), keywords.get("size"))
        shape = shape if isinstance(shape, tuple) else tuple(arguments)
        return Example(shape, dtype)

    @staticmethod
    def method(owner, name, arguments, keywords):
        kinds = {"half": "float16", "float": "float32", "bfloat16": "bfloat16"}
        if name in kinds:
            return Example(owner.shape, kinds[name])
        if name == "to":
            kind = next((a for a in [*arguments, *keywords.values()] if isinstance(a, Dtype)), None)
            return Example(owner.shape, kind.name if kind else owner.dtype)
        if name == "size" and arguments and isinstance(arguments[0], int) and -len(owner.shape) <= arguments[0] < len(owner.shape):
            return owner.shape[arguments[0]]
        if name in ("transpose", "permute"):
            return Example(tuple(Unknown("") for _ in owner.shape), owner.dtype)
        return owner if name in SAME else Unknown(name)

    def enter(self, function, node, scope, depth, arguments=(), keywords=None):
        """Another function of the file's that may call it."""
        inner = self.bound(function, arguments, keywords or {}, scope, depth)
        if function is self.wrapper:
            return self.record(function, arguments, keywords or {}, scope, depth, node)
        try:
            self.body(function.body, dict(scope) | inner, depth + 1)
        except Returned as back:
            return back.value
        return None

    def bound(self, function, arguments, keywords, scope, depth):
        names = [a.arg for a in function.args.posonlyargs + function.args.args]
        if "." in self.name and function is self.wrapper:
            names = names[1:]
        inner = {a: Unknown(a) for a in names}
        inner |= {n: self.value(d, scope, depth) for n, d in zip(reversed(names), reversed(function.args.defaults))}
        inner |= {a.arg: self.value(d, scope, depth) for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults) if d is not None}
        return inner | dict(zip(names, arguments)) | {k: v for k, v in keywords.items() if k}

    def record(self, function, arguments, keywords, scope, depth, node):
        for name, value in self.bound(function, arguments, keywords, scope, depth).items():
            self.found.setdefault(name, []).append((value, getattr(node, "lineno", 1)))
        return Unknown("its result")


def arithmetic(op, left, right=None):
    """Of known numbers; nothing that grows."""
    if isinstance(op, ast.Pow) and (abs(right) > 64 or abs(left) > 1 << 32):
        return Unknown("a power")
    operations = {
        ast.USub: lambda: -left,
        ast.UAdd: lambda: left,
        ast.Not: lambda: not left,
        ast.Add: lambda: left + right,
        ast.Sub: lambda: left - right,
        ast.Mult: lambda: left * right,
        ast.Div: lambda: left / right,
        ast.FloorDiv: lambda: left // right,
        ast.Mod: lambda: left % right,
        ast.Pow: lambda: left**right,
    }
    try:
        value = operations[type(op)]()
    except (KeyError, ZeroDivisionError, OverflowError):
        return Unknown("a number")
    return value if isinstance(value, (int, float)) and abs(value) < 1 << 62 else Unknown("a large number")
