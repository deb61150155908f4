#!/usr/bin/env bash
# Machines that lack what a verdict rests on (tests/fakes/without.c): without the walls around candidates it is
# refused, or said in every line; what else is forbidden is said.
set -u
twagent=$1 without=$(dirname "$2")/without
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache
. "${BASH_SOURCE[0]%/*}/helpers.sh"
measured_once
"$twagent" problem new "$work/axpy" >/dev/null
sed -i 's/M: 1024, N: 1024/M: 240, N: 200/' "$work/axpy/spec.yaml" # as fit, and sooner drawn
start="$work/axpy/starts/cpu/rows.c"

# A machine without the walls around candidates: refused, or said in every line. One without Landlock alone says it.
open="seccomp landlock_create_ruleset --"
for command in "eval $work/axpy $start" "run $work/axpy --dry-run" "profile $work/axpy $start"; do
    "$without" $open "$twagent" $command >"$work/out" 2>&1
    [ $? -eq 3 ] && grep -q 'NOT SANDBOXED: no Landlock, no seccomp.*--unconfined' "$work/out"
    say $? "$command: refused without walls: $(cat "$work/out")"
done
"$without" $open "$twagent" eval "$work/axpy" "$start" --unconfined --json --no-profile --effort search >"$work/one.json" 2>"$work/err"
say $? "--unconfined goes on"
grep -q '"unconfined":"NOT SANDBOXED' "$work/one.json" && grep -q '^NOT SANDBOXED' "$work/err"; say $? "and says it first, and in the record: $(cat "$work/err")"
"$without" landlock_create_ruleset -- "$twagent" eval "$work/axpy" "$start" --effort search >"$work/out" 2>&1
say $? "no Landlock alone refuses nothing"
[ "$(grep -c 'SANDBOX INCOMPLETE: no Landlock' "$work/out")" -ge 3 ]; say $? "and is said first, with the verdict and the speed-up: $(cat "$work/out")"
"$without" $open "$twagent" run "$work/axpy" --unconfined --dry-run --report "$work/report" >"$work/out" 2>"$work/err"
grep -q '^r[0-9]* axpy: .*NOT SANDBOXED' "$work/out" && [ "$(grep -c 'NOT SANDBOXED' "$work/err")" -ge 2 ] && grep -q 'NOT SANDBOXED' "$work/report/report.html" "$work/report/report.txt" "$work/report/kernel.c"
say $? "so do a run, its lines and its report: $(cat "$work/out" "$work/err")"
run=$(sed -n 's/^\(r[0-9]*\) axpy: .*/\1/p' "$work/out")
for command in list "list candidates $run" "show $run" "status $run" "best axpy"; do
    "$twagent" $command | grep -q 'NOT SANDBOXED'; say $? "$command says it"
done
"$without" $open "$twagent" doctor >"$work/out" 2>&1
[ $? -eq 3 ] && grep -q 'MISSING  seccomp' "$work/out" && grep -q 'WARNING  no Landlock' "$work/out"; say $? "doctor names both: $(tail -5 "$work/out")"

# What else containers forbid is said where it is missed.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" # which needs ptrace
"$without" ptrace perf_event_open -- "$twagent" eval "$work/axpy" "$start" --effort search >"$work/out" 2>&1
say $? "a machine without ptrace and perf has verdicts"
grep -q 'ptrace is not permitted' "$work/out" && grep -q 'time in  *not known: perf_event_open: Permission denied' "$work/out"
say $? "that say what they lack: $(cat "$work/out")"
"$without" ptrace perf_event_open -- "$twagent" doctor >"$work/out" 2>&1
[ $? -eq 0 ] && grep -q 'note     ptrace is not permitted' "$work/out" && grep -q 'note     perf_event_open is not' "$work/out"
say $? "so does doctor: $(tail -5 "$work/out")"
if "$twagent" doctor | grep -q 'perf_samples *yes'; then
    "$twagent" eval "$work/axpy" "$start" --effort search >"$work/out" 2>&1
    grep -q 'time in  *[0-9]* % in' "$work/out" && ! grep -q 'not permitted' "$work/out"; say $? "elsewhere the line has shares: $(cat "$work/out")"
fi

