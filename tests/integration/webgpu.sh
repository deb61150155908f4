#!/usr/bin/env bash
# WGSL on whatever adapter there is: a search ends with a verified win, which a page shows to be right; another asks a
# mailbox;
# every start that ships is right on all check shapes; attacks are refused and honest kernels accepted.
# Skipped, saying so, without libwgpu_native.
set -u
twagent=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache
. "${BASH_SOURCE[0]%/*}/helpers.sh"
measured_once
export TWAGENT_LOCKS=$work/locks
mkdir -p "$work"/locks/cpu{0..255} # no test beside this one is waited for
/usr/bin/python3 -c 'import numpy' 2>/dev/null && export TWAGENT_PYTHON=/usr/bin/python3 # no shim in PATH, which is slow
cd "$work" || exit 1
"$twagent" doctor --backend webgpu --no-measure >out 2>&1
grep -q '^  adapter .*, ' out && ! grep -q 'MISSING' out || { echo "skipped: $(grep MISSING out)"; exit 77; }

# A problem whose baseline has eight invocations, and whose definition is slow: a win on any adapter.
mkdir -p squares/starts/webgpu squares/baselines
cat >squares/spec.yaml <<'YAML'
name: squares
dims: {M: 512, N: 512}
inputs:
  X: {shape: [M, N], dtype: float32}
outputs:
  y: {shape: [M], dtype: float32}
reference: ref_impl.py
flops: 2*M*N
tolerance: auto
check:
  - {M: 1, N: 1}
  - {M: 7, N: 61}
  - {M: 130, N: 3}
YAML
cat >squares/ref_impl.py <<'PY'
import numpy


def reference(X):
    return numpy.array([sum(x * x for x in row) for row in X.tolist()], dtype=X.dtype)
PY
kernel() { # LAUNCH STEP
    cat <<WGSL
/*---
$1
---*/
// </script><script>window.taken = 1</script><!--
override WIDTH = 1u;
struct Dims { M: u32, N: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> dims: Dims;
@compute @workgroup_size(WIDTH)
fn main(@builtin(global_invocation_id) id: vec3u) {
    for (var row = id.x; row < dims.M; row += $2) {
        var sum = 0.0;
        for (var i = 0u; i < dims.N; i++) {
            sum += X[row * dims.N + i] * X[row * dims.N + i];
        }
        y[row] = sum;
    }
}
WGSL
}
kernel 'launch: [{entry: main, grid: [8]}]' 8u >squares/baselines/naive.wgsl
kernel 'tune: {WIDTH: [32, 64]}
launch: [{entry: main, grid: ["ceil_div(M, WIDTH)"]}]' dims.M >squares/starts/webgpu/rows.wgsl
"$twagent" run ./squares --backend webgpu --budget-evaluations 2 --time-budget 100ms --quiet >out 2>&1
grep -q 'rows.wgsl' out && grep -qE 'verified: faster|too noisy' out; say $? "a verified win: $(cat out)"
grep -q 'verified: faster' out || cat out
"$twagent" show r1-c1 >out 2>&1; grep -q '% of that roof' out; say $? "the share of the roof: $(cat out)"
"$twagent" emit r1 page >out 2>&1 && sed 's/sum += X/sum -= X/' page/index.html >page/wrong.html; say $? "a page: $(cat out)"
if command -v node >/dev/null; then # a page refuses what is larger than what was checked
    cp page/kernel.js page/kernel.mjs
    node --input-type=module -e 'import { dimsOf, plan } from "'"$PWD"'/page/kernel.mjs";
        const most = plan.checkedUpTo;
        dimsOf(most);
        for (const name in most)
            try { dimsOf({ ...most, [name]: most[name] + 1 }); process.exit(1); }
            catch (error) { if (!/was checked up to M=[0-9]+, N=[0-9]+ and no further/.test(error.message)) throw error; }
        if (Object.keys(most).length !== 2) process.exit(2);' >out 2>&1; say $? "a page's limits: $(cat out)"
fi
[ -n "${FEW_STARTS-}" ] || "$source/tests/tools/web-page" right page/index.html wrong page/wrong.html >out 2>&1
case $? in 0) ;; 77) echo "not tried in a browser: $(cat out)" ;; *) say 1 "the page: $(cat out)" ;; esac

