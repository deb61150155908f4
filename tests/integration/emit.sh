#!/usr/bin/env bash
# A kernel leaves the store as a folder of C and as a numpy module; each builds and passes its test
# where twagent is not. What cannot be emitted is refused with a line.
set -u
twagent=$1
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache
mkdir -p "$work/config/twagent" && echo 'time-budget: 40ms' >"$work/config/twagent/config.yaml" # no number is looked at
. "${BASH_SOURCE[0]%/*}/helpers.sh"
measured_once
cd "$work" || exit 1
"$twagent" problem new axpb >out 2>&1
sed -i 's/M: 1024, N: 1024/M: 64, N: 96/' axpb/spec.yaml
"$twagent" run axpb --budget-evaluations 1 --final=false --quiet >out 2>&1
grep -q 'r1-c' out; say $? "a run has a kernel: $(cat out)"

"$twagent" emit r1 module >out 2>&1; say $? "numpy by default: $(cat out)"
grep -q ', not verified, ' module/README.md; say $? "what the speed-up is worth: $(head -n 3 module/README.md)"
say "$([ -f module/kernel.py ] && [ -f module/kernel.h ] && [ -f module/evidence.json ]; echo $?)" "its files: $(ls module)"
mkdir elsewhere && mv module elsewhere/
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 elsewhere/module/test.py >out 2>&1; say $? "its test: $(cat out)"
say "$([ "$(grep -c '^ok' out)" = 10 ]; echo $?)" "every shape is tested, in two places: $(cat out)"
PYTHONPATH=elsewhere PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 - >out 2>&1 <<'PY'
import numpy
from module import empty, kernel
from module.kernel import anywhere, as_given

f = numpy.float32
a, x, b = numpy.full((3, 5), 2, f), numpy.ones((5, 3), f).T, numpy.arange(5, dtype=f)  # x is not contiguous
right = 2 + numpy.arange(5)
assert (kernel(a, x, b) == right).all()
assert empty((3, 5), f).ctypes.data % 64 == 0
out = numpy.empty(16, f)[1:].reshape(3, 5)  # as numpy's arrays lie: read and written in place
assert anywhere and as_given(out, {"name": "A", "dtype": "float32"}) is out
assert kernel(a, x, b, out=out) is out and (out == right).all()
assert kernel(out, x, b, out=out) is out and (out == right + numpy.arange(5)).all()  # the input itself
for wrong, arguments, named in (
    (ValueError, (a, numpy.ones((3, 4), f), b), {}), (ValueError, (a, numpy.ones(3, f), b), {}),
    (TypeError, (a, x.astype(float), b), {}), (TypeError, (a, x), {}),
    (TypeError, (a, x, b), {"out": empty((3, 5), float)}), (ValueError, (a, x, b), {"out": empty((3, 4), f)}),
):
    try:
        kernel(*arguments, **named)
    except wrong:
        continue
    raise SystemExit("expected a %s" % wrong.__name__)
PY
say $? "called from Python: $(cat out)"

