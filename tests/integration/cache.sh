#!/usr/bin/env bash
# Verdicts that are told again: eval and run leave theirs, and answer from them, saying so, while nothing that they
# depend on has changed; a cached kernel runs on one's own arrays. Reference and kernel sleep, so that their ratio is clear
# on a busy machine, too; where it is not all the same, the kernel has to be measured again.
set -u
twagent=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache TMPDIR=$work/tmp
export TWAGENT_LOCKS=$work/locks
mkdir -p "$work"/locks/cpu{0..255} "$work/tmp"
mkdir -p "$work/config/twagent" && echo 'time-budget: 50ms' >"$work/config/twagent/config.yaml"
. "${BASH_SOURCE[0]%/*}/helpers.sh"
measured_once
cd "$work" || exit 1
mkdir -p axpb/starts/cpu
cat >axpb/spec.yaml <<'YAML'
name: axpb
dims: {M: 6, N: 4}
inputs:
  A: {shape: [M, N], dtype: float32}
  B: {shape: [M, N], dtype: float32}
outputs:
  C: {shape: [M, N], dtype: float32}
reference: ref_impl.py
tolerance: auto
check: [{M: 1, N: 1}, {M: 17, N: 3}]
hidden: {M: [1, 9], N: [1, 9]}
YAML
cat >axpb/ref_impl.py <<'PY'
import time
def reference(A, B):
    time.sleep(0.006)
    return 2 * A + B
PY
cat >k.c <<'C'
#include <stdint.h>
#include <time.h>
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N)
{
    nanosleep(&(struct timespec){.tv_nsec = 1500000}, 0);
    for (int64_t i = 0; i < M * N; i++)
        C[i] = 2 * A[i] + B[i];
}
C
sed 's/2 \* A\[i\]/3 * A[i]/' k.c >wrong.c
measure() { "$twagent" eval axpb "$@" --no-profile --effort search >out 2>err; code=$?; } # FILE OPTIONS...
one() { "$twagent" cache list --status "$1" | awk 'NR == 1 {print $NF}'; }
again() { # NAME NTH: whether it is told again, as it has to be
    "$twagent" cache show "$1" >shown 2>&1
    measure k.c
    if grep -q 'told again where' shown; then grep -q '^CACHED: measured on this machine' out && [ $code -eq 0 ]
    else ! grep -q CACHED out && grep -q 'cached as' out; fi
    say $? "$2: $(cat shown out err)"
}

"$twagent" cache list >out 2>&1; say $? "nothing yet: $(cat out)"
[ ! -e store ]; say $? "asking makes no store"
measure k.c
grep -q "cached as  c_axpb_i6x4_6x4_o6x4_h[0-9a-f]\{12\}.json" out; say $? "a kernel is kept: $(cat out)"
entry=$(one c)
[ -f "store/cache/$entry" ] && /usr/bin/python3 -m json.tool "store/cache/$entry" >/dev/null; say $? "its copy is JSON"
sed -i 's/"finding":"[a-z ]*"/"finding":"faster"/; s/"median":[0-9.]*/"median":99/g' "store/cache/$entry"
"$twagent" cache show "$entry" --json | grep -q '"median":99,' && say 1 'a forged copy is believed'
again "$entry" 'the same again; a forged copy changes nothing'
measure k.c --force; ! grep -q '^CACHED' out; say $? "--force measures: $(cat out)"
measure wrong.c
[ $code -eq 1 ] && grep -q 'cached as  r_axpb' out; say $? "rejected: $(cat out)"
sed 's/B\[i\];/B[i]/' k.c >broken.c
measure broken.c
[ $code -eq 1 ] && grep -q 'does not compile' out && ! grep -q 'cached as' out
say $? "of one that does not compile no entry is told: $(cat out)"
"$twagent" cache clear "$(one r)" >out
"$twagent" cache list --status r --json | grep -q '"verdict":"rejected"'; say $? 'the rejected one is listed'

# A verdict is worth nothing where others can write, and where the definition is another.
entry=$(one c)
chmod g+w store/cache
measure k.c; ! grep -q CACHED out && grep -q 'others can write' err; say $? "others can write: $(cat out err)"
chmod g-w store/cache

