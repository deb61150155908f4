#!/usr/bin/env bash
# What a person types wrong, and what they are told: one line each, and the right exit code.
set -u
twagent=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config
failed=0 passed=0
# expect CODE TEXT ARGUMENTS...: the command ends with CODE, and TEXT stands in what it prints.
expect() {
    local code=$1 text=$2 out status
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
expect 0 "usage: twagent COMMAND" --help
expect 2 "usage: twagent COMMAND"
expect 0 "twagent 0." --version
expect 2 'did you mean "eval"' evil
for command in run eval problem list show best doctor config backup; do
    expect 0 "usage: twagent $command" $command --help
    expect 0 "usage: twagent $command" help $command
done
expect 2 '--branchin' run matmul --branchin 3
expect 2 '--branching' run matmul --branching x
expect 2 '--select' run matmul --select 7
expect 2 '--budget-time' run matmul --budget-time soon
expect 2 'nothing-here' run nothing-here
expect 2 'PROBLEM FILE' eval matmul
expect 2 'missing.c' eval matmul missing.c
expect 2 '--tune' eval matmul "$work/x.c" --tune BM
expect 2 'new or check' problem make x
expect 0 '--man' --help
expect 0 '.TH TWAGENT 1' --man
expect 0 'complete -F _twagent twagent' --completion
expect 0 'branching' config
mkdir -p "$work/config/twagent"
echo 'branching: 3' >"$work/config/twagent/config.yaml"
expect 0 '3' config
printf 'rounds: 2\nbranchin: 3\n' >"$work/config/twagent/config.yaml"
expect 2 'config.yaml:2' config
printf 'rounds: [\n' >"$work/config/twagent/config.yaml"
expect 2 'config.yaml:' config
rm "$work/config/twagent/config.yaml"

expect 0 'wrote' problem new "$work/axpy"
expect 2 'is there already' problem new "$work/axpy"
sed -i 's/^dims:.*/dims: {M: 1024, N: "M +"}/' "$work/axpy/spec.yaml"
expect 2 'spec.yaml:5' problem check "$work/axpy"
sed -i 's/^dims:.*/dimz: {M: 1024, N: 1024}/' "$work/axpy/spec.yaml"
expect 2 'dimz' problem check "$work/axpy"
printf '/*---\ntune: {BM: [1, 2\n---*/\nvoid kernel(void) {}\n' >"$work/bad.c"
expect 1 'bad.c:' eval matmul "$work/bad.c"
echo "cli: $passed passed, $failed failed"
[ $failed -eq 0 ]
