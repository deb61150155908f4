#!/usr/bin/env bash
# twagent import: Triton files with a wrapper as candidates, and why others are none. Nothing of them is run.
set -u
twagent=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache TWAGENT_LOCKS=$work/locks
. "${BASH_SOURCE[0]%/*}/helpers.sh"
measured_once
file() { # NAME, the file's functions on stdin: behind the imports
    { printf 'import torch, triton\nimport triton.language as tl\n\n\n' && cat; } >"$work/$1.py"
}
imports() { expect "$1" "$2" import "${@:3}"; } # CODE TEXT ARGUMENTS...
kernel='@triton.jit
def scale(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)

'
wrapper() { # NAME BODY
    file "$1" <<<"$kernel
def run(x, count: int, flag):
    y = torch.empty_like(x)
    n = x.numel()
$2
    return y"
}
launch='    scale[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n, 2.0, BLOCK=512)'

# --- what it becomes: constants through an entry, names of the function or of the problem
wrapper plain "$launch"
imports 0 'grid: ["ceil_div(n_elements, BLOCK)"]' "$work/plain.py"
imports 0 'scale(x_ptr=x, y_ptr=y, n=n_elements, factor=2.0, BLOCK=BLOCK)' "$work/plain.py"
imports 0 'grid: ["ceil_div((M * N), BLOCK)"]' "$work/plain.py" relu
imports 0 'args: [X, Y, M, N]' "$work/plain.py" relu
[[ "$out" != *torch.empty* && "$out" == *'BLOCK: [512]'* ]] || { echo "not what is needed alone: $out"; failed=$((failed + 1)); }
imports 0 '"function":"run"' "$work/plain.py" --json
file tuned <<'EOF'
@triton.autotune([triton.Config({"B": b}, num_warps=w) for b, w in [(64, 2), (128, 4)]], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["B"] > 0})
@triton.jit
def add(x, y, out, n, B: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

def run(x, y):
    out = torch.zeros_like(x)
    add[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel())
    return out
EOF
imports 0 'constexpr: {EVEN: "(B > 0)"}' "$work/tuned.py"
sed -i 's/args\["B"\] > 0/args["n"] % args["B"] == 0 and args["x"].is_cuda/' "$work/tuned.py"
imports 0 'constexpr: {EVEN: "((n_elements % B) == 0)"}' "$work/tuned.py"
sed -i 's/args\["x"\].is_cuda/some()/' "$work/tuned.py"
imports 1 "tuned.py:6: @triton.heuristics' EVEN (\`args['n'] % args['B'] == 0 and some()\`) depends on" "$work/tuned.py"
sed -i '/heuristics/d; s/, EVEN: tl.constexpr//' "$work/tuned.py"
imports 0 'where: ((B == 64 && num_warps == 2) || (B == 128 && num_warps == 4))' "$work/tuned.py"
imports 0 'memset: {out: 0}' "$work/tuned.py"

# --- why not, and where
wrapper size "${launch/BLOCK=512/BLOCK=triton.next_power_of_2(n)}"
imports 0 'constexpr: {BLOCK: "next_pow2(n_elements)"}' "$work/size.py"
imports 0 'n_elements has to be the same at every shape of a problem' "$work/size.py"
imports 1 'BLOCK is next_pow2((M * N)), a tl.constexpr, and M differs from shape to shape' "$work/size.py" relu
cp -r "$(dirname "${BASH_SOURCE[0]}")/../../problems/relu" "$work/relu"
sed -i '/^check:/,$d' "$work/relu/spec.yaml"
printf 'check: [{M: 4096, N: 17}]\nhidden: {M: [4096, 4096], N: [17, 17]}\n' >>"$work/relu/spec.yaml"
sed -i 's/^dims: .*/dims: {M: 4096, N: 17}/' "$work/relu/spec.yaml"
imports 0 'constexpr: {BLOCK: "next_pow2((M * N))"}' "$work/size.py" "$work/relu"
wrapper way "    if flag: n = 1
$launch"
imports 1 'way.py:14: which way `if flag` goes depends on flag, a parameter without a default' "$work/way.py"
wrapper work "$launch
    y = y.sum()"
imports 1 "work.py:15: \`y.sum()\` is torch's work, not a kernel's" "$work/work.py"
wrapper place "${launch/x, y, n/x, x, n}"
imports 1 'x is read and written in place' "$work/place.py"
expect_note() { # NAME TEXT BODY: what a call in the file says of `flag`, and of how many dims x has
    wrapper "$1" "$3"
    printf 'def test_it(flag=0.5):\n    a = 1 + torch.randn((4, 8), dtype=torch.float16).cuda()\n    if a is None:\n        flag = None\n' >>"$work/$1.py"
    printf '    cases = {"one": {"x": a, "count": 3}}\n    for name, case in cases.items():\n        run(**case, flag=flag)\n' >>"$work/$1.py"
    imports 0 "$2" "$work/$1.py"
}
expect_note call 'flag is 0.5, as in line 2' "${launch/2.0/flag}"
expect_note type 'x is float16, as in line 2' "    if x.dtype == torch.float16: n = n * 2
$launch"
expect_note warps 'num_warps: [4, 8]' "    warps = 4
    if n > 4096: warps = 8
${launch/BLOCK=512/BLOCK=512, num_warps=warps}"
expect_note root 'factor=(1.0 / tl.sqrt(tl.full([], n_elements, tl.float32)))' "${launch/2.0/n ** -0.5}"
expect_note steps 'args: [x, y, n_elements, 6]' "    factor = 0
    for i in range(4): factor += i
${launch/2.0/factor}"
wrapper both_ways "    if n > 4096: y.zero_()
$launch"
imports 1 'both_ways.py:14: which way `if n > 4096` goes depends on a size' "$work/both_ways.py"
wrapper inplace "$launch
    y.add_(1)"
imports 1 "inplace.py:15: \`y.add_(1)\` is torch's work, not a kernel's" "$work/inplace.py"
wrapper loop "    for i in range(count):
    $launch"
imports 1 'loop.py:14: a for statement is not followed' "$work/loop.py"
wrapper both "$launch"
printf 'def other(x):\n    scale[(1,)](x, x, 1, 1.0, BLOCK=1)\n' >>"$work/both.py"
imports 1 'several functions launch kernels: run, other; name one behind the file' "$work/both.py"
imports 0 'a candidate of run()' "$work/both.py:run"
sed 's/def other/def run_backward/' "$work/both.py" >"$work/ahead.py"
imports 0 'a candidate of run()' "$work/ahead.py"
imports 1 'none launches nothing; these do: run, other' "$work/both.py:none"
imports 1 "the problem's input B has no tensor of the function's" "$work/plain.py" matmul
printf 'def f(:\n' >"$work/broken.py"
imports 1 'broken.py:1: is no Python' "$work/broken.py"
python3 -c 'print("x = " + "(" * 5000 + ")" * 5000)' >"$work/deep.py"
imports 1 'deep.py:1: ' "$work/deep.py"
printf '"""---\nlaunch: []\n---"""\n' >"$work/already.py"
imports 1 'it is a candidate already' "$work/already.py"
imports 2 'no such file' "$work/none.py"
# --- forms of a wrapper
sed 's/def scale/def _scale/; s/    scale\[/    _scale[/' "$work/plain.py" >"$work/under.py"
imports 0 'entry: _scale_entry' "$work/under.py" relu
file out <<EOF
$kernel
def run(x, out):
    scale[(triton.cdiv(x.numel(), 512),)](x, out, x.numel(), 2.0, BLOCK=512)
EOF
imports 0 'scale(x_ptr=X, y_ptr=Y' "$work/out.py" relu # what is only written is the output
file rows <<EOF
$kernel
def run(x):
    n = x.shape[-1]
    rows = x.view(-1, n)
    y = torch.empty_like(rows)
    scale[(rows.shape[0],)](rows, y, n, 2.0, BLOCK=512)
    return y
EOF
imports 0 'grid: ["x_0"]' "$work/rows.py"
imports 0 'x is taken to have 2 dims' "$work/rows.py"
imports 0 'grid: ["M"]' "$work/rows.py" relu
sed 's/n = x.shape\[-1\]/*many, n = x.shape/' "$work/rows.py" >"$work/many.py"
imports 0 'grid: ["M"]' "$work/many.py" relu
file star <<EOF
$kernel
def run(q, v):
    B, T, H, K, V = *q.shape, v.shape[-1]
    y = torch.empty_like(q)
    scale[(B * T,)](q, y, H * K, 2.0, BLOCK=512)
    return y
EOF
imports 0 'grid: ["(B * T)"]' "$work/star.py"
sed 's/^@triton.jit//; s/^def run/scale = triton.jit(scale)\n\n\ndef run/' "$work/plain.py" >"$work/called.py"
imports 0 '@triton.jit' "$work/called.py"
sed 's/^    scale\[/    held = scale\n    held[/' "$work/plain.py" >"$work/held.py"
imports 0 'a candidate of run()' "$work/held.py"
sed 's/^    scale\[/    torch.library.wrap_triton(scale)[/' "$work/plain.py" >"$work/wrapped.py"
imports 0 'a candidate of run()' "$work/wrapped.py"
wrapper kind "    n = 2 if isinstance(2.0, (int, float)) else x.sum()
$launch"
imports 0 'a candidate of run()' "$work/kind.py"
sed 's/^import torch/from .settings import pick\nimport torch/; s/n = x.numel()/block, n = pick(x.numel())/' "$work/plain.py" >"$work/elsewhere.py"
imports 1 'elsewhere.py:14: `(block, n)` comes from `pick(x.numel())`, of .settings' "$work/elsewhere.py"
sed 's/^import torch/from .kernels import other\nimport torch/; s/^    scale\[/    other[/' "$work/plain.py" >"$work/theirs.py"
imports 1 'launches other, which .kernels defines, not this file' "$work/theirs.py"
{ printf '\xef\xbb\xbf' && sed 's/    n = x/\xc2\xa0   n = x/; s/$/\r/' "$work/plain.py"; } >"$work/pasted.py"
imports 0 'a candidate of run()' "$work/pasted.py"
sed 's/^@triton.jit/FACTOR, ONE = tl.constexpr(2), 1\nSMALL, LARGE = 2, 4\n\n\n@triton.jit/; s/) \* factor/) * factor * FACTOR/; s/2.0, BLOCK/LARGE, BLOCK/' \
    "$work/plain.py" >"$work/several.py"
imports 0 'args: [x, y, n_elements, 4]' "$work/several.py"
[[ "$out" == *'FACTOR, ONE = tl.constexpr(2), 1'* && "$out" != *SMALL* ]]; say $? "what a kernel uses of several goes with it: $out"
wrapper least "    f = 16 if n > 128 else 32
    f = min(f, count)
${launch/2.0/f}"
imports 1 'factor depends on a size, which decides between numbers' "$work/least.py"
wrapper none "    n = flag.numel()
$launch"
sed -i 's/count: int, flag/count: int, flag=None/; s/flag.numel()/flag.shape[0]/' "$work/none.py"
imports 1 'depends on `flag.shape`, and flag is None by default' "$work/none.py"
sed 's/@triton.autotune(\[.*/@triton.autotune([triton.Config({"B": b}) for b in blocks()], key=["n"])/; s/^import torch/from .blocks import blocks\nimport torch/' \
    "$work/tuned.py" >"$work/points.py"
imports 1 'which configurations there are depends on `blocks()`, of .blocks' "$work/points.py"
wrapper wrong "    n = x.numel() + x.shape
$launch"
imports 1 'wrong.py:1' "$work/wrong.py"
[[ "$out" != *Traceback* ]] || { echo "a traceback: $out"; failed=$((failed + 1)); }
# --- nothing of it is run
printf 'import os\nos.system("touch %s/ran")\n' "$work" >>"$work/plain.py"
imports 0 'a candidate of run()' "$work/plain.py" -o "$work/out.py"
[ ! -e "$work/ran" ] && ! grep -q os.system "$work/out.py" || { echo 'it was run'; failed=$((failed + 1)); }

named=$work/$'a\nimport os.py'
cp "$work/both.py" "$named"
imports 0 '# a?import os.py, launched as its run() does.' "$named:run"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
