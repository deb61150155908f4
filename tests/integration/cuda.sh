#!/usr/bin/env bash
# What the backend cuda says on machines that lack its driver, its GPUs or its compiler; the driver,
# where there is one, is the one that tests bring.
set -u
twagent=$1 fake=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
kernel=$root/problems/softmax/starts/cuda/warp.cu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache
unset CUDA_VISIBLE_DEVICES
failed=0 passed=0
# expect CODE TEXT ARGUMENTS...: the command ends with CODE, and TEXT stands in what it prints.
expect() {
    local code=$1 text=$2 out status
    shift 2
    out=$("$twagent" "$@" 2>&1 </dev/null)
    status=$?
    if [ $status -ne "$code" ] || [[ "$out" != *"$text"* ]]; then
        printf 'twagent %s: exit %d (expected %d), printed:\n%s\nexpected in it: %s\n' "$*" $status "$code" "$out" "$text"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}

# --- a source's name says what runs it
export TWAGENT_CUDA_DRIVER=$work/libcuda.so.1 # there is none
expect 3 'no NVIDIA driver' eval softmax "$kernel"
expect 3 'no NVIDIA driver' profile softmax "$kernel"
expect 1 'give --backend cuda' eval softmax "$kernel" --backend cpu

# --- what a worker is started with: what docs/architecture.md says of the compile server
printf '#!/bin/sh\n[ "$1" != worker ] || env >"%s"\nexec "%s" "$@"\n' "$work/environment" "$twagent" >"$work/self"
chmod +x "$work/self"
TWAGENT_SELF=$work/self TWAGENT_CUDA_SERVER=0 expect 3 'no NVIDIA driver' doctor --backend cuda
grep -qx 'TWAGENT_CUDA_SERVER=0' "$work/environment" || { echo 'a worker is not told TWAGENT_CUDA_SERVER'; failed=$((failed + 1)); }

# --- the doctor: all that is found, then what is missing, then the failure
expect 3 'GPU                  none: no NVIDIA driver' doctor --backend cuda
for text in 'NVRTC                ' 'compute-sanitizer    ' 'hardware counters    ' 'MISSING  a GPU with its driver' \
    'twagent: no NVIDIA driver'; do
    expect 3 "$text" doctor --backend cuda
done
TWAGENT_NVRTC=$work/none expect 3 'MISSING  NVRTC, to compile candidates: the CUDA toolkit, or pip install' doctor --backend cuda
TWAGENT_CUDA_DRIVER=$fake TWAGENT_NVRTC=$work/none expect 3 'MISSING  NVRTC' doctor --backend cuda --no-measure
TWAGENT_CUDA_DRIVER=$fake expect 3 'GPU 0                Fake GPU' doctor --backend cuda --devices 1
expect 0 'GPU                  none: no NVIDIA driver' doctor --no-measure

# --- which GPUs
for devices in x 0-1 -1 '' 0, ,0 0,x 99999 '0, 1' all,0; do
    expect 2 "--devices \"$devices\": expected the numbers of GPUs" doctor --backend cuda --devices "$devices"
done
for devices in 0,0 1,0,01; do
    expect 2 "--devices $devices: expected each GPU once" run softmax --backend cuda --devices $devices
done
mkdir -p "$work/config/twagent"
echo 'devices: 0-1' >"$work/config/twagent/config.yaml"
expect 2 '--devices "0-1": expected' doctor --backend cuda
rm "$work/config/twagent/config.yaml"
expect 2 'expected the number of a GPU' worker --backend cuda --device first

echo "cuda: $passed passed, $failed failed"
[ $failed -eq 0 ]
