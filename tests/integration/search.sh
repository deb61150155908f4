#!/usr/bin/env bash
# `twagent run` with the built-in proposer and with a model (a fake provider that speaks chat
# completions): rounds, repairs, records, exit codes, budgets, stops.
set -u
twagent=$1 provider=$2
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config
unset OPENAI_API_KEY OPENAI_BASE_URL
mkdir -p "$work/config/twagent" && echo 'time-budget: 40ms' >"$work/config/twagent/config.yaml" # no number is looked at
. "${BASH_SOURCE[0]%/*}/helpers.sh"
server=
has() { # FILE TEXT NAME
    grep -qF -- "$2" "$1"; say $? "$3: no \"$2\" in: $(tail -n 5 "$1")"
}

mkdir -p "$work/mm"
cp -r "$here/../adversarial/cpu/problems/mm/." "$work/mm"
mkdir -p "$work/mm/starts/cpu"
cat >"$work/mm/starts/cpu/rows.c" <<'C'
/*---
tune: {CHUNK: [4, 1, 16], BLOCK: [64, 32, 128]}
---*/
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
#pragma omp parallel for schedule(static, CHUNK)
    for (int64_t i = 0; i < M; i++)
        for (int64_t j0 = 0; j0 < N; j0 += BLOCK)
            for (int64_t k = 0; k < K; k++)
                for (int64_t j = j0; j < (j0 + BLOCK < N ? j0 + BLOCK : N); j++)
                    C[i * N + j] = (k ? C[i * N + j] : 0) + A[i * K + k] * B[k * N + j];
}
C

# --- where nothing works, the summary says what most of it has in common
cp -r "$work/mm" "$work/broken"
sed -i 's/int64_t j0 = 0/int64_t j0 = nowhere/' "$work/broken/starts/cpu/rows.c"
"$twagent" run "$work/broken" --rounds 1 --branching 2 --store "$work/store2" >"$work/out" 2>&1
grep -q '^  refused    4 of 4: .* (twagent show r1-c1)$' "$work/out"; say $? "failures that are alike: $(cat "$work/out")"

# ... and where they fail in two ways, since each point writes its half of the rows
cat >"$work/half.c" <<'C'
/*---
tune:
  OFF: [0, 1]
---*/
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = OFF ? (M + 1) / 2 : 0; i < (OFF ? M : (M + 1) / 2); i++)
        for (int64_t j = 0; j < N; j++) {
            float sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
}
C
"$twagent" tune "$work/mm" "$work/half.c" --no-final --store "$work/store2" >"$work/out" 2>&1
grep -qE '^  refused    2 of 2: (wrong result, not written|not written, wrong result|not written|wrong result) \(twagent show r2-c' "$work/out"; say $? "failures in two ways: $(cat "$work/out")"

# --- the built-in proposer
"$twagent" run "$work/mm" --dry-run >"$work/out" 2>&1
has "$work/out" '1 evaluated' 'dry run'
"$twagent" run "$work/mm" --rounds 1 --branching 3 --seed 7 --json >"$work/one.json" 2>"$work/err"
code=$?
[[ $code = [014] ]]; say $? "a whole run ends with 0, 1 or (too noisy) 4, not $code: $(tail -n 3 "$work/err")"
/usr/bin/python3 - "$work/one.json" <<'PY'
import json, os, sys
r = json.load(open(sys.argv[1]))
run, champion = r["run"], r["champion"]
noisy = champion["finding"].startswith("too noisy") # which a busy machine may be
assert run["state"] == "done" and (run["verified"] or noisy) and run["evaluated"] == 6, run
assert champion["verdict"] == "kernel" and set(champion["baselines"]) >= {"reference"}, champion
assert champion["checks"]["passed"] == champion["checks"]["total"] > 50
for name in "report.html", "report.txt", "kernel.c", "evidence.json":
    assert os.path.getsize(os.path.join(r["report"], name)) > 200, name
