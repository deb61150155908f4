#!/usr/bin/env bash
# Candidates in Triton: compiled, run in Triton's interpreter where there is no GPU, by the stand-in for a driver where
# there is one, and what is wrong with them said with its line. Skipped where no Python has Triton.
# FEW_MODULES, for a sanitizer: without what Python and Triton find out by themselves, since it does not watch them.
set -u
twagent=$1 fake=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache TWAGENT_LOCKS=$work/locks
export TWAGENT_CUDA_DRIVER=$work/libcuda.so.1 # there is none
. "${BASH_SOURCE[0]%/*}/helpers.sh"

relu=$root/problems/relu/starts/triton/linear.py
# --- whoever has no Triton
TWAGENT_TRITON_PYTHON=$work/none expect 3 'compiled   no: ' eval relu "$relu"
TWAGENT_TRITON_PYTHON=$work/none expect 3 '"compiled":null' eval relu "$relu" --json
TWAGENT_TRITON_PYTHON=$work/none expect 0 'Triton               none: ' doctor --no-measure
sed 's/    args:/    block: 128\n    args:/' "$relu" >"$work/block.py"
expect 1 'failed at parse: block.py:8: expected' eval relu "$work/block.py"
sed 's/BLOCK)$/SIZE)/' "$relu" >"$work/dim.py"
expect 1 'failed at parse: dim.py:7:' eval relu "$work/dim.py"
expect 1 'give --backend cuda' eval relu "$relu" --backend cpu

"$twagent" doctor --no-measure | grep -q '^  Triton  *[0-9]' || {
    echo "skipped but for $passed: no Python with Triton (pip install triton numpy; TWAGENT_TRITON_PYTHON names it)"
    exit $((failed > 0 ? 1 : 77))
}

# --- right where the interpreter can tell; unit/eval_cuda/test_triton_starts has every start
expect 3 "no verdict: right on 6 of 6 check shapes in Triton's interpreter, not timed" eval relu "$relu"
# --- what import makes of a file is taken: a kernel named _relu, a wrapper that is given its output, rows of a view
sed 's/entry: relu/entry: _relu/; s/def relu/def _relu/' "$relu" >"$work/under.py"
expect 3 "no verdict: right on 6 of 6" eval relu "$work/under.py"
imported() { # NAME: the wrapper on stdin
    {
        printf 'import torch, triton\nimport triton.language as tl\n\n\n@triton.jit\ndef _relu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n'
        printf '    for first in range(0, n, BLOCK):\n        at = first + tl.arange(0, BLOCK)\n        mine = tl.program_id(0) * n + at\n'
        printf '        tl.store(y_ptr + mine, tl.maximum(tl.load(x_ptr + mine, mask=at < n), 0.0), mask=at < n)\n\n\n' && cat
    } >"$work/$1.py"
    expect 0 'a candidate of run()' import "$work/$1.py" relu -o "$work/$1.candidate.py"
    expect 3 "no verdict: right on 6 of 6" eval relu "$work/$1.candidate.py"
}
imported given <<'PY'
def run(x, y):
    _relu[(x.shape[0],)](x, y, x.shape[1], BLOCK=64)
PY
imported viewed <<'PY'
def run(x):
    n = x.shape[-1]
    rows = x.view(-1, n)
    y = torch.empty_like(rows)
    _relu[(rows.shape[0],)](rows, y, n, BLOCK=64)
    return y
PY
# --- what is wrong, and where
theirs() { [ -n "${FEW_MODULES-}" ] || "$@"; }
variant() { # NAME SED TEXT: exit code 1
    sed "$2" "$relu" >"$work/$1.py"
    expect 1 "$3" eval relu "$work/$1.py"
}
variant name 's/mask=inside), 0.0/mask=within), 0.0/' 'name.py:18: error: '
theirs variant count 's/args: \[X, Y, M, N\]/args: [X, Y, M]/' 'relu: args has 3 names, but the function takes 4'
variant wrong 's/, 0.0, propagate/, 0.5, propagate/' 'rejected at check: Y['
variant outside 's/, mask=inside)$/)/' 'rejected at check: wrote outside its outputs'
theirs variant wrapper 's/^@triton.jit/@triton.autotune([triton.Config({})], key=[])\n@triton.jit/' 'relu has a decorator besides @triton.jit'

