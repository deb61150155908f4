#!/usr/bin/env bash
# What the backend cuda says on machines that lack its driver, its GPUs or its compiler; the driver,
# where there is one, is the one that tests bring.
set -u
twagent=$1 fake=$2 sanitizer=$3
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
kernel=$root/problems/softmax/starts/cuda/warp.cu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache
unset CUDA_VISIBLE_DEVICES
. "${BASH_SOURCE[0]%/*}/helpers.sh"

# --- a source's name says what runs it
export TWAGENT_CUDA_DRIVER=$work/libcuda.so.1 # there is none
expect 3 'no verdict: nothing was run' eval softmax "$kernel"
also 'no NVIDIA driver'
expect 3 'no NVIDIA driver' profile softmax "$kernel"
expect 1 'give --backend cuda' eval softmax@M=8,N=8 "$kernel" --backend cpu

# --- no GPU: what can be said all the same, and never a verdict for a kernel
expect 0 'GPU                  none: no NVIDIA driver' doctor --no-measure
compiler=$(grep -o '^  NVRTC  *[0-9]' <<<"$out")
relu=$root/problems/relu/starts/cuda/linear.cu
expect 3 'grid 1056 x 1 x 1, block 512 x 1 x 1' eval relu "$relu" --tune BLOCK=512
expect 3 'no verdict without a GPU: no NVIDIA driver' eval relu "$relu"
[ -z "$compiler" ] || also 'compiled   by NVRTC' 'entry      relu: ' ' registers, no spills, 0 bytes of static shared memory'
expect 3 '{"verdict":null,"missing":["no NVIDIA driver' eval relu "$relu" --json
[ -z "$compiler" ] || also '"cached":true' '"arch":"sm_90a"' # from the folder of cubins
TWAGENT_NVRTC=$work/none expect 3 'compiled   no: no NVRTC found' eval relu "$relu"
TWAGENT_NVRTC=$work/none expect 3 '"compiled":null' eval relu "$relu" --json
sed 's/ block: BLOCK/ blok: BLOCK/' "$relu" >"$work/front.cu"
expect 1 'failed at parse: front.cu:5: expected the key "block"' eval relu "$work/front.cu"
expect 1 '"verdict":"failed","stage":"parse"' eval relu "$work/front.cu" --json
sed 's/ block: BLOCK/ block: 8 * BLOCK/' "$relu" >"$work/plan.cu"
expect 1 'rejected at check: relu: block is 2048, expected 1 to 1024' eval relu "$work/plan.cu"
cp "$relu" "$work/plain.c"
sed -i '/^\/\*---/,/^---\*\//d' "$work/plain.c"
expect 1 'a source in c does not run on the backend cuda: give --backend cpu' eval relu "$work/plain.c" --backend cuda
expect 1 'X is no parameter of this candidate' eval relu "$relu" --tune X=1
TWAGENT_CUDA_DRIVER=$fake expect 3 'twagent: no GPU 1 here' eval relu "$relu" --devices 1 # there is one, so no guess
if [ -n "$compiler" ]; then
    expect 3 'before this (the target' eval relu "$relu"
    sed '/extern "C"/,/{/s/{/{ if (threadIdx.x > 1000) free(malloc(64));/' "$relu" >"$work/heap.cu"
    expect 1 'rejected at check: malloc() in device code: the heap would keep state' eval relu "$work/heap.cu"
    expect 1 '"verdict":"rejected","stage":"check"' eval relu "$work/heap.cu" --json
    expect 3 '"entry":"relu","registers":' profile relu "$relu" --json
    sed 's/v.x = v.x </v.x = w.x </' "$relu" >"$work/source.cu"
    expect 1 'failed at compile: does not compile for sm_90a' eval relu "$work/source.cu"
    also 'source.cu(18): error: identifier "w" is undefined'
    sed 's/entry: relu/entry: rely/' "$relu" >"$work/entry.cu"
    # who kills a compiler, or its child, says nothing of the source
    for how in 'kill -9 $$' 'echo "cuda-compile: the compiler was killed, by no limit of ours" >&2; exit 1'; do
        printf '#!/bin/sh\ncase "$* " in "cuda-compile "*" --arch "*) %s ;; esac\nexec "%s" "$@"\n' "$how" "$twagent" >"$work/dies"
        chmod +x "$work/dies"
        TWAGENT_SELF=$work/dies expect 3 '"details":"the compiler was killed","ours":true' eval relu "$relu" --json
    done
    expect 1 'the launch names rely, which is no extern "C" __global__' eval relu "$work/entry.cu"
