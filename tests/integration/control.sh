#!/usr/bin/env bash
# control.sh TWAGENT FAKE_PROVIDER: a run that is told from another terminal to pause, to go on, to stop, and goes on
# after that; what status says meanwhile; what the summary says after. FAKE_WORKER stands beside FAKE_PROVIDER.
set -u
twagent=$(readlink -f "$1") provider=$(readlink -f "$2")
worker=${FAKE_WORKER:-$(dirname "$provider")/fake_worker}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
run= server=
trap 'kill $server $run 2>/dev/null; wait 2>/dev/null; rm -rf "$work"' EXIT
export TWAGENT_STORE=$work/store XDG_CONFIG_HOME=$work/config OPENAI_API_KEY=sk-secret-test
unset TWAGENT_MODEL TWAGENT_PROVIDER TWAGENT_BASE_URL
cd "$work" || exit 1
. "${BASH_SOURCE[0]%/*}/helpers.sh"
has() { # FILE TEXT NAME
    grep -qF -- "$2" "$1"; say $? "$3: no \"$2\" in: $(tail -n 14 "$1")"
}
field() { # FIELD [RUN]: of a run (r1), by status
    "$twagent" status "${2-r1}" --json 2>/dev/null | /usr/bin/python3 -c "
import json, sys
status = json.load(sys.stdin)
print(status['$1'] if '$1' in status else status['run']['$1'])" 2>/dev/null
}
await() { # COMMAND...: until it succeeds; no verdict hangs on how long, and five minutes of tries are a hang
    for ((tries = 3000; tries > 0; tries--)); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done
    return 1
}
evaluated_more() { [ "$(field evaluated)" -gt "$1" ]; }
serve() { # ARGUMENTS: a provider in the background; sets url and server
    : >"$work/server" # now: the background may do so after the last one's port was seen
    "$provider" --key sk-secret-test "$@" >>"$work/server" 2>&1 &
    server=$!
    await grep -q '^port ' "$work/server"
    url=http://127.0.0.1:$(sed -n 's/^port //p' "$work/server")/v1
}

# A problem and a worker that says what a source's hash says, within milliseconds.
mkdir -p "$work/mm" "$work/sources"
cp -r "$here/../adversarial/cpu/problems/mm/." "$work/mm"
mkdir -p "$work/mm/starts/cpu"
printf '/*---\ntune: {BM: [1, 2, 3, 4, 5, 6, 7, 8], BN: [1, 2, 3, 4, 5, 6, 7, 8]}\n---*/\nvoid kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)\n{\n}\n' >"$work/mm/starts/cpu/rows.c"
printf '/*---\ntune: {BM: [1, 2, 4]}\n---*/\nvoid kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)\n{ /* @HASH@ */\n}\n' >"$work/sources/one.c"
printf '#!/bin/sh\n[ "$1" = worker ] && exec %s --ms 20-60 --final-ms 100 "$@"\nexec %s "$@"\n' "$worker" "$twagent" >"$work/self"
chmod +x "$work/self"
export TWAGENT_SELF=$work/self

# --- before there is a run
"$twagent" status >out 2>&1; [ $? -eq 2 ]; say $? "status without a store is usage: $(cat out)"
"$twagent" pause >out 2>&1; [ $? -eq 2 ]; say $? "pause without a store is usage: $(cat out)"

# --- a tune that wants a steady winner takes the next best, and proves that one, too
printf '#!/bin/sh\n[ "$1" = worker ] && exec %s --ms 1-2 --unsteady 4 "$@"\nexec %s "$@"\n' "$worker" "$twagent" >"$work/steady"
chmod +x "$work/steady"
tune() { TWAGENT_SELF=$work/steady TWAGENT_STORE=$work/tunes "$twagent" "$@" --quiet --json 2>err; }
tune tune "$work/mm" "$work/mm/starts/cpu/rows.c" --seed 4 --max-evaluations 30 >plain
tune tune "$work/mm" "$work/mm/starts/cpu/rows.c" --seed 4 --max-evaluations 30 --stable >out; code=$?
/usr/bin/python3 - $code plain out <<'PY'
import json, sys
plain, steady = (json.load(open(name)) for name in sys.argv[2:])
was, now = plain["run"]["best"].partition("-")[2], steady["run"]["best"].partition("-")[2]
tuning, top = steady["tuning"], steady["tuning"]["top"]
assert not plain["tuning"]["stability"]["stable"] and was != now, (was, now)
assert sys.argv[1] == "0" and tuning["stability"]["stable"] and steady["run"]["verified"] and steady["run"]["win"], steady
assert tuning["stability"]["kernel"] == steady["run"]["best"] == top[0]["id"] and steady["champion"]["verdict"] == "kernel", tuning
over = [t["id"].partition("-")[2] for t in top if t["standing"] == "not steady"]
assert was in over and tuning["passed_over"] == len(over) > 0, (was, top)
PY
say $? "--stable takes the next best that is: $(cat err out)"
id=$(/usr/bin/python3 -c 'import json; print(json.load(open("out"))["run"]["best"])')
TWAGENT_STORE=$work/tunes "$twagent" status r1 >status 2>&1
grep -q '^  impact     rows.c, [0-9]* kernels of 64 points' status; say $? "status tells a tune's impact: $(cat status)"
TWAGENT_STORE=$work/tunes "$twagent" report r2 >out 2>&1
grep -q "^\* $id " out && grep -q 'not steady' out; say $? "the report's winner is $id: $(cat out)"
printf '#!/bin/sh\n[ "$1" = worker ] && exec %s --ms 1-2 --unsteady 1000000 "$@"\nexec %s "$@"\n' "$worker" "$twagent" >"$work/steady"
tune tune "$work/mm" "$work/mm/starts/cpu/rows.c" --seed 5 --max-evaluations 30 --stable >out
[ $? -eq 1 ] && grep -q '"stable":false' out; say $? "where none is, that is no win: $(tail -c 300 out)"

