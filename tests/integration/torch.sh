#!/usr/bin/env bash
# A PyTorch file as a problem, with the real torch: problem check, eval, what is refused and what is
# said. Skipped, saying so, where no Python with torch is found.
set -u
twagent=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache
. "${BASH_SOURCE[0]%/*}/helpers.sh"
measured_once
found=
for python in "${TWAGENT_PYTHON-}" "${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/python3}" "$(command -v python3)" /usr/bin/python3; do
    [ -n "$python" ] && "$python" -I -c 'import torch' 2>/dev/null && { found=$python; break; }
done
if [ -z "$found" ]; then
    echo "skipped: no Python with torch"
    exit 77
fi
export TWAGENT_PYTHON=$found

write() { # FILE CONSTRUCTOR FORWARD INPUTS
    cat >"$work/$1.py" <<PY
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        $2

    def forward(self, x, *rest):
        $3


def get_inputs():
    return [$4]
PY
}

write linear 'self.fc = nn.Linear(24, 12)' 'return torch.relu(self.fc(x)) * rest[0], rest[1]' \
    'torch.rand(32, 24), 0.5, None'
cat >"$work/linear.c" <<'C'
void kernel(const float *x, const float *fc_weight, const float *fc_bias, float *out, int64_t B)
{
    for (int64_t b = 0; b < B; b++)
        for (int64_t o = 0; o < 12; o++) {
            float sum = fc_bias[o];
            for (int64_t k = 0; k < 24; k++)
                sum += x[b * 24 + k] * fc_weight[o * 24 + k];
            out[b * 12 + o] = (sum < 0.0f ? 0.0f : sum) * 0.5f;
        }
}
C
# A network: its parameters are inputs, 123 of them with x.
write network 'self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(61))' 'return [x := torch.relu(layer(x)) + x for layer in self.layers][-1] * 0.01' \
    'torch.rand(16, 8)'
/usr/bin/python3 - >"$work/network.c" <<'PY'
names = ["x"] + ["l%d_%s" % (i, kind) for i in range(61) for kind in ("w", "b")]
print("void kernel(%s, float *out, int64_t B)" % ", ".join("const float *" + name for name in names))
print("{\n    for (int64_t b = 0; b < B; b++) {\n        float v[8], n[8];\n        memcpy(v, x + b * 8, sizeof v);")
for i in range(61):
    print("        for (int o = 0; o < 8; o++) {\n            float s = l%d_b[o];\n            for (int k = 0; k < 8; k++)\n"
          "                s += v[k] * l%d_w[o * 8 + k];\n            n[o] = (s < 0 ? 0 : s) + v[o];\n        }\n        memcpy(v, n, sizeof v);" % (i, i))
print("        for (int o = 0; o < 8; o++)\n            out[b * 8 + o] = v[o] * 0.01f;\n    }\n}")
PY
sed -i '1i #include <string.h>' "$work/network.c"
before=$(ls "$work")
"$twagent" problem check "$work/linear.py" >"$work/out" 2>&1; say $? "a linear layer is fit: $(cat "$work/out")"
grep -q 'always 0.5' "$work/out"; say $? "its constant is said"
"$twagent" eval "$work/network.py" "$work/network.c" --unfit --sanitize >"$work/out" 2>&1; say $? "a network of 123 tensors: $(cat "$work/out")"
"$twagent" eval "$work/linear.py" "$work/linear.c" --json >"$work/json" 2>"$work/out"; say $? "a kernel of it is right: $(cat "$work/out")"
grep -q '"baseline": *"eager"' "$work/json"; say $? "against eager: $(cut -c1-300 "$work/json")"
write huge 'pass' 'return torch.relu(x)' 'torch.rand(1 << 22, 8192)'
"$twagent" problem check "$work/huge.py" >"$work/out" 2>&1
grep -q 'at B=4194304, this machine has .*: name a smaller size, huge.py@B=[1-9]' "$work/out"; say $? "of one that is too large a size that would do is told: $(cat "$work/out")"
rm "$work/huge.py"
sed 's/fc_bias\[o\]/0.0f/' "$work/linear.c" >"$work/nobias.c"
"$twagent" eval "$work/linear.py" "$work/nobias.c" >"$work/out" 2>&1; [ $? -eq 1 ]; say $? "one without the bias is not"
sed 's/b < B/b < 32 \&\& b < B + 31/' "$work/linear.c" >"$work/fixed.c"
"$twagent" eval "$work/linear.py" "$work/fixed.c" >"$work/out" 2>&1; [ $? -eq 1 ]; say $? "nor one for a fixed batch"
after=$(ls "$work" | grep -v -e '^out$' -e '^json$' -e '\.c$' -e '^cache$' -e '^store$')
[ "$after" = "$(echo "$before" | grep -v -e '\.c$' -e '^cache$' -e '^store$')" ]; say $? "nothing is written beside the file: $after"

