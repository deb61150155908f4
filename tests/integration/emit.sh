#!/usr/bin/env bash
# A kernel leaves the store as a folder of C and as a numpy module; each builds and passes its test
# where twagent is not. What cannot be emitted is refused with a line.
set -u
twagent=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache
failed=0 passed=0
say() { # TRUTH NAME
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else echo "FAILED: $2"; failed=$((failed + 1)); fi
}
cd "$work" || exit 1
"$twagent" problem new axpb >out 2>&1
sed -i 's/M: 1024, N: 1024/M: 64, N: 96/' axpb/spec.yaml
"$twagent" run axpb --budget-evaluations 1 --final=false --quiet >out 2>&1
grep -q 'r1-c' out; say $? "a run has a kernel: $(cat out)"

"$twagent" emit r1 module >out 2>&1; say $? "numpy by default: $(cat out)"
say "$([ -f module/kernel.py ] && [ -f module/kernel.h ] && [ -f module/evidence.json ]; echo $?)" "its files: $(ls module)"
mkdir elsewhere && mv module elsewhere/
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 elsewhere/module/test.py >out 2>&1; say $? "its test: $(cat out)"
say "$([ "$(grep -c '^ok' out)" = 5 ]; echo $?)" "every shape is tested: $(cat out)"
PYTHONPATH=elsewhere/module PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 - >out 2>&1 <<'PY'
import numpy
from kernel import kernel

a, x = numpy.full((3, 5), 2.0), numpy.ones((5, 3)).T  # neither float32 nor contiguous
assert (kernel(a, x, numpy.arange(5)) == 2 + numpy.arange(5)).all()
for shape in ((3, 4), (3,)):
    try:
        kernel(a, numpy.ones(shape), numpy.arange(5))
    except ValueError:
        continue
    raise SystemExit("expected a ValueError")
PY
say $? "called from Python: $(cat out)"

id=$("$twagent" list candidates r1 | grep -o 'r1-c[0-9]*' | head -n 1)
"$twagent" emit "$id" plain --to c >out 2>&1; say $? "C: $(cat out)"
say "$([ ! -f plain/kernel.py ]; echo $?)" "no Python in it: $(ls plain)"
sh plain/build.sh test >out 2>&1; say $? "its own test: $(cat out)"
sed -i 's/X\[i \* N + j\] + B/X[i * N + j] - B/' plain/kernel.c
sh plain/build.sh test >out 2>&1; say "$([ $? -ne 0 ] && grep -q FAILED out; echo $?)" "a wrong kernel fails it: $(cat out)"
"$twagent" emit axpb again --to c >out 2>&1; say $? "by its problem's name: $(cat out)"

refuse() { # TEXT ARGUMENTS...
    local text=$1
    shift
    "$twagent" emit "$@" >out 2>&1
    say "$([ $? -ne 0 ] && grep -q -- "$text" out; echo $?)" "emit $*: $(cat out)"
}
refuse 'is there already' r1 plain
refuse '--to numpy or c' r1 other --to pytorch
refuse 'is called' nothing other
refuse 'r1-c99' r1-c99 other
mv axpb moved
refuse '--problem names another place' r1 other
"$twagent" emit r1 other --problem moved >out 2>&1; say $? "from where the problem lies now: $(cat out)"
echo "emit: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