# --- points that are dropped at a look: timed, and nothing else; a tune that goes on does not ask for them again
printf '#!/bin/sh\n[ "$1" = worker ] && exec %s --ms 1-2 --late 110 --notes %s/asked "$@"\nexec %s "$@"\n' "$worker" "$work" "$twagent" \
    >"$work/steady"
tune tune "$work/mm" "$work/mm/starts/cpu/rows.c" --seed 6 --max-evaluations 20 >out
tune resume r4 --budget-evaluations 70 >looked
TWAGENT_STORE=$work/tunes "$twagent" show r4 >shown
TWAGENT_STORE=$work/tunes "$twagent" export >rows
TWAGENT_STORE=$work/tunes "$twagent" lessons export >lessons
/usr/bin/python3 - looked asked shown rows lessons <<'PY'
import collections, json, sys
run = json.load(open(sys.argv[1]))
points = run["tuning"]["kernels"][0]["points"]
of = collections.defaultdict(list)
for point in points:
    of[point["verdict"]].append(point)
assert len(points) == 64 and len(of["dropped"]) > 20, {k: len(v) for k, v in of.items()}
asked = [line.split() for line in open(sys.argv[2])]
ids = {point["id"] for point in of["dropped"]}
asked = collections.Counter((effort, id.partition(":")[2]) for _, effort, id, _ in asked)
assert all(asked["search", id] == 1 for id in ids), asked
assert not any(id in ids for effort, id in asked if effort != "search"), "one that was dropped is asked for as more"
assert all(point["time_ns"] > 0 for point in of["dropped"])
found = run["tuning"]["kernels"][0]
assert found["dropped"] == len(ids) and found["kernels"] == len(of["kernel"]) and found["impact"]["points"] == len(ids) + len(of["kernel"]), found
assert not ids & {top["id"] for top in run["tuning"]["top"]} and run["run"]["best"] not in ids
counts = run["run"]
assert (counts["dropped"], counts["kept"], counts["evaluated"]) == (len(ids), len(of["kernel"]), 64), counts
rows = {row["id"]: row for row in map(json.loads, open(sys.argv[4])) if row["run"] == "r4"}
for id in ids:
    assert (rows[id]["verdict"], rows[id]["state"], rows[id]["correct"], rows[id]["speedup"]) == ("dropped", "dropped", False, None), rows[id]
shown = open(sys.argv[3]).read()
assert f"({len(ids)} dropped, checked at the main shape only)" in shown and f"{len(ids)} dropped at one shape" in shown, shown
assert not any(f'"{id}"' in open(sys.argv[5]).read() for id in ids)
PY
say $? "points that are dropped are no kernels: $(cat err; tail -c 600 looked; cat shown)"
id=$(/usr/bin/python3 -c 'import json; print([row["id"] for row in map(json.loads, open("rows")) if row["verdict"] == "dropped"][0])')
! TWAGENT_STORE=$work/tunes "$twagent" emit "$id" out.package >out 2>&1; say $? "one that was dropped is no package: $(cat out)"

# --- a search without a model looks at its points, too; what a model is shown is checked and timed, however slow
dropped() { # OPTIONS...: how many of a run
    TWAGENT_SELF=$work/steady TWAGENT_STORE=$work/looks "$twagent" run "$work/mm" --quiet --json --no-final --seed 7 "$@" 2>err |
        /usr/bin/python3 -c 'import json, sys; print(json.load(sys.stdin)["run"]["dropped"])'
}
[ "$(dropped --rounds 2)" -gt 3 ]; say $? "a search without a model drops points: $(cat err)"
serve --by-content "$work/sources" --latency-ms 1-5
[ "$(dropped --rounds 2 --branching 2 --model openai/test --base-url "$url")" = 0 ]; say $? "one with a model drops none: $(cat err)"
kill $server; wait $server 2>/dev/null