maps=$root/tests/adversarial/triton/controls/tensor_maps.py mm=$root/tests/adversarial/triton/problems/mm
mapped() { # NAME SED TEXT: exit code 1
    sed "$2" "$maps" >"$work/$1.py"
    expect 1 "$3" eval "$mm" "$work/$1.py"
}
theirs mapped always 's/(n % 4 == 0) & (k % 4 == 0)/n > 0/' 'must not be used'
mapped box 's/box: \[BK, 64\]/box: [BK, 48]/' 'right: box is 48, expected powers of two'
mapped dim 's/box: \[BK, 64\]/box: [BK, N]/' 'right: box (of tune parameters, facts'
mapped swizzle 's/box: \[BK, 64\]/box: [BK, 64], swizzle: 128B/' 'failed at parse: swizzle.py:8: expected'

# --- module code has no way out, and no say in what is believed
module() { # NAME TEXT CODE...: a line before the imports
    { sed '/^---"""/q' "$relu" && printf '%s\n' "${@:3}" && sed '1,/^---"""/d' "$relu"; } >"$work/$1.py"
    expect 1 "$2" eval relu "$work/$1.py"
}
theirs module reaches 'reaches.py:13: error: PermissionError' 'import socket' "file = '$root/README.md'" \
    'try: socket.socket()' 'except PermissionError: open(file)'
theirs module quits 'quits.py:1: error: the module ended its process' 'import os' 'os._exit(0)'
module paints 'paints.py:7: error:  ]0;x [31mred' 'import os' \
    'os.write(2, b"candidate.py:7: error: \x1b]0;x\x1b[31mred\x1b[2J\n"); os._exit(1)'
[[ "$out" != *$'\x1b'* ]] || { echo 'an escape sequence of a module reaches the terminal'; failed=$((failed + 1)); }
theirs module tries 'tries.py:25: error: RuntimeError: none of it worked' 'import os' 'for attempt in (' \
    '    os.fork, lambda: os.execv("/bin/true", ["true"]), lambda: os.kill(os.getppid(), 9),' \
    '    lambda: open("/dev/shm/x", "w"), lambda: os.listdir("/proc"), lambda: open("/etc/passwd"),' \
    '    lambda: os.posix_spawn("/bin/true", ["true"], {}), lambda: open(os.environ["TMPDIR"] + "/x", "w"),' \
    '    lambda: os.chmod(os.__file__, 0o644), lambda: os.utime(os.__file__), lambda: os.setxattr(os.__file__, "user.x", b"1"),' \
    '    lambda: os.removexattr(os.__file__, "user.x"), lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 5),' \
    '    lambda: os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0)),' \
    '    lambda: __import__("fcntl").fcntl(1, 8, os.getppid()), lambda: __import__("fcntl").fcntl(1, 10, 9)):' \
    '    try: attempt(); os._exit(1)' '    except PermissionError: pass' \
    'import threading' 'try: threading.Thread(target=print).start(); os._exit(1)' 'except RuntimeError: pass' \
    'else_ = None' 'raise RuntimeError("none of it worked")'

# --- what a module does to the compiler is done to its own process: the cubin is that of the same lines without it
python=${TWAGENT_TRITON_PYTHON:-python3}
compiled() { # NAME SOURCE: NAME/kernel.cubin
    mkdir "$work/$1" && cd "$work/$1" || exit 3
    "$python" -I - "$2" >request.json <<'EOF'
import json, sys
launch = {"entry": "relu", "args": ["fp32", "fp32", "int", "int"], "said": [], "constexprs": {"BLOCK": 1024}}
launch.update(options={"num_warps": 4}, variants=[["", "", "16", "16"], ["", "", "1", ""], ["", "", "", ""]])
print(json.dumps({"source": open(sys.argv[1]).read(), "arch": 90, "launches": [launch]}))
EOF
    prefixes=$("$python" -I -c 'import sys; print(sys.prefix, sys.base_prefix)')
    # shellcheck disable=SC2086
    "$twagent" cuda-compile --triton "$python" $prefixes "$root/libexec/triton_compile.py" sm_90a "" "" alone 2>errors || cat errors
    cd "$root" || exit 3
}
cp "$relu" "$work/plain.py"
cat "$relu" "$root/tests/integration/triton_patches.py" >"$work/patched.py"
theirs compiled plain "$work/plain.py"
theirs compiled patched "$work/patched.py"
said() { sed 's/"compile_ms":[0-9.]*//' "$work/$1/kernel.json"; }
alike() {
    [ -s "$work/plain/kernel.cubin" ] && cmp -s "$work/plain/kernel.cubin" "$work/patched/kernel.cubin" &&
        [ "$(said plain)" = "$(said patched)" ]
}
theirs alike
say $? 'a module that patches the compiler gets another cubin'

