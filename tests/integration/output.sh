#!/usr/bin/env bash
# -o (and --bundle) of every command: a device, a pipe, a symbolic link and a file of two names stay what they are and are
# written through; a plain file is replaced.
set -u
twagent=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache TMPDIR=$work
export TWAGENT_LOCKS=$work/locks
mkdir -p "$work"/locks/cpu{0..255}
. "${BASH_SOURCE[0]%/*}/helpers.sh"
measured_once
cd "$work" || exit 1
"$twagent" problem new axpb >out 2>&1
sed -i 's/M: 1024, N: 1024/M: 8, N: 4/' axpb/spec.yaml
"$twagent" run axpb --budget-evaluations 1 --no-final --quiet >out 2>&1
grep -q 'r1-c' out; say $? "a run has a kernel: $(cat out)"
for start in axpb/starts/cpu/*.c; do "$twagent" eval axpb "$start" --effort search --no-profile >out 2>&1; done
entry=$(ls store/cache | grep -o '^[cr]_.*json$' | head -n 1)
/usr/bin/python3 -c "
import numpy
for name, shape in (('A', (8, 4)), ('X', (8, 4)), ('B', (4,))):
    numpy.save(name + '.npy', numpy.ones(shape, numpy.float32))"
cat >k.py <<'PY'
import torch, triton
import triton.language as tl


@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    scale[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n, BLOCK=512)
    return y
PY

through() { # WORDS THAT TWAGENT IS TOLD, the last one an option that a path follows
    "$twagent" "$@" plain >said 2>&1 && [ -s plain ]; say $? "$*: $(cat said)"
    size=$(stat -c %s plain)
    mkfifo pipe
    timeout 60 cat pipe >read &
    local reader=$!
    "$twagent" "$@" pipe >said 2>&1; say $? "$* into a pipe: $(cat said)"
    [ -p pipe ] || kill $reader 2>/dev/null # nobody writes there any more
    wait $reader
    [ -p pipe ] && [ "$(stat -c %s read)" = "$size" ]; say $? "$*: the pipe is one, and all came through it: $(ls -l pipe read)"
    echo old >target && ln -s target link && ln target twin
    "$twagent" "$@" link >said 2>&1
    [ -L link ] && [ "$(stat -c %s target)" = "$size" ]; say $? "$*: the link is one, its target is written: $(ls -l link target)"
    [ "$(stat -c %i target)" = "$(stat -c %i twin)" ]; say $? "$*: a file of two names has both: $(ls -li target twin)"
    rm -f target link && ln -s target link
    "$twagent" "$@" link >said 2>&1
    [ -L link ] && [ -f target ]; say $? "$*: a link to nothing yet: $(cat said)"
    if [ "$(id -u)" = 0 ] && mknod -m 666 null c 1 3 2>/dev/null; then
        "$twagent" "$@" null >said 2>&1
        say "$([ "$(stat -c %F null)" = 'character special file' ]; echo $?)" "$*: the device is one: $(ls -l null)"
    fi
    if ! [ -w /dev/full ] || "$twagent" "$@" /dev/full >said 2>&1; then say "$([ ! -w /dev/full ]; echo $?)" "$*: a full disk is no error: $(cat said)"; fi
    rm -f plain pipe read target link twin null
}
through best axpb -o
through best axpb --bundle
through show r1-c1 --source -o
through show r1-c1 --bundle
through report r1 -o
through report r1 --html -o
through report r1 --json -o
through lessons export -o
through export -o
through export --format sql -o
through import k.py -o
through cache show "$entry" -o
through cache run "$entry" A.npy X.npy B.npy -o
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
