#!/usr/bin/env bash
# `twagent eval` with real compilers, runners and references: verdicts, JSON, exit codes, and that
# killing any child costs its step only and leaves nobody behind.
set -u
# It adopts whom a child of it leaves behind.
[ -n "${ADOPTS-}" ] || ADOPTS=1 exec /usr/bin/python3 -c 'import ctypes, os, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) # PR_SET_CHILD_SUBREAPER, which lasts
os.execvp("bash", ["bash", *sys.argv[1:]])' "$0" "$@"
twagent=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
attacks=$here/../adversarial/cpu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache
# What is looked at is what is said, not how precise it is: few samples, and a short wait for a quiet machine.
export TWAGENT_LOCKS=$work/locks # no test beside this one is waited for
mkdir -p "$work"/locks/cpu{0..255}
mkdir -p "$work/config/twagent" && echo 'time-budget: 40ms' >"$work/config/twagent/config.yaml"
. "${BASH_SOURCE[0]%/*}/helpers.sh"
measured_once
"$twagent" eval "$attacks/problems/mm" "$attacks/controls/plain.c" --json >"$work/one.json"
say $? "an honest kernel: exit code 0"
/usr/bin/python3 - "$work/one.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
assert r["verdict"] == "kernel", r
for key in "stage reason time_ns baseline_ns speedup win checks metrics device versions".split():
    assert key in r, key
for key in "time_ns", "baseline_ns", "speedup":
    assert r[key]["low"] <= r[key]["median"] <= r[key]["high"], (key, r[key])
PY
say $? "eval --json has every field"
# No further than is asked; nothing of that is a kernel, or is told later in a kernel's place.
mm=$attacks/problems/mm plain=$attacks/controls/plain.c
"$twagent" eval "$mm" "$plain" --until compile --json >"$work/one.json"
say $? "what compiles: exit code 0"
"$twagent" eval "$mm" "$plain" --until check --json >"$work/two.json"
say $? "what is right: exit code 0"
/usr/bin/python3 - "$work/one.json" "$work/two.json" <<'PY'
import json, sys
for path, stage in zip(sys.argv[1:], ("compile", "check")):
    r = json.load(open(path))
    assert (r["verdict"], r["stage"], r["time_ns"]) == ("dropped", stage, None), r
    assert (r["checks"]["passed"] > 0) == (stage == "check") and "as asked" in r["reason"], r
PY
say $? "neither is a kernel, and neither was timed"
"$twagent" eval "$mm" "$attacks/attacks/zeros.c" --until compile >"$work/out" 2>&1
[ $? -eq 1 ]; say $? "what does not compile: exit code 1: $(cat "$work/out")"
"$twagent" eval "$mm" "$attacks/attacks/partial_output.c" --until check >"$work/out" 2>&1
[ $? -eq 1 ] && grep -q '^rejected at check' "$work/out"; say $? "what is wrong: exit code 1: $(cat "$work/out")"
# Several, one by one; and one against another.
"$twagent" eval "$mm" "$plain" "$attacks/attacks/partial_output.c" --until check --json >"$work/one.json"
[ $? -eq 1 ]; say $? "of several the worst exit code counts"
/usr/bin/python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
assert [(k, v["verdict"]) for k, v in r.items()] == [("1 plain.c", "dropped"), ("2 partial_output.c", "rejected")], r' \
    "$work/one.json"
