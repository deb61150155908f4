#!/usr/bin/env bash
# WGSL on whatever adapter there is: every start that ships is right on all check shapes, attacks are
# refused and honest kernels accepted, a search ends. Skipped, saying so, without libwgpu_native.
set -u
twagent=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache
failed=0
say() { # TRUTH NAME
    [ "$1" = 0 ] || { echo "FAILED: $2"; failed=$((failed + 1)); }
}
export TWAGENT_LOCKS=$work/locks
mkdir -p "$work"/locks/cpu{0..255} # no test beside this one is waited for
/usr/bin/python3 -c 'import numpy' 2>/dev/null && export TWAGENT_PYTHON=/usr/bin/python3 # no shim in PATH, which is slow
cd "$work" || exit 1
"$twagent" doctor --backend webgpu --no-measure >out 2>&1
grep -q '^  adapter .*, ' out && ! grep -q 'MISSING' out || { echo "skipped: $(grep MISSING out)"; exit 77; }

# of those that differ in a line (silu, sigmoid, leaky_relu; avg_pool2d; upsample_nearest) one each
rows=M=16,N=64 image=N=1,C=4,H=12,W=12
for kernel in softmax@M=16,N=256 layernorm@M=16,N=256 rmsnorm@M=16,N=256 sum_rows@M=16,N=256 gemv@M=16,N=256 \
    relu@M=16,N=256 {gelu,tanh}@$rows transpose@M=64,N=64 matmul@M=48,N=48,K=48 \
    matmul_batched@BATCH=2,M=32,N=32,K=32 matmul_bias_gelu@M=48,N=48,K=48 attention@H=2,L=32,D=16 \
    {conv2d,conv2d_bias_relu,conv2d_batchnorm_silu}@$image,K=8 group_norm@$image,G=2 \
    {depthwise_conv2d,max_pool2d,batch_norm,upsample_bilinear}@$image; do
    folder=$source/problems/${kernel%%@*}
    starts=("$folder"/starts/webgpu/*.wgsl)
    [ -e "${starts[0]}" ] || starts=("$folder/baselines/naive.wgsl")
    for file in "${starts[@]}"; do # the naive one is checked beside it
        "$twagent" eval "$kernel" "$file" --backend webgpu --baseline naive --time-budget 1ms >out 2>&1
        grep -q "^kernel" out && grep -q "% of that roof" out; say $? "$kernel ${file##*/}: $(cat out)"
    done
done
"$twagent" doctor --adversarial --backend webgpu >out 2>&1; say $? "attacks: $(grep -v '^ok' out)"
"$twagent" run matmul@M=32,N=32,K=32 --backend webgpu --budget-evaluations 3 --final=false --time-budget 40ms --quiet \
    >out 2>&1
grep -q 'blocks.wgsl' out; say $? "run: $(cat out)"
[ "$failed" -eq 0 ]
