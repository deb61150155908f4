#!/usr/bin/env bash
# What is measured of the CUDA backend on a machine with a GPU, in one go:
#   bench/cuda/device.sh TWAGENT OUT_FOLDER [PART...]      parts: doctor eval batch faults
#   tests run devices table adversarial kernelbench (KERNELBENCH: the folder with its level1 and level2)
set -u
twagent=$(realpath "$1")
out=$(realpath "$2")
shift 2
parts=${*:-doctor eval batch tests run}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export TWAGENT_STORE=$out/../store-$$
mkdir -p "$TWAGENT_STORE"
naive=bench/cuda/matmul4096/naive32.cu
stamp() { printf '\n=== %s (%s s)\n' "$1" "$SECONDS"; }
timed() { # SECONDS-LIMIT COMMAND...: prints wall time and exit status last
    local limit=$1 begun ended status
    shift
    begun=$(date +%s.%N)
    timeout "$limit" "$@" 2>&1
    status=$?
    ended=$(date +%s.%N)
    awk -v a="$begun" -v b="$ended" -v s="$status" 'BEGIN {printf "wall %.2f s, status %d\n", b - a, s}'
}
for part in $parts; do
    case $part in
    doctor)
        stamp machine
        nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,temperature.gpu,power.draw --format=csv,noheader
        nproc; command -v python3; python3 --version
        stamp doctor
        timed 90 "$twagent" doctor --backend cuda
        ;;
    eval)
        stamp "eval, one process, from its start to the verdict (the first time nothing is remembered)"
        torch=bench/cuda/matmul4096/torch_matmul.py
        timed 120 python3 bench/cuda/eval.py "$twagent" $torch "${naive%.cu}_torch.cu" 4 --no-profile
        timed 60 python3 bench/cuda/eval.py "$twagent" bench/cuda/matmul4096 $naive 2 --no-profile
        ;;
    batch)
        stamp "batch, one worker"
        torch=bench/cuda/matmul4096/torch_matmul.py
        timed 90 python3 bench/cuda/batch.py "$twagent" $torch "${naive%.cu}_torch.cu" 20 search
        timed 90 python3 bench/cuda/batch.py "$twagent" $torch "${naive%.cu}_torch.cu" 5 full
        ;;
    faults)
        stamp "100 faulting candidates in a row"
        timed 120 python3 tests/gpu/faults.py "$twagent" 100
        ;;
    tests)
        stamp tests
        timed 260 tests/gpu/run "$twagent"
        ;;
    devices)
        stamp "run on one device, then on two: evaluations a minute"
        timed 200 python3 bench/cuda/devices.py "$twagent" softmax@dims 40s 0 0,1
        ;;
    run)
        stamp "run, built-in provider"
        timed 120 "$twagent" run matmul --backend cuda --budget-time 60s --quiet
        ;;
    adversarial)
        stamp "attacks and controls"
        timed 200 "$twagent" doctor --adversarial --backend cuda >"$out/adversarial.txt"
        grep -v '^ok' "$out/adversarial.txt"
        ;;
    kernelbench)
        for level in level1 level2; do
            stamp "problem check, $level"
            timed 560 "$twagent" problem check "$KERNELBENCH/$level" --backend cuda --jobs 14 --elements 131072 --each 150s >"$out/$level.txt"
            tail -n 3 "$out/$level.txt"
        done
        ;;
    table)
        stamp "five searches beside PyTorch"
        timed 420 bench/cuda/table/run "$twagent" "$out" --time 40s
        ;;
    esac
done
stamp end
nvidia-smi --query-gpu=memory.used,clocks.sm,temperature.gpu --format=csv,noheader