say $? "each has its record"
sed "s/float s = 0/double s = 0/" "$plain" >"$work/other.c"
"$twagent" eval "$mm" "$plain" --against "$work/other.c" --json >"$work/one.json"
say $? "one against another"
/usr/bin/python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
assert r["verdict"] == "kernel" and r["baseline"] == "rival" and r["speedup"]["samples"] > 0, r' "$work/one.json"
say $? "the other one is what the speed-up is over"
"$twagent" eval "$mm" "$plain" --against nothing >"$work/out" 2>&1
[ $? -eq 2 ] && grep -q 'neither a file nor a candidate' "$work/out"; say $? "against nothing: $(cat "$work/out")"
# A running sum of numbers that a range has made equal errs the same way at each step, and is honest.
sed 's/double/float/g; s/sqrt(/sqrtf(/' "$(dirname "$0")/../../problems/rmsnorm/baselines/naive.c" >"$work/running.c"
"$twagent" eval rmsnorm@M=16,N=256 "$work/running.c" --time-budget 40ms >"$work/out" 2>&1
grep -q '^kernel' "$work/out"; say $? "a running sum in float32: $(cat "$work/out")"
"$twagent" eval "$attacks/problems/mm" "$attacks/attacks/zeros.c" >"$work/out" 2>&1
[ $? -eq 1 ]; say $? "a kernel of another signature: exit code 1"
"$twagent" eval "$attacks/problems/mm" "$attacks/attacks/partial_output.c" >"$work/out" 2>&1
[ $? -eq 1 ]; say $? "a wrong kernel: exit code 1"
grep -q 'C\[' "$work/out"; say $? "the worst element is named"

# The two forms of a problem that users bring: a skeleton, and the short form.
"$twagent" problem new "$work/axpy" >/dev/null && "$twagent" problem check "$work/axpy" >"$work/out" 2>&1
say $? "the skeleton is fit: $(cat "$work/out")"
# A loss is one number, in which the rounding of its inputs comes to nothing: at smaller shapes it is seen. The spec has
# a byte order mark and spaces that do not break, and its reference imports a file beside it.
mkdir "$work/loss"
printf '\xef\xbb\xbfname: loss\ndims: {N: 64, M: 128}\ninputs:\n\xc2\xa0 p: {shape: [N, M], dtype: float32}\n  t: {shape: [N, M], dtype: float32}\n' >"$work/loss/spec.yaml"
printf 'outputs:\n  y: {shape: [], dtype: float32}\nreference: ref.py\ncheck: [{N: 1}, {N: 3}, {N: 32}]\n' >>"$work/loss/spec.yaml"
printf '\xef\xbb\xbfimport numpy as np\nfrom helper import huber\ndef reference(p, t):\n\xc2\xa0   d = np.abs(p - t)\n    return huber(d).mean(dtype=d.dtype)\n' >"$work/loss/ref.py"
printf 'import numpy as np\ndef huber(d):\n    return np.where(d < 1, d * d / 2, d - d.dtype.type(0.5))\n' >"$work/loss/helper.py"
"$twagent" problem check "$work/loss" >"$work/out" 2>&1 && grep -q 'at smaller shapes alone' "$work/out"; say $? "a loss is fit: $(cat "$work/out")"
sed -i 's/M: 1024, N: 1024/M: 240, N: 200/' "$work/axpy/spec.yaml" # as fit, and sooner drawn
"$twagent" eval "$work/axpy" "$work/axpy/starts/cpu/rows.c" --quiet >"$work/out" 2>&1
say $? "the skeleton's start is a kernel: $(cat "$work/out")"
/usr/bin/python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$twagent" eval "$work/axpy" "$work/axpy/starts/cpu/rows.c" --effort search --no-profile --force >"$work/seen"
/usr/bin/python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$twagent" problem check "$work/axpy" >>"$work/seen"
grep -q 'x numpy   (95 %: ' "$work/seen"; say $? "the reference is called as its person calls it: $(cat "$work/seen")"
grep -q 'checking .*axpy.* \.\.\.' "$work/seen" && grep -q 'opening the problem \.\.\..*check \.\.\..*time \.\.\.' "$work/seen"; say $? "a terminal is told what goes on: $(cat "$work/seen")"
mkdir "$work/matmul"
printf 'name: matmul\nshape_a: [64, 48]\nshape_b: [48, 80]\ndtype: float32\n' >"$work/matmul/spec.yaml"
printf 'import numpy as np\n\n\ndef matmul(A, B):\n    return np.matmul(A, B)\n' >"$work/matmul/ref_impl.py"
"$twagent" eval "$work/matmul" "$attacks/controls/plain.c" >"$work/out" 2>&1
say $? "the short form works: $(cat "$work/out")"
"$twagent" eval "$work/axpy" "$work/axpy/starts/cpu/rows.c" --baseline nope >"$work/out" 2>&1
grep -q 'axpy has no baseline "nope", but reference, naive' "$work/out"; say $? "the baselines that are there are named: $(cat "$work/out")"
# A tune space, point by point, in one session; a seed of its own, so that it is the same again.
start="$work/axpy/starts/cpu/rows.c"
sed 's/CHUNK: .*/CHUNK: [1, 4]/; s/UNROLL: .*/UNROLL: [1, 8]/' "$start" >"$work/few.c"
"$twagent" eval "$work/axpy" "$work/few.c" --sweep 3 >"$work/sweep" 2>"$work/out"
say $? "a sweep: $(cat "$work/out")"
"$twagent" eval "$work/axpy" "$work/few.c" --sweep 0 >"$work/all" 2>"$work/out"
say $? "a sweep of all points: $(cat "$work/out")"
/usr/bin/python3 - "$work/sweep" "$work/all" <<'PY'
import json, sys
sweep, all = ([json.loads(line) for line in open(name)] for name in sys.argv[1:])
tunes = [[json.dumps(r["tune"], sort_keys=True) for r in records] for records in (sweep, all)]
assert len(set(tunes[0])) == len(sweep) == 3, tunes[0]
assert len(set(tunes[1])) == len(all) == 4 and set(tunes[0]) <= set(tunes[1]), tunes
assert all and [r for r in all if r["verdict"] == "kernel" and r["time_ns"]["median"] > 0], all
PY
say $? "a line for each point"
"$twagent" eval "$work/axpy" "$start" --sweep 2000000 >"$work/out" 2>&1
[ $? -eq 2 ]; say $? "a sweep has its bounds"

