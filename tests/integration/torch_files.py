"""What libexec/torch_problem.py says of PyTorch files: which tensors are inputs, what is drawn, what is refused and why.

    python3 -I torch_files.py LIBEXEC FOLDER
"""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])
import torch
import torch_problem
from torch_rows import Refused

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
CLASS = "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n%s\n    def forward(self, %s):\n%s\n"
torch.set_num_threads(1)


def indent(text):
    return "\n".join("        " + line for line in text.split("\n"))


def write(name, text):
    path = os.path.join(sys.argv[2], name)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def describe(text, name="file.py"):
    return torch_problem.describe(write(name, text), "cpu")


def module(init, forward, inputs, arguments="x", before=""):
    text = HEAD + before + CLASS % (indent(init), arguments, indent(forward))
    return text + "def get_inputs():\n    return [%s]\n" % inputs


def names(described):
    return " ".join(json.loads(described["spec"])["inputs"])


def expect(what, wanted, got):
    if wanted != got:
        raise SystemExit("%s: expected %r, got %r" % (what, wanted, got))


def inputs_are(what, wanted, text):
    expect(what, wanted, names(describe(text)))


def refused(what, words, text):
    try:
        got = describe(text)
    except Refused as reason:
        if words not in str(reason) or "\n" in str(reason):
            raise SystemExit("%s: refused with %r, expected %r" % (what, str(reason), words)) from None
        return
    raise SystemExit("%s: not refused: %s" % (what, got["spec"][:300]))


# --- every tensor that matters is an input ---

X = "torch.randn(64, 8)"
inputs_are("a gate that begins at zero", "x gate norm_weight norm_bias up_weight up_bias", module(
    "self.norm = nn.LayerNorm(8); self.up = nn.Linear(8, 8); self.gate = nn.Parameter(torch.zeros(8))",
    "return x + self.gate * self.up(self.norm(x))", X))
inputs_are("a last projection of zeros", "x down_weight up_weight", module(
    "self.down = nn.Linear(8, 2, bias=False); self.up = nn.Linear(2, 8, bias=False); nn.init.zeros_(self.up.weight)",
    "return self.up(self.down(x))", X))
inputs_are("two gates, one behind the other", "x a b w", module(
    "self.a = nn.Parameter(torch.zeros(1)); self.b = nn.Parameter(torch.zeros(1)); self.w = nn.Parameter(torch.randn(8))",
    "return x + self.a * (x + self.b * (x * self.w))", X))
inputs_are("a bias that a relu hides", "x w b", module(
    "self.w = nn.Parameter(torch.randn(8)); self.b = nn.Parameter(torch.full((8,), -1e3))", "return torch.relu(x * self.w + self.b) + x", X))
inputs_are("a plain attribute", "x w", module("self.w = torch.randn(8)", "return x * self.w", X))
inputs_are("layers in a list", "x layers_0_weight layers_0_bias layers_1_weight layers_1_bias", module(
    "self.layers = [nn.Linear(8, 8) for _ in range(2)]", "for each in self.layers:\n    x = torch.relu(each(x))\nreturn x", X))
inputs_are("layers in a dict of lists", "x layers_a_0_weight", module(
    "self.layers = {'a': [nn.Linear(8, 8, bias=False)]}", "return self.layers['a'][0](x)", X))
inputs_are("tensors in a list and a tuple", "x held_0 pair_0 pair_1", module(
    "self.held = [torch.randn(8)]; self.pair = (torch.randn(8), torch.randn(8))",
    "return x * self.held[0] + self.pair[0] * torch.sin(x + self.pair[1])", X))
