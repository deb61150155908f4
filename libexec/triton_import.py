"""Reads a Triton file as people have them, with a Python function that launches its kernels, and says what candidate it
is. Nothing of it is run: its syntax tree is walked, with sizes as names.

    triton_import.py FILE FUNCTION PROBLEM

FUNCTION: the one that launches, or "" where there is one. PROBLEM: {"inputs": [{name, shape: [texts], dtype}],
"outputs": [...], "fixed": {dim: number}}, or {}. Prints one JSON object: {"source", "function", "line", "kernels",
"inputs", "outputs", "notes"}, or {"line", "reason"} where it cannot be one.
"""

import ast
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import source_text  # noqa: E402
from triton_import_examples import Examples  # noqa: E402
from triton_import_kernel import imports_of, launched_names  # noqa: E402
from triton_import_values import Refused, name_of  # noqa: E402
from triton_import_walk import Walk  # noqa: E402
from triton_import_write import Writer  # noqa: E402


def is_jit(function):
    """Whether a function has @triton.jit, or @jit."""
    return any(name_of(each).split(".")[-1] == "jit" and "torch" not in name_of(each) for each in function.decorator_list)


def launches(function, kernels):
    """The kernels that a function launches itself: kernel[grid](...)."""
    return [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript) and launched_names(node.func.value, function, kernels)
    ]


def wrappers(tree, kernels):
    """(name, function) of what launches: functions, and forward() of autograd's."""
    found = []
    for node in tree.body:
        tests = isinstance(node, ast.FunctionDef) and node.name.startswith(("test", "bench", "run_test", "main"))
        if isinstance(node, ast.FunctionDef) and not tests and not is_jit(node) and launches(node, kernels):
            found.append((node.name, node))
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and launches(method, kernels):
                    found.append((f"{node.name}.{method.name}", method))
    return found


def launched_otherwise(tree, kernels):
    """(line, reason) where no function launches one of the file's kernels by its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript) and isinstance(node.func.value, ast.Name):
            name = node.func.value.id
            if name in kernels:
                return node.lineno, f"{name} is launched at the top level of the file, in no function"
            module = imports_of(tree).get(name)
            if module:
                return node.lineno, f"launches {name}, which {module} defines, not this file"
            if name in parameters_around(tree, node):
                return node.lineno, f"which kernel is launched is an argument, {name}: a caller says it"
            if name in nested_kernels(tree):
                return node.lineno, f"launches {name}, a kernel that is no function at the top level of this file"
            return node.lineno, f"launches {name}, which is no @triton.jit function of this file"
    return 1, "nothing launches a kernel: no function has a kernel[grid](...)"


def parameters_around(tree, node):
    """Of the functions that a node stands in."""
    found = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.FunctionDef) and each.lineno <= node.lineno <= (each.end_lineno or each.lineno):
            found |= {a.arg for a in each.args.posonlyargs + each.args.args + each.args.kwonlyargs}
    return found


def nested_kernels(tree):
    """@triton.jit functions anywhere."""
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and is_jit(node)}


def choose(tree, kernels, wanted):
    """The one function that launches."""
    found = wrappers(tree, kernels)
    if not kernels:
        inner = list(nested_kernels(tree).values())
        if inner:
            raise Refused(inner[0].lineno, f"{inner[0].name} is no function at the top level of the file: it is made inside another block")
        raise Refused(*without_kernels(tree))
    if not found:
        raise Refused(*launched_otherwise(tree, kernels))
    named = [each for each in found if wanted in (each[0], each[0].split(".")[0])] if wanted else found
    forward = [each for each in named if each[0].endswith(".forward")]
    if len(named) > 1 and len(forward) == 1 and all("." in name for name, _ in named):
        named = forward
    ahead = [each for each in named if not any(word in each[0].lower() for word in ("bwd", "backward"))]
    if len(named) > 1 and len(ahead) == 1 and not wanted:
        named = ahead
    if not named:
        raise Refused(1, f"{wanted} launches nothing; these do: {', '.join(name for name, _ in found)}")
    if len(named) > 1:
        names = ", ".join(name for name, _ in named)
        raise Refused(named[1][1].lineno, f"several functions launch kernels: {names}; name one behind the file")
    return named[0]


def without_kernels(tree):
    """(line, reason) where the file has no @triton.jit function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name_of(node.func) == "triton.jit":
            return node.lineno, "its kernel is made by a call of triton.jit(), and is no function with @triton.jit"
        if isinstance(node, ast.FunctionDef) and any("gluon" in ast.unparse(each) for each in node.decorator_list):
            return node.lineno, f"{node.name} is a kernel in Gluon, which is no language of candidates"
    return launched_otherwise(tree, {}) if any(isinstance(n, ast.Call) and isinstance(n.func, ast.Subscript) for n in ast.walk(tree)) else (
        1, "there is no @triton.jit function")


