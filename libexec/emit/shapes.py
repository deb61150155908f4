"""What plan.json says of a kernel: its tensors, its dims, and how shapes follow from them. The
standard library alone. Expressions are integers, written so that Python reads them."""

import importlib.util
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))


def div(a, b):
    """As C divides: toward zero."""
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def rem(a, b):
    return a - b * div(a, b)


def ceil_div(a, b):
    return -(-a // b)


def round_up(a, b):
    return ceil_div(a, b) * b


def next_pow2(a):
    return 1 << max(0, a - 1).bit_length() if a > 1 else 1


FUNCTIONS = {
    "__builtins__": {},
    "bool": bool,
    "int": int,
    "min": min,
    "max": max,
    "div": div,
    "rem": rem,
    "ceil_div": ceil_div,
    "round_up": round_up,
    "next_pow2": next_pow2,
}


class Shapes:
    """plan.json, with its expressions compiled once."""

    def __init__(self, path=None):
        with open(path or os.path.join(HERE, "plan.json"), encoding="utf-8") as file:
            self.plan = json.load(file)
        self.known = {}

    def number(self, text, scope):
        code = self.known.get(text)
        if code is None:
            code = self.known[text] = compile(text, "plan.json", "eval")
        return int(eval(code, FUNCTIONS, scope))

    def extents(self, tensor, scope):
        return tuple(self.number(text, scope) for text in tensor["shape"])

    def dims(self, shapes, given):
        """All dims, from the inputs' shapes where one is a dim's bare name, from `given`, or from
        the numbers that the kernel was timed at. ValueError where they do not agree."""
        scope = {}
        for dim in self.plan["dims"]:
            if dim["value"] is None:
                scope[dim["name"]] = given.get(dim["name"], dim["default"])
        for tensor, shape in zip(self.plan["inputs"], shapes):
            for text, extent in zip(tensor["shape"], shape):
                if text in scope and text not in given:
                    scope[text] = int(extent)
        for dim in self.plan["dims"]:
            if dim["value"] is not None:
                scope[dim["name"]] = self.number(dim["value"], scope)
        for tensor, shape in zip(self.plan["inputs"], shapes):
            if tuple(shape) != self.extents(tensor, scope):
                raise ValueError(
                    "%s has shape %s, expected %s at %s"
                    % (tensor["name"], tuple(shape), self.extents(tensor, scope), scope)
                )
        where = self.plan["where"]
        if min(scope.values(), default=1) < 1 if where is None else not self.number(where, scope):
            raise ValueError("the kernel is not for %s" % scope)
        return scope

    def beyond(self, scope):
        """Why the kernel does not compute a call at these dims, where it was not checked; None: it does."""
        limits = self.plan["checked_up_to"] or {}
        if all(scope[name] <= most for name, most in limits.items()):
            return None
        words = ", ".join("%s=%d" % each for each in limits.items())
        return "the kernel was checked up to %s and no further" % words

    def valid_tune(self, scope):
        where = self.plan["tune_where"]
        return where is None or bool(self.number(where, scope))

    def definition(self):
        """The function of reference.py; None where the definition is no Python function."""
        path = os.path.join(HERE, "reference.py")
        if not os.path.exists(path):
            return None
        spec = importlib.util.spec_from_file_location("reference", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, self.plan["reference"])
