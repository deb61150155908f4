"""Is what a numpy function or one in C computes a problem that ships? The child of src/eval/problem/plain.c.

Started as `python3 -I plain_shipped.py` inside the sandbox: one request, a line of JSON on stdin, one answer on stdout.

    {"file", "function", "name", "library": PATH or null, "inputs", "outputs", "dims", "shapes", "shipped"}

The answer is what shipped_match.find() finds, or null. `library` is a C definition, built: `kernel`.
"""

import ctypes
import json
import math
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

ELEMENTS_MOST, SMALL = 1 << 22, 1 << 13
POINTED_TO = {"float32": "float32", "float64": "float64"}


def from_library(request, match):
    import numpy as np

    kernel = ctypes.CDLL(request["library"]).kernel
    kernel.restype = None

    def run(size, values):
        tensors = [value.astype(POINTED_TO[t["dtype"]]) for t, value in zip(request["inputs"], values)]
        outputs = []
        for tensor in request["outputs"]:
            shape = [match.evaluate(text, size) for text in tensor["shape"]]
            outputs.append(np.zeros(shape, POINTED_TO[tensor["dtype"]]))
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in tensors + outputs]
        kernel(*pointers, *(ctypes.c_int64(size[name]) for name in request["dims"]))
        return outputs

    return run


def from_function(request):
    import numpy as np
    import reference

    opened = reference.Reference(dict(request, cores=[], threads=1))
    later = opened.parameters[len(request["inputs"]) :]

    def run(size, values):
        with np.errstate(all="ignore"):
            values = [value.astype("float64") for value in values]
            return opened.results(opened.function(*values, **{n: size[n] for n in later if n in size}))

    return run


def elements(request, size, match):
    tensors = request["inputs"] + request["outputs"]
    return sum(math.prod(match.evaluate(text, size) for text in tensor["shape"]) for tensor in tensors)


def main():
    answers = os.dup(1)  # what the definition prints is no answer
    os.dup2(2, 1)
    request = json.loads(sys.stdin.readline())
    found = None
    try:
        import shipped_match as match

        fine = [size for size in request["shapes"] if elements(request, size, match) <= ELEMENTS_MOST]
        # First small ones, for plain loops in Python, and of those where most dims differ.
        fine.sort(key=lambda size: (elements(request, size, match) > SMALL, -len(set(size.values()) - {1})))
        if fine:
            run = from_library(request, match) if request["library"] else from_function(request)
            found = match.find(dict(request, shapes=fine), request["shipped"], run)
    except Exception:  # whoever checks the problem is told what is wrong with it
        pass
    os.write(answers, json.dumps(found).encode() + b"\n")


if __name__ == "__main__":
    main()
