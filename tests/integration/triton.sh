#!/usr/bin/env bash
# Candidates in Triton where there is no GPU: compiled, run in Triton's interpreter, and what is wrong with them said
# with its line. Skipped where no Python has Triton.
set -u
twagent=$1 fake=$2
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache TWAGENT_LOCKS=$work/locks
export TWAGENT_CUDA_DRIVER=$work/libcuda.so.1 # there is none
failed=0 passed=0
# expect CODE TEXT ARGUMENTS...: the command ends with CODE, and TEXT stands in what it prints.
expect() {
    local code=$1 text=$2 status
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

# --- each start is right where the interpreter can tell
for start in "$root"/problems/*/starts/triton/*.py; do
    problem=${start#"$root/problems/"}
    expect 3 "check shapes in Triton's interpreter, not timed" eval "${problem%%/*}" "$start"
    [[ "$out" != "no verdict: right on 0 of"* ]] || { echo "$start: nothing was tried"; failed=$((failed + 1)); }
done
# --- what is wrong, and where
variant() { # NAME SED TEXT: exit code 1
    sed "$2" "$relu" >"$work/$1.py"
    expect 1 "$3" eval relu "$work/$1.py"
}
variant name 's/mask=inside), 0.0/mask=within), 0.0/' 'name.py:18: error: '
variant count 's/args: \[X, Y, M, N\]/args: [X, Y, M]/' 'relu: args has 3 names, but the function takes 4'
variant wrong 's/, 0.0), mask/, 0.5), mask/' 'rejected at check: Y['
variant outside 's/, mask=inside)$/)/' 'rejected at check: wrote outside its outputs'
variant wrapper 's/^@triton.jit/@triton.autotune([triton.Config({})], key=[])\n@triton.jit/' 'relu has a decorator besides @triton.jit'

# --- module code has no way out, and no say in what is believed
module() { # NAME TEXT CODE...: a line before the imports
    { sed '/^---"""/q' "$relu" && printf '%s\n' "${@:3}" && sed '1,/^---"""/d' "$relu"; } >"$work/$1.py"
    expect 1 "$2" eval relu "$work/$1.py"
}
module reaches 'reaches.py:13: error: PermissionError' 'import socket' "file = '$root/README.md'" \
    'try: socket.socket()' 'except PermissionError: open(file)'
module quits 'the compile left no scratch/report.json' 'import os' 'os._exit(0)'
# That nobody uses a cubin's variables our own compiler may say, and nobody else.
module claims 'is no cubin of Triton' 'import builtins, sys' 'def opened(path, mode="r", **k):' \
    '    file = builtins.open(path, mode, **k)' '    write = file.write' \
    '    if str(path).endswith(".cubin"): file.write = lambda data: write(data + b"\ntwagent: no variable is used\n")' \
    '    return file' "sys.modules['__main__'].open = opened"

# --- with a GPU: not yet, and never another kernel in its place
TWAGENT_CUDA_DRIVER=$fake expect 3 'not run on a GPU yet' eval relu@M=64,N=64 "$relu" --backend cuda

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