# a source that promises the compiler its alignment (not every CPU's code uses that: a loop whose does), and one that keeps it in inline assembly
cp -r elsewhere/module elsewhere/strict && rm -f elsewhere/strict/*.so
sed -i 's/^{/{ A = __builtin_assume_aligned(A, 64); X = __builtin_assume_aligned(X, 64); Y = __builtin_assume_aligned(Y, 64);/' elsewhere/strict/kernel.c
echo 'void twice(float *p) { p = __builtin_assume_aligned(p, 64); for (int i = 0; i < 4096; i++) p[i] *= 2.0f; }' >>elsewhere/strict/kernel.c
sh elsewhere/strict/build.sh; say $? "it builds: $(cat elsewhere/strict/build.sh)"
[ -f elsewhere/module/libanywhere.so ] && objdump -d elsewhere/strict/libkernel.so | grep -qE 'vmov(ap[sd]|dqa).*\(' &&
    [ "$(objdump -d elsewhere/strict/libanywhere.so | grep -cE 'mov(ap[sd]|dqa[0-9]*|ntp[sd])[[:space:]]')" -lt 3 ] # of the start-up code
say $? 'aligned moves are gone from the build for any address'
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 elsewhere/strict/test.py >out 2>&1; say $? "it runs there: $(cat out)"
echo '__attribute__((visibility("default"))) void touch(float *Y) { __asm__("vmovaps %%xmm0, (%0)" :: "r"(Y) : "memory"); }' >>elsewhere/strict/kernel.c
sh elsewhere/strict/build.sh 2>/dev/null; say "$([ ! -f elsewhere/strict/libanywhere.so ]; echo $?)" 'assembly of its own is left as it is'
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 elsewhere/strict/test.py >out 2>&1; say $? "and its inputs are copied: $(cat out)"

# --- a package leaves the process that loads it as it was, and so does a call: denormals, rounding
cp -r elsewhere/module elsewhere/fast && rm -f elsewhere/fast/*.so
sed -i 's/^compile() { driver/& -ffast-math -Ofast/' elsewhere/fast/build.sh
cat >csr.c <<'C'
#include <dlfcn.h>
#include <fenv.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    fenv_t before, after;
    volatile double tiny = 0x1p-1022;
    for (int i = 1; i < argc; i++) {
        fegetenv(&before);
        void *library = dlopen(argv[i], RTLD_NOW);
        fegetenv(&after);
        if (library == NULL || dlsym(library, "kernel") == NULL || tiny / 2 == 0)
            return printf("%s: %s\n", argv[i], library == NULL ? dlerror() : "denormals are flushed");
#ifdef __x86_64__
        if (before.__mxcsr != after.__mxcsr)
            return printf("%s: %x was %x\n", argv[i], after.__mxcsr, before.__mxcsr);
#endif
    }
    return 0;
}
C
gcc -o csr csr.c -ldl -lm
for driver in gcc clang; do
    grep -q ' -ffast-math -Ofast' elsewhere/fast/build.sh && CC=$driver sh elsewhere/fast/build.sh >out 2>&1; say $? "by $driver, fast: $(cat out)"
    ./csr elsewhere/fast/lib*.so >out 2>&1; say $? "loading it leaves MXCSR alone: $(cat out)"
    say "$([ ! -e elsewhere/fast/kernel.o ]; echo $?)" "nothing is left: $(ls elsewhere/fast)"
    PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 elsewhere/fast/test.py >out 2>&1; say $? "it is right: $(cat out)"
done

# --- beyond what was checked numpy computes, with one warning: a kernel that is wrong shows which of the two did
"$twagent" emit r1 bounded >out 2>&1; grep -q '^  checked up to M=[0-9]*, N=[0-9]*: beyond it the definition runs' out; say $? "its limits are said: $(cat out)"
sed -i 's/^    kernel_unchecked(/    if (M < 0) &/' bounded/limits.c # it writes nothing
"$twagent" emit r1 unbounded --unchecked-shapes >out 2>&1; say $? "without limits: $(cat out)"
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -W always - >out 2>&1 <<'PY'
import json
import warnings

import numpy
import bounded
import bounded.kernel
import unbounded

limits = json.load(open("bounded/plan.json"))["checked_up_to"]
assert limits["M"] >= 64 and limits["N"] >= 96 and json.load(open("unbounded/plan.json"))["checked_up_to"] is None
assert limits == json.load(open("bounded/evidence.json"))["metrics"]["checked_up_to"]


def call(package, m, n, out=None):
    a, x, b = (numpy.full(shape, 1 + i, numpy.float32) for i, shape in enumerate(((m, n), (m, n), (n,))))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        y = package.kernel(a, x, b, out=out)
    assert y.dtype == numpy.float32 and y.shape == (m, n)
    return (y == a * x + b).all(), [str(each.message) for each in said]


M, N = limits["M"], limits["N"]
assert call(bounded, M, 1, numpy.zeros((M, 1), numpy.float32)) == (False, [])  # the kernel, which writes nothing here
right, said = call(bounded, M + 1, 1)
assert right and len(said) == 1 and "not the kernel: the kernel was checked up to M=%d, N=%d" % (M, N) in said[0], said
out = numpy.zeros((1, N + 1), numpy.float32)
assert call(bounded, 1, N + 1, out) == (True, []) and out.all()  # said once
assert call(bounded, 1, N, numpy.zeros((1, N), numpy.float32)) == (False, [])
assert call(unbounded, M + 1, 1) == (True, []) and call(unbounded, 1, N + 1) == (True, [])
PY
say $? "within and beyond, in numpy: $(cat out)"

id=$("$twagent" list candidates r1 | grep -o 'r1-c[0-9]*' | head -n 1)
"$twagent" emit "$id" plain --to c >out 2>&1; say $? "C: $(cat out)"
say "$([ ! -f plain/kernel.py ]; echo $?)" "no Python in it: $(ls plain)"
sh plain/build.sh test >out 2>&1; say $? "its own test: $(cat out)"
cat >beyond.c <<'C'
#include "kernel.h"
#include <stdlib.h>
static int call(int64_t m, int64_t n, float expected) /* 0: as expected */
{
    float *p[4];
    for (int i = 0; i < 4; i++) {
        p[i] = aligned_alloc(64, (size_t)(m * n * 4 + 127) / 64 * 64);
        for (int64_t k = 0; k < m * n; k++)
            p[i][k] = i < 3 ? 2 : 7;
    }
    int wrong = kernel(p[0], p[1], p[2], p[3], m, n) != (expected == 7 ? KERNEL_BEYOND : 0);
    for (int64_t k = 0; k < m * n; k++)
        wrong |= p[3][k] != expected;
    return wrong;
}
int main(int argc, char **argv)
{
    int64_t m = atol(argv[1]), n = atol(argv[2]);
    return argc != 3 || call(m, 1, 6) || call(1, n, 6) || call(m + 1, 1, 7) || call(1, n + 1, 7);
}
C
read -r m n <<<"$(sed -n 's/.*checked at: M=\([0-9]*\), N=\([0-9]*\).*/\1 \2/p' plain/kernel.h)"
gcc -Iplain -o beyond beyond.c plain/libkernel.so && LD_LIBRARY_PATH=plain ./beyond "$m" "$n"; say $? "C refuses what lies beyond M=$m, N=$n, and writes nothing: $(cat plain/limits.c)"
sed -i 's/X\[i \* N + j\] + B/X[i * N + j] - B/' plain/kernel.c
sh plain/build.sh test >out 2>&1; say "$([ $? -ne 0 ] && grep -q FAILED out; echo $?)" "a wrong kernel fails it: $(cat out)"
"$twagent" emit axpb again --to c >out 2>&1; say $? "by its problem's name: $(cat out)"