# --- with a GPU, by the stand-in for a driver: built by the server, from the cache, run, and tuned
cp -r "$root/problems/relu" "$work/relu"
"$python" -I - "$work/relu/spec.yaml" <<'EOF' || failed=$((failed + 1))
import sys
text = open(sys.argv[1]).read()
text = text[: text.index("check:")] + "check:\n  - {M: 8, N: 17}\nhidden:\n  M: [2, 60]\n  N: [2, 60]\n"
open(sys.argv[1], "w").write(text.replace("{M: 4096, N: 4096}", "{M: 64, N: 64}"))
EOF
printf '#!/bin/sh\nFAKE_CUDA_COSTS=1 exec "%s" "$@"\n' "$twagent" >"$work/costs"
chmod +x "$work/costs"
export TWAGENT_CUDA_DRIVER=$fake TWAGENT_SELF=$work/costs
sed 's/entry: relu/entry: relu_triton/; s/def relu/def relu_triton/' "$relu" >"$work/run.py"
expect 0 '"compiler":"Triton 3' eval "$work/relu" "$work/run.py" --backend cuda --json
[[ "$out" == *'"verdict":"kernel"'* ]] || { echo "not a kernel: $out"; failed=$((failed + 1)); }
expect 0 '"cached":true' eval "$work/relu" "$work/run.py" --backend cuda --force --json
# --- a verdict answers for the Triton and the ptxas that compiled it: the same lane with another of them asks anew
hash_of() { # TRITON PTXAS: of the question, by a Python that says that it has these; "": the real one
    local python=${TWAGENT_TRITON_PYTHON-}
    [ -z "$1" ] || {
        mkdir -p "$work/wheel/backends/nvidia/bin" && python=$work/other
        printf '#!/bin/sh\necho "Cuda compilation tools, release 12.9, %s"\n' "$2" >"$work/wheel/backends/nvidia/bin/ptxas"
        printf '#!/bin/sh\nprintf "%%s\\n" found "%s" /usr 3.11.0 "%s" "" "%s"\n' "$work" "$1" "$work/wheel" >"$python"
        chmod +x "$python" "$work/wheel/backends/nvidia/bin/ptxas"
    }
    rm -rf "$work/asked" # a cache with this verdict alone, whatever it is
    TWAGENT_TRITON_PYTHON=$python TWAGENT_STORE=$work/asked "$twagent" eval "$work/relu" "$work/run.py" --backend cuda \
        --effort search >/dev/null 2>&1 </dev/null
    TWAGENT_STORE=$work/asked "$twagent" cache list | sed -n 's/.*_h\([0-9a-f]*\).*/\1/p'
}
differ=$(printf '%s\n' "$(hash_of '' '')" "$(hash_of 9.9.0 V1.0.0)" "$(hash_of 9.9.1 V1.0.0)" "$(hash_of 9.9.0 V1.0.1)" \
    "$(hash_of 9.9.0 V1.0.0)" | sort | uniq -c | awk '{printf "%s ", $1 (NF > 1 ? "" : "!")}')
