"""What a size decides, and loops whose steps are known: parts of a wrapper that have several ways."""

import ast

from triton_import_calls import truth
from triton_import_values import Sym, Unknown, merge


class Branches:
    """A part of Walk."""

    def loop(self, node, scope):
        """Over what is known, one by one."""
        items = self.value(node.iter, scope)
        ends = any(isinstance(each, (ast.Break, ast.Continue)) for each in ast.walk(node))
        if not isinstance(items, tuple) or len(items) > 64 or ends or node.orelse:
            self.refuse("a for statement is not followed", node)
        for item in items:
            self.assign(node.target, item, scope)
            self.run(node.body, scope)

    def branch(self, node, scope):
        if isinstance(node.body[-1], (ast.Raise, ast.Assert)) and not node.orelse:
            return
        test = self.value(node.test, scope)
        if isinstance(test, Unknown) and test.what.startswith("a size") and self.both_ways(node, scope):
            return
        if isinstance(test, (Unknown, Sym)):
            what = test.what if isinstance(test, Unknown) else "a size"
            if isinstance(test, Sym) and isinstance(node.test, ast.Name):
                what = "a parameter without a default"
            self.refuse(f"which way `if {ast.unparse(node.test)[:60]}` goes depends on {what}", node)
        self.run(node.body if truth(test) else node.orelse, scope)

    def both_ways(self, node, scope):
        """What a size decides, where it is no more than a number: whoever uses that says whether it may."""
        simple = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.If, ast.Pass, ast.Raise)
        if any(isinstance(each, ast.stmt) and not isinstance(each, simple) or isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store)
               for part in node.body + node.orelse for each in ast.walk(part)):  # fmt: skip
            return False
        ways, bases, launched = [dict(scope), dict(scope)], list(self.bases), len(self.launches)
        for way, body in zip(ways, (node.body, node.orelse)):
            self.run(body, way)
        if self.bases != bases or len(self.launches) != launched:
            return False
        for name in {**ways[0], **ways[1]}:
            values = [way.get(name, Unknown(name)) for way in ways]
            made = values[0] if values[0] is values[1] else merge(*reversed(values))
            known = made is not None or None in values and values[0] is values[1]
            scope[name] = made if known else Unknown(f"a size, by `if {ast.unparse(node.test)[:60]}`")
        return True