# --- a run with a model, paused, gone on with, stopped
serve --by-content "$work/sources" --latency-ms 50-200
"$twagent" run "$work/mm" --model openai/test --base-url "$url" --rounds 5000 --branching 3 --implementations 1 \
    --seed 5 --budget-tokens 100000000 >run.out 2>run.err &
run=$!
await evaluated_more 3; say $? "the run gets to its first evaluations: $(cat run.err)"
"$twagent" status r1 >out 2>&1; say $? 'status of a live run'
has out 'running, process' 'status says that it runs'
has out 'openai/test' 'status names the model'
has out 'not priced' 'status says that dollars are not known'
[ "$(field live)" = True ]; say $? 'status --json says that it is live'
told() { # TEXT ARGUMENTS...: a command that says, after five seconds, that it has asked is told again
    "$twagent" "${@:2}" >out 2>&1 && grep -qF "$1" out
}
await told 'r1 is paused' pause r1; say $? "pause: $(cat out)"
has out 'twagent resume r1' 'pause says how to go on'
"$twagent" status >out 2>&1
has out 'PAUSED since' 'status says since when'
has out 'paused by a person' 'status says why'
"$twagent" run "$work/mm" >out 2>&1; [ $? -eq 3 ]; say $? "a second run in the same store is refused: $(cat out)"
quiet_for() { # a paused run neither asks nor measures, once what was under way has ended
    local before
    before=$(field evaluated) && sleep 1.5 && [ "$(field evaluated)" = "$before" ]
}
await quiet_for; say $? 'nothing is evaluated while it is paused'
"$twagent" resume r1 --rounds 3 >out 2>&1; [ $? -eq 2 ]; say $? "options cannot change a run that goes on: $(cat out)"
await told 'r1 goes on' resume; say $? "resume, without its name, of a paused run: $(cat out)"
before=$(field evaluated)
await evaluated_more "$before"; say $? 'and it evaluates again'
"$twagent" resume r1 >out 2>&1; say $? 'resume of a run that goes on is no error'
has out 'goes on already' 'and says so'
kill -USR1 $run; await sh -c "'$twagent' status r1 | grep -q PAUSED"; say $? 'SIGUSR1 pauses'
kill -USR2 $run; await sh -c "'$twagent' status r1 | grep -q running"; say $? 'SIGUSR2 lets it go on'
"$twagent" stop >out 2>&1; say $? "stop without a name stops the one that goes on: $(cat out)"
has out 'twagent resume r1' 'stop says how to go on'
wait $run; code=$?
[ $code -eq 4 ]; say $? "a stopped run ends with 4, not $code"
has run.err 'paused since' 'the run itself told its pauses'
has run.err 'goes on; it was paused' 'and their ends'
has run.out 'paused by a person' 'the summary names the pause'
has run.out 'interrupted' 'the summary says what ended it'
has run.out 'twagent resume r1' 'the summary says how to go on'
has run.out 'openai/test' 'the summary names the model'
grep -q 'paused by a person' "$work/store/reports/r1/report.txt"; say $? 'the report names the pause'
"$twagent" pause r1 >out 2>&1; [ $? -eq 1 ]; say $? 'a run that is stopped cannot be paused'
has out 'stopped' 'and that says why'
"$twagent" status r1 >out 2>&1
has out 'stopped: interrupted' 'status of a stopped run'
"$twagent" list >out 2>&1; has out 'stopped' 'list has its state'

# --- it goes on in another terminal, with other bounds, and ends
done_before=$(field evaluated)
"$twagent" resume r1 --rounds 1 >out 2>&1; [ $? -eq 2 ]; say $? "fewer rounds than it has behind it: $(cat out)"
last=$(($(field round) + 1))
cd / && "$twagent" resume r1 --rounds $last >"$work/resume.out" 2>"$work/resume.err"; code=$?
cd "$work" || exit 1
[[ $code = [014] ]]; say $? "a resumed run ends with 0, 1 or (too noisy) 4, not $code: $(tail -n 5 resume.err)"
[ "$(field resumes)" = 1 ]; say $? "the record counts it: $(field resumes)"
[ "$(field evaluated)" -ge "$done_before" ]; say $? "what was evaluated stays: $done_before, $(field evaluated)"
[ "$(field state)" = "done" ]; say $? "it is done: $(field state)"
"$twagent" resume r1 >out 2>&1; has out 'r1 is done: all rounds done; with more it goes on: twagent resume r1 --rounds ' 'resume of a run that is done'
"$twagent" resume r7 >out 2>&1; [ $? -eq 2 ]; say $? "resume of no run: $(cat out)"

