"""What a function that launches Triton kernels computes, with sizes as names: tensors with their shapes and strides,
launches with their grids and arguments. A statement that is not understood is a Refused with its line."""

import ast
import operator



OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
DTYPES = {
    "float32": "float32",
    "float": "float32",
    "float64": "float64",
    "double": "float64",
    "float16": "float16",
    "half": "float16",
    "bfloat16": "bfloat16",
    "int32": "int32",
    "int": "int32",
}
BINARY = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
}
SIGNS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
COMPARED = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Refused(Exception):
    """Why it cannot be a candidate, and where."""

    def __init__(self, line, reason):
        super().__init__(reason)
        self.line, self.reason = line, reason


class Unknown:
    """A value that nothing here says."""

    def __init__(self, what):
        self.what = what


class Other:
    """Something harmless that is no number: a device, a stream, ctx."""


class Example:
    """A tensor of a call in the file."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype


class Choice:
    """One of some whole numbers, by a size."""

    def __init__(self, values):
        self.values = values


class Real:
    """A float that depends on sizes: an expression for a kernel, over these names."""

    def __init__(self, words, dims):
        self.words, self.dims = words, dims


class Dtype:
    """An element type of torch's; name None: not known, or that of a tensor."""

    def __init__(self, name, of=None):
        self.name, self.of = name, of


class Sym:
    """A whole number over names: a name, or an operation."""

    def __init__(self, kind, *parts):
        self.kind, self.parts = kind, parts

    def names(self):
        """All that it depends on."""
        if self.kind == "name":
            return {self.parts[0]}
        return set().union(*(part.names() for part in self.parts if isinstance(part, Sym)))

    def text(self, plan):
        """As a launch plan's expression, or as a kernel's."""
        if self.kind == "name":
            return self.parts[0]
        words = [part.text(plan) if isinstance(part, Sym) else str(part) for part in self.parts]
        if self.kind in ("ceil_div", "min", "max", "next_pow2"):
            called = self.kind if plan else {"ceil_div": "tl.cdiv", "min": "min", "max": "max"}[self.kind]
            return f"{called}({', '.join(words)})"
        sign = "/" if plan and self.kind == "//" else self.kind
        return f"({words[0]} {sign} {words[1]})"


def real_of(value):
    """(expression, names), or None."""
    if isinstance(value, Real):
        return value.words, value.dims
    if isinstance(value, Sym):
        return None if "next_pow2" in value.text(True) else (f"tl.full([], {value.text(False)}, tl.float32)", value.names())
    return (repr(float(value)), set()) if isinstance(value, (int, float)) and abs(value) < 1e38 else None


def root(value):
    """The square root of what is no known number."""
    parts = real_of(value)
    return Real(f"tl.sqrt({parts[0]})", parts[1]) if parts else Unknown("a root")


def combine_real(op, left, right):
    """+, -, *, / and the square root."""
    if isinstance(op, ast.Pow) and right in (0.5, -0.5):
        made = root(left)
        return made if right > 0 or isinstance(made, Unknown) else Real(f"(1.0 / {made.words})", made.dims)
    signs = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
    one, other = real_of(left), real_of(right)
    if type(op) not in signs or one is None or other is None:
        return Unknown("a size that no launch plan computes")
    return Real(f"({one[0]} {signs[type(op)]} {other[0]})", one[1] | other[1])


def merge(left, right):
    """A value that a branch on a size decides."""
    if left is right or type(left) is type(right) and isinstance(left, (int, float, str, bool, type(None))) and left == right:
        return left
    parts = []
    for each in (left, right):
        if isinstance(each, Choice) or isinstance(each, int) and not isinstance(each, bool):
            parts += each.values if isinstance(each, Choice) else [each]
    whole = all(isinstance(each, Choice) or isinstance(each, int) and not isinstance(each, bool) for each in (left, right))
    return Choice(list(dict.fromkeys(parts))) if whole else None


