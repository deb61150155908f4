#!/usr/bin/env bash
# lessons.sh TWAGENT FAKE_WORKER: what a run leaves, the command that shows and shares it, and what the next run makes
# of it.
set -u
twagent=$(readlink -f "$1") worker=$(readlink -f "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config TWAGENT_SELF=$work/self
printf '#!/bin/sh\n[ "$1" = worker ] && exec %s --ms 1-2 --final-ms 2 "$@"\nexec %s "$@"\n' "$worker" "$twagent" >"$work/self"
chmod +x "$work/self"
. "${BASH_SOURCE[0]%/*}/helpers.sh"
search() { # search ARGUMENTS...
    "$twagent" run matmul --force --rounds 2 --branching 4 --seed 5 --quiet "$@" >/dev/null 2>"$work/err"
    check "a search ends: $(cat "$work/err")" [ $? -le 1 ]
}
point_of() { "$twagent" list candidates "$1" | awk -v id="$2" '$1 == id { print $5, $6 }'; }

expect 2 'list, show, export or import' lessons frobnicate
expect 2 'lessons show ID' lessons show
expect 0 'no lessons yet' lessons list
search
# Every finished evaluation has left one.
count=$("$twagent" list candidates r1 | grep -cE ' (kept|rejected|failed) ')
check "one of each evaluation" [ "$("$twagent" lessons export | wc -l)" -eq "$count" ]
expect 0 'its parent' lessons list
expect 0 'the baseline' lessons show r1-c2
expect 0 '"format":"twagent lesson 1"' lessons show r1-c2 --json
expect 3 'no lesson r9-c1' lessons show r9-c1
expect 0 'earlier ones are not shown' lessons list --last 1
expect 0 'no lessons yet' lessons list --family nothing

# The next run of the family begins where this one ended: with its fastest point.
fastest=$("$twagent" list candidates r1 | awk '$2 == "kept" { sub("x", "", $5); print $5, $6, $7 }' | sort -rn | head -n 1 | cut -d' ' -f2-)
search
first=$("$twagent" list candidates r2 | awk '$1 == "r2-c1" { print $6, $7 }')
check "r2 begins with $fastest, not $first" [ "$first" = "$fastest" ]
expect 0 'among the best points of earlier runs' show r2-c1
search --no-lessons
check "without lessons it is the first run again" [ "$(point_of r3 r3-c1)" = "$(point_of r1 r1-c1)" ]

# Shared: taken in once, in another store, all of a file or nothing.
expect 0 'lessons to' lessons export --output "$work/lessons.jsonl"
expect 0 '0 added' lessons import "$work/lessons.jsonl"
export TWAGENT_STORE=$work/other
total=$(wc -l <"$work/lessons.jsonl")
expect 0 "$total added, 0 known" lessons import "$work/lessons.jsonl"
expect 0 "0 added, $total known" lessons import "$work/lessons.jsonl"
cp "$work/lessons.jsonl" "$work/bad.jsonl"
sed -i 's/"ended_ms":1/"ended_ms":2/' "$work/bad.jsonl"
echo '{"format": "twagent lesson 1", "id": "r1-c1"}' >>"$work/bad.jsonl"
expect 2 "bad.jsonl:$((total + 1)): " lessons import "$work/bad.jsonl"
check "nothing of a bad file" [ "$("$twagent" lessons export | wc -l)" -eq "$total" ]
expect 3 'nothing-here' lessons import "$work/nothing-here"
search
check "a colleague's lessons are begun with" [ "$("$twagent" list candidates r1 | awk '$1 == "r1-c1" { print $6, $7 }')" = "$fastest" ]

# Nights add up: what a model wrote in one run is measured again when the next begins, and is the first parent that the
# model is told of, seen through a mailbox. A parent that is none is said so.
export TWAGENT_STORE=$work/nights
night() { # night ARGUMENTS...: until it waits for an answer or ends; the text of the request that it leaves is $prompt
    ls "$work"/box/*.md >"$work/before" 2>/dev/null
    "$twagent" "$@" >"$work/out" 2>&1
    prompt=$(ls "$work"/box/*.md 2>/dev/null | grep -vxFf "$work/before" | head -n 1) # not by its time: that may be coarse
}
answer() { cat >"${prompt%.md}.answer.txt"; }
box=(--provider mailbox --model "$work/box" --rounds 1 --branching 1 --implementations 1 --repairs 0 --tuning 0 --seed 7)
idle() { # idle RUN: its record says that no lane was ever busy
    ! "$twagent" show "$1" --json | grep -Eq '"lane_busy": *(0\.0*[1-9]|1|[1-9])'
}
night run matmul "${box[@]}"
check "the starts were measured" eval '! idle r1'
check "a first night begins with the starts alone" [ "$(grep -c '^## r1-c.* (r1-c' "$prompt")" -eq 0 ]
echo '{"ideas": [{"title": "Rows in pairs", "category": "memory", "why": "x", "expected": 2, "parent": "r7-c9"}]}' | answer
night resume r1
check "an unknown parent is told" grep -rq 'no parent here' "$TWAGENT_STORE/logs"
check "and stands in the summary" grep -q '1 of their ideas named an unknown parent' <("$twagent" show r1)
check "who goes on and measures nothing does not say that the lanes were idle" eval '! idle r1'
# The fake's times are functions of the source: this one is faster than every start.
printf '```c\n/* try 22 */\nvoid kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)\n{\n}\n```\n' | answer
night resume r1
written=$("$twagent" list candidates r1 | awk '$2 == "kept" { print $1 }' | tail -n 1)
check "the model's kernel is the first night's best: $written" grep -q 'Rows in pairs' <("$twagent" show "$written")
night run matmul "${box[@]}"
check "a second night starts at the first one's best" grep -q "^## r2-c[0-9]* ($written.c)" <(grep -m 1 '^## r2-c' "$prompt")
check "with its source" grep -q '/. try ' "$prompt"
check "it is no longer said that there is none" [ "$(grep -c 'None yet' "$prompt")" -eq 0 ]
night run matmul "${box[@]}" --no-lessons
check "without lessons nothing is begun with" [ "$(grep -c "($written.c)" "$prompt")" -eq 0 ]

# A tune with a model that names numbers: each becomes the nearest value, a point that `where` refuses the nearest valid
# one, nonsense nothing; the proposer fills in. Its answers: no value at all, no parameter, a text for a number.
export TWAGENT_STORE=$work/tunes
cat >"$work/answers.py" <<'PY'
import glob, json, os, sys, time
folder, asked = sys.argv[1], 0
while os.path.exists(folder + ".open"):
    for path in sorted(glob.glob(folder + "/*.request.json")):
        key = path[:-len(".request.json")]
        if os.path.exists(key + ".answer.txt"):
            continue
        asked += 1
        values = {"MR": 13, "NRV": 2, "VB": 60, "KC": 200, "MC": 100, "NC": 1e300, "SPLIT": 0.4, "X": 1}
        points = [{"values": [{"name": n, "value": v} for n, v in values.items()]}, {"values": "none"}, 7,
                  {"values": [{"name": "KC", "value": "x"}, {"name": "SPLIT", "value": 1}]}]
        with open(key + ".new", "w") as out:
            out.write("Here:\n```json\n%s\n```\n" % json.dumps({"points": points}) if asked == 1 else "I cannot.")
        os.rename(key + ".new", key + ".answer.txt")
    time.sleep(0.05)
PY
mkdir "$work/values" && touch "$work/values.open"
/usr/bin/python3 "$work/answers.py" "$work/values" &
start=$(dirname "$0")/../../problems/matmul/starts/cpu/packed.c
"$twagent" tune matmul "$start" --model "mailbox/$work/values" --mailbox-wait 5m --max-evaluations 8 --seed 1 --quiet >"$work/out" 2>&1
check "a tune with a model ends: $(cat "$work/out")" [ $? -le 1 ]
rm "$work/values.open"
wait
points=$("$twagent" list candidates r1)
check "its numbers become the nearest values: $points" grep -q '^r1-c2 .* MR=12,NRV=2,VB=64,KC=256,MC=96,NC=768,SPLIT=0' <<<"$points"
check "what it does not name stays as it is" grep -q '^r1-c3 .* MR=8,NRV=2,VB=64,KC=128,MC=96,NC=768,SPLIT=1' <<<"$points"
check "the proposer fills in" [ "$(grep -c '^r1-c' <<<"$points")" -eq 8 ]
check "the prompt has the space" grep -q 'MC: \[96, 48, 168, 336\]' "$work"/values/*.md
expect 2 'it is the model that proposes' tune matmul "$start" --model "mailbox/$work/values" --strategy random

echo "lessons: $passed passed, $failed failed"
[ $failed -eq 0 ]