inputs_are("a global", "x TABLE", module("pass", "return x * TABLE", X, before="TABLE = torch.randn(8)\nUNUSED = torch.randn(8)\n"))
inputs_are("a global layer", "x fc_weight fc_bias", module("pass", "return fc(x)", X, before="fc = nn.Linear(8, 8)\n"))
inputs_are("a closure", "x f_w", module("w = torch.randn(8)\nself.f = lambda x: x * w", "return self.f(x)", X))
inputs_are("a class attribute", "x T", module("pass", "return x * self.T", X).replace("    def __init__", "    T = torch.randn(8)\n    def __init__"))
inputs_are("a default", "x forward_0", module("pass", "return x * w", X, "x, w=torch.randn(8)"))
inputs_are("an object of the file's", "x kept_w", module("self.kept = Kept()", "return x * self.kept.w", X, before="class Kept:\n    def __init__(self): self.w = torch.randn(8)\n"))
inputs_are("an RNN's state", "x i_weight i_bias h", module(
    "self.i = nn.Linear(16, 8); self.h = torch.randn(64, 8)", "self.h = torch.tanh(self.i(torch.cat([x, self.h], 1)))\nreturn self.h", X))
inputs_are("a lazy layer", "x fc_weight fc_bias", module("self.fc = nn.LazyLinear(4)", "return self.fc(x)", X))
told = describe(module("self.w = torch.linspace(0, 1, 8); self.n = nn.BatchNorm1d(8)", "return self.n(x) * self.w", X))
expect("a table is the definition's", {"w": "given"}, told["draws"])
expect("what a batch norm counts is not an input", "x n_weight n_bias w", names(told))
assert any("without effect on the outputs: n.running_mean" in note for note in told["notes"]), told["notes"]
write("beside.py", "import torch\nHIDDEN = torch.randn(8)\ndef act(x): return torch.relu(x) * HIDDEN\n")
inputs_are("a tensor of a file beside it", "x HIDDEN", module("pass", "return act(x)", X, before="from beside import act\n"))

inputs_are("a partial function's", "x f_0 g_weight", module(
    "self.f = functools.partial(torch.mul, torch.randn(8)); self.g = functools.partial(F.linear, weight=torch.randn(8, 8))",
    "return self.g(self.f(x))", X, before="import functools\n"))

refused("numbers that __init__ draws", "is no tensor of it: s is 0.", module("self.s = torch.rand(1).item()", "return x * self.s", X))
refused("numbers of Python's generator", "is no tensor of it: s is 0.", module("import random\nself.s = random.random()", "return x * self.s", X))
refused("numbers that numpy draws", "is no tensor of it: s is [", module("import numpy\nself.s = numpy.random.rand(8)", "return x * torch.tensor(self.s).float()", X))
refused("an architecture that is drawn", "it is built otherwise each time: n is ", module(
    "import random\nself.n = random.randint(1, 10**6)\nself.fc = nn.Linear(8, self.n % 97 + 1)", "return self.fc(x)", X))
refused("numbers that forward draws under its own seed", "under a seed of its own", module("pass", "torch.manual_seed(3)\nreturn x * torch.rand(8)", X))
refused("and from a generator of its own", "under a seed of its own", module("pass", "g = torch.Generator().manual_seed(3)\nreturn x * torch.rand(8, generator=g)", X))
refused("dropout", "is random", module("self.d = nn.Dropout()", "return self.d(x)", X))

# --- what is drawn ---


def draws(what, wanted, text):
    told = describe(text)
    expect(what, wanted, {name: kind for name, kind in told["draws"].items()})
    return told


MASK = "torch.zeros(8, 8).masked_fill(torch.triu(torch.ones(8, 8), 1).bool(), float('-inf'))"
draws("a buffer with infinities", {"mask": "given"}, module("self.register_buffer('mask', %s)" % MASK, "return torch.softmax(x @ x.T[:, :8] + self.mask, -1)" if False else "return torch.softmax(x + self.mask, -1)", "torch.randn(4, 8, 8)"))
draws("an input with infinities", {"m": "own"}, module("pass", "return torch.softmax(x + m, -1)", "torch.randn(8, 8), " + MASK, "x, m"))
told = draws("slopes with infinities", {"m": "mask"}, module("pass", "return torch.softmax(x + m, -1)", "torch.randn(8, 8), torch.randn(8, 8) + " + MASK, "x, m"))
assert all(abs(e) < 100 for e in json.loads(told["spec"])["inputs"]["m"]["range"]), told["spec"]
draws("a positive definite matrix", {"a": "own"}, module(
    "pass", "return torch.linalg.cholesky(a)", "(lambda m: m @ m.transpose(1, 2) + 8 * torch.eye(8))(torch.randn(16, 8, 8))", "a"))
