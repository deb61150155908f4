#!/usr/bin/env bash
# `problem check` of a folder: each problem in it is fit, refused with its reason, not run or an
# error, and ends nothing but itself.
set -u
twagent=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache
. "${BASH_SOURCE[0]%/*}/helpers.sh"
measured_once
mkdir "$work/all" && cd "$work/all" || exit 1
"$twagent" problem new 2_second >/dev/null && "$twagent" problem new 10_tenth >/dev/null
for name in 2_second 10_tenth; do sed -i 's/M: 1024, N: 1024/M: 48, N: 40/' $name/spec.yaml; done
cp -r 2_second 3_loose && sed -i 's/^name: .*/name: loose/; s/^tolerance: auto/tolerance: {rtol: 0, atol: 1e9}/' 3_loose/spec.yaml
cp -r 2_second 4_broken && sed -i 's/return A \* X + B/return A * Y/' 4_broken/ref_impl.py
cp -r 2_second 5_misspelt && sed -i 's/^reference:/refrence:/' 5_misspelt/spec.yaml
echo 'x = 1' >6_no_problem.py

"$twagent" problem check . --jobs 2 >"$work/out" 2>"$work/err"; say "$([ $? = 1 ]; echo $?)" "not all are fit: $(cat "$work/out" "$work/err")"
grep -q '^5 problems: 2 fit, 3 refused, 0 not run, 0 errors$' "$work/out"; say $? "the counts: $(cat "$work/out")"
grep -q '^refused  3_loose: zeros: Y: refused on 0 of 4' "$work/out"; say $? "a loose tolerance: $(cat "$work/out")"
grep -q '^refused  4_broken: reference: .*Y' "$work/out"; say $? "a broken reference: $(cat "$work/out")"
grep -q '^refused  5_misspelt: .*refrence' "$work/out"; say $? "a misspelt key: $(cat "$work/out")"
say "$([ "$(wc -l <"$work/err")" = 5 ]; echo $?)" "a line for each as it ends: $(cat "$work/err")"

"$twagent" problem check . --json >"$work/json" 2>"$work/err"
/usr/bin/python3 - "$work/json" <<'PY'
import json
import sys

files = json.load(open(sys.argv[1]))
assert [f["file"] for f in files] == ["2_second", "3_loose", "4_broken", "5_misspelt", "10_tenth"], files
assert [f["verdict"] for f in files] == ["fit", "refused", "refused", "refused", "fit"], files
assert all(f["seconds"] >= 0 and (f["reason"] == "") == (f["verdict"] == "fit") for f in files), files
PY
say $? "as JSON, in the order of their numbers: $(cat "$work/json")"
say "$([ ! -s "$work/err" ]; echo $?)" "JSON alone: $(cat "$work/err")"
rm -r 3_loose 4_broken 5_misspelt
"$twagent" problem check "$work/all" >"$work/out" 2>&1; say $? "all fit: $(cat "$work/out")"
"$twagent" problem check "$work/all" --each 1ms >"$work/out" 2>&1
grep -q 'not run  2_second: longer than' "$work/out"; say $? "a limit ends one file: $(cat "$work/out")"
# a system without memory kills the worker: which says nothing of the file
mkdir "$work/slow" && cp -r 2_second "$work/slow/" && sed -i 's/return A \* X + B/import time; time.sleep(900); return A * X + B/' "$work/slow/2_second/ref_impl.py"
"$twagent" problem check "$work/slow" >"$work/out" 2>&1 &
checking=$!
while kill -0 "$checking"; do
    worker=$(pgrep -P "$checking" | head -n 1)
    [ -n "$worker" ] && pgrep -P "$worker" >/dev/null && break
    sleep 0.1
done
kill -9 "${worker:-none}"; wait "$checking"
grep -q '^1 problems: 0 fit, 0 refused, 1 not run, 0 errors$' "$work/out"; say $? "a killed worker: $(cat "$work/out")"
# ... but beside others it is checked once more, alone
cp -r 2_second "$work/slow/10_other"
sed -i "s|import time; time.sleep(900)|import os, time; time.sleep(900 if os.path.exists('$work/busy') else 0)|" "$work/slow/2_second/ref_impl.py"
touch "$work/busy"
"$twagent" problem check "$work/slow" --jobs 2 >"$work/out" 2>&1 &
checking=$!
while kill -0 "$checking"; do # the other one has ended, and its worker
    sleep 0.1
    worker=$(pgrep -P "$checking")
    grep -q 10_other "$work/out" && [ "$(wc -w <<<"$worker")" = 1 ] && pgrep -P "$worker" >/dev/null && break
done
rm "$work/busy"; kill -9 "${worker:-none}"; wait "$checking"; say $? "killed beside another, and checked again: $(cat "$work/out")"
grep -q '^2 problems: 2 fit' "$work/out"; say $? "both are fit: $(cat "$work/out")"
mkdir "$work/empty"
"$twagent" problem check "$work/empty" >"$work/out" 2>&1; say "$([ $? = 2 ] && grep -q 'no problem in it' "$work/out"; echo $?)" "an empty folder: $(cat "$work/out")"
echo "folder: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
