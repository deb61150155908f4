"""python3 test.py: ModelNew against the original module, on a CUDA device: several seeds and inputs,
within eight times the original's own error against float64 (and below that of a lower precision);
in 64 calls of the kernel as it was loaded once, on inputs that change from call to call; on another stream; captured as a CUDA graph; with a state_dict taken over; and the times of both."""

import copy
import importlib
import inspect
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
package = importlib.import_module(os.path.basename(HERE))
reference = package.reference
original = package.ModelNew.__bases__[0]
BINDING = package.BINDING
failed = []


def say(truth, name):
    print("%s %s" % ("ok    " if truth else "FAILED", name), flush=True)
    if not truth:
        failed.append(name)


def strict():
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False


def bound(function, given, *own):
    """How get_init_inputs' or get_inputs' result calls a function: a list, {name: value}, or [[positional], {name: value}]."""
    named = given if isinstance(given, dict) else {}
    positional = [] if named else list(given)
    if len(positional) == 2 and isinstance(positional[0], (list, tuple)) and isinstance(positional[1], dict):
        try:
            return inspect.signature(function).bind(*own, *positional[0], **positional[1])
        except TypeError:
            pass  # a list and a dict are its arguments
    return inspect.signature(function).bind(*own, *positional, **named)


def made(kind, seed):
    torch.manual_seed(seed)
    given = bound(original, getattr(reference, "get_init_inputs", list)() or [])
    torch.manual_seed(seed)
    return kind(*given.args, **given.kwargs).cuda()


def drawn(seed):
    """get_inputs, moved so that floats have both signs where the kernel was proved on those."""
    torch.manual_seed(seed)
    plan = package.kernel.shapes.plan
    ranges = {tensor["name"]: tensor.get("range") for tensor in plan["inputs"]}
    given = bound(original.forward, reference.get_inputs(), None)
    given.apply_defaults()
    arguments = list(given.arguments.values())[1 : 1 + len(BINDING["arguments"])]
    for i, (value, entry) in enumerate(zip(arguments, BINDING["arguments"])):
        if "input" not in entry:
            continue
        value = value.cuda()
        if value.is_floating_point() and ranges[entry["input"]] is None and seed % 2:
            value = torch.randn_like(value)
        arguments[i] = value
    return arguments


def call(model, arguments):
    accepted = inspect.signature(original.forward).parameters.values()
    named = [p.name for p in accepted if p.kind == p.KEYWORD_ONLY]
    count = len(arguments) - len(named)
    return model(*arguments[:count], **dict(zip(named, arguments[count:])))


def called(model, arguments):
    with torch.enable_grad() if BINDING.get("gradients") else torch.no_grad():
        returned = call(model, [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments])
    return tensors_of(returned)


def tensors_of(returned):
    if returned is None or isinstance(returned, torch.Tensor):
        return [] if returned is None else [returned.detach()]
    items = returned.values() if isinstance(returned, dict) else returned
    return [tensor for item in items for tensor in tensors_of(item)]


def in_float64(model, arguments):
    wide = copy.deepcopy(model).double()
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        floats = [a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in arguments]
        return called(wide, floats)
    except RuntimeError as fault:
        if "memory" in str(fault):
            print("not compared with float64: out of memory")
        return called(model, arguments)
    finally:
        torch.set_default_dtype(usual)


def error(values, exact):
    exact = exact.double()
    size = exact.norm()
    return float((values.double() - exact).norm() / (size if size > 0 else 1.0))


def compare(name, model, new, arguments):
    exact = in_float64(model, arguments)
    own, ours = called(model, arguments), called(new, arguments)
    torch.cuda.synchronize()
    say(len(own) == len(ours), "%s: as many outputs" % name)
    for i, (a, b, e) in enumerate(zip(own, ours, exact)):
        say(a.shape == b.shape and a.dtype == b.dtype, "%s: output %d has the shape and dtype" % (name, i))
        if a.is_floating_point():
            bound = 8 * max(error(a, e), torch.finfo(a.dtype).eps)
            if torch.equal(a.double(), e.double()):
                bound = 64 * torch.finfo(a.dtype).eps
            say(error(b, e) <= bound, "%s: output %d: error %.2e, at most %.2e" % (name, i, error(b, e), bound))
        else:
            say(torch.equal(a, b), "%s: output %d is equal" % (name, i))


def steady(model, new, calls=64):
    """Call after call, each on other inputs than the one before."""
    sets = [drawn(seed) for seed in (15, 16, 17, 18)]
    expected = [called(model, arguments) for arguments in sets]
    bounds = []
    for arguments, own in zip(sets, expected):
        exact = in_float64(model, arguments)
        bounds.append([8 * max(error(a, e), torch.finfo(a.dtype).eps) if a.is_floating_point() else 0.0
                       for a, e in zip(own, exact)])
        own[:] = exact
    for call in range(calls):
        at = call % len(sets)
        for a, e, bound in zip(called(new, sets[at]), expected[at], bounds[at]):
            wrong = error(a, e)
            if not wrong <= max(bound, 64 * torch.finfo(a.dtype).eps if a.is_floating_point() else 0.0):
                say(False, "call %d of %d: error %.2e" % (call + 1, calls, wrong))
                return
    say(True, "right in %d calls on changing inputs" % calls)


def milliseconds(model, arguments):
    times = []
    with torch.no_grad():
        for turn in range(23):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call(model, arguments)
            end.record()
            torch.cuda.synchronize()
            times += [begin.elapsed_time(end)] if turn >= 3 else []
    return sorted(times)[len(times) // 2]


def main():
    if not torch.cuda.is_available():
        print("skipped: no CUDA device")
        return 77
    strict()
    model, new = made(original, 1), made(package.ModelNew, 2)
    new.load_state_dict(model.state_dict())
    say(True, "a state_dict of the original loads")
    for seed in (11, 12, 13):
        compare("seed %d" % seed, model, new, drawn(seed))
    steady(model, new)
    arguments = drawn(14)
    expected = called(new, arguments)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        elsewhere = called(new, arguments)
    side.synchronize()
    say(all(torch.equal(a, b) for a, b in zip(expected, elsewhere)), "the same on another stream")
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        captured = called(new, arguments)
    for tensor in captured:
        tensor.fill_(0)
    graph.replay()
    torch.cuda.synchronize()
    say(all(torch.equal(a, b) for a, b in zip(expected, captured)), "captured as a CUDA graph")
    print("original %.4f ms, kernel %.4f ms (call by call, warm caches)" % (
        milliseconds(model, arguments), milliseconds(new, arguments)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
