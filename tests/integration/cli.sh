#!/usr/bin/env bash
# What a person types wrong, and what they are told: one line each, and the right exit code.
set -u
twagent=$1
work=$(mktemp -d)
script_at=$(realpath "${BASH_SOURCE[0]}") # before any cd
root=${script_at%/tests/*}
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config
. "${BASH_SOURCE[0]%/*}/helpers.sh"
expect 0 "usage: twagent COMMAND" --help
expect 2 "usage: twagent COMMAND"
expect 0 "twagent 0." --version
expect 2 'did you mean "eval"' evil
expect 2 'did you mean "--version"' --verison
expect 2 'picks attacks, with --adversarial' doctor nosuch
expect 2 'There is no spec.yaml here' run --branching 8 --select 0.25
for command in run resume pause stop status eval profile problem list show best emit doctor config backup; do
    expect 0 "usage: twagent $command" $command --help
    expect 0 "usage: twagent $command" help $command
done
expect 2 '--branchin' run matmul --branchin 3
expect 2 '--branching' run matmul --branching x
expect 2 '--select' run matmul --select 7
expect 2 '--budget-time' run matmul --budget-time soon
expect 2 'no problem "nothing-here": there is no such folder or file in' run nothing-here
expect 2 'did you mean "softmax"? (twagent list problems)' run sofmax
expect 2 'those that ship: attention' run nothing-here
expect 2 'nothing.py": there is no such folder or file in' run nothing.py
[[ "$out" != *'those that ship'* ]]; say $? "a file that is not there is no problem that ships: $out"
echo 'def blur(x): return x' >"$work/blur.py"
expect 2 'it never says torch. A numpy function is a problem by a spec.yaml' problem check "$work/blur.py" --python /nowhere/python3
expect 2 'not "r1" (of a run: twagent show r1, twagent list candidates r1)' list r1
expect 2 'not "runs r1"' list runs r1
expect 2 'did you mean "softmax"' problem check sofmax
expect 2 'did you mean "matmul"' eval mattmul "$work/x.c"
expect 2 'there is no such folder or file' problem check ./nothing-here
expect 2 'matmul@M=4@M=8 has two sizes' problem check matmul@M=4@M=8
expect 2 'PROBLEM FILE' eval matmul
expect 2 'missing.c' eval matmul missing.c
expect 2 '--tune' eval matmul "$work/x.c" --tune BM
expect 2 'new or check' problem make x
expect 0 '--man' --help
expect 0 '.TH TWAGENT 1' --man
expect 0 'complete -F _twagent twagent' --completion
expect 0 'branching' config
for option in model idea-model code-model provider base-url temperature max-tokens strategy islands migration lanes \
    launcher tuning requests target floor-share patience mailbox-wait budget-usd budget-tokens disk-quota disk-floor \
    models env-file ca-file; do
    expect 0 "--$option" run --help
    expect 0 "$option" config
    expect 0 "--$option" --completion
done
expect 0 'twagent resume' --man

# --- where each setting comes from
cd "$work" || exit 1
unset OPENAI_API_KEY ANTHROPIC_API_KEY GOOGLE_API_KEY TWAGENT_MODEL TWAGENT_PROVIDER TWAGENT_BASE_URL
mkdir -p "$work/config/twagent"
printf '# mine\nbranching: 3\npatience: 4\n' >"$work/config/twagent/config.yaml"
expect 0 'branching: 3                            # '"$work/config/twagent/config.yaml:2" config
expect 0 "# $work/config/twagent/config.yaml:3" config
expect 0 'branching: 5                            # --branching' config --branching 5
expect 0 'floor-share: 0.95                       # default' config
expect 0 'budget-usd: 0                           # no cap; default' config
expect 0 'tuning: -1                              # as many as it writes, and on while it thinks; default' config
expect 0 'temperature: -1                         # left to the model' config
expect 0 'mailbox-wait: 0ms                       # takes only those that are there; default' config
TWAGENT_MODEL=gpt-5-mini expect 0 'model: gpt-5-mini                       # $TWAGENT_MODEL' config
expect 0 '"origin":"'"$work/config/twagent/config.yaml:2"'"' config --json
expect 0 '"budget-usd":{"value":2.5,"origin":"--budget-usd"}' config --json --budget-usd 2.5
expect 0 'none: the built-in proposer' config
expect 0 'gpt-5-mini (' config --model gpt-5-mini
expect 0 'needs a key: set OPENAI_API_KEY' config --model gpt-5-mini
expect 0 'OPENAI_API_KEY     not set' config
export OPENAI_API_KEY=sk-never-to-be-seen
expect 0 'OPENAI_API_KEY     set, in the environment' config
expect 0 'gpt-5-mini, 67 %: openai https://api.openai.com/v1' config --model gpt-5-mini@2,gpt-5
expect 0 'gpt-5, 33 %' config --model gpt-5-mini@2,gpt-5
expect 0 'price not known' config --model openai/mine
unset OPENAI_API_KEY
(umask 077 && printf 'OPENAI_API_KEY="sk-never-to-be-seen"\n' >"$work/.env" && cp "$work/.env" "$work/keys")
expect 0 'OPENAI_API_KEY     set, in ./.env' config
rm "$work/.env"
expect 0 "set, in $work/keys" config --env-file "$work/keys"
for form in "" --json; do
    OPENAI_API_KEY=sk-never-to-be-seen "$twagent" config --model gpt-5-mini --env-file "$work/keys" $form 2>&1 |
        grep -q never-to-be-seen && { echo 'config prints a key'; failed=$((failed + 1)); }
done
rm "$work/config/twagent/config.yaml"

"$twagent" list problems >/dev/full 2>"$work/err"
[ $? -eq 3 ] && grep -q 'cannot write the output: No space left' "$work/err" || { echo "a full disk is not told"; failed=$((failed + 1)); }
"$twagent" list problems 2>"$work/err" | head -n 1 >/dev/null
[ "${PIPESTATUS[0]}" -eq 0 ] && [ ! -s "$work/err" ] || { echo "a reader that ended is an error"; failed=$((failed + 1)); }

# --- models that do not go together, runs that are not there
expect 2 '--provider openai needs --model NAME' run matmul --provider openai
expect 2 '--provider mailbox needs --model FOLDER' run matmul --provider mailbox
expect 2 'needs --code-model or --model' run matmul --idea-model gpt-5-mini
expect 2 'did you mean "gpt-5-mini"' run matmul --model gpt-5-mimi
expect 3 'OPENAI_API_KEY' run matmul --model gpt-5-mini
expect 2 '--budget-usd' run matmul --budget-usd -1
expect 2 '--strategy' run matmul --strategy best
expect 2 'islands' run matmul --strategy island
expect 2 '--disk-quota' run matmul --disk-quota lots
expect 2 'missing.yaml' run matmul --model x --models missing.yaml
for command in resume pause stop status; do expect 2 'no run' $command r1; done
expect 2 "no run r1: $work/store holds none yet" show r1
expect 2 'no run r1' show r1-c5
expect 2 'no run r1' emit r1-c5 "$work/emitted"
expect 2 'expected the id of a run (r3)' show nonsense
expect 2 'no run r1' list candidates r1
expect 1 'no kernel for "softmx": ' best softmx
expect 1 'did you mean "softmax"' best softmx
expect 1 'search with: twagent run softmax' best softmax
expect 2 'no runs yet' resume
expect 2 'no runs yet' resume --no-final
expect 2 'no baseline "nix"' run conv2d --baseline nix --quiet --store "$work/unbegun"
[ ! -e "$work/unbegun" ]; say $? "a run that cannot begin leaves no store: $(find "$work/unbegun")"
mkdir "$work/unbegun" && touch "$work/unbegun/mine"
expect 2 'no baseline "nix"' run conv2d --baseline nix --quiet --store "$work/unbegun"
[ "$(ls -A "$work/unbegun")" = mine ]; say $? "... and keeps what was in its folder: $(ls -A "$work/unbegun")"
expect 2 'an option of this command' resume r1 --seed 4
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
expect 2 'an argument is empty' problem new ""
expect 2 'expected a folder named with letters' problem new "$work/bad name"
expect 0 'wrote' problem new "$work/deep/er/"
sed -i 's/^dims:.*/dims: {M: 1024, N: "M +"}/' "$work/axpy/spec.yaml"
expect 2 'spec.yaml:5' problem check "$work/axpy"
sed -i 's/^dims:.*/dimz: {M: 1024, N: 1024}/' "$work/axpy/spec.yaml"
expect 2 'dimz' problem check "$work/axpy"
sed -i 's/^dimz:.*/dims: {M: 1024, N: 1024}/' "$work/axpy/spec.yaml"
printf 'import numpy as np\n\ndef reference(A, X, B):\n    C = np.stack([B, X], axis=0)\n    return A * C\n' >"$work/axpy/ref_impl.py"
expect 1 '(ref_impl.py:4: C = np.stack([B, X], axis=0))' problem check "$work/axpy"
printf 'def reference(A, X, B)\n    return A\n' >"$work/axpy/ref_impl.py"
expect 2 "SyntaxError: expected ':' (ref_impl.py:1)" problem check "$work/axpy"
printf '/*---\ntune: {BM: [1, 2\n---*/\nvoid kernel(void) {}\n' >"$work/bad.c"
expect 1 'bad.c:' eval matmul "$work/bad.c"
expect 2 'is a kernel, not a problem: twagent eval PROBLEM' run "$work/bad.c"
expect 2 'cuda, alexnet, dims, or NAME=NUMBER,... of N C H W K R S PAD STRIDE; not "Q=3"' run conv2d@Q=3

# --- a definition and a baseline in C without the function: what it has to define, in one sentence
mkdir "$work/plain"
printf 'name: plain\ndims: {M: 8}\ninputs:\n  A: {shape: [M], dtype: float32}\noutputs:\n  Y: {shape: [M], dtype: float32}\nreference: ref.c\n' >"$work/plain/spec.yaml"
printf 'void reference(const float *A, float *Y, int64_t M) {}\n' >"$work/plain/ref.c"
must='it has to define void kernel(const float *A, float *Y, int64_t M): the compiler exited 1: '
expect 2 "reference: $must" problem check "$work/plain"
printf 'void kernel(const float *A, float *Y, int64_t M) { for (int64_t i = 0; i < M; i++) Y[i] = 2 * A[i] + 1; }\n' >"$work/plain/ref.c"
printf 'void kernel(const float *A, float *Y) {}\n' >"$work/plain/old.c"
echo 'baselines: {old: old.c}' >>"$work/plain/spec.yaml"
expect 1 "baseline old: $must" problem check "$work/plain"

# --- a variable that a script forgot to set, a folder without a problem, cores that are not there
expect 2 'an argument is empty' docs remove ""
expect 2 'an argument is empty' show ""
expect 2 'an argument is empty' run ""
mkdir -p "$work/empty"
cd "$work/empty" || exit 1
expect 2 'has no spec.yaml (twagent problem new' run .
expect 2 'has no spec.yaml' eval "$work/empty" "$work/bad.c"
cd "$work" || exit 1
expect 2 '--cores: core 4095 is not ours' eval matmul "$work/bad.c" --cores 4095

# --- an own operation that nothing ships for, without a model: what is printed can be copied and run
mkdir "$work/own"
printf 'name: own\ndims: {M: 64, N: 32}\ninputs:\n  x: {shape: [M, N], dtype: float32}\noutputs:\n  y: {shape: [M, N], dtype: float32}\nreference: ref.py\n' >"$work/own/spec.yaml"
printf 'import numpy\ndef reference(x):\n    return numpy.cumsum(numpy.abs(x), 1) / 3\n' >"$work/own/ref.py"
if "$twagent" problem check "$work/own" 2>&1 | grep -q ': fit$'; then
    expect 2 'nothing to begin a search with' run "$work/own"
    printf '%s\n' "$out" >"$work/told"
    copied() { # WORDS OF A COMMAND: as it was printed
        line=$(grep "^  $1" "$work/told") || line='echo not printed'
        out=$(cd "$work" && PATH=$(dirname "$twagent"):$PATH TWAGENT_STORE=$work/own.store && eval "$line" 2>&1)
    }
    (cd "$work" && bash -c "$(sed -n '/^cat >first.c/,/^END$/p' "$work/told")")
    copied 'twagent problem check'
    [[ $out == *': fit'* ]]; say $? "it is checked: $out"
    copied 'twagent eval'
    [[ $out == *'rejected at '* ]]; say $? "the first kernel is evaluated: $out"
    copied 'mkdir -p'
    [[ $out == *'no kernel was found'* && $out == *'1 evaluated'* ]]; say $? "and searched from: $out"
else
    printf '\t0 - cli: no numpy here: what is printed for an own operation was not run (Skipped)\n'
fi

# --- a coding agent that works on a candidate looks at its sources by itself, as the run does
agent=$work/agents/r1-c1
mkdir -p "$agent/.twagent" && printf '%s\n' matmul@M=64,N=48,K=32 --backend=cpu >"$agent/.twagent/eval"
cp "$root/problems/matmul/baselines/naive.c" "$agent/right.c"
sed 's/+=/-=/' "$agent/right.c" >"$agent/wrong.c"
export TWAGENT_ATTEMPT=$agent
expect 0 'compiles; not checked, as asked' attempt evaluate --until=compile "$agent/right.c"
expect 1 '2 wrong.c' attempt evaluate "$agent/right.c" "$agent/wrong.c" --until check
[[ $out == *'passed every check'*'rejected at check'* ]]; say $? "each has its own: $out"
expect 0 'speed-up ' attempt evaluate "$agent/right.c" --against "$root/problems/matmul/starts/cpu/direct.c" --time-budget=1ms --no-profile
expect 2 'usage: twagent attempt' attempt submit "$agent/right.c" --until=check
expect 2 'usage: twagent attempt' attempt evaluate --until=check
expect 2 '"parse"' attempt evaluate --until=parse "$agent/right.c"
expect 3 'no attempt goes on' attempt evaluate "$agent/right.c"
unset TWAGENT_ATTEMPT

# --- without a compiler: said before anything is searched, and no run is left behind
without_compiler() {
    unshare --mount --map-root-user sh -c 'for c in gcc clang; do for d in /usr/bin /usr/local/bin; do
        [ ! -e $d/$c ] || mount --bind /dev/null "$(realpath $d/$c)" || exit 77; done; done; exec "$@"' sh "$program" "$@"
}
program=$twagent
if without_compiler --version >/dev/null 2>&1; then
    twagent=without_compiler
    expect 3 'no C compiler: there is neither gcc nor clang' run matmul --rounds 1
    expect 3 'no C compiler' eval matmul "$root/problems/matmul/starts/cpu/direct.c"
    twagent=$program
    expect 0 'no runs yet' list
else
    printf '\t0 - cli: no mount namespaces here: not seen without a compiler (Skipped)\n'
fi

# --- completion: subcommands, values of a choice, problems
complete_with() { # WORDS...: what bash would offer for the last one
    bash -c '. <("$0" --completion); PATH=$(dirname "$0"):$PATH
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _twagent; echo "${COMPREPLY[*]}"' "$twagent" "$@"
}
offers() { # EXPECTED WORDS...
    local expected=$1 got
    shift
    got=$(cd "$work" && complete_with "$@")
    if [ "$got" = "$expected" ]; then
        passed=$((passed + 1))
    else
        echo "completion of '$*': '$got', expected '$expected'"
        failed=$((failed + 1))
    fi
}
offers 'resume' twagent res
offers 'new check' twagent problem ''
offers 'search show stats' twagent docs s
offers 'runs problems candidates' twagent list ''
offers 'softmax' twagent run so
offers 'axpy' twagent eval axp
offers '--budget-time --budget-evaluations --budget-usd --budget-tokens' twagent run matmul --bud
offers 'beam greedy islands' twagent run matmul --strategy ''
offers 'cpu cuda webgpu' twagent eval matmul k.c --backend ''
offers '' twagent run matmul --rounds ''

# --- what most processes never call is not loaded with each: thirty libraries come with these two
check 'a start loads no libcurl and no libmicrohttpd' bash -c '! ldd "$1" | grep -E "libcurl|libmicrohttpd"' - "$twagent"

# --- the scripts say something also where nothing is missing
for script in quickstart check; do
    said=$("$root/$script" --print 2>&1)
    if [ $? -eq 0 ] && [ -n "$said" ]; then
        passed=$((passed + 1))
    else
        echo "$script --print is silent or fails"
        failed=$((failed + 1))
    fi
done
# --- the README's search is the one that quickstart runs
first=$(sed -n 's/^"$twagent" \(run .*\) || status.*/\1/p' "$root/quickstart")
grep -qF "twagent $first " "$root/README.md" && grep -qF "\`twagent ${first%% --*}\`" "$root/README.md"
say $? "quickstart runs: $first"
echo "cli: $passed passed, $failed failed"
[ $failed -eq 0 ]