fi

# --- what a worker is started with: what docs/architecture.md says of the compile server
printf '#!/bin/sh\n[ "$1" != worker ] || env >"%s"\nexec "%s" "$@"\n' "$work/environment" "$twagent" >"$work/self"
chmod +x "$work/self"
TWAGENT_SELF=$work/self TWAGENT_CUDA_SERVER=0 TWAGENT_CUDA_CACHE=0 expect 3 'no NVIDIA driver' doctor --backend cuda
for name in TWAGENT_CUDA_SERVER TWAGENT_CUDA_CACHE; do
    grep -qx "$name=0" "$work/environment" || { echo "a worker is not told $name"; failed=$((failed + 1)); }
done

# --- the doctor: all that is found, then what is missing, then the failure
expect 3 'GPU                  none: no NVIDIA driver' doctor --backend cuda
also 'NVRTC                ' 'compute-sanitizer    ' 'hardware counters    ' 'MISSING  a GPU with its driver' \
    'twagent: no NVIDIA driver'
TWAGENT_NVRTC=$work/none expect 3 'MISSING  NVRTC, to compile candidates: the CUDA toolkit, or pip install' doctor --backend cuda
TWAGENT_CUDA_DRIVER=$fake TWAGENT_NVRTC=$work/none expect 3 'MISSING  NVRTC' doctor --backend cuda --no-measure
TWAGENT_CUDA_DRIVER=$fake expect 3 'GPU 0                Fake GPU' doctor --backend cuda --devices 1

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

# --- several GPUs: all are those that the driver shows, and of one kind
printf '#!/bin/sh\n[ "$1" != worker ] || echo "$@" >>"%s"\nexec "%s" "$@"\n' "$work/workers" "$twagent" >"$work/self"
run_on() { # CODE TEXT VISIBLE ARGUMENTS...: a search of two evaluations there
    local code=$1 text=$2 visible=$3
    shift 3
    rm -f "$work/workers"
    CUDA_VISIBLE_DEVICES=$visible TWAGENT_CUDA_DRIVER=$fake TWAGENT_SELF=$work/self \
        expect "$code" "$text" run relu@M=8,N=8 --backend cuda --no-final --quiet --budget-evaluations 2 "$@"
}
lanes() { # EXPECTED
    local got
    got=$(grep -o 'device [0-9]*' "$work/workers" | sort -u | tr '\n' ' ')
    [ "$got" = "$1" ] && passed=$((passed + 1)) || { echo "lanes: '$got', expected '$1'"; failed=$((failed + 1)); }
}
if [ -n "$compiler" ]; then
    run_on 4 '2 evaluated' 0 --devices all
    lanes 'device 0 '
    run_on 4 '2 evaluated' 0,GPU-b --devices 1
else
    echo "no NVRTC here: runs on several GPUs are left out"
fi
# --- what comes before a checked launch of a kernel with variables
cat >"$work/replay.cu" <<'EOF'
/*---
launch:
  - {entry: relu_replays, grid: 1, block: 1, args: [X, Y, M, N]}
---*/
__device__ int seen;
extern "C" __global__ void relu_replays(const float *X, float *Y, long long M, long long N)
{
    seen = seen + 1;
    Y[0] = X[0];
}
EOF
if [ -n "$compiler" ]; then
    TWAGENT_CUDA_DRIVER=$fake expect 1 'rejected at check: wrong result' eval relu@M=40,N=40 "$work/replay.cu" --backend cuda --no-profile
