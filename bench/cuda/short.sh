#!/usr/bin/env bash
# What one short call on a machine with a GPU shows, most valuable first, in at most 200 s:
#   bench/cuda/short.sh TWAGENT OUT_FOLDER [PART...]      parts: layernorm relu sanitizer attacks
#   final wide runoff lines
# Every part has a limit of its own and what is left of the whole; what it prints comes as it goes. It needs no
# build: a bundle's bin/twagent does. TWAGENT_SHORT_S: the seconds in all.
set -u
twagent=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
shift 2
parts=${*:-layernorm relu sanitizer attacks final wide runoff lines}
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
export TWAGENT_STORE=$out/../store-$$ PYTHONUNBUFFERED=1
mkdir -p "$TWAGENT_STORE"
all=${TWAGENT_SHORT_S:-200}
limited() { # SECONDS COMMAND...
    local limit=$1 left=$((all - SECONDS)) begun=$SECONDS status
    shift
    [ "$limit" -lt "$left" ] || limit=$left
    if [ "$limit" -lt 3 ]; then
        echo "left out: no time is left"
        return
    fi
    timeout -k 2 "$limit" "$@" 2>&1
    status=$?
    echo "($((SECONDS - begun)) s of at most $limit, status $status)"
}
where_it_went() { # FILE: of $TWAGENT_TIMELINE
    [ -s "$1" ] && python3 bench/cuda/timeline.py "$1"
}
for part in $parts; do
    printf '\n=== %s (%s s)\n' "$part" "$SECONDS"
    case $part in
    layernorm) # its row with 40 s: aim: verified, about 2.07x compile
        TWAGENT_TIMELINE=$out/layernorm.timeline limited 62 bench/cuda/table/search "$twagent" "$out" --time 40s --only layernorm
        grep -E ' run\.| kept' "$out/layernorm.log" | cut -c 1-200 | tail -n 12
        where_it_went "$out/layernorm.timeline"
        ;;
    relu) # aim: a kernel, where the file was refused as unfit
        limited 34 bench/cuda/table/search "$twagent" "$out" --time 18s --only relu | sed -n '/^|/p;/^(/p'
        grep -i 'not fit' "$out/relu.log" || echo "fit"
        ;;
    sanitizer) # a win on numpy's product: aim: sanitize.* in 2 s, verdict after 6 s
        limited 40 python3 bench/cuda/eval.py "$twagent" bench/cuda/matmul4096 bench/cuda/matmul4096/naive32.cu 1 --no-profile
        ;;
    attacks) # aim: every verdict as named in tests/adversarial/cuda/manifest.yaml
        for file in printf_text prints by_map texture; do
            limited 14 "$twagent" doctor --adversarial "$file" --backend cuda | grep -v '^ *$' | tail -n 4
        done
        ;;
    final) # aim: a headline against torch, PyTorch's attention
        limited 45 "$twagent" eval --force problems/attention problems/attention/baselines/naive.cu --backend cuda --effort final --no-profile
        ;;
    wide) # the definition's kernel in float64: aim: wide.open once, wide.compute several times
        rm -f "$out/wide.timeline"
        TWAGENT_TIMELINE=$out/wide.timeline limited 25 "$twagent" eval --force problems/attention problems/attention/baselines/naive.cu --backend cuda --effort search --no-profile
        where_it_went "$out/wide.timeline" | grep -E 'step|wide|set\.|open\.'
        ;;
    lines) # aim: "where the time goes: ... in line 19", and a verdict with its profile in 9 s (10 to 13 the first time)
        limited 26 python3 bench/cuda/eval.py "$twagent" bench/cuda/matmul4096 bench/cuda/matmul4096/naive32.cu 2
        limited 20 "$twagent" profile bench/cuda/matmul4096 bench/cuda/matmul4096/naive32.cu --backend cuda
        ;;
    runoff) # the best few in turns with each other: aim: lines of run.off
        limited 38 "$twagent" run matmul --backend cuda --budget-time 30s --verbose | grep -E 'run\.(off|verified|final|end)' | cut -c 1-200
        ;;
    esac
done
printf '\n=== end (%s s)\n' "$SECONDS"
