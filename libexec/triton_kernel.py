"""One kernel of a Triton candidate, in two processes (triton_compile.py): its module's text to Triton's first
intermediate language, which is text, and from there to a cubin.
"""

import linecache
import os
import re
import sys
import traceback
import types

NAME = "candidate.py"


class Wrong(Exception):
    """The candidate's fault: line and words."""


def fail(line, message):
    raise Wrong(line, str(message))


def tell(wrong):
    """One error; the first lines of a long one."""
    line, message = wrong.args
    lines = message.strip().splitlines() or ["failed"]
    print(f"{NAME}:{line}: error: {lines[0][:400]}", file=sys.stderr)
    for more in lines[1:12]:
        print(f"  {more[:200]}", file=sys.stderr)
    sys.stderr.flush()


def line_in(error):
    """The last line of the candidate's own in a traceback."""
    if isinstance(error, SyntaxError) and error.filename == NAME:
        return error.lineno or 1
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == NAME]
    return lines[-1] if lines else 1


# ---- the front: from a module to text


def load(source):
    """The candidate's module. There is no file of it: whoever looks for its lines finds them here."""
    module = types.ModuleType("candidate")
    module.__file__ = NAME
    sys.modules["candidate"] = module
    linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)
    try:
        exec(compile(source, NAME, "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:  # also sys.exit()
        fail(line_in(error), f"{type(error).__name__}: {error}")
    return module


def start_of(function):
    """The line where a jit function begins, decorators included."""
    return getattr(function, "starting_line_number", 1)


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


def source_of(function, names, launch, variant, constexprs):
    """What Triton compiles, with an argument that is one folded into the code, as its launcher does."""
    from triton.compiler import ASTSource

    position = {parameter.name: i for i, parameter in enumerate(function.params)}
    signature = {parameter.name: "constexpr" for parameter in function.params}
    values, attrs = dict(constexprs), {}
    for name, kind, known in zip(names, launch["args"], variant):
        if kind.startswith("tensordesc"):
            signature[name] = kind
            continue
        if kind != "int":
            signature[name] = "*" + kind
        elif known == "1":
            values[name] = 1
        else:
            signature[name] = "i64" if known.startswith("64") else "i32"
        if kind != "int" or known.endswith("16"):
            attrs[(position[name],)] = [["tt.divisibility", 16]]
    return ASTSource(fn=function, signature=signature, constexprs=values, attrs=attrs)


def line_of_source(text):
    """Where a function's text begins in the file: functions that are called have a text of their own."""
    head = text.splitlines()[0].strip() if text.strip() else ""
    for number, line in enumerate(linecache.getlines(NAME), 1):
        if head and line.strip() == head:
            return number
    return 1


def explain(error, function):
    """The line of an error of Triton's own, which counts from the function's `def`."""
    deepest = error
    while deepest.__cause__ is not None and hasattr(deepest.__cause__, "node"):
        deepest = deepest.__cause__
    line = start_of(function)
    node = getattr(deepest, "node", None)
    if node is not None:
        line = line_of_source(getattr(deepest, "src", None) or "") + getattr(node, "lineno", 1) - 1
    else:
        inside = line_in(error)
        line = inside if inside > 1 else line
    message = getattr(deepest, "error_message", None) or str(deepest.__cause__ or deepest)
    fail(line, f"{type(deepest).__name__}: {message}")


def context_of(backend):
    from triton._C.libtriton import ir

    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    return ir, context


def to_text(source, target, backend, options):
    options = backend.parse_options(dict(options))
    _, context = context_of(backend)
    generators, modules = backend.get_codegen_implementation(options), backend.get_module_map()
    return str(source.make_ir(target, options, generators, modules, context))


def front(request, target, backend):
    """The text of every launch's variants."""
    from triton.runtime.jit import JITFunction

    module = load(request["source"])
    texts = []
    for launch in request["launches"]:
        function = find_entry(module, launch["entry"], JITFunction)
        names, constexprs = bind(function, launch)
        for variant in launch["variants"]:
            try:
                source = source_of(function, names, launch, variant, constexprs)
                texts.append(to_text(source, target, backend, launch["options"]))
            except BaseException as error:
                explain(error, function)
    return {"texts": texts}


# ---- the back: from text to a cubin


def threads_of(ptx, metadata):
    """A block's: more than num_warps say where Triton adds warps of its own."""
    found = re.search(r"\.reqntid\s+(\d+)", ptx if isinstance(ptx, str) else ptx.decode())
    return int(found.group(1)) if found else 32 * int(metadata["num_warps"])


def back(text, entry, options, target, backend, folder):
    """(cubin, what is to be known of it): triton.compile() without its cache."""
    path, ptx = os.path.join(folder, "kernel.ttir"), ""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    options = backend.parse_options(dict(options))
    ir, context = context_of(backend)
    module = ir.parse_mlir_module(path, context)
    module.context = context
    stages, metadata = {}, {"hash": "", "target": target, **options.__dict__}
    try:
        from triton.backends.compiler import Language

        backend.add_stages(stages, options, Language.TRITON)
    except ImportError:
        backend.add_stages(stages, options)
    for stage, run in stages.items():
        module = run(module, metadata)
        ptx = module if stage == "ptx" else ptx
    told = {
        "name": metadata["name"],
        "shared": int(metadata["shared"]),
        "threads": threads_of(ptx, metadata),
        "num_ctas": int(metadata["num_ctas"]),
        "scratch": int(metadata.get("global_scratch_size") or 0),
        "scratch_align": int(metadata.get("global_scratch_align") or 1),
        "profile": int(metadata.get("profile_scratch_size") or 0),
        "cooperative": bool(metadata.get("launch_cooperative_grid")),
        "maps": [[int(each["swizzle"]), *map(int, each["block_size"])] for each in metadata.get("tensordesc_meta") or []],
    }
    return module, told