fi
# --- what one launch leaves to the next, by a clock that only launches move: results kept where nobody clears them
# win nothing, since a win is timed again in a fresh process on inputs that it never met; with a cooperative launch
# none is ever replayed; and what does nothing from its 13th launch on is no finalist
printf '#!/bin/sh\nFAKE_CUDA_COSTS=1 exec "%s" "$@"\n' "$twagent" >"$work/costs"
chmod +x "$work/costs"
lasting() { # CODE TEXT ENTRY MORE DECLARATION USE ARGUMENTS...
    local code=$1 text=$2 entry=$3 more=$4 declaration=$5 use=$6
    shift 6
    cat >"$work/lasting.cu" <<EOF
/*---
launch:
  - {entry: $entry, grid: 1, block: 1, args: [X, Y, M, N]$more}
---*/
$declaration
extern "C" __global__ void $entry(const float *X, float *Y, long long M, long long N)
{
    $use
    Y[0] = X[0];
}
EOF
    TWAGENT_SELF=$work/costs TWAGENT_CUDA_DRIVER=$fake \
        expect "$code" "$text" eval relu@M=40,N=40 "$work/lasting.cu" --backend cuda --no-profile "$@"
}
if [ -n "$compiler" ]; then
    long='--effort search --time-budget 60s'
    lasting 0 'x in a fresh process that had met none of them: the latter counts' relu_hoards '' '' '' $long
    lasting 0 '  time       4.' relu_hoards ', cooperative: true' '' '' $long # a replay takes 1
    lasting 0 'faster, not sanitized' relu_quick '' '' '' --effort search
    TWAGENT_COMPUTE_SANITIZER=$work/none lasting 0 'faster, not sanitized' relu_quick '' '' ''
    # a win's sanitizer works beside its checks; nothing of it runs from the first timed call to the last
    order_of() { # 0: it was at work before the timing and not in it; 1: behind it alone; 2: in it, or never
        awk '$4 == "time" {from = $2; to = $2 + $3} {name[NR] = $4; begin[NR] = $2; end[NR] = $2 + $3}
            END {for (i = 1; i <= NR; i++)
                     if (name[i] ~ /^sanitize\.(racecheck|end)$/) {
                         bad = bad || from == 0 || (begin[i] < to && end[i] > from)
                         ahead = ahead || begin[i] < from
                         ended = ended || name[i] == "sanitize.end"
                     }
                 exit bad || !ended ? 2 : !ahead}' "$work/timeline" # pid, begin, length, name
    }
    beside() { # CODE TEXT SAYS: a busy machine may start the tools too late for the checks, now and then
        local status=1 try
        printf '#!/bin/sh\nFAKE_SANITIZER=%s FAKE_CUDA_COSTS=1 exec "%s" "$@"\n' "$3" "$twagent" >"$work/costs"
        for ((try = 0; try < 20 && status == 1; try++)); do
            rm -f "$work/timeline"
            TWAGENT_TIMELINE=$work/timeline TWAGENT_COMPUTE_SANITIZER=$sanitizer lasting "$1" "$2" relu_quick '' '' '' --force
            order_of
            status=$?
        done
        say $status "the sanitizer works beside the checks and never in the timing: $(grep ' sanitize\.\| time$' "$work/timeline")"
    }
    beside 0 ': faster; left out' ''
    # where another candidate waits the first one's shapes come behind its timing, and the last one's beside its checks
    cp -r "$root/problems/relu" "$work/relu"
    sed -i 's/^dims: .*/dims: {M: 40, N: 40}/' "$work/relu/spec.yaml"
    rm -f "$work/timeline"
    TWAGENT_TIMELINE=$work/timeline TWAGENT_COMPUTE_SANITIZER=$sanitizer TWAGENT_SELF=$work/costs TWAGENT_CUDA_DRIVER=$fake \
        python3 - "$work/costs" "$work/relu" "$work/lasting.cu" <<'EOF'