def same(left, right):
    """Whether two numbers are surely the same."""
    if isinstance(left, Sym) and isinstance(right, Sym):
        return left.text(True) == right.text(True)
    return not isinstance(left, Sym) and not isinstance(right, Sym) and left == right


def combine(kind, function, left, right):
    """Of two numbers; folded where they are known."""
    if not isinstance(left, Sym) and not isinstance(right, Sym):
        return function(left, right)
    if kind == "*" and 1 in (left, right) and not (isinstance(left, Sym) and isinstance(right, Sym)):
        return right if not isinstance(left, Sym) and left == 1 else left
    if kind in ("+", "-") and not isinstance(right, Sym) and right == 0:
        return left
    return Sym(kind, left, right)


def product(numbers):
    """Of a list of them."""
    all_of = 1
    for number in numbers:
        all_of = combine("*", operator.mul, all_of, number)
    return all_of


def strides_of(shape):
    """Of a dense tensor."""
    return [product(shape[i + 1 :]) for i in range(len(shape))]


class Tensor:
    """One of the wrapper's; a view has a shape of its own and the same base. shape None: nothing says it."""

    def __init__(self, name, role, shape, dtype, strides=None, base=None):
        self.name, self.role, self.shape, self.dtype = name, role, shape, dtype
        self.strides = strides if strides is not None or shape is None else strides_of(shape)
        self.base = base or self
        self.zeroed, self.example, self.like, self.names = False, None, None, {}

    def view(self, shape, strides=None):
        """The same memory in another shape."""
        return Tensor(self.name, self.role, shape, self.dtype, strides, self.base)

    def words(self):
        """For people and programs."""
        shape = None if self.shape is None else [s.text(True) if isinstance(s, Sym) else str(s) for s in self.shape]
        return {"name": self.name, "shape": shape, "dtype": self.seen_dtype()}

    def seen_dtype(self):
        """Its element type, or the one in the file's own call."""
        seen = self.example[0].dtype if self.example else None
        return self.dtype or seen or (self.like.seen_dtype() if self.like else None)


class Launch:
    """kernel[grid](values): by parameter, and the compile's options."""

    def __init__(self, kernel, grid, values, options, line):
        self.kernel, self.grid, self.values, self.options, self.line = kernel, grid, values, options, line


def name_of(node):
    """ "triton.cdiv" of such an expression; "" of any other."""
    if isinstance(node, ast.Call):
        return name_of(node.func)
    if isinstance(node, ast.Attribute):
        inner = name_of(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return node.id if isinstance(node, ast.Name) else ""


class Returned(Exception):
    """A return statement's value."""

    def __init__(self, value):
        super().__init__()
        self.value = value


class Ranks:
    """How many dims a wrapper's body says that its parameters have."""

    def __init__(self):
        self.exact, self.ahead, self.behind, self.more = {}, {}, {}, set()

    def index(self, name, index):
        """One dim, from the front or from the end."""
        side, least = (self.ahead, index + 1) if index >= 0 else (self.behind, -index)
        side[name] = max(side.get(name, 0), least)

    def of(self, name):
        """(dims, whether it is a guess); None where nothing is said."""
        ahead, behind = self.ahead.get(name, 0), self.behind.get(name, 0)
        if name in self.exact:
            return max(self.exact[name], ahead, behind), False
        if not ahead and not behind:
            return None
        if name in self.more and not ahead:  # those before the last ones are as good as one
            return behind + 1, True
        return ahead + behind, bool(ahead and behind)


def note_unpacked(ranks, names, targets, values):
    """Of B, H, T, V = *q.shape, v.shape[-1]."""
    whole = [i for i, each in enumerate(values) if isinstance(each, ast.Starred)]
    if len(whole) != 1 or any(isinstance(each, ast.Starred) for each in targets):
        return
    tensor = name_of(values[whole[0]].value).removesuffix(".shape")
    if not name_of(values[whole[0]].value).endswith(".shape") or "." in tensor:
        return
    rank = len(targets) - len(values) + 1
    if rank > 0:
        ranks.exact[tensor] = max(ranks.exact.get(tensor, 0), rank)
        for i, element in enumerate(targets[whole[0] : whole[0] + rank]):
            if isinstance(element, ast.Name) and element.id.strip("_"):
                names.setdefault(tensor, {}).setdefault(i, element.id)


def folds_rows(node):
    """The tensor of x.view(-1, n), x.reshape(-1, n), x.numel() // n: all dims but the last ones are one."""
    call = node.left if isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv) else node
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)):
        return None
    if call is not node:
        return call.func.value.id if call.func.attr in ("numel", "nelement") else None
    first = call.args[0] if len(call.args) == 2 else None
    minus = isinstance(first, ast.UnaryOp) and isinstance(first.op, ast.USub)
    return call.func.value.id if call.func.attr in ("view", "reshape") and minus else None