# A file that computes what a shipped problem does begins with its starts; one that is like none is told
# what to do next.
write rows 'pass' 'return torch.softmax(x, dim=-1)' 'torch.rand(6, 4, 512)'
"$twagent" run "$work/rows.py@B=4" --dry-run --no-final --report "$work/report" >"$work/out" 2>&1
grep -q 'rows: .*eager' "$work/out"; say $? "and they are right: $(cat "$work/out")"
write odd 'pass' 'return torch.sin(x) + 0.5 * x' 'torch.rand(16, 64)'
"$twagent" run "$work/odd.py" >"$work/out" 2>&1; [ $? -eq 2 ]; say $? "without any and without a model it is a mistake"
for words in 'nothing to begin a search with' 'twagent problem check .*odd.py' 'void kernel(const float \*x, float \*out, int64_t B)' \
    'twagent eval .*odd.py first.c' 'odd.starts/cpu' -e.--model; do
    grep -q -- "${words#-e.}" "$work/out"; say $? "it is told: $words: $(cat "$work/out")"
done
sed -n '/^void kernel/,/^}/p' "$work/out" >"$work/first.c"
"$twagent" eval "$work/odd.py" "$work/first.c" >"$work/out" 2>&1; [ $? -eq 1 ] && ! grep -q 'does not compile' "$work/out"
say $? "and the skeleton compiles: $(cat "$work/out")"

# A shipped problem beside what PyTorch has for it, where it is asked for (on a GPU a champion always is).
problems=$(dirname "${BASH_SOURCE[0]}")/../../problems
"$twagent" eval softmax@M=64,N=256 "$problems/softmax/baselines/naive.c" --baseline torch >"$work/out" 2>&1
grep -q 'speed-up .*x torch ' "$work/out"; say $? "PyTorch as a baseline: $(cat "$work/out")"
"$found" -I - "$problems" <<'PY'; say $? "every baselines/torch.py computes what its problem does"
import glob, importlib.util, inspect, os, sys
import torch