draws("pointers that ascend", {"at": "own", "of": "whole"}, module(
    "pass", "return torch.stack([x[of[i:j].long()].sum(0) for i, j in zip(at[:-1].tolist(), at[1:].tolist())])",
    "torch.randn(32, 8), torch.tensor([0, 3, 4, 9, 16]), torch.randint(0, 32, (16,))", "x, at, of"))
draws("bounds that ascend", {"b": "own"}, module("pass", "return torch.bucketize(x, b) + x", "torch.randn(32, 8), torch.randn(16).sort()[0]", "x, b"))
draws("positions may be any", {"at": "whole"}, module("pass", "return x[at]", "torch.randn(32, 8), torch.arange(32)", "x, at"))
WRITTEN = "out = torch.zeros_like(x)\nout[i] = x\nreturn out"
draws("an order", {"i": "own"}, module("pass", WRITTEN, "torch.randn(64, 8), torch.randperm(64)", "x, i"))
draws("an order of each row", {"i": "own"}, module("pass", "return torch.zeros_like(x).scatter(1, i, x)", X + ", torch.rand(64, 8).argsort(1)", "x, i"))
draws("a few places, none twice", {"i": "own"}, module(
    "pass", "out = c.clone()\nout[i] = x\nreturn out", "torch.randn(16, 8), torch.randn(128, 8), torch.randperm(128)[:16]", "x, c, i"))
draws("places that chance keeps apart", {"i": "whole"}, module("pass", "return x[i]", "torch.randn(4096, 8), torch.randint(0, 4096, (12,))", "x, i"))
draws("places that the file names", {"i": "whole"}, module("pass", "return x[i]", X + ", torch.tensor([3, 1, 0, 2, 5])", "x, i"))
draws("a positive definite matrix that is inverted", {"a": "own"}, module(
    "pass", "return torch.linalg.solve(a, b)", "(lambda m: m @ m.T + 8 * torch.eye(8))(torch.randn(8, 8)), torch.randn(8, 4)", "a, b"))
draws("one that is not", {"a": "symmetric"}, module(
    "pass", "return a @ b", "(lambda m: m + m.T)(torch.randn(8, 8)), torch.randn(8, 4)", "a, b"))
for level in ("-1e9", "torch.finfo(torch.float32).min"):
    draws("a mask of " + level, {"m": "own"}, module("pass", "return torch.softmax(x + m, -1)", "torch.randn(8, 8), torch.zeros(8, 8).masked_fill(torch.rand(8, 8) > 0.5, %s)" % level, "x, m"))
told = draws("labels", {"t": "whole"}, module("pass", "return F.cross_entropy(x, t)", "torch.randn(32, 8), torch.randint(0, 8, (32,))", "x, t"))
expect("a loss is a number", [], json.loads(told["spec"])["outputs"]["out"]["shape"])

# --- rows ---


def dims(text):
    spec = json.loads(describe(text)["spec"])
    return spec.get("dims"), spec.get("where")


expect("a deviation over the rows", ({"B": 64}, "B >= 2"), dims(module("pass", "return x / x.std(0)", X)))
expect("two rows at a time", (None, None), dims(module("pass", "return x.view(-1, 2, 8).sum(1)", X)))
expect("a pool over the rows", (None, None), dims(module("pass", "return F.max_pool1d(x.T[None], 2)[0].T", X)))
expect("three rows and no fewer", ({"B": 64}, "B >= 3"), dims(module("pass", "assert x.shape[0] > 2\nreturn torch.relu(x)", X)))
told = describe(module("self.n = nn.BatchNorm1d(8); self.fc = nn.Linear(8, 8)", "return self.n(self.fc(x))", X))
expect("a batch norm behind a layer", "x n_weight n_bias fc_weight fc_bias", names(told))

