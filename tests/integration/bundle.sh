#!/usr/bin/env bash
# A kernel leaves one store in a file, and is proved again with another: right, its speed-up there, whether that is the
# claim. Whoever tampers with the file is told so, by hashes or, where he forged those, by the measurement.
set -u
twagent=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache TMPDIR=$work/tmp
export TWAGENT_LOCKS=$work/locks
mkdir -p "$work"/locks/cpu{0..255} "$work/tmp"
mkdir -p "$work/config/twagent" && echo 'time-budget: 40ms' >"$work/config/twagent/config.yaml" # no number is looked at
. "${BASH_SOURCE[0]%/*}/helpers.sh"
measured_once
cd "$work" || exit 1
"$twagent" problem new axpb >out 2>&1
sed -i 's/M: 1024, N: 1024/M: 64, N: 96/' axpb/spec.yaml
"$twagent" run axpb --budget-evaluations 1 --final=false --quiet >out 2>&1
"$twagent" list | grep -qF 'can go on: r1 (twagent resume r1 --budget-evaluations 2)'
say $? "list says how a run that met its budget goes on: $("$twagent" list)"
"$twagent" best axpb --bundle kernel.json >out 2>&1; say $? "best writes a bundle: $(cat out)"
grep -q 'spec.yaml, ref_impl.py, baselines/naive.c' out; say $? "it says what is in it: $(cat out)"
echo hunter2 >secret && ln -s "$work/secret" axpb/notes.py
"$twagent" best axpb --bundle other.json >out 2>&1; [ $? -eq 2 ] && grep -q 'leads out of' out && [ ! -e other.json ]
say $? "what a link leads to is given to nobody: $(cat out)"
rm axpb/notes.py
"$twagent" show r1-c9 --bundle other.json >out 2>&1; [ $? -eq 2 ]; say $? "no bundle of nothing: $(cat out)"

# Elsewhere: another store, which is not even made; the problem's folder is gone.
mkdir away && mv axpb away/
TWAGENT_STORE=$work/other "$twagent" verify kernel.json --json >verified 2>err; code=$?
/usr/bin/python3 - "$code" verified <<'PY'
import json, sys
code, answer = int(sys.argv[1]), json.load(open(sys.argv[2]))
assert answer["right"] and answer["answer"] in ("holds", "differs", "cannot say"), answer
assert code == (0 if answer["answer"] == "holds" else 1), (code, answer)
assert answer["then"]["baseline"] == answer["now"]["baseline"] and not answer["elsewhere"], answer
assert answer["evaluation"]["checks"]["passed"] == answer["evaluation"]["checks"]["total"] > 30, answer
PY
say $? "a stranger's machine proves it: $(cat verified err)"
[ ! -e other ]; say $? "it needs no store"

# forge FROM TO: as somebody who knows the format: with hashes and an identity that fit what he wrote.
forge() {
    /usr/bin/python3 - "$twagent" "$1" "$2" <<'PY'
import re, subprocess, sys
twagent, old, new = sys.argv[1:]
text = open("kernel.json").read()
found = re.search(old, text)
assert found, old
text = text[:found.start()] + new + text[found.end():]
for _ in range(3 if "A" in old else 1):  # a source has two hashes, and its identity between them
    open("forged.json", "w").write(text)
    said = subprocess.run([twagent, "verify", "forged.json", "--python", "/bin/false"], capture_output=True, text=True).stderr
    asked = re.search("(?:hash|identity) is ([0-9a-f]{32}), not ([0-9a-f]{32})", said)
    text = text.replace(asked[2], asked[1])
open("forged.json", "w").write(text)
PY
}
tampered() { # FROM TO, and the words that tell it
    sed "s|$1|$2|" kernel.json >tampered.json
    cmp -s kernel.json tampered.json && say 1 "tampered: $1"
    "$twagent" verify tampered.json >out 2>&1
    [ $? -eq 2 ] && grep -q "$3" out; say $? "tampered: $2: $(cat out)"
}
refused() { # FROM TO, and the words that tell it
    forge "$1" "$2"
    "$twagent" verify forged.json >out 2>&1
    [ $? -eq 2 ] && grep -q "$3" out; say $? "forged: $2: $(cat out)"
}
tampered 'A\[i' 'B[i' 'its kernel is not what was written'
tampered '"median":' '"median":1' 'its evidence is not what was written'
tampered 'np' 'pn' 'its problem is not what was written'
head -c 900 kernel.json >cut.json
for file in cut.json /dev/null /dev/zero "$work" missing.json "$twagent"; do
    "$twagent" verify "$file" >out 2>&1; [ $? -eq 2 ]; say $? "$file is no bundle: $(head -c 300 out)"
done
refused 'ref_impl.py"' '../../ref.py"' 'names of files below'
refused 'reference: ref_impl.py' 'reference: /etc/hostname.py' 'expected a file'
touch outside.py
refused 'reference: ref_impl.py' "reference: $work/outside.py" 'not in the bundle'
refused 'naive: baselines/naive.c' "naive: {file: baselines/naive.c, env: {LD_PRELOAD: /tmp/x.so}}" 'not LD_PRELOAD'
forge 'M: 64' 'M: 900000000'
"$twagent" verify forged.json >out 2>&1
[ $? -eq 3 ] && grep -q 'GiB of memory at .*, this machine has' out; say $? "forged: more than there is memory: $(cat out)"
refused '"name":"axpb"' '"name":"axpc"' 'is called axpb'
refused '"identity":"[^"]*' '"identity":"none' 'of another source'

# With everything forged there is the measurement: another source, a definition of one's own, a figure of one's own.
forge 'A\[i \* N \+ j\] \*' '(i == 3) + A[i * N + j] *'
"$twagent" verify forged.json >out 2>&1
[ $? -eq 1 ] && grep -q '^not right: .*rejected at check' out; say $? "another source is found: $(cat out)"
forge '"speedup":\{[^}]*\}' '"speedup":{"median":900,"low":890,"high":910,"samples":20}'
"$twagent" verify forged.json >out 2>&1
[ $? -eq 1 ] && grep -Eq '^(differs|cannot say): right here' out; say $? "another figure is found: $(cat out)"
[ -z "$(find tmp -name spec.yaml)" ]; say $? "no stranger's file is left behind: $(find tmp)"

mv away/axpb .
"$twagent" rerun r1 --json >out 2>err; code=$?
/usr/bin/python3 - "$code" out <<'PY'
import json, sys
code, answers = int(sys.argv[1]), [json.loads(line) for line in open(sys.argv[2])]
assert len(answers) == 1 and answers[0]["right"] and answers[0]["kernel"] == "r1-c1", answers
assert code == (0 if answers[0]["answer"] == "holds" else 1), (code, answers)
PY
say $? "rerun measures it here: $(cat out err)"
"$twagent" rerun r1 r7-c1 >out 2>&1; [ $? -eq 2 ] && grep -q 'no run r7' out; say $? "all are found before any is measured: $(cat out)"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