# --- a finalist is called as a package; where no Python can, its line says so
mkdir -p twice/baselines
cat >twice/spec.yaml <<'YAML'
name: twice
dims: {N: 4096}
inputs: {X: {shape: [N], dtype: float32}}
outputs: {Y: {shape: [N], dtype: float32}}
reference: ref.c
check: [{N: 1}, {N: 33}]
hidden: {N: [1, 900]}
YAML
echo 'void kernel(const float *X, float *Y, int64_t N) { for (int64_t i = 0; i < N; i++) Y[i] = 2 * X[i]; }' >twice.c
{ printf '#include <stdint.h>\n' && cat twice.c; } >twice/ref.c
"$twagent" eval ./twice twice.c --effort final --no-profile --time-budget 20ms --json >out 2>&1
/usr/bin/python3 -c "
import json
record = json.loads([line for line in open('out') if line.startswith('{')][-1])
record = record.get('evaluation', record)
package = record['metrics']['package']
assert record['verdict'] == 'kernel' and package['calls'] == 600 and package['shapes'] > 1, record
assert package['in'].startswith(('numpy ', 'PyTorch ')) and 'left_out' not in record, record
"; say $? "600 calls as a package: $(cat out)"
"$twagent" eval ./twice twice.c --effort final --no-profile --time-budget 20ms --python /bin/true --force >out 2>&1
grep -q 'left out: its package (no Python with numpy)' out; say $? "its line says what was not done: $(cat out)"

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
# --- a CUDA package's own test, with a torch of numpy's: 64 calls, so that one which tires is seen
mkdir -p cuda/torch
cp "$root/libexec/emit/torch_function_test.py" cuda/test.py
cat >cuda/torch/__init__.py <<'PY'
import types

import numpy


class Tensor:
    def __init__(self, array):
        self.array = numpy.asarray(array)
        self.dtype = types.SimpleNamespace(is_floating_point=self.array.dtype.kind == "f", kind=self.array.dtype)

    def is_floating_point(self):
        return self.dtype.is_floating_point

    def to(self, dtype):  # or a device
        return self if isinstance(dtype, str) else Tensor(self.array.astype(dtype.kind))

    def norm(self):
        return numpy.linalg.norm(self.array)

    numpy = lambda self: self.array
    double = lambda self: Tensor(self.array.astype(numpy.float64))
    cuda = clone = lambda self: self
    __mul__ = lambda self, other: Tensor(self.array * other)
    __add__ = lambda self, other: Tensor(self.array + other)
    __sub__ = lambda self, other: Tensor(self.array - other.array)


float32 = types.SimpleNamespace(is_floating_point=True, kind=numpy.float32)
float64 = types.SimpleNamespace(is_floating_point=True, kind=numpy.float64)
cuda = types.SimpleNamespace(is_available=lambda: True)
manual_seed = numpy.random.seed
rand = lambda extents, dtype: Tensor(numpy.random.rand(*extents))
as_tensor = Tensor
finfo = lambda dtype: numpy.finfo(dtype.kind)
PY
cat >cuda/__init__.py <<'PY'
import os
import types

import torch

calls = 0


def run(x, M):
    global calls
    calls += 1
    return torch.Tensor(2 * x.array if calls < int(os.environ["TIRES"]) else 0 * x.array)


plan = {"inputs": [{"dtype": "float32"}], "dims": [{"name": "M", "value": None, "default": 5}]}
run.shapes = types.SimpleNamespace(plan=plan, definition=lambda: lambda x: 2 * x, extents=lambda tensor, scope: (scope["M"], 3))
PY
for tires in 99 13; do
    TIRES=$tires PYTHONPATH=cuda PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 cuda/test.py >out 2>&1
    code=$? wanted=$([ $tires = 99 ] && echo 'ok     64 calls' || echo 'FAILED call 13')
    say "$([ $code = $((tires == 13)) ] && grep -q "$wanted" out; echo $?)" "a package that tires after $tires calls: $(cat out)"
done

mv axpb moved
refuse '--problem names another place' r1 other
"$twagent" emit r1 other --problem moved >out 2>&1; say $? "from where the problem lies now: $(cat out)"
echo "emit: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