# Subgroups, where the adapter has them: as a browser asks for them, and in front matter.
cat >lanes.wgsl <<'WGSL'
/*---
launch: [{entry: main, grid: [M]}]
---*/
enable subgroups;
struct Dims { M: u32, N: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> dims: Dims;
var<workgroup> parts: array<f32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(local_invocation_index) at: u32,
        @builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_size) width: u32) {
    var sum = 0.0;
    for (var i = at; i < dims.N; i += 64u) {
        sum += X[block.x * dims.N + i] * X[block.x * dims.N + i];
    }
    let all = subgroupAdd(sum);
    if (lane == 0u) {
        parts[at / width] = all;
    }
    workgroupBarrier();
    if (at == 0u) {
        for (var i = 1u; i < 64u / width; i++) {
            parts[0] += parts[i];
        }
        y[block.x] = parts[0];
    }
}
WGSL
sed 's/^launch/requires: [subgroups]\nlaunch/; /^enable/d' lanes.wgsl >required.wgsl
for file in lanes.wgsl required.wgsl; do
    "$twagent" eval ./squares $file --backend webgpu --time-budget 1ms --effort search --no-profile >out 2>&1
    grep -qE '^kernel|this adapter has no subgroups' out; say $? "$file: $(cat out)"
done
# llvmpipe ends a loop after 65,535 rounds: who is refused for that is told.
if "$twagent" doctor --backend webgpu --no-measure | grep -q 'adapter 0 *llvmpipe'; then
    sed 's/M: 512, N: 512/M: 2, N: 70000/' squares/spec.yaml >squares/long.yaml
    "$twagent" eval ./squares/long.yaml squares/starts/webgpu/rows.wgsl --backend webgpu --time-budget 1ms >out 2>&1
    grep -q 'this device ends each loop after 65535 rounds' out; say $? "a long loop: $(cat out)"
fi