PY
say $? 'the run and its champion as JSON'
"$here/../tools/report-page" "$work/store/reports/r2/report.html" >"$work/out" 2>&1
[ $? -eq 0 ] || [ "$(cat "$work/out")" = 'no Chromium here' ]; say $? "the report's page in a browser: $(cat "$work/out")"
"$twagent" report r2 >"$work/out" && "$twagent" report r2 --json | /usr/bin/python3 -c 'import json, sys; d = json.load(sys.stdin); assert len(d["rows"]) == 6 and d["sources"], d'
say $? 'the report again, as text and as JSON'
gcc -std=gnu17 -O2 -fopenmp -shared -fPIC -Wall -Werror -o "$work/kernel.so" "$work/store/reports/r2/kernel.c" 2>"$work/err"
say $? "the report's kernel compiles alone: $(cat "$work/err")"
"$twagent" best adversarial_mm --output "$work/best.c" >/dev/null && grep -q '#define CHUNK' "$work/best.c"
say $? 'best writes the kernel with its numbers'
outcome() { sed -nE 's#^/\* (adversarial_mm, r2-c[0-9]+: .*)#\1#p' "$1"; }
[ -n "$(outcome "$work/best.c")" ] && [ "$(outcome "$work/best.c")" = "$(outcome "$work/store/reports/r2/kernel.c")" ]
say $? "best names the problem and says of the kernel what the report says: $(grep -n adversarial_mm "$work/best.c")"
"$twagent" list candidates r2 >"$work/out" 2>&1
[ "$(grep -c ' kept ' "$work/out")" -ge 1 ]; say $? "list candidates: $(cat "$work/out")"
for id in r2 r2-c1 r2-i1; do
    "$twagent" show $id >"$work/out" 2>&1; say $? "show $id: $(cat "$work/out")"
    "$twagent" show $id --json | /usr/bin/python3 -c 'import json, sys; json.load(sys.stdin)'; say $? "show $id --json"
done
"$twagent" diff r2 r2-c1 >"$work/out" 2>&1; has "$work/out" 'r2-c1' 'diff takes a run for its best'
env TERM=dumb /usr/bin/python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' "$twagent" diff r2-c1 r2-c2 >"$work/out"
! grep -q $'\e' "$work/out"; say $? "a dumb terminal gets no escape sequences: $(cat -v "$work/out")"
"$twagent" show r9 >"$work/out" 2>&1; [ $? -ne 0 ]; say $? 'show of what is not there'
"$twagent" backup "$work/copy" >/dev/null && "$twagent" list --store "$work/copy" | grep -q adversarial_mm; say $? 'backup'
"$twagent" run "$work/mm" --rounds 50 --budget-evaluations 2 >"$work/out" 2>&1; code=$?
has "$work/out" 'budget: 2 evaluations' 'a budget of evaluations'
[ $code -eq 4 ] || [ $code -eq 0 ]; say $? "a budget's exit code is 4 without a win, not $code"

# --- a model
mkdir "$work/answers" "$work/requests"
cat >"$work/answers/01" <<'T'
Here they are:
```json
{"ideas": [{"title": "Block over k", "category": "memory", "why": "rows of B stay", "expected": 1.5, "parent": ""}]}
```
T
code_answer() { # FACTOR
    printf 'Done.\n```c\n/*---\ntune: {KB: [32, 64]}\n---*/\nvoid kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)\n{\n    for (int64_t i = 0; i < M * N; i++)\n        C[i] = 0;\n    for (int64_t k0 = 0; k0 < K; k0 += KB)\n        for (int64_t i = 0; i < M; i++)\n            for (int64_t k = k0; k < (k0 + KB < K ? k0 + KB : K); k++)\n                for (int64_t j = 0; j < N; j++)\n                    C[i * N + j] += %s A[i * K + k] * B[k * N + j];\n}\n```\n' "$1"
}
code_answer '2 *' >"$work/answers/02"
echo 'I am sorry, here is no code.' >"$work/answers/03"
code_answer '' >"$work/answers/04"
"$provider" --answers "$work/answers" --key sk-test --record "$work/requests" >"$work/server" 2>&1 &
server=$!
until grep -q '^port ' "$work/server" || ! kill -0 $server; do sleep 0.1; done
url=http://127.0.0.1:$(sed -n 's/^port //p' "$work/server")/v1
OPENAI_API_KEY=sk-test "$twagent" run "$work/mm" --provider openai --model test --base-url "$url" \
    --rounds 1 --branching 1 --implementations 1 >"$work/out" 2>&1
code=$?
[[ $code = [014] ]]; say $? "a run with a model ends with 0, 1 or (too noisy) 4, not $code: $(tail -n 4 "$work/out")"
"$twagent" list candidates r4 >"$work/list" 2>&1
grep -q 'r4-c[0-9]* *kept .*r4-c[0-9]*\.c' "$work/list"; say $? "the mended candidate is kept: $(cat "$work/list")"
[ "$(ls "$work/requests" | wc -l)" -eq 4 ]; say $? "one request for ideas, one for code, two repairs: $(ls "$work/requests")"
grep -q 'wrong result' "$work"/requests/*3*; say $? 'a wrong result goes back with its mismatch'
! grep -rqF sk-test "$work/store" "$work/out"; say $? 'the key is nowhere in the store or the output'
OPENAI_API_KEY=wrong "$twagent" run "$work/mm" --provider openai --model test --base-url "$url" --rounds 1 >"$work/out" 2>&1
[ $? -eq 3 ]; say $? "a wrong key ends the run with 3: $(tail -n 2 "$work/out")"
"$twagent" run "$work/mm" --provider openai >"$work/out" 2>&1
[ $? -eq 2 ]; say $? 'a provider without a model is a usage error'
echo "search: $passed passed, $failed failed"
[ $failed -eq 0 ]