expect("as many rows as an index names", (None, None), dims(module("pass", "return x[i]", X + ", torch.randperm(64)", "x, i")))
expect("offsets into all rows", (None, None), dims(module(
    "self.e = nn.EmbeddingBag(100, 8, mode='sum')", "return self.e(i, o)", "torch.randint(0, 100, (40,)), torch.tensor([0, 10, 12, 30])", "i, o")))
expect("two rows in all", ({"B": 2}, None), dims(module("pass", "return torch.softmax(x, -1)", "torch.randn(2, 8)")))
told = describe(module("pass", "return torch.softmax(x, -1)", "torch.randn(1, 8)"))
assert any("the first dimension is 1" in note for note in told["notes"]), told["notes"]
for what, body in (("a mask's places", "return x[x > 0]"), ("what is not zero", "return torch.nonzero(x > 1)"),
                   ("the longest of them", "return x[:, : int(x.abs().max() * 4)]")):
    refused(what, "as the numbers of the inputs are: a kernel writes shapes", module("pass", body, X))
refused("what differs", "output out is 10 or 1,", module("pass", "return torch.unique(x)", "torch.arange(64) % 10"))
inputs_are("a sum over a mask's places", "x m", module("pass", "return x[m].sum()", X + ", torch.rand(64, 8) > 0.5", "x, m"))

# --- forms ---

BODY = "def get_inputs():\n    return [torch.rand(4, 4, 4)]\n"
SCALE = "class %s(nn.Module):\n    def __init__(self, dim, eps=1e-5):\n        super().__init__()\n        self.g = nn.Parameter(torch.ones(dim)); self.eps = eps\n" \
    "    def forward(self, x):\n        return self.g * x / x.norm(dim=-1, keepdim=True).clamp(min=self.eps)\n"
BOOK = BODY + "def get_init_inputs():\n    return [[], {'dim': 4}]\n"
inputs_are("a class of any name", "x g", HEAD + SCALE % "ScaleNorm" + BOOK)
expect("which is", "ScaleNorm", describe(HEAD + SCALE % "ScaleNorm" + BOOK)["binding"]["class"])
inputs_are("named arguments", "x g", HEAD + SCALE % "Model" + BOOK)
PART = "class Part(nn.Module):\n    def forward(self, x):\n        return x * 2\n"
WHOLE = "class Whole(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.p = Part()\n    def forward(self, x):\n        return self.p(x) + 1\n"
inputs_are("one module with its parts", "x", HEAD + PART + WHOLE + BODY)
refused("two modules", "no class is named Model, and these are modules: A, B", HEAD + SCALE % "A" + SCALE % "B" + BOOK)
inputs_are("a list and a map that are the arguments", "x w", HEAD + "class Model(nn.Module):\n    def __init__(self, sizes, named):\n        super().__init__()\n"
    "        self.w = nn.Parameter(torch.randn(named['n'])); self.sizes = sizes\n    def forward(self, x):\n        return x * self.w\n" + BODY + "def get_init_inputs():\n    return [[3], {'n': 4}]\n")