[ "$(tr ' ' '\n' <<<"$differ" | sort | tr -d '\n')" = 1112 ] || { echo "questions: $differ"; failed=$((failed + 1)); }
# One that is 1 is folded into the kernel; the stand-in's own has six parameters still.
expect 1 'relu_triton: args has 5 names, but the function takes 6' eval "$work/relu@M=1,N=64" "$work/run.py" --backend cuda
sed 's/mask=inside), 0.0/mask=within), 0.0/' "$work/run.py" >"$work/within.py"
expect 1 'candidate.py:18: error: ' eval "$work/relu" "$work/within.py" --backend cuda
sed 's/BLOCK: \[.*/BLOCK: [256, 512]/' "$work/run.py" >"$work/tuned.py"
expect 1 '4 evaluated in' tune "$work/relu" "$work/tuned.py" --backend cuda --no-final
# Compiles of a tune are side by side, and beside what is timed by the device's own clock. One core counts as sixteen. None
# begins before four have come, and the first goes on until a point is timed: where that never is, each gives up.
sed 's/BLOCK: \[.*/BLOCK: [128, 256, 512]/; s/num_warps: .*/num_warps: [4, 2]/' "$work/run.py" >"$work/many.py"
core=$("$python" -I -c 'import os; print(*16 * [min(os.sched_getaffinity(0))], sep=",")')
mkdir "$work/came"
cat >"$work/meets" <<EOF
#!/bin/sh
until_there() { # COMMAND...: in vain it is only once
    for n in \$(seq 6000); do [ ! -e $work/vain ] || return; "\$@" && return; sleep 0.05; done
    touch $work/vain
}
four() { [ "\$(ls $work/came | wc -l)" -ge 4 ]; }
if [ "\$1 \$2" = 'cuda-compile --triton' ]; then
    touch $work/came/\$\$
    until_there four
    ! mkdir $work/first 2>/dev/null || until_there grep -q ' time\$' $work/timeline
fi
FAKE_CUDA_COSTS=1 exec "$twagent" "\$@"
EOF
chmod +x "$work/meets"
TWAGENT_SELF=$work/meets TWAGENT_TIMELINE=$work/timeline XDG_CACHE_HOME=$work/cold expect 1 '6 evaluated in' \
    tune "$work/relu" "$work/many.py" --backend cuda --no-final --cores "$core" --store "$work/many"
[ -d "$work/first" ] && [ ! -e "$work/vain" ]; say $? "compiles of a tune wait for each other: $(cat "$work/timeline")"

# --- a search in Triton by a mailbox: prompts with its format, an answer in its language, a lesson that says so
mkdir -p "$work/box" && cp "$work/run.py" "$work/relu/starts/triton/linear.py"
sed -i 's/BLOCK: \[.*/BLOCK: [256]/; s/num_warps: .*/num_warps: [4]/' "$work/relu/starts/triton/linear.py"
answer() { # a request's file
    local answer=${1%.md}.answer.txt
    [ ! -e "$answer" ] || return
    if grep -q '^# ideas for' "$1"; then
        echo '{"ideas": [{"title": "Keep what is read once out of the cache", "category": "memory",' \
            '"why": "It is not read again.", "expected": 1.1, "parent": "r1-c1"}]}' >"$answer.part"
    else
        grep -q 'One Python file of Triton.' "$1" || { echo "no page on Triton in $1"; return; }
        { echo '```python' && sed 's/mask=inside)/mask=inside, eviction_policy="evict_first")/' \
            "$work/relu/starts/triton/linear.py" && echo '```'; } >"$answer.part"
    fi
    mv "$answer.part" "$answer"
}
export TWAGENT_STORE=$work/mailbox
"$twagent" run "$work/relu" --language triton --model "mailbox/$work/box" -b 1 -i 1 -r 1 --no-final \
    --mailbox-wait 10m >"$work/out" 2>&1 </dev/null &
searching=$!
while kill -0 $searching 2>/dev/null; do
    for request in "$work"/box/*.md; do [ ! -e "$request" ] || answer "$request"; done
    sleep 0.2
done
wait $searching
expect 0 '2 kernels, 0 rejected, 0 failed' show r1
expect 0 '"language":"triton"' lessons export
expect 0 'r1-c2.py' show r1-c2

# --- as a package for PyTorch: an operator of torch.library, here in the interpreter
expect 0 'wrote ' emit r1-c2 "$work/package"
if "$python" -c 'import torch' 2>/dev/null; then
    TRITON_INTERPRET=1 "$python" -B "$work/package/test.py" M=9,N=33 | grep -q '^ok ' || { echo 'the package is wrong'; failed=$((failed + 1)); }
fi

# --- which language, and where there is none
expect 2 'the backend cpu has no such language' run "$work/relu" --language triton --backend cpu
TWAGENT_CUDA_DRIVER=$work/none.so expect 3 'compiles a kernel for it, and runs it at small shapes' run relu --language triton

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
