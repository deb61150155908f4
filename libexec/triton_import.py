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
from triton_import_examples import Examples  # noqa: E402
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
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Subscript)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in kernels
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
            return node.lineno, f"launches {name}, which is no @triton.jit function at the top level of this file"
    return 1, "nothing launches a kernel: no function has a kernel[grid](...)"


def choose(tree, kernels, wanted):
    """The one function that launches."""
    found = wrappers(tree, kernels)
    if not kernels:
        raise Refused(1, "there is no @triton.jit function at its top level")
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


def check_benchmarks(function):
    """What times or tests is no wrapper."""
    for decorator in function.decorator_list:
        if "perf_report" in name_of(decorator):
            raise Refused(function.lineno, "what launches is a benchmark")


def read(path, wanted, problem):
    """What it is, as a map."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if re.search(r'\A\s*"""---\s*$', text, re.M):
        raise Refused(1, "it has a front matter: it is a candidate already")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refused(getattr(error, "lineno", None) or 1, f"is no Python: {getattr(error, 'msg', error)}")
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    kernels = {name: node for name, node in functions.items() if is_jit(node)}
    name, function = choose(tree, kernels, wanted)
    check_benchmarks(function)
    hosts = {each: node for each, node in functions.items() if each not in kernels}
    walk = Walk(tree, functions, kernels, problem, Examples(tree, hosts, function, name))
    walk.call_wrapper(function, "." in name)
    writer = Writer(text, tree, walk)
    file = re.sub(r"[^ -~]", "?", os.path.basename(path))  # a comment's: no name ends its line
    source = writer.source(file, name)
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
    json.dump(said, sys.stdout)


if __name__ == "__main__":
    main()