import json, subprocess, sys
worker = subprocess.Popen([sys.argv[1], "worker", "--backend", "cuda"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
source = open(sys.argv[3]).read()
requests = [{"op": "open", "id": "open", "problem": sys.argv[2]}]
requests += [{"op": "evaluate", "id": f"{i}", "name": "c.cu", "source": f"{source}// {i}\n"} for i in range(2)]
worker.stdin.write("".join(json.dumps(request) + "\n" for request in requests))
worker.stdin.flush()
verdicts = []
for answer in map(json.loads, worker.stdout):
    verdicts += [answer["evaluation"]["verdict"]] if "evaluation" in answer else []
    if len(verdicts) == 2 or answer["event"] == "error":
        worker.stdin.close()
sys.exit(verdicts != ["kernel", "kernel"] or worker.wait())
EOF
    say $? 'two wins in a worker'
    order=$(awk '$4 ~ /^(check|time|sanitize.end)$/ {printf "%.0f %s\n", $2 + $3, $4}' "$work/timeline" | sort -n | awk '{printf "%s ", $2}')
    [[ $order == 'check time sanitize.end '* ]]
    say $? "a sanitizer beside the checks where another candidate waits: $order"
    beside 1 'rejected at sanitize: compute-sanitizer (racecheck) found a defect' racecheck:race
    printf '#!/bin/sh\nFAKE_CUDA_COSTS=1 exec "%s" "$@"\n' "$twagent" >"$work/costs"
    lasting 1 'rejected at check: wrong result' relu_peeks '' '' ''
    # a point that the device has no room for is none of its space; where there is no other, it is the author's fault
    sed '/^launch/i tune: {SIZE: [64, 300000]}' "$work/lasting.cu" >"$work/room.cu"
    sed -i 's/relu_[a-z]*/relu_hoards/; s/grid: 1,/shared: SIZE, &/' "$work/room.cu"
    room() { TWAGENT_SELF=$work/costs TWAGENT_CUDA_DRIVER=$fake expect "$@" --store "$work/room"; }
    room 1 '1 kernel, 0 rejected, 0 failed, 1 no point of the tune space' tune relu@M=8,N=8 "$work/room.cu" --no-final --backend cuda
    room 0 'evaluated  1 in ' show r1
    room 1 'failed at compile: no point of its tune space here: relu_hoards: shared is 300000' \
        eval relu@M=8,N=8 "$work/room.cu" --tune SIZE=300000 --backend cuda
    sed '/^tune/d; s/shared: SIZE/shared: 300000/' "$work/room.cu" >"$work/wide.cu"
    room 1 'rejected at check: relu_hoards: shared is 300000' eval relu@M=8,N=8 "$work/wide.cu" --backend cuda
    lasting 1 'of a program that was loaded once: wrong result' relu_tires '' '__device__ int seen;' 'seen = seen + 1;' --effort final
    lasting 1 'of a program that was loaded once: wrong result' relu_tires_late '' '__device__ int seen;' 'seen = seen + 1;'
fi
if [ -n "$compiler" ] && [ "$(nproc)" -ge 2 ]; then
    run_on 4 '2 evaluated' 0,1 --devices all
    lanes 'device 0 device 1 '
    run_on 2 'GPU 0 is "Fake GPU", GPU 1 "Fake GPU b": times on unlike GPUs cannot be compared' 0,GPU-b --devices all
    run_on 2 'GPU 1 is "Fake GPU b", GPU 0 "Fake GPU"' 0,GPU-b --devices 1,0
fi
run_on 3 'no GPU 1 here: the driver shows 1' 0 --devices 1
run_on 3 '--devices all: no GPU 0 here' '' --devices all
run_on 2 '--devices all counts the GPUs of this machine' 0 --devices all --launcher 'ssh node7'

echo "cuda: $passed passed, $failed failed"
[ $failed -eq 0 ]
