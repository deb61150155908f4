"""Compiles the kernels of a Triton candidate, in a sandbox: the candidate's module code runs here.

    triton_compile.py CANDIDATE REQUEST FOLDER

REQUEST is JSON: arch (90), and launches: entry, args (a pointer's element type, or "int"), constexprs, options
(num_warps, ...), variants: for each a list of what is known of each argument: "" (nothing), "16" (a multiple of 16),
"1" (it is one), "64" (it needs 64 bits), "" for pointers, which are always multiples of 16. Writes FOLDER/0.cubin and
so on, in the launches' order, a launch's variants one after the other, and FOLDER/report.json, which whoever reads it
does not believe. What is wrong with the candidate goes to stderr as "candidate.py:LINE: error: ...".
"""

import importlib.util
import json
import os
import re
import shutil
import sys
import time
import traceback
import warnings

NAME = "candidate.py"


def replace(old, new):
    """Triton's cache moves files from folder to folder, which Landlock does not permit."""
    shutil.copyfile(old, new)
    os.unlink(old)


def fail(line, message):
    """One error; the first lines of a long one."""
    lines = str(message).strip().splitlines() or ["failed"]
    print(f"{NAME}:{line}: error: {lines[0][:400]}", file=sys.stderr)
    for more in lines[1:12]:
        print(f"  {more[:200]}", file=sys.stderr)
    sys.exit(1)


def line_in(error, path):
    """The last line of the candidate's own in a traceback."""
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno or 1
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines else 1


def load(path):
    """The candidate's module."""
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # also sys.exit()
        fail(line_in(error, path), f"{type(error).__name__}: {error}")
    return module


def find_entry(module, name, kind):
    """The kernel itself, under @triton.autotune and @triton.heuristics too."""
    entry = getattr(module, name, None)
    if entry is None:
        fail(1, f"the launch names {name}, which the source does not define")
    if not isinstance(entry, kind) and isinstance(getattr(entry, "fn", None), object) and hasattr(entry, "fn"):
        fail(
            start_of(entry.fn),
            f"{name} has a decorator besides @triton.jit ({type(entry).__name__}): put its configurations into "
            "`tune`, its heuristics into `constexpr`, and take it off",
        )
    if not isinstance(entry, kind):
        fail(1, f"the launch names {name}, which is no @triton.jit function")
    return entry


def start_of(function):
    """The line where a jit function begins, decorators included."""
    return getattr(function, "starting_line_number", 1)


def bind(function, launch):
    """Which parameter each argument and constexpr is for; (names of arguments, constexprs)."""
    constexprs, taken, line = launch["constexprs"], {}, start_of(function)
    names = []
    for parameter in function.params:
        if parameter.is_constexpr:
            if parameter.name in constexprs:
                taken[parameter.name] = constexprs[parameter.name]
            elif not parameter.has_default:
                fail(
                    line,
                    f"{launch['entry']}: nothing is said of its constexpr {parameter.name}: give it in `constexpr`, "
                    "or name a tune parameter so",
                )
            else:
                taken[parameter.name] = parameter.default
        else:
            names.append(parameter.name)
    for name in launch["said"]:
        if name not in taken:
            fail(line, f"{launch['entry']} has no parameter {name}: tl.constexpr")
    if len(names) != len(launch["args"]):
        fail(line, f"{launch['entry']}: args has {len(launch['args'])} names, but the function takes {len(names)}")
    return names, taken


def source_of(ast_source, function, names, launch, variant, constexprs):
    """What triton.compile() takes, with an argument that is one folded into the code, as Triton's launcher does."""
    position = {parameter.name: i for i, parameter in enumerate(function.params)}
    signature = {parameter.name: "constexpr" for parameter in function.params}
    values, attrs = dict(constexprs), {}
    for name, kind, known in zip(names, launch["args"], variant):
        if kind != "int":
            signature[name] = "*" + kind
        elif known == "1":
            values[name] = 1
        else:
            signature[name] = "i64" if known.startswith("64") else "i32"
        if kind != "int" or known.endswith("16"):
            attrs[(position[name],)] = [["tt.divisibility", 16]]
    return ast_source(fn=function, signature=signature, constexprs=values, attrs=attrs)


def explain(error, function, path):
    """The line of an error of Triton's own, which counts from the function's `def`."""
    deepest = error
    while deepest.__cause__ is not None and hasattr(deepest.__cause__, "node"):
        deepest = deepest.__cause__
    line = start_of(function)
    node = getattr(deepest, "node", None)
    if node is not None:
        text = getattr(deepest, "src", None) or ""
        line = line_of_source(text, path) + getattr(node, "lineno", 1) - 1
    else:
        inside = line_in(error, path)
        line = inside if inside > 1 else line
    message = getattr(deepest, "error_message", None) or str(deepest.__cause__ or deepest)
    fail(line, f"{type(deepest).__name__}: {message}")


def line_of_source(text, path):
    """Where a function's text begins in the file: functions that are called have a text of their own."""
    head = text.splitlines()[0].strip() if text.strip() else ""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if head and line.strip() == head:
                return number
    return 1


def compile_all(path, request, folder):
    """Every launch's variants."""
    begun = time.monotonic()
    warnings.simplefilter("ignore")
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.runtime.jit import JITFunction

    build, target = triton.compile, GPUTarget("cuda", request["arch"], 32)
    imported = time.monotonic()
    module = load(path)
    kernels = []
    for launch in request["launches"]:
        function = find_entry(module, launch["entry"], JITFunction)
        names, constexprs = bind(function, launch)
        for variant in launch["variants"]:
            try:
                made = build(
                    source_of(ASTSource, function, names, launch, variant, constexprs),
                    target=target,
                    options=dict(launch["options"]),
                )
            except SystemExit:
                raise
            except BaseException as error:
                explain(error, function, path)
            with open(os.path.join(folder, f"{len(kernels)}.cubin"), "wb") as file:
                file.write(made.asm["cubin"])
            meta = made.metadata
            kernels.append(
                {
                    "name": meta.name,
                    "shared": int(meta.shared),
                    "threads": threads_of(made.asm["ptx"], meta),
                    "num_ctas": int(meta.num_ctas),
                    "scratch": int(meta.global_scratch_size),
                    "scratch_align": int(meta.global_scratch_align),
                    "profile": int(getattr(meta, "profile_scratch_size", 0) or 0),
                    "tmem": int(getattr(meta, "tmem_size", 0) or 0),
                    "cooperative": bool(meta.launch_cooperative_grid),
                    "descriptors": len(getattr(meta, "tensordesc_meta", None) or []),
                }
            )
    report = {
        "version": triton.__version__,
        "import_ms": 1e3 * (imported - begun),
        "compile_ms": 1e3 * (time.monotonic() - imported),
        "kernels": kernels,
    }
    with open(os.path.join(folder, "report.json"), "w", encoding="utf-8") as file:
        json.dump(report, file)


def threads_of(ptx, meta):
    """A block's: more than num_warps say where Triton adds warps of its own."""
    found = re.search(r"\.reqntid\s+(\d+)", ptx if isinstance(ptx, str) else ptx.decode())
    return int(found.group(1)) if found else 32 * int(meta.num_warps)


def main():
    os.replace = replace
    path, request, folder = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
    with open(request, encoding="utf-8") as file:
        compile_all(path, json.load(file), folder)


main()