def decorate(tree, functions):
    """f = triton.jit(f) is @triton.jit, and so are the other decorators."""
    for node in tree.body:
        if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)):
            continue
        made, steps = node.value, []
        while isinstance(made, ast.Call) and len(made.args) == 1 and name_of(made.func).startswith("triton."):
            steps.append(made.func)
            made = made.args[0]
        if steps and isinstance(made, ast.Name) and made.id == node.targets[0].id and made.id in functions:
            functions[made.id].decorator_list[:0] = steps


def check_benchmarks(function):
    """What times or tests is no wrapper."""
    for decorator in function.decorator_list:
        if "perf_report" in name_of(decorator):
            raise Refused(function.lineno, "what launches is a benchmark")


def read(path, wanted, problem):
    """What it is, as a map."""
    with open(path, "rb") as file:
        raw = file.read()
    text = source_text.clean(raw, path)
    text = text if isinstance(text, str) else text.decode("utf-8-sig")
    text = text.replace("\r\n", "\n")
    if re.search(r'\A\s*"""---\s*$', text, re.M):
        raise Refused(1, "it has a front matter: it is a candidate already")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refused(getattr(error, "lineno", None) or 1, f"is no Python: {getattr(error, 'msg', error)}")
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    decorate(tree, functions)
    kernels = {name: node for name, node in functions.items() if is_jit(node)}
    name, function = choose(tree, kernels, wanted)
    check_benchmarks(function)
    hosts = {each: node for each, node in functions.items() if each not in kernels}
    walk = Walk(tree, functions, kernels, problem, Examples(tree, hosts, function, name))
    file = re.sub(r"[^ -~]", "?", os.path.basename(path))  # a comment's: no name ends its line
    try:
        walk.call_wrapper(function, "." in name)
        writer = Writer(text, tree, walk)
        source = writer.source(file, name)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, ArithmeticError, AssertionError) as fault:
        raise Refused(walk.line, f"this line is not followed ({type(fault).__name__}: {fault})") from None
    said = {
        "source": source,
        "function": name,
        "line": function.lineno,
        "kernels": [launch.kernel for launch in walk.launches],
        "inputs": [tensor.words() for tensor in walk.tensors("input")],
        "outputs": [tensor.words() for tensor in walk.tensors("output")],
        "dims": walk.dims_in_use(writer.used),
        "notes": walk.notes,
    }
    return said


def main():
    problem = json.loads(sys.argv[3])
    try:
        said = read(sys.argv[1], sys.argv[2], problem)
    except Refused as refused:
        said = {"line": refused.line, "reason": refused.reason}
    except RecursionError:
        said = {"line": 1, "reason": "is nested too deeply"}
    except UnicodeDecodeError:
        said = {"line": 1, "reason": "is no UTF-8"}
    except Exception as fault:  # a mistake of ours is a reason, too
        said = {"line": 1, "reason": f"could not be read ({type(fault).__name__}: {fault})"}
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main()