# A tune: every point once, the tables, what a later show says, and an interrupted one that goes on.
TWAGENT_STORE=$work/tunes "$twagent" tune "$work/axpy" "$work/few.c" --max-evaluations 2 --strategy random --seed 1 --quiet >"$work/tuned" 2>"$work/out"
[ $? -le 4 ] && grep -q '2 points measured, of 4 valid' "$work/tuned"; say $? "a tune: $(cat "$work/out" "$work/tuned")"
TWAGENT_STORE=$work/tunes "$twagent" resume r1 --budget-evaluations 8 --json --quiet >"$work/tuned" 2>"$work/out"
/usr/bin/python3 - "$work/tuned" <<'PY'
import json, sys
answer = json.load(open(sys.argv[1]))
tuning, run = answer["tuning"], answer["run"]
kernel, = tuning["kernels"]
assert (kernel["measured"], kernel["valid"], run["evaluated"]) == (4, 4, 4), answer
assert kernel["impact"]["why"] == "too few kernels to say which parameter mattered", kernel
assert len({top["source"] for top in tuning["top"]}) == 4, tuning["top"]
sizes = tuning["stability"]["sizes"]
if run["verified"]:
    assert [s["size"] for s in sizes][-2:] == ["M=239,N=199", "M=240,N=200"], sizes
    assert len(sizes) == tuning["stability"]["wanted"] == 5 and tuning["stability"]["right"], sizes
    assert {s["baseline"] for s in sizes} == {"reference"}, sizes  # the champion's own last one is over the fastest
PY
say $? "a tune that goes on has every point: $(cat "$work/out" "$work/tuned")"
TWAGENT_STORE=$work/tunes "$twagent" show r1 | grep -q '^impact of few.c: 4 kernels'; say $? "show has a tune's tables"
TWAGENT_STORE=$work/tunes "$twagent" report r1 --html -o "$work/tune.html" 2>/dev/null && "$here/../tools/report-page" "$work/tune.html" >"$work/out" 2>&1
[ $? -eq 0 ] || [ "$(cat "$work/out")" = 'no Chromium here' ]; say $? "a tune's page in a browser: $(cat "$work/out")"
TWAGENT_STORE=$work/tunes "$twagent" tune "$work/axpy" r9-c1 >"$work/out" 2>&1
[ $? -eq 2 ] && grep -q 'no run r9' "$work/out"; say $? "a tune of nothing: $(cat "$work/out")"

