"""What a Triton kernel does with its parameters, by its syntax tree: which it loads from, which it stores to."""

import ast

STORES = {"store", "atomic_add", "atomic_max", "atomic_min", "atomic_and", "atomic_or", "atomic_xor", "atomic_xchg", "atomic_cas"}
LOADS = {"load"}
PASSED = {"make_block_ptr", "advance", "to", "cast", "where", "multiple_of", "max_contiguous", "broadcast_to", "expand_dims"}


def imports_of(tree):
    """{name: the module that it comes from}, of what another file defines."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found |= {alias.asname or alias.name: module for alias in node.names}
    return found


def launched_names(node, function, kernels):
    """Kernels that `node` of node[grid](...) may be: one by name, wrapped, or held by a variable of the function."""
    if isinstance(node, ast.Call) and len(node.args) == 1:
        return launched_names(node.args[0], function, kernels)  # torch.library.wrap_triton(kernel)
    if not isinstance(node, ast.Name):
        return []
    if node.id in kernels:
        return [node.id]
    values = [
        each.value
        for each in ast.walk(function)
        if isinstance(each, ast.Assign) and any(isinstance(t, ast.Name) and t.id == node.id for t in each.targets)
    ]
    return [each.id for value in values for each in ast.walk(value) if isinstance(each, ast.Name) and each.id in kernels]


class KernelUse:
    """By parameter's name. Helpers that are called are looked into, with what they are passed."""

    def __init__(self, function, kernels, depth=0):
        self.loaded, self.stored = set(), set()
        self.kernels, self.depth = kernels, depth
        arguments = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
        self.parameters = [argument.arg for argument in arguments]
        self.known = {name: {name} for name in self.parameters}
        for _ in range(2):  # what a loop's end changes its beginning sees
            for node in function.body:
                self.visit(node)

    def of(self, node):
        """The parameters that an expression's pointers come from."""
        if isinstance(node, ast.Name):
            return self.known.get(node.id, set())
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, ast.BinOp):  # an address is the only thing that something is added to, and left as a rule
            left, right = self.of(node.left), self.of(node.right)
            return (left or right) if isinstance(node.op, (ast.Add, ast.Sub)) else set()
        if isinstance(node, (ast.Compare, ast.Constant)):
            for child in ast.iter_child_nodes(node):
                self.of(child)
            return set()
        found = set()
        for child in ast.iter_child_nodes(node):
            found |= self.of(child)
        return found

    def call(self, node):
        """A load's result is no pointer; of others it may be."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        arguments = [self.of(each) for each in node.args]
        keywords = {each.arg: self.of(each.value) for each in node.keywords}
        method = isinstance(node.func, ast.Attribute) and not self.is_module(node.func.value)
        first = arguments[0] if arguments else keywords.get("pointer", set())
        if isinstance(node.func, ast.Attribute) and name in ("load", "store") and not self.is_module(node.func.value):
            first, method = self.of(node.func.value), True
        if name in LOADS:
            self.loaded |= first
            return set()
        if name in STORES:
            self.stored |= first
            return set()
        if name in self.kernels and self.depth < 8:
            self.enter(name, arguments, keywords)
            return set()
        owner = self.of(node.func.value) if method else set()
        return set().union(owner, *arguments[:1], keywords.get("base", set())) if name in PASSED else set()

    @staticmethod
    def is_module(node):
        """tl, triton.language, ...: not a descriptor."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in ("tl", "triton", "language", "ttl")

    def enter(self, name, arguments, keywords):
        """What a helper does is done to what it is passed."""
        inner = KernelUse(self.kernels[name], self.kernels, self.depth + 1)
        passed = dict(zip(inner.parameters, arguments)) | keywords
        for parameter, sources in passed.items():
            if parameter in inner.loaded:
                self.loaded |= sources
            if parameter in inner.stored:
                self.stored |= sources

    def visit(self, node):
        """Statements in order."""
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            found = self.of(node.value) if node.value is not None else set()
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        self.known[name.id] = self.known.get(name.id, set()) | found
            return
        for field in ("test", "iter", "value"):
            if isinstance(getattr(node, field, None), ast.AST):
                self.of(getattr(node, field))
        for field in ("body", "orelse", "finalbody"):
            for child in getattr(node, field, None) or []:
                if isinstance(child, ast.AST):
                    self.visit(child)
