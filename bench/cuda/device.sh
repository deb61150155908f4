#!/usr/bin/env bash
# What is measured of the CUDA backend on a machine with a GPU, in one go:
#   bench/cuda/device.sh TWAGENT OUT_FOLDER [PART...]      parts: doctor eval batch tests run
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
        stamp "eval, one process (the second time ceilings and Python are known)"
        for reference in matmul4096 matmul4096/torch_matmul.py; do
            for turn in 1 2; do
                echo "-- $reference, $turn"
                kernel=$naive
                [ "$reference" = matmul4096 ] || kernel=${naive%.cu}_torch.cu
                timed 60 "$twagent" eval bench/cuda/$reference $kernel --backend cuda
            done
        done
        ;;
    batch)
        stamp batch
        timed 90 python3 bench/cuda/batch.py "$twagent" bench/cuda/matmul4096 $naive 20 full
        timed 60 python3 bench/cuda/batch.py "$twagent" bench/cuda/matmul4096/torch_matmul.py "${naive%.cu}_torch.cu" 20 full
        ;;
    tests)
        stamp tests
        timed 260 tests/gpu/run "$twagent"
        ;;
    run)
        stamp "run, built-in provider"
        timed 120 "$twagent" run matmul --backend cuda --budget-time 60s --quiet
        ;;
    esac
done
stamp end
nvidia-smi --query-gpu=memory.used,clocks.sm,temperature.gpu --format=csv,noheader
