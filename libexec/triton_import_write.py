"""A walked wrapper as a candidate's text: front matter, the parts of the file that its kernels need, and where their
arguments are no names of the problem, an entry that computes them."""

import ast
import re

from triton_import_values import OPTIONS, Choice, Dtype, Real, Refused, Sym, Tensor, Unknown, name_of

DEFAULTS = {"num_warps": 4, "num_stages": 3}
FACTS = {"sm_count"}


class Writer:
    """Of one file."""

    def __init__(self, text, tree, walk):
        self.lines, self.tree, self.walk = text.splitlines(), tree, walk
        self.tune, self.where, self.used = {}, [], set()
        self.entries, self.plans, self.needed = [], [], []
        self.tl = "tl"

    def source(self, file, function):
        """The whole text."""
        self.name_workspaces()
        for launch in self.walk.launches:
            self.add_launch(launch)
        if len(self.walk.launches) > 8:
            raise Refused(1, f"{len(self.walk.launches)} launches; a plan has at most 8")
        body = self.parts()
        head = ['"""---'] + self.front_matter() + ['---"""', f"# {file}, launched as its {function}() does."]
        return "\n".join(head + body) + "\n"

    def name_workspaces(self):
        """Outputs get their names from the kernel's parameters, workspaces too."""
        taken = {base.name for base in self.walk.bases if base.name} | set(self.walk.dims)
        for base in self.walk.bases:
            if base.name:
                continue
            for launch in self.walk.launches:
                for parameter, value in launch.values.items():
                    if not base.name and isinstance(value, Tensor) and value.base is base:
                        base.name = re.sub(r"_?(ptr|pointer)$", "", parameter).strip("_") or parameter.strip("_")
            while base.name in taken:
                base.name += "_2"
            taken.add(base.name)

    # ---- one launch

    def add_launch(self, launch):
        kernel = self.walk.kernels[launch.kernel]
        launched = {"entry": launch.kernel, "constexpr": {}, "options": {}}
        metas = self.decorators(kernel, launch)
        arguments = kernel.args.posonlyargs + kernel.args.args + kernel.args.kwonlyargs
        if kernel.args.vararg or kernel.args.kwarg:
            raise Refused(kernel.lineno, f"{kernel.name} takes any number of arguments")
        defaulted = [a.arg for a in arguments[len(arguments) - len(kernel.args.defaults) :]]
        passed, direct = [], True
        for argument in arguments:
            constexpr = argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation)
            if argument.arg in metas:
                passed.append((argument.arg, "tune", argument.arg))
            elif argument.arg not in launch.values:
                if argument.arg not in defaulted:
                    raise Refused(launch.line, f"{kernel.name}: nothing is said of its parameter {argument.arg}")
            else:
                item = self.argument(argument.arg, launch.values[argument.arg], constexpr, launch, launched)
                direct = direct and item[0] != "literal"
                passed.append((argument.arg, *item))
        unknown = [name for name in launch.values if name not in [a.arg for a in arguments]]
        if unknown:
            raise Refused(launch.line, f"{kernel.name} has no parameter {unknown[0]}")
        for name, value in launch.options.items():
            if isinstance(value, Choice):
                self.one_value(name, value.values, launch.line)
                continue
            if isinstance(value, Sym):
                self.argument(name, value, True, launch, launched)  # into `constexpr`, as a kernel's own
                continue
            if not isinstance(value, int):
                raise Refused(launch.line, f"{name} is no number that is the same at every shape: {self.why(value)}")
            if name == "num_ctas" and value == 1:
                continue
            self.one_value(name, [value], launch.line)
        launched["grid"] = self.grid(launch, metas)
        self.need(launch.kernel)
        self.plan(launched, passed, direct, kernel)

    def why(self, value):
        """Of a value that is not a constant."""
        if isinstance(value, Unknown):
            return f"it depends on {value.what}"
        if isinstance(value, Sym):
            return f"it is {value.text(True)}, which depends on a size"
        return "it is no number"

    def one_value(self, name, values, line):
        if self.tune.setdefault(name, values) != values:
            raise Refused(line, f"{name} has one value in one launch and others in another")

    def argument(self, name, value, constexpr, launch, launched):
        """(kind, text): a name of the plan, a literal or expression for the entry, or a tune parameter."""
        if isinstance(value, Tensor):
            return ("name", value.base.name)
        if isinstance(value, Unknown):
            raise Refused(launch.line, f"{name} depends on {value.what}")
        if isinstance(value, Sym):
            names = value.names()
            dims = names - FACTS - set(self.tune)
            fixed = self.walk.problem.get("fixed", {})
            varies = sorted(dims - set(fixed)) if self.walk.problem else []
            if constexpr and varies:
                raise Refused(
                    launch.line,
                    f"{name} is {value.text(True)}, a tl.constexpr, and {varies[0]} differs from shape to shape of the "
                    "problem: let the kernel loop over blocks",
                )
            for dim in sorted(dims) if constexpr and not self.walk.problem else []:
                note = f"{dim} has to be the same at every shape of a problem: the kernel has it as a constant"
                self.walk.notes += [note] if note not in self.walk.notes else []
            if constexpr:
                launched["constexpr"][name] = value.text(True)
                return ("tune", name)
            if value.kind == "name" and not names & FACTS:
                return ("name", value.text(True))
            if names & (FACTS | set(self.tune)):
                raise Refused(launch.line, f"{name} is {value.text(True)}: an argument computes with dims alone")
            if "next_pow2" in value.text(True):
                raise Refused(launch.line, f"{name} is {value.text(True)}, which an argument cannot be")
            return ("literal", value.text(False))
        if isinstance(value, Choice):
            raise Refused(launch.line, f"{name} is one of {', '.join(map(str, value.values))}, which a size decides")
        if isinstance(value, Real):
            if constexpr:
                raise Refused(launch.line, f"{name} is a float that depends on a size, and a tl.constexpr")
            return ("literal", value.words.replace("tl.", self.tl + "."))
        if isinstance(value, bool) or value is None or isinstance(value, (str, float)):
            if isinstance(value, float) and value != value or value in (float("inf"), float("-inf")):
                return ("literal", f'float("{value}")')
            return ("literal", repr(value))
        if isinstance(value, int):
            if constexpr and name not in self.walk.dims:
                if self.tune.get(name, [value]) == [value]:
                    self.tune[name] = [value]
                    return ("tune", name)
                return ("literal", repr(value))
            return ("literal", repr(value)) if constexpr else ("number", repr(value))
        if isinstance(value, Dtype):
            if self.walk.name_of_dtype(value) is None:
                raise Refused(launch.line, f"{name} is an element type, which a problem says")
            return ("literal", f"{self.tl}.{self.walk.name_of_dtype(value)}")
        raise Refused(launch.line, f"{name} is a {type(value).__name__.lower()}, which no launch plan can pass")

    def plan(self, launched, passed, direct, kernel):
        """Its arguments as names; else through an entry of its own."""
        if direct:
            launched["args"] = [text for _, kind, text in passed if kind in ("name", "number")]
            self.used |= set(launched["args"])
        else:
            dims = []
            for _, kind, text in passed:
                found = re.findall(r"[A-Za-z_]\w*", text) if kind in ("literal", "name") else []
                tensors = [base.name for base in self.walk.bases]
                dims += [w for w in found if (w in self.walk.dims or w in tensors and kind == "name") and w not in dims]
            for i, (parameter, kind, text) in enumerate(passed):  # a size that is an argument, too
                if kind == "tune" and text in dims and text in launched["constexpr"]:
                    launched["constexpr"][text + "_"] = launched["constexpr"].pop(text)
                    passed[i] = (parameter, kind, text + "_")
            constants = [text for _, kind, text in passed if kind == "tune"]
            name = f"{kernel.name}_entry"
            while any(name in line for line in self.lines) or any(name in entry for entry in self.entries):
                name += "_"
            signature = dims + [f"{each}: {self.tl}.constexpr" for each in constants]
            call = ", ".join(f"{parameter}={text}" for parameter, _, text in passed)
            self.entries.append(f"@triton.jit\ndef {name}({', '.join(signature)}):\n    {kernel.name}({call})")
            launched["entry"], launched["args"] = name, dims
            self.used |= set(dims)
        self.plans.append(launched)

    def grid(self, launch, metas):
        """One to three expressions."""
        grid, scope = launch.grid
        self.walk.line = launch.line
        if isinstance(grid, (ast.Lambda, ast.FunctionDef)):
            constants = {name: value for name, value in launch.values.items()}
            constants |= {name: Sym("name", name) for name in list(metas) + [n for n in self.tune if n not in OPTIONS]}
            parameter = grid.args.args[0].arg if grid.args.args else "meta"
            call = ast.Call(func=ast.Name(id="grid"), args=[ast.Name(id=parameter)], keywords=[], lineno=launch.line)
            grid = self.walk.inline(grid, call, scope | {parameter: constants})
        if not isinstance(grid, tuple):
            grid = (grid,)
        words = []
        for each in grid:
            if not isinstance(each, (int, Sym)) or isinstance(each, bool):
                what = each.what if isinstance(each, Unknown) else type(each).__name__.lower()
                raise Refused(launch.line, f"its grid depends on {what}")
            words.append(each.text(True) if isinstance(each, Sym) else str(each))
            self.used |= each.names() if isinstance(each, Sym) else set()
        return words

    # ---- decorators

    def decorators(self, kernel, launch):
        """Names that @triton.autotune and @triton.heuristics give a value."""
        metas = {}
        for decorator in kernel.decorator_list:
            name = name_of(decorator).split(".")[-1]
            if name == "autotune":
                metas |= self.autotune(decorator, launch)
            elif name == "heuristics":
                metas |= self.heuristics(decorator, launch)
            elif name != "jit":
                raise Refused(decorator.lineno, f"{kernel.name} has a decorator that is not known: {name}")
        return metas

    def autotune(self, decorator, launch):
        """Its configurations as a tune space of exactly those points."""
        keywords = {keyword.arg: keyword.value for keyword in decorator.keywords}
        node = decorator.args[0] if decorator.args else keywords.get("configs")
        for name in ("reset_to_zero", "restore_value", "pre_hook"):
            if name in keywords and not (isinstance(keywords[name], ast.Constant) and keywords[name].value is None):
                raise Refused(decorator.lineno, f"@triton.autotune's {name}: what a launch does is repeated there")
        if "prune_configs_by" in keywords:
            self.walk.notes.append("prune_configs_by is left out: all configurations are points of the tune space")
        self.walk.line = decorator.lineno
        configs = self.configs(node)
        names = list(configs[0])
        for config in configs:
            if list(config) != names and set(config) != set(names):
                raise Refused(decorator.lineno, "its configurations do not all have the same parameters")
        for name in names:
            values = list(dict.fromkeys(config[name] for config in configs))
            if name in self.tune and self.tune[name] != values:
                raise Refused(decorator.lineno, f"two kernels are tuned by {name}, with other values each")
            self.tune[name] = values
        points = {tuple(config[name] for name in names) for config in configs}
        size = 1
        for name in names:
            size *= len(self.tune[name])
        if len(points) < size:
            vary = [name for name in names if len(self.tune[name]) > 1]
            each = [" && ".join(f"{name} == {c[name]}" for name in vary) for c in configs]
            self.where.append(" || ".join(f"({text})" for text in dict.fromkeys(each)))
        for name in DEFAULTS:
            if name in self.tune and self.tune[name] == [DEFAULTS[name]]:
                self.tune.pop(name)
        return {name: True for name in names if name not in OPTIONS}

    def configs(self, node):
        """[{name: number}], each with its options."""
        made = comprehend(node, self.walk) if node is not None else None
        if not isinstance(made, tuple) or not made:
            why = f": it depends on {made.what}" if isinstance(made, Unknown) else ""
            raise Refused(self.walk.line, f"@triton.autotune's configurations are computed{why}")
        found = []
        for each in made:
            if not (isinstance(each, tuple) and len(each) == 3 and each[0] == "config" and isinstance(each[1], dict)):
                raise Refused(self.walk.line, "@triton.autotune's configurations are computed")
            _, values, options = each
            if options.pop("pre_hook", None) is not None:
                raise Refused(self.walk.line, "a configuration has a pre_hook: code of the host before each launch")
            config = values | {name: options.get(name, default) for name, default in DEFAULTS.items()}
            config |= {name: v for name, v in options.items() if name in ("num_ctas", "maxnreg") and v not in (1, None)}
            for name, value in config.items():
                if isinstance(value, bool) or not isinstance(value, int):
                    raise Refused(self.walk.line, f"a configuration's {name} is no whole number")
            found.append(config)
        return found

    def heuristics(self, decorator, launch):
        """Each is an expression over sizes and tune parameters."""
        values = decorator.args[0] if decorator.args else decorator.keywords[0].value
        if not isinstance(values, ast.Dict):
            raise Refused(decorator.lineno, "@triton.heuristics takes a map that is made elsewhere")
        for key, function in zip(values.keys, values.values):
            name = ast.literal_eval(key)
            known = dict(launch.values) | {each: Sym("name", each) for each in self.tune}
            if not isinstance(function, ast.Lambda):
                raise Refused(decorator.lineno, f"@triton.heuristics' {name} is no lambda")
            self.walk.symbolic = True
            made = self.walk.value(function.body, {function.args.args[0].arg: known})
            self.walk.symbolic = False
            if isinstance(made, Unknown):
                raise Refused(
                    function.lineno,
                    f"@triton.heuristics' {name} (`{ast.unparse(function.body)[:60]}`) depends on {made.what}",
                )
            launch.values[name] = made
        return {}

    # ---- the text

    def front_matter(self):
        lines = []
        if self.tune or self.where:
            lines.append("tune:")
            lines += [f"  {name}: [{', '.join(map(str, values))}]" for name, values in self.tune.items()]
            if self.where:
                lines.append("  where: " + " && ".join(f"({each})" for each in self.where))
        spaces = [base for base in self.walk.bases if base.role == "workspace"]
        if spaces:
            lines.append("workspace:")
        for base in spaces:
            shape = [each.text(True) if isinstance(each, Sym) else str(each) for each in base.shape]
            if self.walk.dtype_of(base) is None:
                raise Refused(self.walk.line, f"the element type of {base.name} is its input's, which a problem says")
            lines.append(f"  {base.name}: {{shape: [{', '.join(shape)}], dtype: {base.dtype}}}")
        zeroed = [base.name for base in self.walk.bases if base.zeroed and base.role != "input"]
        if zeroed:
            lines.append("memset: {" + ", ".join(f"{name}: 0" for name in zeroed) + "}")
        lines.append("launch:")
        for plan in self.plans:
            lines.append(f"  - entry: {plan['entry']}")
            lines.append(f"    grid: [{', '.join(chr(34) + each + chr(34) for each in plan['grid'])}]")
            lines.append(f"    args: [{', '.join(plan['args'])}]")
            if plan["constexpr"]:
                lines.append("    constexpr: {" + ", ".join(f'{k}: "{v}"' for k, v in plan["constexpr"].items()) + "}")
        return lines

    def need(self, name):
        """A kernel or what it uses, in the file's order later."""
        if name in self.needed:
            return
        self.needed.append(name)
        node = self.walk.functions[name]
        inside = [each for part in [node.args, *node.body] for each in ast.walk(part)]
        own = {n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        own |= {a.arg for a in inside if isinstance(a, ast.arg)}
        for each in inside:
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.id not in own:
                self.need_global(each.id, each)

    def need_global(self, name, node):
        if name in self.walk.functions:
            return self.need(name) if name in self.walk.kernels else self.refuse_host(name, node)
        for statement in self.tree.body:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                for alias in statement.names:
                    bound = alias.asname or alias.name.split(".")[0]
                    module = statement.module or "" if isinstance(statement, ast.ImportFrom) else alias.name
                    if bound == name and module.split(".")[0] not in ("triton", "math") or bound == name and getattr(statement, "level", 0):
                        raise Refused(node.lineno, f"the kernel uses {name}, which comes from {module or 'another file'}")
            elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                if any(isinstance(t, ast.Name) and t.id == name for target in targets for t in getattr(target, "elts", [target])):
                    key = statement.lineno
                    if key not in self.needed:
                        self.needed.append(key)
                        for each in ast.walk(statement.value):
                            if isinstance(each, ast.Name):
                                self.need_global(each.id, each)
            elif isinstance(statement, (ast.Try, ast.If)):
                inner = {alias.asname or alias.name for n in ast.walk(statement) if isinstance(n, (ast.Import, ast.ImportFrom)) for alias in n.names}
                inner |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
                if name in inner:
                    raise Refused(node.lineno, f"the kernel uses {name}, which the file defines in one of several ways")
        return None

    @staticmethod
    def refuse_host(name, node):
        raise Refused(node.lineno, f"the kernel calls {name}(), which has no @triton.jit")

    def parts(self):
        """Imports of Triton's, constants and kernels as they stand, decorators besides @triton.jit taken off."""
        lines, seen = [], set()
        for statement in self.tree.body:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                modules = [statement.module or ""] if isinstance(statement, ast.ImportFrom) else [a.name for a in statement.names]
                if not getattr(statement, "level", 0) and all(m.split(".")[0] in ("triton", "math") for m in modules):
                    lines += self.lines[statement.lineno - 1 : statement.end_lineno]
                    seen |= {f"{a.name} as {a.asname}" if a.asname else a.name for a in statement.names}
            elif statement.lineno in self.needed:
                lines += ["", *self.lines[statement.lineno - 1 : statement.end_lineno]]
            elif isinstance(statement, ast.FunctionDef) and statement.name in self.needed:
                jit = [d for d in statement.decorator_list if name_of(d).split(".")[-1] == "jit"]
                lines += ["", "", *("@" + ast.unparse(d) for d in jit), *self.lines[statement.lineno - 1 : statement.end_lineno]]
        head = [] if "triton" in seen else ["import triton"]
        head += [] if seen & {"triton.language as tl", "language as tl"} else ["import triton.language as tl"]
        for entry in self.entries:
            lines += ["", "", entry]
        return head + lines


def comprehend(node, walk, scope=None):
    """Lists, list comprehensions over lists, sums of them, functions of the file that return one."""
    scope = scope or {}
    if isinstance(node, (ast.List, ast.Tuple)):
        return tuple(walk.value(each, scope) for each in node.elts)
    if isinstance(node, ast.ListComp):
        found = []

        def each_of(generators, inner):
            if not generators:
                found.append(walk.value(node.elt, inner))
                return
            first, *rest = generators
            items = comprehend(first.iter, walk, inner)
            if isinstance(items, Unknown):
                raise Refused(node.lineno, f"which configurations there are depends on {items.what}")
            for item in items if isinstance(items, tuple) else ():
                own = dict(inner)
                walk.assign(first.target, item, own)
                tests = [walk.value(test, own) for test in first.ifs]
                if any(isinstance(test, (Unknown, Sym)) for test in tests):
                    raise Refused(node.lineno, "which configurations there are depends on what nothing here says")
                if all(tests):
                    each_of(rest, own)

        each_of(node.generators, scope)
        return tuple(found)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = comprehend(node.left, walk, scope), comprehend(node.right, walk, scope)
        return left + right if isinstance(left, tuple) and isinstance(right, tuple) else Unknown("a sum of lists")
    if isinstance(node, ast.Call) and name_of(node.func) == "range":
        numbers = [walk.value(each, scope) for each in node.args]
        return tuple(range(*numbers)) if all(isinstance(each, int) for each in numbers) and len(range(*numbers)) < 1000 else Unknown("a range")
    if isinstance(node, ast.Name) and node.id not in scope:
        for statement in walk.tree.body:
            if isinstance(statement, ast.Assign) and any(isinstance(t, ast.Name) and t.id == node.id for t in statement.targets):
                return comprehend(statement.value, walk, scope)
    return walk.value(node, scope)