# One's own arrays.
/usr/bin/python3 - <<'PY'
import numpy as np
a, b = np.arange(24, dtype="f4").reshape(6, 4), np.ones((6, 4), "f4")
np.save("a.npy", a); np.save("b.npy", b); np.save("d.npy", b.astype("f8")); np.save("t.npy", np.asfortranarray(a))
np.save("e.npy", b.astype(">f4")); np.save("s.npy", b.T.copy())
open("cut.npy", "wb").write(open("a.npy", "rb").read()[:-1])
PY
name=$("$twagent" cache list --status c --json | /usr/bin/python3 -c 'import json,sys; print([e["name"] for e in json.load(sys.stdin) if e["file"] == "k.c"][0])')
"$twagent" cache run "$name" a.npy b.npy -o c.npy >out 2>&1
/usr/bin/python3 -c 'import numpy as np; c = np.load("c.npy"); assert c.dtype == "f4" and (c == 2 * np.load("a.npy") + 1).all()' 2>err
say $? "a kernel on one's own arrays: $(cat out err)"
"$twagent" cache run "store/cache/${name%.json}" a.npy b.npy -o c.npy >out 2>&1; say $? "by its path: $(cat out)"
while read -r files words; do
    # shellcheck disable=SC2086
    "$twagent" cache run "$name" ${files//,/ } -o no.npy >out 2>&1
    [ $? -eq 2 ] && grep -q "$words" out && [ ! -e no.npy ]; say $? "$files: $(cat out)"
done <<'ROWS'
a.npy,d.npy its dtype is float64
a.npy,e.npy its dtype is >f4
t.npy,b.npy Fortran
a.npy,s.npy its shape is 4x6
cut.npy,b.npy has 95 bytes of elements
a.npy takes 2 .npy files
a.npy,/dev/zero is no file
a.npy,k.c is no .npy file
a.npy,missing.npy No such file
ROWS
"$twagent" cache run "$(one r)" a.npy b.npy -o no.npy >out 2>&1; [ $? -eq 2 ] && grep -q 'was rejected' out; say $? "rejected ones do not run: $(cat out)"
"$twagent" cache run "$name" a.npy b.npy >out 2>&1; [ $? -eq 2 ]; say $? "-o is needed: $(cat out)"
"$twagent" cache run ../../etc/passwd a.npy -o x >out 2>&1; [ $? -eq 2 ]; say $? "no such entry: $(cat out)"
echo '# changed' >>axpb/ref_impl.py
"$twagent" cache run "$name" a.npy b.npy -o no.npy >out 2>&1; [ $? -eq 2 ] && grep -q 'changed since' out; say $? "a changed definition: $(cat out)"

# A run is told again where it came to its end, and won.
search() { "$twagent" run axpb --rounds 1 -b 1 -i 1 --quiet "$@" >out 2>err; code=$?; }
cp k.c axpb/starts/cpu/
search
grep -q 'cached as  c_axpb' out; say $? "a run is kept: $(cat out err)"
"$twagent" cache show "$(sed -n 's/.*cached as *//p' out)" >shown 2>&1
if grep -q 'told again where' shown; then
    search; [ $code -eq 0 ] && grep -q '^CACHED' out && grep -q '^r1 axpb: then' out; say $? "the same run again: $(cat shown out err)"
    "$twagent" list | grep -q '^r2'; [ $? -ne 0 ]; say $? 'and there was no second one'
fi

"$twagent" cache clear >out 2>&1; [ $? -eq 2 ]; say $? "clear wants to know what: $(cat out)"
"$twagent" cache clear --older-than 1d | grep -q '^0 entries'; say $? 'nothing is that old'
"$twagent" cache clear --status r | grep -q '^1 entry'; say $? 'the rejected one goes'
! ls store/cache/r_* >out 2>&1; say $? 'and its copy'
head -c 100 /dev/urandom >store/cache/data.mdb
"$twagent" cache list >out 2>&1; [ $? -ne 0 ] && grep -q 'cache clear all' out; say $? "a damaged one says what to do: $(cat out)"
measure k.c; grep -q '^kernel' out; say $? "and keeps nobody from measuring: $(cat out err)"
"$twagent" cache clear all >out 2>&1 && [ ! -e store/cache ]; say $? "all of it goes: $(cat out)"
echo "cache: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
