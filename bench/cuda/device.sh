#!/usr/bin/env bash
# What is measured of the CUDA backend on a machine with a GPU, in one go:
#   bench/cuda/device.sh TWAGENT OUT_FOLDER [PART...]      parts: doctor eval batch faults verdict starts speed
#   tests run devices table adversarial kernelbench (KERNELBENCH: the folder with its level1 and level2)
# The last lines are a table: what each part came to. It needs no build: a bundle's bin/twagent does.
# The part `verdict` takes $TURNS turns (3), in each with an earlier build first, where $BEFORE is its twagent.
set -u
twagent=$(realpath "$1")
out=$(realpath "$2")
before=${BEFORE:+$(realpath "$BEFORE")}
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
row() { # NAME TEXT: of the table at the end
    printf '%-34s %s\n' "$1" "$2" >>"$out/summary.txt"
}
start_of_torch() { # NAME: a start of `matmul` with the arguments of bench/cuda/matmul4096/torch_matmul.py; prints its path
    sed -e 's/ceil_div(M, BM)/ceil_div(BATCH, BM)/; s/ceil_div(N, BN)/ceil_div(4096, BN)/' \
        -e 's/args: \[A, B, C, M, N, K\]/args: [A, B, out, BATCH]/' \
        -e 's/long long M, long long N, long long K)$/long long M)/' "problems/matmul/starts/cuda/$1.cu" |
        awk '{print} /long long M\)$/ {found = 1} found && /^{/ {print "    const long long N = 4096, K = 4096;"; found = 0}' \
            >"$out/$1_torch.cu"
    echo "$out/$1_torch.cu"
}
: >"$out/summary.txt"
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
    verdict)
        stamp "the naive product's verdict with its profile (the first time nothing is remembered)"
        for turn in $(seq "${TURNS:-3}"); do
            for build in ${before:+"$before"} "$twagent"; do
                timed 40 python3 bench/cuda/eval.py "$build" bench/cuda/matmul4096 $naive 1 >"$out/verdict.txt"
                echo "$build"
                cat "$out/verdict.txt"
                said=$(sed -n 's/^eval.*verdict after \([0-9.]* s\).*ms: \(.*\); {.*/\1; ms: \2/p' "$out/verdict.txt")
                row "naive product with its profile" "$([ "$build" = "$twagent" ] && echo now || echo before): $said (aim: 6 s)"
            done
        done
        stamp "a win by eval's defaults: sanitized, and again in a fresh process"
        timed 90 "$twagent" eval --force matmul problems/matmul/starts/cuda/simt.cu --backend cuda --no-profile >"$out/win.txt"
        cat "$out/win.txt"
        row "matmul/simt, eval by its defaults" "$(sed -n 1p "$out/win.txt"), $(grep -m 1 speed-up "$out/win.txt" | tr -s ' ')"
        ;;
    starts)
        stamp "all starts"
        timed 580 tests/gpu/starts "$twagent" | tee "$out/starts.txt"
        row "starts" "$(grep '^starts: ' "$out/starts.txt")"
        ;;
    batch)
        stamp "batch, one worker"
        torch=bench/cuda/matmul4096/torch_matmul.py
        timed 90 python3 bench/cuda/batch.py "$twagent" $torch "${naive%.cu}_torch.cu" 20 search
        for kernel in "${naive%.cu}_torch.cu" "$(start_of_torch simt)"; do
            timed 90 python3 bench/cuda/batch.py "$twagent" $torch "$kernel" 5 full
        done
        ;;
    speed) # where a verdict's seconds go, its profile included; numpy definitions with and without a kernel beside them
        stamp "verdicts with their profiles, and their time lines"
        timed 60 python3 bench/cuda/eval.py "$twagent" bench/cuda/matmul4096/torch_matmul.py "${naive%.cu}_torch.cu" 3
        timed 60 python3 bench/cuda/eval.py "$twagent" bench/cuda/matmul4096 $naive 2
        for problem in softmax layernorm conv2d attention; do
            without=$(mktemp -d)
            cp -r "problems/$problem" "$without"
            rm "$without/$problem/ref_impl.cu"
            start=$(ls problems/$problem/starts/cuda/*.cu | head -n 1)
            for folder in "$without/$problem" "problems/$problem"; do
                stamp "$folder"
                timed 60 python3 bench/cuda/eval.py "$twagent" "$folder" "$start" 2
            done
        done
        for problem in softmax matmul conv2d; do
            stamp "run $problem: 60 s"
            timed 150 "$twagent" run $problem --backend cuda --budget-time 60s --quiet
        done
        stamp "a compile bomb"
        timed 120 "$twagent" eval --force tests/adversarial/cuda/problems/mm tests/adversarial/cuda/attacks/bomb_unroll.cu --backend cuda
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
        timed 400 "$twagent" doctor --adversarial --backend cuda >"$out/adversarial.txt"
        grep -v '^ok' "$out/adversarial.txt"
        row "attacks and controls" "$(grep -c '^ok' "$out/adversarial.txt") ok, $(grep -c '^FAIL' "$out/adversarial.txt") FAIL, $(grep -c '^skip' "$out/adversarial.txt") skipped, $(tail -n 1 "$out/adversarial.txt")"
        row "" "$(grep '^FAIL' "$out/adversarial.txt" | awk '{print $2}' | tr '\n' ' ')"
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
        timed 200 bench/cuda/table/run --json "$out/rows.json" >"$out/rows.txt"
        timed 560 bench/cuda/table/search "$twagent" "$out" --time 40s >"$out/table.txt"
        cat "$out/table.txt"
        row "five searches" "$(grep -c . "$out/table.txt") lines in table.txt"
        ;;
    esac
done
stamp end
nvidia-smi --query-gpu=memory.used,clocks.sm,temperature.gpu --format=csv,noheader
stamp table
cat "$out/summary.txt"