def hints(function):
    """What a wrapper's body says of its parameters: {name: {position: dim's name}}, and their ranks."""
    names, ranks = {}, Ranks()

    def at_least(name, rank):
        ranks.exact[name] = max(ranks.exact.get(name, 0), rank)

    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            shape = value.value.id if isinstance(value, ast.Attribute) and value.attr == "shape" and isinstance(value.value, ast.Name) else None
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "size" and not value.args and isinstance(value.func.value, ast.Name):
                shape = value.func.value.id
            if shape and isinstance(target, ast.Tuple) and any(isinstance(e, ast.Starred) for e in target.elts):
                ranks.index(shape, -(len(target.elts) - 1))
                ranks.more.add(shape)
                for i, element in enumerate(reversed(target.elts)):
                    if isinstance(element, ast.Starred):
                        break
                    names.setdefault(shape, {}).setdefault(-1 - i, element.id if isinstance(element, ast.Name) else "size")
            elif shape and isinstance(target, ast.Tuple) and all(isinstance(e, ast.Name) for e in target.elts):
                at_least(shape, len(target.elts))
                for i, element in enumerate(target.elts):
                    if element.id.strip("_"):
                        names.setdefault(shape, {}).setdefault(i, element.id)
            index = extent_of(value, ("size",))
            if index and isinstance(target, ast.Name):
                names.setdefault(index[0], {}).setdefault(index[1], target.id)
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                note_unpacked(ranks, names, target.elts, value.elts)
                for each, what in paired(target.elts, value.elts):
                    index = extent_of(what, ("size",))
                    if index and isinstance(each, ast.Name):
                        names.setdefault(index[0], {}).setdefault(index[1], each.id)
        index = extent_of(node)
        if index:
            ranks.index(*index)
        if folds_rows(node):
            ranks.more.add(folds_rows(node))
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq) and isinstance(node.comparators[0], ast.Constant):
            asked = name_of(node.left)
            if asked.endswith((".dim", ".ndim")) and isinstance(node.comparators[0].value, int):
                at_least(asked.rsplit(".", 1)[0], node.comparators[0].value)
    return names, ranks


def paired(targets, values):
    """Of B, H, T, V = *q.shape, v.shape[-1]: who is sure to get which, from both ends."""
    starred = [i for i, each in enumerate(values) if isinstance(each, ast.Starred)]
    if not starred:
        return list(zip(targets, values))
    ahead, behind = values[: starred[0]], values[starred[-1] + 1 :]
    return list(zip(targets, ahead)) + list(zip(reversed(targets), reversed(behind)))


def extent_of(node, methods=("size", "stride")):
    """(name, index) of x.shape[i], x.size(i) and x.stride(i)."""
    index = None
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        tensor, index = node.value.value, node.slice
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
        tensor, index = node.func.value, node.args[0] if len(node.args) == 1 else None
    if index is None or not isinstance(tensor, ast.Name):
        return None
    try:
        value = ast.literal_eval(index)
    except ValueError:
        return None
    return (tensor.id, value) if isinstance(value, int) else None