PLAIN = module("pass", "return torch.relu(x)", X)
refused("a backward file", "it asks for a backward pass (Own.backward_fn)", HEAD + "class Own(torch.autograd.Function):\n    backward_fn = None\n" + PART.replace("Part", "Model") + BODY)
told = describe(module("pass", "return F.relu(x) * scale", X + ", 0.5", "x, scale"))
expect("a number stays one", {"value": 0.5}, told["binding"]["arguments"][1])
told = describe(module("pass", "return torch.softmax(x.masked_fill(m, v), -1)", X + ", torch.rand(64, 8) > 0.5, float('-inf')", "x, m, v"))
expect("and one that is not finite", {"number": "-inf"}, told["binding"]["arguments"][2])
GIVEN = "def get_inputs():\n    return %s\n"
BY_NAME = "x=torch.randn(64, 8), y=torch.ones(64, 8)"
for what, arguments, given in (
    ("named inputs", "x, y", "dict(%s)" % BY_NAME),
    ("in another order", "x, y", "dict(y=torch.ones(64, 8), x=torch.randn(64, 8))"),
    ("a list and names", "x, y", "[[torch.randn(64, 8)], dict(y=torch.ones(64, 8))]"),
    ("arguments that have names alone", "*, x, y", "dict(%s)" % BY_NAME),
    ("and in a list", "*, x, y", "[torch.randn(64, 8), torch.ones(64, 8)]"),
    ("one that is left out", "x, scale=2.0, *, y", "dict(%s)" % BY_NAME),
):
    told = describe(HEAD + CLASS % ("        pass", arguments, "        return x - y") + GIVEN % given)
    expect(what, "x y", names(told))
    expect(what + ", which is which", [0.5, 1.5], json.loads(told["spec"])["inputs"]["y"]["range"])
refused("other names", "cannot be called with: missing a required argument: 'y'", HEAD + CLASS % ("        pass", "x, y", "        return x - y") + GIVEN % "dict(x=torch.randn(64, 8), z=0)")
inputs_are("a get_inputs of the class", "x", HEAD + CLASS % ("        pass", "x", "        return x * 2") + "    @staticmethod\n    def get_inputs():\n        return [torch.randn(64, 8)]\n")
told = describe(module("pass", "return x + e.sum()", X + ", torch.empty(0, 4)", "x, e"))
expect("a tensor without elements", {"empty": [0, 4], "torch": "float32"}, told["binding"]["arguments"][1])
refused("an output without elements", "output out has no elements", module("pass", "return x[:0]", X))
refused("one that is not dense", "sparse, nested or quantized", module("pass", "return x.to_dense()", "torch.eye(4).to_sparse()"))
refused("a list of tensors", "argument x holds a Tensor", module("pass", "return x[0]", "[torch.rand(4), torch.rand(4)]"))
refused("a batch of none", "no input has elements: x is 0x8", module("pass", "return x * 2", "torch.randn(0, 8)"))
refused("a product of none", "no input has elements: a is 8x0, b is 0x4", module("pass", "return a @ b", "torch.randn(8, 0), torch.randn(0, 4)", "a, b"))
refused("one inside the module", "tensor s is a sparse", module("self.s = torch.eye(64).to_sparse()", "return torch.sparse.mm(self.s, x)", X))
refused("one of several lengths", "input 0 is a sparse, nested", module("pass", "return x", "torch.nested.nested_tensor([torch.randn(3), torch.randn(4)])"))
refused("whole numbers beyond int32", "input x holds numbers beyond int32", module("pass", "return x", "torch.randint(0, 2**40, (64,))"))
refused("and such results", "output out holds numbers beyond int32", module("pass", "return x * 2**33", "torch.randint(1, 9, (64,))"))
refused("no constructor of its base's", "does not call super().__init__()", module("pass", "return x", X).replace("super().__init__()", "pass"))
refused("an object", "something of type O, expected tensors", module("pass", "return O()", X, before="class O: pass\n"))
refused("nothing", "returned None, expected tensors: is a `return` missing?", module("pass", "x * 2", X))
inputs_are("no arguments, said so", "x", PLAIN + "def get_init_inputs():\n    return None\n")
told = describe(module("pass", "return F.interpolate(x, size=size) * s", "torch.randn(2, 3, 8, 8), (16, 16), numpy.float32(0.5)", "x, size, s", before="import numpy\n"))
expect("constants", [{"value": (16, 16), "tuple": True}, {"value": 0.5}], told["binding"]["arguments"][1:])
for kind in ("int8", "uint8", "int16"):
    told = describe(module("pass", "return (x * 2).to(torch.int8), x.float()", "torch.randint(0, 100, (64, 8), dtype=torch.%s)" % kind))
    spec = json.loads(told["spec"])
    expect(kind, ("int32", "int32", "float32"), (spec["inputs"]["x"]["dtype"], spec["outputs"]["out0"]["dtype"], spec["outputs"]["out1"]["dtype"]))
    assert "x is %s in the file, int32 here" % kind in told["notes"], told["notes"]