# --- a run that dies
"$twagent" run "$work/mm" --model openai/test --base-url "$url" --rounds 5000 --branching 2 --seed 6 >out 2>&1 &
run=$!
r2_evaluates() { "$twagent" status r2 | grep -q 'evaluated  [1-9]'; }
await r2_evaluates; say $? 'the second run begins'
kill -9 $run; wait $run 2>/dev/null
"$twagent" status r2 >out 2>&1
has out 'died' 'status sees that it died'
has out 'twagent resume r2' 'and says how to go on'
"$twagent" list >out 2>&1; has out 'twagent resume r2' 'list says how to go on with it'
"$twagent" stop r2 >out 2>&1; [ $? -eq 1 ]; say $? 'what died cannot be stopped'
"$twagent" resume --rounds $(($(field round r2) + 1)) --budget-tokens 9000000 >out 2>&1; code=$?
[ $code -le 1 ]; say $? "a run that died goes on, $code: $(tail -n 5 out)"

# --- Ctrl-C while the models are being asked for, and a key that is wrong
kill $server; wait $server 2>/dev/null
serve --by-content "$work/sources" --latency-ms 20-50
OPENAI_API_KEY=sk-wrong-secret "$twagent" run "$work/mm" --model openai/test --base-url "$url" >out 2>&1; code=$?
[ $code -eq 3 ]; say $? "a wrong key ends with 3 before any work, not $code: $(cat out)"
[ "$(wc -l <out)" -eq 1 ]; say $? "in one line: $(cat out)"
"$twagent" list runs >out 2>&1; ! grep -q '^r3' out; say $? 'and no run has begun'
"$twagent" run "$work/mm" --model openai/test --base-url "$url" --budget-usd 1 >out 2>&1; code=$?
[ $code -eq 2 ]; say $? "a dollar cap without a price is usage, not $code: $(cat out)"
has out 'openai/test' 'and names the model'

# --- mailbox: a run that stops for answers, and goes on when they are there
mkdir box
"$twagent" run "$work/mm" --provider mailbox --model box --rounds 1 --branching 1 --implementations 1 --tuning 2 --seed 7 >box.out 2>box.err
code=$?
[ $code -eq 4 ]; say $? "a run that waits for a mailbox ends with 4, not $code: $(tail -n 4 box.err)"
has box.out 'awaited: ' 'the summary counts the answers'
has box.out "$work/box" 'and says where'
has box.out 'twagent resume r' 'and how to go on'

box_run=$(sed -n 's/.*twagent resume \(r[0-9]*\).*/\1/p' box.out)
for _ in 1 2 3 4 5 6; do # by hand: one idea, then its code, for each request that has no answer yet
    for request in box/*.request.json; do
        answer=${request%.request.json}.answer.txt
        [ -e "$answer" ] && continue
        if grep -q '"purpose":"ideas"' "$request"; then
            echo '{"ideas": [{"title": "Block over k", "category": "memory", "why": "rows of B stay", "expected": 1.5, "parent": ""}]}' >"$answer"
        else
            { echo 'Done.'; echo '```c'; cat "$work/sources/one.c"; echo '```'; } >"$answer"
        fi
    done
    "$twagent" resume "$box_run" >box.out 2>box.err
    code=$?
    [ $code -ne 4 ] && break
done
[ $code -le 1 ]; say $? "with its answers it goes on to its end, not $code: $(tail -n 4 box.out box.err)"
[ "$(ls box/*.request.json | wc -l)" -le 3 ]; say $? "and asks nothing twice: $(ls box)"
has box.out 'all rounds done' 'and says that it is done'
grep -qE ': ([23]) asked, \1 answered(, [0-9]+ answered before)?, \$' box.out; say $? "and what was answered, each once: $(grep asked box.out)"
[ "$(field state "$box_run")" = "done" ]; say $? 'as its record does'

# --- no room on the disk: it waits, says so, and can be stopped
"$twagent" run "$work/mm" --rounds 50 --disk-quota 1 >disk.out 2>disk.err &
run=$!
await sh -c "'$twagent' status | grep -q 'PAUSED.*--disk-quota'"; say $? "a quota pauses: $("$twagent" status | head -n 1)"
"$twagent" status >out 2>&1; has out 'by itself' 'and nobody has to say when it goes on'
"$twagent" stop >out 2>&1; say $? "a paused run can be stopped: $(cat out)"
wait $run; [ $? -eq 4 ]; say $? 'and ends with 4'
has disk.out '--disk-quota' 'the summary names the reason'

! grep -rqE 'sk-secret-test|sk-wrong-secret' "$work/store" "$work"/*.out "$work"/*.err; say $? 'no key in the store, a log or the output'
[ -s "$work/store/logs/r1.log" ]; say $? 'a log is kept'
echo "control: $passed passed, $failed failed"
[ $failed -eq 0 ]
