"""The statements and expressions of a function that launches Triton kernels, with sizes as names. What is not
understood is an Unknown, and where it counts a Refused with its line."""

import ast
import functools
import operator

from triton_import_branches import Branches
from triton_import_calls import Calls, truth
from triton_import_kernel import KernelUse, imports_of, launched_names
from triton_import_values import (
    BINARY,
    COMPARED,
    SIGNS,
    DTYPES,
    Choice,
    Dtype,
    Example,
    Other,
    Real,
    Refused,
    Returned,
    Sym,
    Tensor,
    Unknown,
    combine,
    combine_real,
    hints,
    merge,
    name_of,
    same,
    strides_of,
)


class Walk(Branches, Calls):
    """One wrapper, walked."""

    def __init__(self, tree, functions, kernels, problem, examples):
        self.examples = examples
        self.tree, self.functions, self.kernels, self.problem = tree, functions, kernels, dict(problem)
        self.bases, self.launches, self.notes, self.uses = [], [], [], {}
        self.line, self.depth, self.symbolic = 1, 0, False  # symbolic: a comparison of sizes is an expression
        self.constants, self.computed = {}, {}
        self.dims, self.only_written, self.imported = {}, set(), imports_of(tree)
        for node in tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                self.keep_constant(node.targets[0], node)

    # ---- what it comes to

    def tensors(self, role):
        """In the order of the parameters, outputs in that of the return."""
        return [base for base in self.bases if base.role == role]

    def refuse(self, reason, node=None):
        """With the line."""
        raise Refused(getattr(node, "lineno", self.line), reason)

    def dim(self, name):
        """A size by its name."""
        name = name if name.isidentifier() and not name.startswith("_") else "size_" + name.strip("_")
        return self.dims.setdefault(name, Sym("name", name))

    def call_wrapper(self, function, method):
        """Its parameters are the candidate's inputs; then its body."""
        arguments = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
        if method:
            arguments = arguments[1:]
        defaults = dict(zip([a.arg for a in reversed(function.args.args)], reversed(function.args.defaults)))
        defaults |= {a.arg: d for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults) if d is not None}
        names, ranks = hints(function)
        scope = {"ctx": Other()}
        if function.args.vararg or function.args.kwarg:
            self.refuse("the function takes any number of arguments", function)
        pointers = self.pointers(function)
        given = list(self.problem.get("inputs", []))
        for argument in arguments:
            scope[argument.arg] = self.parameter(argument, defaults, names, ranks, pointers, given)
        try:
            self.run(function.body, scope)
            returned = None
        except Returned as back:
            returned = back.value
        self.end(returned)
        if given:
            self.refuse(f"the problem's input {given[0]['name']} has no tensor of the function's", function)

    def pointers(self, function):
        """Names of the wrapper's that reach a kernel where it loads or stores; only_written: never where it loads."""
        found, loaded = set(), set()
        for node in ast.walk(function):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)):
                continue
            for name in launched_names(node.func.value, function, self.kernels):
                use = self.use(name)
                passed = list(zip(use.parameters, node.args)) + [(k.arg, k.value) for k in node.keywords]
                found |= {v.id for p, v in passed if isinstance(v, ast.Name) and p in use.loaded | use.stored}
                loaded |= {v.id for p, v in passed if isinstance(v, ast.Name) and p in use.loaded}
        self.only_written = found - loaded
        return found

    def use(self, kernel):
        """What the kernel does with its parameters."""
        if kernel not in self.uses:
            self.uses[kernel] = KernelUse(self.kernels[kernel], self.kernels)
        return self.uses[kernel]

    def parameter(self, argument, defaults, names, ranks, pointers, given):
        """A tensor, a number, or the default."""
        name = argument.arg
        words = ast.unparse(argument.annotation) if argument.annotation else ""
        example, line = self.examples.of(name) or (Unknown(""), 0)
        known = ranks.of(name)
        is_tensor = known is not None or name in pointers or "Tensor" in words or isinstance(example, Example)
        if name in defaults:
            value = defaults[name]
            if isinstance(value, ast.Constant) and (value.value is not None or not self.problem or not given):
                return value.value
            if not (isinstance(value, ast.Constant) and value.value is None):
                return self.value(value, {})
        if not is_tensor:
            return self.plain(name, words, example, line)
        if not self.problem:
            seen = isinstance(example, Example)
            rank, guessed = known or (None, False)
            if seen and rank and name not in ranks.exact and len(example.shape) > rank:
                rank = self.note_rank(name, example, line)
            elif guessed:
                self.notes.append(f"{name} is taken to have {rank} dims: a problem would say how many")
            shape = self.extents(name, names.get(name, {}), rank) if rank else None
            base = Tensor(name, "input", shape, None)
            base.example, base.names = (example, line) if seen else None, names.get(name, {})
        else:
            if name in self.only_written:
                base = Tensor(name, "input", None, None)  # end() makes it an output
                self.bases.append(base)
                return base
            if not given:
                self.refuse(f"the problem has no input for {name}")
            spec = given.pop(0)
            shape = [self.value(ast.parse(text.replace("/", "//"), mode="eval").body, None) for text in spec["shape"]]
            base = Tensor(spec["name"], "input", shape, spec["dtype"])
            if name in ranks.exact and known[0] != len(shape):
                self.refuse(f"{name} has {known[0]} dims here, the problem's {spec['name']} {len(shape)}")
        self.bases.append(base)
        return base

    def extents(self, name, names, rank):
        return [self.dim(names.get(i, names.get(i - rank, f"{name}_{i}"))) for i in range(rank)]

    def note_rank(self, name, example, line):
        self.notes.append(f"{name} has {len(example.shape)} dims, as in line {line}")
        return len(example.shape)

    def dtype_of(self, tensor):
        """Its element type; where no problem says it that of a call in the file, which is told."""
        base = tensor.base
        if base.dtype is None and base.like is not None:
            base.dtype = self.dtype_of(base.like)
        if base.dtype is None and base.example and base.example[0].dtype in DTYPES.values():
            base.dtype = base.example[0].dtype
            self.notes.append(f"{base.name} is {base.dtype}, as in line {base.example[1]}")
        return base.dtype

    def plain(self, name, words, example, line):
        """A parameter that is no tensor and has no default: a size, or what the file's own call gives it."""
        if words == "int" or isinstance(example, int) and not isinstance(example, bool):
            return self.dim(name)
        if isinstance(example, tuple) and example and all(isinstance(each, int) for each in example):
            return tuple(self.dim(f"{name}_{i}") for i in range(len(example)))
        if isinstance(example, (bool, float, str, type(None))) and not isinstance(example, Unknown):
            self.notes.append(f"{name} is {example!r}, as in line {line}")
            return example
        return Unknown(f"{name}, a parameter without a default")

    def end(self, returned):
        """Which tensors are outputs."""
        if not self.launches:
            self.refuse("no launch is reached")
        values = [v for v in (returned if isinstance(returned, tuple) else (returned,)) if v is not None]
        for value in values:
            if isinstance(value, Unknown):
                self.refuse(f"what it returns depends on {value.what}")
            if not isinstance(value, Tensor):
                self.refuse("what it returns is no tensor that a kernel writes")
        stored, loaded, lines = set(), set(), {}
        for launch in self.launches:
            use = self.use(launch.kernel)
            for parameter, value in launch.values.items():
                if isinstance(value, Tensor) and parameter in use.stored:
                    stored.add(value.base)
                    lines.setdefault(value.base, launch.line)
                if isinstance(value, Tensor) and parameter in use.loaded:
                    loaded.add(value.base)
        outputs = [value.base for value in values]
        for base in self.bases:
            if base.role == "input" and base in stored:
                if base in loaded and not base.zeroed:
                    reason = f"{base.name} is read and written in place; inputs of a candidate are read only"
                    raise Refused(lines[base], reason)
                base.role = "output"
        for base in outputs:
            if base.role == "input":
                self.refuse(f"it returns {base.name}, which no kernel writes")
            if base not in stored:
                self.refuse(f"it returns {base.name}, which no kernel of the file writes")
            base.role = "output"
        kept = [b for b in self.bases if b.role not in ("output", "workspace")] + [b for b in self.bases if b.role == "workspace" and (b in stored or b in loaded)]
        self.bases = kept + outputs + [b for b in self.bases if b.role == "output" and b not in outputs]
        self.name_outputs()

    def name_outputs(self):
        """As the problem has them."""
        theirs, ours = self.problem.get("outputs"), self.tensors("output")
        if not ours:
            self.refuse("nothing says what it writes")
        if theirs is None:
            return
        if len(theirs) != len(ours):
            self.refuse(f"it writes {len(ours)} tensors, the problem has {len(theirs)} outputs")
        for base, spec in zip(ours, theirs):
            base.name, base.dtype = spec["name"], spec["dtype"]

    def dims_in_use(self, names):
        """Of those of the plan."""
        return [name for name in self.dims if name in names]

    # ---- statements

    def run(self, body, scope):
        for node in body:
            self.line = getattr(node, "lineno", self.line)
            self.statement(node, scope)

    def statement(self, node, scope):
        if isinstance(node, ast.Assign):
            value = self.value(node.value, scope)
            for target in node.targets:
                self.assign(target, value, scope)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.assign(node.target, self.value(node.value, scope), scope)
        elif isinstance(node, ast.AugAssign):
            self.assign(node.target, self.binary(node.op, self.value(node.target, scope), self.value(node.value, scope)), scope)
        elif isinstance(node, ast.If):
            self.branch(node, scope)
        elif isinstance(node, ast.Return):
            raise Returned(self.value(node.value, scope) if node.value is not None else None)
        elif isinstance(node, ast.For):
            self.loop(node, scope)
        elif isinstance(node, ast.With):
            self.run(node.body, scope)
        elif isinstance(node, ast.FunctionDef):
            scope[node.name] = node
        elif isinstance(node, ast.Expr):
            self.effect(node.value, scope)
        elif not isinstance(node, (ast.Assert, ast.Pass, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Raise)):
            self.refuse(f"a {type(node).__name__.lower()} statement is not followed")

    def effect(self, node, scope):
        """A call for what it does: a launch, or nothing that counts."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            self.value(node, scope)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("zero_", "fill_"):
            tensor = self.value(node.func.value, scope)
            what = self.value(node.args[0], scope) if node.args else 0
            if not isinstance(tensor, Tensor) or what != 0:
                self.refuse(f"fills a tensor with `{ast.unparse(node)[:60]}`")
            tensor.base.zeroed = True
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
            if isinstance(self.value(node.func.value, scope), Tensor) and node.func.attr != "requires_grad_":
                self.refuse(f"`{ast.unparse(node)[:60]}` is torch's work, not a kernel's", node)
        elif isinstance(node, ast.Call) and name_of(node.func).split(".")[0] in self.functions:
            self.value(node, scope)

    def assign(self, target, value, scope):
        if isinstance(target, ast.Name):
            scope[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, Unknown):
                self.refuse(f"`{ast.unparse(target)[:60]}` comes from {value.what}", target)
            starred = [i for i, each in enumerate(target.elts) if isinstance(each, ast.Starred)]
            if len(starred) == 1 and isinstance(value, (tuple, list)) and len(value) >= len(target.elts) - 1:
                at, rest = starred[0], len(value) - len(target.elts) + 1
                self.assign(target.elts[at].value, tuple(value[at : at + rest]), scope)
                left = target.elts[:at] + target.elts[at + 1 :]
                for each, part in zip(left, value[:at] + value[at + rest :]):
                    self.assign(each, part, scope)
                return
            if not isinstance(value, (tuple, list)) or len(value) != len(target.elts):
                self.refuse(f"`{ast.unparse(target)[:60]}` is not known to have so many parts", target)
            for each, part in zip(target.elts, value):
                self.assign(each, part, scope)
        elif not (isinstance(target, ast.Attribute) and isinstance(self.value(target.value, scope), Other)):
            self.refuse(f"`{ast.unparse(target)[:60]} = ...` is torch's work, not a kernel's", target)

    # ---- expressions

    def value(self, node, scope):
        """scope None: a problem's expression, whose names are dims."""
        method = getattr(self, "of_" + type(node).__name__.lower(), None)
        return method(node, scope) if method else Unknown(f"`{ast.unparse(node)[:60]}`")

    def of_constant(self, node, _scope):
        return node.value

    def of_name(self, node, scope):
        if scope is None:
            return self.dim(node.id)
        if node.id in scope:
            return scope[node.id]
        if node.id in self.constants:
            return self.constants[node.id]
        if node.id in self.computed:
            statement = self.computed.pop(node.id)
            self.constants[node.id] = self.value(statement.value, {})
            return self.constants[node.id]
        if node.id in self.functions:
            return self.functions[node.id]
        module = self.imported.get(node.id)
        return Unknown(f"{node.id}, which {module} defines" if module else f"{node.id}, which this file does not say")

    def of_tuple(self, node, scope):
        return self.several(node.elts, scope)

    def several(self, nodes, scope):
        """Of a list of expressions, with *those that are lists."""
        found = ()
        for node in nodes:
            value = self.value(node.value if isinstance(node, ast.Starred) else node, scope)
            if isinstance(node, ast.Starred) and not isinstance(value, (tuple, list)):
                self.refuse(f"`{ast.unparse(node)[:60]}`: how many there are is not known", node)
            found += tuple(value) if isinstance(node, ast.Starred) else (value,)
        return found

    of_list = of_tuple

    def of_dict(self, node, scope):
        return {self.value(k, scope): self.value(v, scope) for k, v in zip(node.keys, node.values) if k is not None}

    def of_lambda(self, node, _scope):
        return node

    def of_ifexp(self, node, scope):
        test = self.value(node.test, scope)
        if isinstance(test, Unknown) and test.what.startswith("a size"):
            made = merge(self.value(node.body, scope), self.value(node.orelse, scope))
            return made if made is not None else Unknown(f"a size, by `{ast.unparse(node.test)[:60]}`")
        if isinstance(test, (Unknown, Sym)):
            return Unknown(test.what if isinstance(test, Unknown) else f"a size, by `{ast.unparse(node.test)[:60]}`")
        return self.value(node.body if truth(test) else node.orelse, scope)

    def of_boolop(self, node, scope):
        values = [self.value(each, scope) for each in node.values]
        decides = isinstance(node.op, ast.Or)
        for each in values:
            if not isinstance(each, (Unknown, Sym)) and truth(each) == decides:
                return each
        unsure = [each for each in values if isinstance(each, (Unknown, Sym))]
        if self.symbolic and unsure and all(isinstance(each, Sym) and each.kind in (*SIGNS.values(), "&&", "||") for each in unsure):
            return functools.reduce(lambda left, right: Sym("||" if decides else "&&", left, right), unsure)
        return (unsure[0] if isinstance(unsure[0], Unknown) else Unknown("a size")) if unsure else values[-1]

    def of_unaryop(self, node, scope):
        value = self.value(node.operand, scope)
        if isinstance(value, Sym) and isinstance(node.op, ast.Not):
            return Sym("==", value, 0) if self.symbolic else Unknown("a size")
        if isinstance(value, (Unknown, Sym)):
            return value if isinstance(value, Unknown) else combine("-", operator.sub, 0, value)
        return not truth(value) if isinstance(node.op, ast.Not) else -value if isinstance(node.op, ast.USub) else value

    def of_compare(self, node, scope):
        left, right = self.value(node.left, scope), self.value(node.comparators[0], scope)
        operation = type(node.ops[0])
        if isinstance(left, Choice) or isinstance(right, Choice):
            return Unknown("a size")
        if operation in (ast.Is, ast.IsNot):
            if isinstance(left, Unknown):
                return left
            return (left is right) == (operation is ast.Is)
        for each in (left, right):
            if isinstance(each, Unknown):
                return each
        if isinstance(left, Dtype) or isinstance(right, Dtype):
            names = [self.name_of_dtype(each) for each in (left, right)]
            if None in names:
                return Unknown("an element type, which a problem says")
            return (names[0] == names[1]) == (operation is ast.Eq)
        if isinstance(left, Other) or isinstance(right, Other):
            return operation is ast.Eq
        if isinstance(left, Sym) or isinstance(right, Sym):
            if same(left, right) and operation in (ast.Eq, ast.NotEq):
                return operation is ast.Eq
            whole = all(isinstance(each, (int, Sym)) for each in (left, right)) and len(node.ops) == 1
            return Sym(SIGNS[operation], left, right) if self.symbolic and whole and operation in SIGNS else Unknown("a size")
        if operation in (ast.In, ast.NotIn):
            return (left in right) == (operation is ast.In)
        return COMPARED[operation](left, right) if operation in COMPARED else Unknown("a comparison")

    def name_of_dtype(self, value):
        of = getattr(value, "of", None)
        return self.dtype_of(of) if of is not None else getattr(value, "name", None)

    def of_binop(self, node, scope):
        return self.binary(node.op, self.value(node.left, scope), self.value(node.right, scope))

    def binary(self, op, left, right):
        for each in (left, right):
            if isinstance(each, Unknown):
                return each
            if isinstance(each, Tensor):
                self.refuse("computes with tensors in torch, beside the kernels")
        if isinstance(left, tuple) and isinstance(right, tuple) and isinstance(op, ast.Add):
            return left + right
        numbers = (int, float, Sym, Real)
        if isinstance(left, numbers) and isinstance(right, numbers):
            sizes = [each for each in (left, right) if isinstance(each, (Sym, Real))]
            reals = [each for each in (left, right) if isinstance(each, (Real, float))]
            if sizes and (reals or isinstance(op, (ast.Div, ast.Pow))):
                return combine_real(op, left, right)
            if isinstance(op, ast.Pow) and not isinstance(left, Sym) and not isinstance(right, Sym) and abs(right) <= 64 and abs(left) < 1 << 32:
                return left**right
            if type(op) in BINARY:
                return combine(*BINARY[type(op)], left, right)
            if isinstance(op, ast.Div) and not isinstance(left, Sym) and not isinstance(right, Sym) and right:
                return left / right
        return Unknown(f"{'a size' if Sym in (type(left), type(right)) else 'an operation'} that no launch plan computes")

    def of_attribute(self, node, scope):
        value, name = self.value(node.value, scope), node.attr
        if isinstance(value, Tensor):
            return self.of_tensor(value, name)
        if isinstance(value, Dtype) or isinstance(value, Other):
            return Other()
        if value is None and isinstance(node.value, ast.Name) and node.value.id in (scope or {}):
            return Unknown(f"`{ast.unparse(node)[:60]}`, and {node.value.id} is None by default")
        if isinstance(value, Unknown) and isinstance(node.value, ast.Name) and node.value.id in (scope or {}):
            return value
        whole = name_of(node)
        if whole.startswith(("torch.", "tl.")) and name in DTYPES:
            return Dtype(DTYPES[name])
        if name == "backend":
            return "cuda"
        if whole in ("torch.version.hip", "torch.version.xpu"):
            return None
        if name == "multi_processor_count":
            return Sym("name", "sm_count")
        return Unknown(f"`{ast.unparse(node)[:60]}`")

    def of_tensor(self, tensor, name):
        if name == "shape":
            return tuple(self.shape(tensor))
        known = {"is_cuda": True, "requires_grad": False, "dtype": Dtype(tensor.base.dtype, tensor), "device": Other(), "data": tensor}
        if name in ("ndim",):
            return len(self.shape(tensor))
        if name == "T":
            return self.transposed(tensor, 0, 1)
        return known.get(name, Unknown(f"{tensor.name}.{name}"))

    def shape(self, tensor):
        if tensor.shape is None and tensor is tensor.base and tensor.example:
            rank = self.note_rank(tensor.name, *tensor.example)
            tensor.shape = self.extents(tensor.name, tensor.names, rank)
            tensor.strides = strides_of(tensor.shape)
        if tensor.shape is None:
            self.refuse(f"nothing says how many dims {tensor.name} has; a problem would")
        return tensor.shape

    def transposed(self, tensor, i, j):
        shape, strides = list(self.shape(tensor)), list(tensor.strides)
        shape[i], shape[j] = shape[j], shape[i]
        strides[i], strides[j] = strides[j], strides[i]
        return tensor.view(shape, strides)

    def of_subscript(self, node, scope):
        value = self.value(node.value, scope)
        if isinstance(value, tuple):
            try:
                index = node.slice
                if isinstance(index, ast.Slice):
                    parts = [None if p is None else self.value(p, scope) for p in (index.lower, index.upper, index.step)]
                    return value[slice(*parts)]
                return value[self.value(index, scope)]
            except (TypeError, IndexError):
                return Unknown(f"`{ast.unparse(node)[:60]}`")
        if isinstance(value, dict):
            return value.get(self.value(node.slice, scope), Unknown(f"`{ast.unparse(node)[:60]}`"))
        if isinstance(value, Tensor):
            self.refuse(f"a part of {value.name} is no tensor of a candidate's: `{ast.unparse(node)[:60]}`", node)
        return value if isinstance(value, Unknown) else Unknown(f"`{ast.unparse(node)[:60]}`")
