#!/usr/bin/env bash
# A backend that is one folder and one line of a table goes through doctor, eval, run and emit.
set -u
toy=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache
failed=0
say() { # TRUTH NAME
    [ "$1" = 0 ] || { echo "FAILED: $2"; failed=$((failed + 1)); }
}
export TWAGENT_LOCKS=$work/locks
mkdir -p "$work"/locks/cpu{0..255} # no test beside this one is waited for
cd "$work" || exit 1
mkdir -p twice/starts/toy
cat >twice/spec.yaml <<'YAML'
name: twice
dims: {N: 64}
inputs: {X: {shape: [N], dtype: float32}}
outputs: {Y: {shape: [N], dtype: float32}}
reference: ref_impl.py
check: [{N: 1}, {N: 37}]
YAML
printf 'def reference(X):\n    return X + X\n' >twice/ref_impl.py
echo 'X X +' >twice/starts/toy/sum.toy
echo 'X 2.5 *' >wrong.toy

"$toy" doctor --backend toy --no-measure >out 2>&1; say $? "doctor: $(cat out)"
grep -q 'beads are moved by hand' out; say $? "its findings: $(cat out)"
"$toy" eval ./twice twice/starts/toy/sum.toy --unfit --time-budget 40ms --json >out 2>&1
grep -q '"verdict":"kernel"' out; say $? "eval, by the file's language: $(cat out)"
"$toy" eval ./twice wrong.toy --unfit --time-budget 40ms >out 2>&1; say "$([ $? = 1 ]; echo $?)" "a wrong one: $(cat out)"
grep -q 'rejected' out; say $? "is rejected: $(cat out)"
"$toy" eval ./twice twice/starts/toy/sum.toy --backend cpu >out 2>&1
grep -q 'a source in postfix does not run on the backend cpu: give --backend toy' out; say $? "elsewhere: $(cat out)"
"$toy" run ./twice --backend toy --unfit --budget-evaluations 1 --final=false --time-budget 40ms --quiet >out 2>&1
grep -q 'r1-c' out; say $? "run: $(cat out)"
"$toy" emit r1 there >out 2>&1; say $? "emit: $(cat out)"
grep -q '^X X +' there/kernel.toy; say $? "its own form: $(ls there 2>&1)"
"$toy" emit r1 numbers --to numpy >out 2>&1; grep -q 'a kernel of the backend toy: --to c' out; say $? "no other: $(cat out)"
[ "$failed" -eq 0 ]