# A problem that lets zeros pass is refused, or said in every line; a fit one is known by what it is made of.
cp -r "$work/axpy" "$work/loose"
sed -i 's/^tolerance: auto/tolerance: {rtol: 100, atol: 100}/' "$work/loose/spec.yaml"
for command in "eval $work/loose $start" "run $work/loose --dry-run"; do
    "$twagent" $command >"$work/out" 2>&1
    [ $? -eq 2 ] && grep -q 'not fit.*zeros: Y: refused on 0 of 4 sets.*--unfit' "$work/out"
    say $? "$command: refused: $(cat "$work/out")"
done
"$twagent" eval "$work/loose" "$start" --unfit --effort search --no-profile >"$work/out" 2>&1
say $? "--unfit goes on"
[ "$(grep -c 'UNFIT PROBLEM' "$work/out")" -ge 2 ]; say $? "and says it with the verdict and the speed-up: $(cat "$work/out")"
"$twagent" run "$work/loose" --unfit --dry-run --report "$work/report" >"$work/out" 2>"$work/err"
grep -q '^r[0-9]* axpy: .*UNFIT PROBLEM' "$work/out" && grep -q 'UNFIT PROBLEM' "$work/err" && grep -q 'UNFIT PROBLEM' "$work/report/report.html"
say $? "so do a run, its lines and its report: $(cat "$work/out" "$work/err")"
for command in list "list candidates r1" "show r1" status; do
    "$twagent" $command | grep -q 'UNFIT PROBLEM'; say $? "$command says it"
done
known() { find "$work/cache/twagent/fit" -type f 2>/dev/null | wc -l; }
cp -r "$work/axpy" "$work/turncoat"
"$twagent" eval "$work/turncoat" "$start" --effort search --quiet >/dev/null 2>&1; count=$(known)
[ "$count" -ge 1 ]; say $? "a fit problem is known"
"$twagent" eval "$work/turncoat" "$start" --effort search --quiet >/dev/null 2>&1
[ "$(known)" -eq "$count" ]; say $? "and the same one the next time"
read_scale='SCALE = float(open(__file__.rsplit("/", 1)[0] + "/scale.txt").read())'
printf '%s\n\n\ndef reference(A, X, B):\n    return SCALE * (A * X + B)\n' "$read_scale" >"$work/turncoat/ref_impl.py"
echo 1 >"$work/turncoat/scale.txt"
"$twagent" eval "$work/turncoat" "$start" --effort search --quiet >"$work/out" 2>&1
say $? "a definition with a table beside it is fit, too: $(cat "$work/out")"
echo 0 >"$work/turncoat/scale.txt"
"$twagent" eval "$work/turncoat" "$start" --effort search --quiet >"$work/out" 2>&1
grep -q 'not fit.*zeros' "$work/out"; say $? "one whose table has changed is another: $(cat "$work/out")"
cat >"$work/turncoat/ref_impl.py" <<'PY'
CALLS = [0]


def reference(A, X, B):
    CALLS[0] += 1
    return (A * X + B) * (CALLS[0] <= 10)  # the trial of four sets takes twelve, and is content with eight
PY
printf 'void kernel(const float *A, const float *X, const float *B, float *Y, int64_t M, int64_t N)\n{\n    for (int64_t i = 0; i < M * N; i++)\n        Y[i] = 0;\n}\n' >"$work/zeros.c"
"$twagent" eval "$work/turncoat" "$work/zeros.c" --effort final --quiet >"$work/out" 2>&1
[ $? -ne 0 ] && grep -q 'not fit any more.*zeros' "$work/out"; say $? "one that counts its calls is found out: $(cat "$work/out")"