# Words of first minutes: a definition that returns nothing, a doctor for programs where nothing is there.
cp -r "$work/axpy" "$work/nothing"
printf 'def reference(A, X, B):\n    A * X + B\n' >"$work/nothing/ref_impl.py"
"$twagent" problem check "$work/nothing" >"$work/out" 2>&1
grep -q 'reference (ref_impl.py:1) returned None: is a `return` missing?, expected Y: one array' "$work/out"; say $? "None is named: $(cat "$work/out")"
printf 'def reference(A, X, B):\n    return (A * X + B)[:, 1:]\n' >"$work/nothing/ref_impl.py"
"$twagent" problem check "$work/nothing" >"$work/out" 2>&1
grep -q 'expected ([0-9]*, [0-9]*) at M=[0-9]*, N=[0-9]* (a shape that cannot be: say so in `where`)' "$work/out"
say $? "the dims of a wrong shape are named: $(cat "$work/out")"
printf 'def reference(A, X, B):\n    return A * X + B\n' >"$work/nothing/ref_impl.py"
sed -i '/^flops/d' "$work/nothing/spec.yaml"
"$twagent" problem check "$work/nothing" >"$work/out" 2>&1
grep -q 'operations not known (`flops`), .* MB; the reference takes .*, the floor is .* (bytes)' "$work/out"
say $? "operations that nobody counted are not 0: $(cat "$work/out")"
mkdir "$work/own" && printf 'void kernel(const float *X, float *Y, int64_t N)\n{\n    for (int64_t i = 0; i < N; i++)\n        Y[i] = 2 * X[i];\n}\n' >"$work/own/twice.c"
printf 'name: own\ndims: {N: 4000}\ninputs: {X: {shape: [N], dtype: float32}}\noutputs: {Y: {shape: [N], dtype: float32}}\nreference: twice.c\n' >"$work/own/spec.yaml"
"$twagent" run "$work/own" --no-final --budget-evaluations 2 >"$work/out" 2>&1
grep -q 'kernel .*definition.*\.c' "$work/out" && grep -q '2 evaluated.* 2 kernels' "$work/out"
say $? "a definition in C is a first kernel: $(cat "$work/out")"
"$twagent" problem check "$work/own" >"$work/out" 2>&1
grep -q 'a C file that writes REAL' "$work/out"; say $? "and has one precision: $(cat "$work/out")"
sed -i 's/float/REAL/g' "$work/own/twice.c"
"$twagent" run "$work/own" --no-final --budget-evaluations 1 >"$work/out" 2>&1
grep -q '1 evaluated.* 1 kernel' "$work/out" && "$twagent" best "$work/own" -o "$work/first.c" >"$work/out" 2>&1 &&
    grep -q '#define REAL float' "$work/first.c" && "$twagent" eval "$work/own" "$work/first.c" --until check >"$work/out" 2>&1
say $? "so is one that writes REAL, and it is a file of its own: $(cat "$work/out")"
# Without starts, a model or a name that says so: what computes a shipped problem begins with its starts.
mkdir "$work/mine" && printf 'def reference(w, x):\n    return x @ w.T\n' >"$work/mine/r.py"
printf 'name: mine\ndims: {r: 96, c: 80, i: 64}\ninputs:\n  W: {shape: [c, i], dtype: float32}\n  X: {shape: [r, i], dtype: float32}\noutputs: {Z: {shape: [r, c], dtype: float32}}\nreference: r.py\n' >"$work/mine/spec.yaml"
"$twagent" run "$work/mine" --no-final --budget-evaluations 1 >"$work/out" 2>&1
grep -q 'r[0-9]*-c1 .*direct.c\|r[0-9]*-c1 .*packed.c\|1 evaluated.*1 kernel' "$work/out"; say $? "a product by another name, with a factor transposed, begins: $(cat "$work/out")"
if ! "$twagent" doctor --backend cuda --json >"$work/out" 2>/dev/null; then
    /usr/bin/python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["error"]' "$work/out"; say $? "doctor --json says JSON without a GPU: $(cat "$work/out")"
fi
/usr/bin/python3 - "$twagent" "$run" <<'PY'
import fcntl, os, pty, struct, sys, termios

def shown(columns, *command):
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execv(sys.argv[1], [sys.argv[1], *command])
    text = b""
    try:
        while part := os.read(fd, 4096):
            text += part
    except OSError:
        pass  # it has ended
    lines = text.decode().splitlines()
    assert max(map(len, lines)) < columns, lines
    return lines, " ".join(text.decode().split())

lines, words = shown(40, "status", sys.argv[2])
assert any(line.startswith("  best       ") for line in lines), lines
assert words.find("NOT SANDBOXED: no Landlock, no seccomp") > 0, lines
lines, words = shown(80, "list")
assert lines[0].startswith("run started") and lines[0].endswith("speed-up evals kernel"), lines
assert lines[1].startswith(sys.argv[2] + "  ") and words.find("NOT SANDBOXED") > 0, lines
shown(80, "list", "problems")
shown(40, "report", sys.argv[2])
assert shown(80, "stats")[0][0].endswith("gain over its parent")
for columns in 40, 80:
    lines, words = shown(columns, "show", sys.argv[2])
    assert words.find("NOT SANDBOXED: no Landlock, no seccomp") > 0 and words.find("list candidates") > 0, lines
    lines, words = shown(columns, "show", sys.argv[2] + "-c1")
    assert words.find("checks") > 0, lines
PY
say $? "status fits 40 columns and list 80, and they say all"
echo "walls: $passed passed, $failed failed"
[ $failed -eq 0 ]