told = describe(module("self.l = nn.LSTM(8, 4, batch_first=True)", "return self.l(x)", "torch.randn(4, 6, 8)"))
expect("a tuple in a tuple", ["out0", "out1_0", "out1_1"], list(json.loads(told["spec"])["outputs"]))
form = told["binding"]["returns"]
expect("and its form", ("tuple", "float32", "tuple", 2), (form["kind"], form["items"][0]["torch"], form["items"][1]["kind"], len(form["items"][1]["items"])))
told = describe(module("pass", "return {'a': x, 'more': {'b': x.max(dim=1)}, 'none': None}", X))
expect("a dict in a dict", ["a", "more_b_0", "more_b_1"], list(json.loads(told["spec"])["outputs"]))
for body in ("x.requires_grad_(True)\ntorch.tanh(x).sum().backward()\nreturn x.grad",
             "x = x.requires_grad_(True)\nreturn torch.autograd.grad(torch.tanh(x).sum(), x)"):
    told = describe(module("pass", body, X))
    expect("gradients in forward", (True, "x"), (told["binding"]["gradients"], names(told)))
expect("and none", False, describe(PLAIN)["binding"]["gradients"])
if not torch.cuda.is_available():
    for inputs in ("torch.randn(64, 8).cuda()", "torch.randn(64, 8, device='cuda')", "torch.randn(64, 8).to('cuda:0')", "torch.randn(64, 8, device=torch.device('cuda', 0))"):
        inputs_are("on a GPU in the file", "x fc_weight fc_bias", module("self.fc = nn.Linear(8, 8, device='cuda').cuda()", "return self.fc(x)", inputs))
    told = describe(module("pass", "return torch.relu(x)", "torch.randn(65536, 1024, device='cuda')"))
    expect("large ones there", {"B": 65536}, json.loads(told["spec"])["dims"])
inputs_are("a module that was made", "input p_0_weight p_0_bias", HEAD + "Model = nn.Sequential(nn.Linear(4, 2), nn.ReLU())\n" + BODY)
inputs_are("and of any name", "input p_0_weight p_0_bias", HEAD + "net = nn.Sequential(nn.Linear(4, 2), nn.ReLU())\n" + BODY)
inputs_are("one that is compiled", "x fc_weight fc_bias", PLAIN.replace("nn.Module", "torch.jit.ScriptModule").replace(
    "    def forward", "    @torch.jit.script_method\n    def forward").replace("pass", "self.fc = nn.Linear(8, 8)").replace("torch.relu(x)", "self.fc(x)"))
told = describe(module("self.fc = nn.Linear(8, 8)\nself.held = threading.Lock()", "return self.fc(x)", X, before="import threading\n"))
expect("what cannot be copied", (False, "x fc_weight fc_bias"), (told["binding"]["mode_matters"], names(told)))
inputs_are("a script that reads its arguments", "x", PLAIN + "import argparse\nargparse.ArgumentParser().parse_args()\n")
inputs_are("and ends itself", "x", PLAIN + "raise SystemExit\n")
for said, wanted in (("", "ignore"), ("non_finite = 'reference'\n", "reference"), ("non_finite = 'propagate'\n", "propagate")):
    expect("NaN and infinity", wanted, json.loads(describe(said + module("pass", "return torch.relu(x)", X))["spec"])["non_finite"])
refused("another word for it", "expected non_finite = ", "non_finite = True\n" + module("pass", "return torch.relu(x)", X))
inputs_are("a byte order mark", "x", b"\xef\xbb\xbf" + PLAIN.encode())
inputs_are("no-break and unseen spaces, lines of another system", "x", PLAIN.replace("    ", "\u00a0   ").replace("relu", "relu\u200b").replace("\n", "\r\n"))
inputs_are("UTF-16", "x", PLAIN.encode("utf-16"))
print("fine")