# An adapter that computes on the cores: its threads have one each, and what they waited there for others is no one's
# slowness: of two kernels that are the same the interval says that it may be either.
if "$twagent" doctor --backend webgpu --no-measure | grep -q 'adapter 0 *llvmpipe' && [ "$(nproc)" -gt 1 ]; then
    mm=$source/tests/adversarial/webgpu/problems/mm
    busy=() spread=
    for core in $(/usr/bin/python3 -c 'import os; print(*os.sched_getaffinity(0))'); do
        taskset -c "$core" sh -c "while kill -0 $$ 2>/dev/null; do :; done" &
        busy+=($!)
    done
    for _ in 1 2 3; do # of one that ended while this script was late nothing is seen
        # Calls that last for many of the scheduler's slices, however fast the machine: each of them waits.
        "$twagent" eval "$mm@M=256,N=256,K=256" "$mm/baselines/naive.wgsl" --backend webgpu --baseline naive --effort search \
            --time-budget 100ms --no-profile --json >out 2>said &
        evaluating=$!
        while kill -0 $evaluating 2>/dev/null && [ -z "$spread" ]; do
            for runner in $(pgrep -P "$(pgrep -d, -P $evaluating)" 2>/dev/null); do
                threads=$(cat /proc/"$runner"/task/*/comm 2>/dev/null | grep -c '^llvmpipe')
                loose=$(grep -h Cpus_allowed_list /proc/"$runner"/task/*/status 2>/dev/null | grep -c '[-,]')
                [ "$threads" -lt 2 ] || [ "$loose" -gt 0 ] || spread=$(cat /proc/"$runner"/limits)
            done
        done
        wait $evaluating
        [ -z "$spread" ] || break
    done
    say $((${#spread} == 0)) "a core for each thread"
    grep -q '^Max data size  *[0-9]' <<<"$spread"; say $? "what a shader makes the driver take of memory has no end"
    kill "${busy[@]}"
    /usr/bin/python3 -c 'import json, sys
of = json.load(open("out"))["speedup"]
sys.exit(of["high"] < 3 * of["low"])'
    say $? "what was waited for a core: $(cat said; cut -c 1-900 out)"
fi

# A search through the mailbox: the prompt says what WGSL is to look like, and its answer becomes a kernel.
answer() { # a request's file
    local answer=${1%.md}.answer.txt
    [ ! -e "$answer" ] || return
    if grep -q '^# ideas for' "$1"; then
        echo '{"ideas": [{"title": "Four sums at once", "category": "latency", "why": "One sum waits for itself.",' \
            '"expected": 1.5, "parent": "r1-c1"}]}' >"$answer.part"
    else
        grep -q '@compute' "$1" || { echo "no page on WGSL in $1"; return; }
        { echo '```wgsl' && sed 's/sum += .*/let x = X[row * dims.N + i]; sum = fma(x, x, sum);/' squares/starts/webgpu/rows.wgsl &&
            echo '```'; } >"$answer.part"
    fi
    mv "$answer.part" "$answer"
}
mkdir box && sed -i 's/WIDTH: .*/WIDTH: [64]}/' squares/starts/webgpu/rows.wgsl
TWAGENT_STORE=$work/asked "$twagent" run ./squares --backend webgpu --model "mailbox/$work/box" -b 1 -i 1 -r 1 --no-final --floor-share 0 \
    --mailbox-wait 10m --time-budget 100ms --quiet >out 2>&1 </dev/null &
searching=$!
while kill -0 $searching 2>/dev/null; do
    for request in box/*.md; do [ ! -e "$request" ] || answer "$request"; done
    sleep 0.2
done
wait $searching
TWAGENT_STORE=$work/asked "$twagent" show r1 >shown 2>&1
grep -q '2 kernels, 0 rejected, 0 failed' shown; say $? "a search through the mailbox: $(cat out shown)"

# of those that differ in a line (silu, sigmoid, leaky_relu; avg_pool2d; upsample_nearest) one each
# FEW_STARTS, for a sanitizer: the first start of four problems, attacks without the honest controls, and no browser. A
# start is run by libwgpu_native and the driver, which it does not watch; what we do differs with the number of inputs,
# launches and dimensions alone.
rows=M=16,N=64 image=N=1,C=4,H=12,W=12
for kernel in softmax@M=16,N=256 layernorm@M=16,N=256 rmsnorm@M=16,N=256 sum_rows@M=16,N=256 gemv@M=16,N=256 \
    relu@M=16,N=256 {gelu,tanh}@$rows transpose@M=64,N=64 matmul@M=48,N=48,K=48 \
    matmul_batched@BATCH=2,M=32,N=32,K=32 matmul_bias_gelu@M=48,N=48,K=48 attention@H=2,L=32,D=16 \
    {conv2d,conv2d_bias_relu,conv2d_batchnorm_silu}@$image,K=8 group_norm@$image,G=2 \
    {depthwise_conv2d,max_pool2d,batch_norm,upsample_bilinear}@$image; do
    folder=$source/problems/${kernel%%@*}
    starts=("$folder"/starts/webgpu/*.wgsl)
    [ -e "${starts[0]}" ] || starts=("$folder/baselines/naive.wgsl")
    if [ -n "${FEW_STARTS-}" ]; then
        case ${kernel%%@*} in softmax | matmul_batched | attention | conv2d) starts=("${starts[0]}") ;; *) continue ;; esac
    fi
    for file in "${starts[@]}"; do # the naive one is checked beside it
        "$twagent" eval "$kernel" "$file" --backend webgpu --baseline naive --time-budget 1ms --effort search --no-profile >out 2>&1
        grep -q "^kernel" out; say $? "$kernel ${file##*/}: $(cat out)"
    done
done
"$twagent" doctor --adversarial ${FEW_STARTS:+attacks/} --backend webgpu >out 2>&1; say $? "attacks: $(grep -v '^ok' out)"
[ "$failed" -eq 0 ]