# A champion is set against the fastest baseline, whatever the spec begins with.
cp -r "$work/axpy" "$work/two"
sed -i -e 's/^baselines:.*/baselines: {naive: baselines\/naive.c, slow: baselines\/slow.c}\nbaseline: slow/' "$work/two/spec.yaml"
sed -e 's/^void kernel/static void once/' "$work/two/baselines/naive.c" >"$work/two/baselines/slow.c"
cat >>"$work/two/baselines/slow.c" <<'C'
void kernel(const float *A, const float *X, const float *B, float *Y, int64_t M, int64_t N)
{
    for (volatile int i = 0; i < 300; i++)
        once(A, X, B, Y, M, N);
}
C
"$twagent" eval "$work/two" "$start" --effort final --no-profile --json >"$work/one.json" 2>"$work/out"
grep -q '"baseline":"\(naive\|reference\)"' "$work/one.json"
say $? "the headline is against the fastest: $(grep -o '"baseline":"[a-z]*"' "$work/one.json" | head -1; cat "$work/out")"
"$twagent" eval "$work/two" "$start" --effort final --no-profile --baseline slow --json 2>"$work/out" | grep -q '"baseline":"slow"'
say $? "unless a person has chosen"

# What a simulator of caches counts, where there is one; a note where there is none.
"$twagent" eval "$work/axpy" "$start" --cachegrind --effort search --no-profile --json >"$work/one.json" 2>"$work/out"
say $? "eval --cachegrind: $(cat "$work/out")"
/usr/bin/python3 - "$work/one.json" <<'PY'
import json, shutil, sys
metrics = json.load(open(sys.argv[1]))["metrics"]
if shutil.which("valgrind"):
    assert metrics["cachegrind"]["instructions"] > 1000, metrics
    assert metrics["cachegrind_shape"], metrics
else:
    assert [note for note in metrics["notes"] if note.startswith("cachegrind: ")], metrics
PY
say $? "caches are counted"

# One twagent at a time times on a core, whoever runs it; the kernel frees it.
if [ -d /sys/devices/system/cpu/cpu0 ] && command -v flock >/dev/null; then
    cores=$(/usr/bin/python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
    flock "$TWAGENT_LOCKS/cpu$cores" sh -c "echo \$\$ >$work/held; exec sleep 900" & # until it is killed below
    holder=$!
    until [ -s "$work/held" ]; do sleep 0.05; done
    # What needs no clock is told before any turn: the holder still holds when the answer is there.
    mkdir -p "$work/typo"
    cp "$work/axpy/ref_impl.py" "$work/typo/"
    sed -e '/^baselines/d' -e 's/float32/flaot32/' "$work/axpy/spec.yaml" >"$work/typo/spec.yaml"
    printf 'void kernel(const float *A) { return nonsense; }\n' >"$work/nonsense.c"
    for command in "eval $work/typo $start" "problem check $work/typo"; do
        "$twagent" $command >"$work/out" 2>&1
        [ $? -eq 2 ] && grep -q 'expected a dtype' "$work/out"; say $? "$command: a typo is told: $(cat "$work/out")"
    done
    "$twagent" eval "$work/axpy" "$work/nonsense.c" >"$work/out" 2>&1
    grep -q 'does not compile' "$work/out"; say $? "a source that does not compile is told: $(cat "$work/out")"
    kill -0 $holder; say $? "all of that while another one holds the core"
    "$twagent" eval "$work/axpy" "$start" --effort search --no-profile --verbose >"$work/out" 2>&1 &
    waiting=$!
    until grep -q 'lane.waits' "$work/out" || ! kill -0 $waiting 2>/dev/null; do sleep 0.1; done
    kill "$(cat "$work/held")"
    wait $waiting
    say $? "a lane waits for its cores: $(tail -3 "$work/out")"
    grep -q "lane.waits .*another twagent times on core $cores: pid $holder (flock .*, started ..:..:..)" "$work/out"
    say $? "and says so, and for whom: $(grep lane.waits "$work/out")"
    wait $holder
fi
# Whoever loses its parent is this script's own child, and ends by itself, however late the machine lets it.
for _ in $(seq 3000); do left=$(pgrep -a -P $$ | grep -v " bash ") || break; sleep 0.1; done
[ -z "$left" ]; say $? "nobody is left behind: $left"
echo "eval: $passed passed, $failed failed"
[ $failed -eq 0 ]