def load(path):
    spec = importlib.util.spec_from_file_location("loaded", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

shapes = {"matmul_batched": [(3, 5, 7), (3, 7, 4)], "gemv": [(5, 7), (7,)], "attention": [(2, 9, 4)] * 3,
          "attention_fp16": [(2, 9, 4)] * 3, "attention_causal": [(2, 9, 4)] * 3,
          "layernorm": [(5, 16), (16,), (16,)], "rmsnorm": [(5, 16), (16,)],
          "matmul_bias_gelu": [(5, 7), (7, 4), (4,)], "batch_norm": [(2, 6, 9, 8)] + [(6,)] * 4,
          "group_norm": [(2, 6, 9, 8), (6,), (6,)], "depthwise_conv2d": [(2, 6, 9, 8), (6, 3, 3)]}
filters = [(2, 3, 9, 8), (4, 3, 3, 3)]
shapes.update(conv2d=filters, conv2d_bias_relu=filters + [(4,)], conv2d_batchnorm_silu=filters + [(4,)] * 4)
conv = dict(N=2, C=3, H=9, W=8, K=4, R=3, S=3, PAD=1, STRIDE=2)
pool = dict(N=2, C=6, H=9, W=8, K=3, PAD=1, STRIDE=2)
sizes = {"conv2d": conv, "conv2d_bias_relu": conv, "conv2d_batchnorm_silu": conv, "max_pool2d": pool, "avg_pool2d": pool,
         "depthwise_conv2d": dict(N=2, C=6, H=9, W=8, R=3, S=3, PAD=1, STRIDE=2), "group_norm": dict(N=2, C=6, H=9, W=8, G=3),
         "upsample_nearest": dict(N=2, C=6, H=9, W=8, S=3), "upsample_bilinear": dict(N=2, C=6, H=9, W=8, S=3)}
shapes.update({name: [(2, 6, 9, 8)] for name in sizes if name not in shapes})
files = glob.glob(sys.argv[1] + "/*/baselines/torch.py")
assert len(files) >= 31, files
for path in files:
    folder = os.path.dirname(os.path.dirname(path))
    name = os.path.basename(folder)
    given = [torch.randn(s) for s in shapes.get(name, [(5, 7), (7, 4)] if name.startswith("matmul") else [(5, 7)])]
    if "batch" in name and "norm" in name:
        given[-3].abs_()  # a variance
    reference, dims = load(folder + "/ref_impl.py").reference, sizes.get(name, {})
    asked = list(inspect.signature(reference).parameters)[len(given):]
    wanted = reference(*[g.numpy() for g in given], **{dim: dims[dim] for dim in asked})
    got = load(path).Model()(*given, *dims.values())
    assert torch.allclose(got, torch.as_tensor(wanted), rtol=1e-3, atol=1e-4), name
PY

# What NaN and infinity become is asked where the file says so.
write clip 'pass' 'return torch.relu(x)' 'torch.randn(64, 32)'
echo 'void kernel(const float *x, float *out, int64_t B) { for (int64_t i = 0; i < B * 32; i++) out[i] = x[i] > 0 ? x[i] : 0; }' >"$work/clip.c"
"$twagent" eval "$work/clip.py" "$work/clip.c" --time-budget 1ms --no-profile >"$work/out" 2>&1; say $? "a rectifier that loses a NaN: $(cat "$work/out")"
echo 'non_finite = "reference"' >>"$work/clip.py"
"$twagent" eval "$work/clip.py" "$work/clip.c" --time-budget 1ms --no-profile >"$work/out" 2>&1; [ $? -eq 1 ] && grep -q 'expected nan' "$work/out"
say $? "and is refused where the file asks: $(cat "$work/out")"

# A quarter of a GiB each way, by all cores: the worker outlives it, and says a verdict.
write large 'pass' 'return torch.relu(x)' 'torch.rand(4096, 16384)'
sed 's/^{$/&\n#pragma omp parallel for/' >"$work/large.c" <<'C'
void kernel(const float *x, float *out, int64_t B)
{
    for (int64_t i = 0; i < B * 16384; i++)
        out[i] = x[i] > 0 ? x[i] : 0;
}
C
"$twagent" eval "$work/large.py" "$work/large.c" --until check >"$work/out" 2>&1; grep -q 'passed every check before the timing' "$work/out"
say $? "a large module with a kernel of threads: $(cat "$work/out")"

# Inputs by name, in another order, and one whose places are never the same twice: a kernel may write them in any order.
cat >"$work/named.py" <<'PY'
import torch
class Model(torch.nn.Module):
    def forward(self, *, x, at, fill):
        out = torch.full_like(x, fill)
        out[at] = x
        return out
def get_inputs():
    return {"at": torch.randperm(64), "fill": float("-inf"), "x": torch.randn(64, 8)}
PY
cat >"$work/named.c" <<'C'
void kernel(const float *x, const int32_t *at, float *out)
{
    for (int64_t i = 63; i >= 0; i--)
        for (int64_t j = 0; j < 8; j++)
            out[at[i] * 8 + j] = x[i * 8 + j];
}
C
"$twagent" eval "$work/named.py" "$work/named.c" --time-budget 1ms --no-profile >"$work/out" 2>&1; say $? "inputs by name, in any order: $(cat "$work/out")"

# Files in other forms: a function with shapes, as generate_kernel is called; ModelNew without get_inputs.
cat >"$work/function.py" <<'PY'
from yolokernelgen import generate_kernel
import torch.nn.functional as F

kernel_path = generate_kernel(
    torch_source="""def relu(x):
        return torch.nn.functional.relu(x)""",
    operation="relu",
    input_shapes=[[4, 8, 16, 16]],
    output_shapes=[[4, 8, 16, 16]],
    torch_fn=lambda x: F.relu(x)  # For validation
)

print(f"Generated kernel: {kernel_path}")
PY
echo 'void kernel(const float *x, float *out, int64_t B) { for (int64_t i = 0; i < B * 2048; i++) out[i] = x[i] > 0 ? x[i] : 0; }' \
    >"$work/function.c"
"$twagent" eval "$work/function.py" "$work/function.c" --time-budget 1ms --no-profile >"$work/out" 2>&1; say $? "a function with shapes: $(cat "$work/out")"
"$twagent" problem check "$work/function.py" >"$work/out" 2>&1 && grep -q 'compile is right' "$work/out"; say $? "and torch.compile takes it: $(cat "$work/out")"
"$found" -I - "$(dirname "${BASH_SOURCE[0]}")/../../libexec" "$work/form.py" <<'PY'; say $? "forms of a file"
import sys
sys.path.insert(0, sys.argv[1])
import json
import torch_module, torch_problem
from torch_rows import Refused

def described(text):
    with open(sys.argv[2], "w") as file:
        file.write(text)
    return torch_problem.describe(sys.argv[2], "cpu")

def inputs(text):
    return {n: t["shape"] for n, t in json.loads(described(text)["spec"])["inputs"].items()}

CALL = "from yolokernelgen import generate_kernel\nfrom yolokernelgen.config import default_config\ngenerate_kernel(%s)\n"
CONV = "'def f(x, weight, bias):\\n return torch.relu(F.conv2d(x, weight, bias))', 'f', [[2, 3, 9, 9]], [[2, 4, %s, 7]], {'weight': [4, 3, 3, 3], 'bias': [4]}"
assert inputs(CALL % (CONV % 7)) == {"x": ["B", "3", "9", "9"], "weight": ["4", "3", "3", "3"], "bias": ["4"]}
assert inputs("""import torch
def pool(x, kernel_size, stride): return torch.nn.functional.max_pool2d(x, kernel_size, stride)
input_shapes, hyperparameters = [[8, 16, 12, 12]], {"kernel_size": 2, "stride": 2, "groups": 1}
output_shapes = [[8, 16, 6, 6]]
""") == {"x": ["B", "16", "12", "12"]}
MODULE = """import torch, torch.nn as nn
class ModelNew(nn.Module):
    def __init__(self%s):
        super().__init__()
        self.conv = nn.Conv2d(3, 96, kernel_size=11, stride=4, padding=2)
    def forward(self, x%s):
        return self.conv(x)
"""
told = described(MODULE % ("", ""))
assert json.loads(told["spec"])["inputs"]["x"]["shape"] == ["B", "3", "224", "224"]
assert "x is taken as 16x3x224x224" in told["notes"][0], told["notes"]
for text, words in [
    (CALL % (CONV % 6), "output_shapes is [[2, 4, 6, 7]], but the function gives [[2, 4, 7, 7]]"),
    (CALL % "'def f(x): return x + x', 'f', [[4, 4]], torch_fn=lambda x: 3 * x", "give different results"),
    (CALL % "'def f(x): return x', 'f', '4x4'", "expected a list of shapes"),
    (2 * (CALL % "'def f(x): return x', 'f', [[4, 4]]"), "calls generate_kernel 2 times"),
    (MODULE % ("", ", y"), "forward takes x, y: add def get_inputs"),
    (MODULE % (", n", ""), "no get_init_inputs"),
    ("x = 1", "expected a callable named Model"),
]:
    try:
        described(text)
        raise SystemExit("not refused: " + words)
    except Refused as refused:
        assert words in str(refused), refused
PY

# Tensors wherever a file keeps them, what is drawn, forms of a file: by the describing process alone.
mkdir "$work/described"
"$found" -I "$(dirname "${BASH_SOURCE[0]}")/torch_files.py" "$(dirname "${BASH_SOURCE[0]}")/../../libexec" "$work/described" >"$work/out" 2>&1
say $? "what is an input, and what is refused: $(cat "$work/out")"
# And as kernels: a tensor that is no parameter, a projection that begins at zero, a mask with infinities.
write attribute 'self.w = torch.randn(32, 8)' 'return x @ self.w' 'torch.randn(64, 32)'
cat >"$work/attribute.c" <<'C'
void kernel(const float *x, const float *w, float *out, int64_t B)
{
    for (int64_t i = 0; i < B; i++)
        for (int j = 0; j < 8; j++) {
            float sum = 0;
            for (int k = 0; k < 32; k++)
                sum += x[i * 32 + k] * w[k * 8 + j];
            out[i * 8 + j] = sum;
        }
}
C
write zeros 'self.down, self.up = nn.Linear(16, 4, bias=False), nn.Linear(4, 16, bias=False); nn.init.zeros_(self.up.weight)' \
    'return self.up(self.down(x))' 'torch.randn(64, 16)'
cat >"$work/zeros.c" <<'C'
void kernel(const float *x, const float *down_weight, const float *up_weight, float *out, int64_t B)
{
    for (int64_t b = 0; b < B; b++)
        for (int o = 0; o < 16; o++) {
            float sum = 0;
            for (int r = 0; r < 4; r++) {
                float h = 0;
                for (int k = 0; k < 16; k++)
                    h += x[b * 16 + k] * down_weight[r * 16 + k];
                sum += h * up_weight[o * 4 + r];
            }
            out[b * 16 + o] = sum;
        }
}
C
write masked 'self.register_buffer("mask", torch.full((16, 16), float("-inf")).triu(1))' 'return torch.softmax(x + rest[0] + self.mask, -1)' \
    'torch.randn(4, 16, 16), torch.randn(4, 16, 16).masked_fill(torch.rand(4, 16, 16) < 0.2, float("-inf")).index_fill(2, torch.tensor([0]), 0.0)'
cat >"$work/masked.c" <<'C'
#include <math.h>
void kernel(const float *x, const float *x1, const float *mask, float *out, int64_t B)
{
    for (int64_t row = 0; row < B * 16; row++) {
        float v[16], most = -INFINITY, sum = 0;
        for (int j = 0; j < 16; j++) {
            v[j] = x[row * 16 + j] + x1[row * 16 + j] + mask[row % 16 * 16 + j];
            most = v[j] > most ? v[j] : most;
        }
        for (int j = 0; j < 16; j++)
            sum += v[j] = expf(v[j] - most);
        for (int j = 0; j < 16; j++)
            out[row * 16 + j] = v[j] / sum;
    }
}
C
for each in attribute zeros masked; do
    "$twagent" eval "$work/$each.py" "$work/$each.c" --time-budget 1ms --no-profile >"$work/out" 2>&1; say $? "a kernel of $each: $(cat "$work/out")"
done
sed 's/ + mask\[row % 16 \* 16 + j\]//' "$work/masked.c" >"$work/unmasked.c"
"$twagent" eval "$work/masked.py" "$work/unmasked.c" --time-budget 1ms --no-profile >"$work/out" 2>&1; [ $? -eq 1 ]; say $? "and none without the mask: $(cat "$work/out")"
# What get_inputs draws is asked about at shapes beyond the timed one, too.
write given 'pass' 'return torch.softmax(x, -1) * x' 'torch.rand(256, 64) * 3 + 10'
cat >"$work/given.c" <<'C'
#include <math.h>
void kernel(const float *x, float *out, int64_t B)
{
    for (int64_t b = 0; b < B; b++, x += 64, out += 64) {
        float most = x[0], sum = 0.0f;
        int own = 1;
        for (int j = 0; j < 64; j++) {
            most = x[j] > most ? x[j] : most;
            own = own && x[j] >= 10.0f && x[j] <= 13.0f;
        }
        for (int j = 0; j < 64; j++)
            sum += expf(x[j] - most);
        for (int j = 0; j < 64; j++)
            out[j] = expf(x[j] - most) / sum * (own ? 1.0f * x[j] : x[j]);
    }
}
C
"$twagent" eval "$work/given.py" "$work/given.c" --until check >"$work/out" 2>&1; say $? "one that looks for such numbers: $(cat "$work/out")"
sed -i 's/own ? 1.0f/own \&\& B > 256 ? 1.5f/' "$work/given.c"
"$twagent" eval "$work/given.py" "$work/given.c" --until check >"$work/out" 2>&1; [ $? -eq 1 ] && grep -q 'given inputs' "$work/out"
say $? "and is wrong on them beyond the timed shape: $(cat "$work/out")"
# A file beside it is part of it: what is remembered of the one is forgotten with the other.
echo 'def act(x): return x * 2' >"$work/beside_it.py"
write imports 'pass' 'import beside_it; return beside_it.act(x)' 'torch.randn(16, 8)'
sed -i '1i import beside_it' "$work/imports.py"
echo 'void kernel(const float *x, float *out, int64_t B) { for (int64_t i = 0; i < B * 8; i++) out[i] = x[i] * 2; }' >"$work/imports.c"
"$twagent" eval "$work/imports.py" "$work/imports.c" --time-budget 1ms --no-profile >"$work/out" 2>&1; say $? "a file that imports another: $(cat "$work/out")"
echo 'def act(x): return x[:, :4] * 2' >"$work/beside_it.py"
"$twagent" eval "$work/imports.py" "$work/imports.c" --time-budget 1ms --no-profile >"$work/out" 2>&1; [ $? -eq 1 ]; say $? "which is another problem when that one changes: $(cat "$work/out")"
rm "$work/beside_it.py" "$work/imports.py"

# Buffers, int64 in and out, several outputs.
write several 'self.register_buffer("table", torch.arange(6)); self.bn = nn.BatchNorm1d(6)' \
    'return {"picked": self.bn(x) + self.table, "best": x.argmax(1)}' 'torch.randn(16, 6)'
"$twagent" problem check "$work/several.py" >"$work/out" 2>&1; say $? "a module with buffers and two outputs is fit: $(cat "$work/out")"
grep -q 'best is int64 in the file' "$work/out"; say $? "int64 is said"
"$twagent" eval "$work/linear.py@B=5" "$work/linear.c" --json >"$work/json" 2>"$work/out"; say $? "at another first dimension: $(cat "$work/out")"
"$twagent" eval "$work/linear.py@C=5" "$work/linear.c" >"$work/out" 2>&1; grep -q 'expected a size of linear' "$work/out"; say $? "a dim it has not: $(cat "$work/out")"

# --elements: the first dimension is made smaller and nothing else, whatever else has its number; what
# follows from a constant of the file (groups of channels) stays as it is.
mkdir "$work/folder"
sized() { # FILE WHAT: lines of a module with `n` rows; its verdict in $work/out
    cat >"$work/folder/$1.py"
    "$twagent" problem check "$work/folder" --elements 2048 >"$work/out" 2>&1; say $? "$1 is fit at a smaller size: $(cat "$work/out")"
    grep -q "fit .* $1.py @B=$2\$" "$work/out"; say $? "$1: at B=$2: $(cat "$work/out")"
    rm "$work/folder/$1.py"
}
sized groups 32 <<'PY'
import torch

n, channels, groups = 256, 64, 32


class Model(torch.nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.fc = torch.nn.Linear(channels, channels)
        self.norm = torch.nn.GroupNorm(groups, channels)

    def forward(self, x):
        return self.norm(self.fc(x))


def get_inputs():
    return [torch.rand(n, channels)]


def get_init_inputs():
    return [channels, groups]
PY
sized signs 8 <<'PY'
import torch

n = 256


class Model(torch.nn.Module):
    def forward(self, predictions, targets):
        return torch.clamp(1 - predictions * targets, min=0)


def get_inputs():
    return [torch.rand(n, n), torch.randint(0, 2, (n,)).float() * 2 - 1]
PY

# Two sums with a step between them that is not linear: not one sum of the product of their lengths,
# or no tolerance could tell float32 from what has fewer bits.
cat >"$work/sums.py" <<'PY'
import math, sys

sys.path.insert(0, sys.argv[1])
import torch, torch_sums

x, w, v = torch.rand(6, 100), torch.rand(100, 80), torch.rand(80, 4)
both = math.ceil((math.sqrt(100) + math.sqrt(80)) ** 2)
for call, terms in (
    (lambda: x @ w, None),  # one sum: the operations' number tells
    (lambda: (x @ w).sum(1), None),  # linear: one sum of 8000
    (lambda: torch.relu(x @ w).sum(1), both),
    (lambda: torch.relu(x @ w) @ v, both),
    (lambda: torch.relu((x @ w) @ v), 8000),
    (lambda: torch.relu(x @ w), 100),
    (lambda: (x @ w).amax(1), 100),
    (lambda: torch.softmax(x @ w, 1), both),
    (lambda: torch.relu(x @ w) + x[:, :80], 100),
    (lambda: torch.relu(x) * 2 + x, 1),  # no sum, however long its rows
    (lambda: x.sum(1), None),  # one alone
    (lambda: torch.relu(torch.sort(x @ w)[0]), None),  # of which nothing is known
):
    with torch.no_grad():
        told = torch_sums.longest(lambda: [("out", call())])
    assert told == terms, (told, terms)
PY
"$found" -I "$work/sums.py" "$(dirname "$0")/../../libexec" >"$work/out" 2>&1; say $? "how long the sums are: $(cat "$work/out")"
write pooled 'self.conv = nn.Conv2d(4, 4, 3)' 'return torch.nn.functional.gelu(self.conv(x)).mean((2, 3))' 'torch.rand(32, 4, 48, 48)'
"$twagent" problem check "$work/pooled.py" >"$work/out" 2>&1; say $? "a pooled convolution is fit: $(cat "$work/out")"

refuse() { # FILE TEXT
    "$twagent" problem check "$work/$1.py" >"$work/out" 2>&1
    [ $? -ne 0 ] && grep -q "$2" "$work/out"; say $? "$1 is refused with \"$2\": $(cat "$work/out")"
}
write dropout 'self.d = nn.Dropout(0.5)' 'return self.d(x)' 'torch.rand(32, 24)'
refuse dropout 'random'
write zero 'pass' 'return x * 0' 'torch.rand(32, 24)'
refuse zero 'FAIL zeros'
write complex 'pass' 'return torch.fft.fft(x)' 'torch.rand(32, 24)'
refuse complex 'complex64'
printf 'import torch\n\nclass Model(torch.nn.Module):\n    x = y\n' >"$work/broken.py"
refuse broken "NameError: name 'y' is not defined (broken.py:4)"
printf 'import torch\n\nclass Model(torch.nn.Module:\n' >"$work/syntax.py"
refuse syntax 'SyntaxError'
printf 'def reference(x):\n    return x\n' >"$work/other.py"
refuse other 'expected a callable named Model'
write writes "open(\"$work/written\", \"w\").write(\"x\")" 'return x + 1' 'torch.rand(32, 24)'
refuse writes 'Permission'
[ ! -e "$work/written" ]; say $? "the sandbox holds"
"$twagent" run "$work/linear.py" >"$work/out" 2>&1; [ $? -eq 2 ] && grep -q 'linear.starts/cpu' "$work/out"
say $? "a run with no start and no model says so: $(cat "$work/out")"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
