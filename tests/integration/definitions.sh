#!/usr/bin/env bash
# A problem is its definition: two of one name, or one that was edited, share neither best kernel nor history nor
# packages, and a path, a name and a run agree on which is meant.
set -u
twagent=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache
. "${BASH_SOURCE[0]%/*}/helpers.sh"
measured_once
mkdir -p "$work/one" "$work/two" "$work/away" && cd "$work" || exit 1
for folder in one two; do
    cat >$folder/spec.yaml <<'YAML'
name: scale
dims: {N: 4096}
inputs: {x: {shape: [N], dtype: float32}}
outputs: {y: {shape: [N], dtype: float32}}
reference: ref.py
check: [{N: 7}]
YAML
done
printf 'def reference(x):\n    return x * 2 + 1\n' >one/ref.py
printf 'def reference(x):\n    return x * 3 - 1\n' >two/ref.py
kernel() { # FILE EXPRESSION
    printf '/*---\ntune:\n  U: [1, 4]\n---*/\nvoid kernel(const float *x, float *y, int64_t N)\n{\n    for (int64_t i = 0; i < N; i++)\n        y[i] = %s;\n}\n' "$2" >"$1"
}
mkdir -p one/starts/cpu two/starts/cpu
kernel one/starts/cpu/one.c 'x[i] * 2 + 1'
kernel two/starts/cpu/two.c 'x[i] * 3 - 1'
search() { "$twagent" run "$@" --no-final --budget-evaluations 1 >"$work/out" 2>&1; [ $? -le 4 ]; }

search one; say $? "the first one's search: $(cat out)"
expect 1 'no kernel for "./two"' best ./two
also 'was found for another definition'
search two; say $? "the second one's search: $(cat out)"
for word in one ./one one/spec.yaml; do expect 0 'r1-c1  kept  one.c' best $word; done
for word in two ./two "$work/two"; do expect 0 'r2-c1  kept  two.c' best $word; done
expect 0 'two.c' show r2-c1
[ "$("$twagent" list | grep -oE 'scale#[0-9a-f]{4}' | sort -u | wc -l)" = 2 ]; say $? "list tells them apart: $("$twagent" list)"
expect 2 '"scale" may be scale#' best scale
also "(r1, $work/one/spec.yaml)" "(r2, $work/two/spec.yaml)"
short=$("$twagent" list | grep '^r2 ' | grep -oE 'scale#[0-9a-f]{4}')
cd away || exit 1
expect 0 'r2-c1  kept  two.c' best "$short"
expect 0 '1 kernel of 1 evaluated' history "$short"
expect 0 '1 kernel of 1 evaluated' history ../one
mkdir scale # no problem, as a package's folder is none
expect 2 '"scale" may be scale#' best scale
cd .. || exit 1
expect 0 '"problem_hash"' export two --format jsonl
[[ "$out" == *two.c* && "$out" != *one.c* ]]; say $? "only its own are exported: $out"

sed -i 's/- 1/- 2/' two/ref.py
expect 1 'was found for another definition' best two
expect 2 'was found for another definition' emit r2-c1 "$work/package" --to numpy
expect 2 'was found for another definition' rerun r2-c1
expect 0 'r1-c1  kept  one.c' best one
sed -i 's/- 2/- 1/' two/ref.py
expect 0 'wrote' emit two "$work/package" --to numpy

# a run that goes on, of a definition that has changed meanwhile
sed -i 's/+ 1/+ 3/' one/ref.py
expect 2 'was begun for another definition of scale' resume r1 --budget-evaluations 2
echo "definitions: $passed passed, $failed failed"
[ $failed -eq 0 ]
