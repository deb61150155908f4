#!/usr/bin/env python3
"""Twenty candidates through one worker, all in flight at once: seconds a candidate.

batch.py TWAGENT PROBLEM KERNEL.cu [COUNT [EFFORT]]

EFFORT full: no candidate is dropped. search: the best known time is the baseline's, as in a search
that has reached it, so that a candidate far behind it is dropped after few samples, and says so."""
import json
import pathlib
import subprocess
import sys
import time

twagent, problem, kernel = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
count = int(sys.argv[4]) if len(sys.argv) > 4 else 20
effort = sys.argv[5] if len(sys.argv) > 5 else "full"
worker = subprocess.Popen([twagent, "worker", "--backend", "cuda"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True, bufsize=1)


def send(request):
    worker.stdin.write(json.dumps(request) + "\n")


def results():
    for line in worker.stdout:
        answer = json.loads(line)
        if answer["event"] != "stage":
            yield answer


def evaluate(i, wanted, best_ns=0.0):
    send({"op": "evaluate", "id": str(i), "name": kernel.name, "effort": wanted, "best_ns": best_ns,
          "source": kernel.read_text() + f"// {i}\n"})


def show(i, seconds, e):
    stages = {k: round(v) for k, v in e["stage_ms"].items() if v}
    time_ns = (e.get("time_ns") or {}).get("median") or 0
    print(f"  {i}: {seconds:.2f} s, {e['verdict']} {e['reason']}; {time_ns / 1e6:.3f} ms, "
          f"{e['timed_samples']} launches timed, {e['checks']['passed']} of {e['checks']['total']} "
          f"checks, ms {stages}")


begun = time.time()
send({"op": "open", "id": "o", "problem": str(pathlib.Path(problem).resolve()), "roofline": True})
answers = results()
opened = next(answers)
if opened["event"] != "result":
    sys.exit(f"open: {opened['message']}")
ready = last = time.time()
best_ns = 0.0
if effort == "search":
    evaluate("first", "full")
    first = next(answers)["evaluation"]
    best_ns = first["baseline_ns"]["median"]
    last = time.time()
    show("first", last - ready, first)
for i in range(count):
    evaluate(i, effort, best_ns)
start, spent, dropped = last, [], 0
for i in range(count):
    answer = next(answers)
    now = time.time()
    spent.append(now - last)
    last = now
    e = answer.get("evaluation")
    if e is None:
        sys.exit(answer.get("message"))
    dropped += e["dropped"]
    if i in (0, 1, count - 1):
        show(i, spent[-1], e)
worker.stdin.close()
worker.wait(60)
print(f"batch: {count} of {kernel.name} ({effort}, {dropped} dropped as far behind): open "
      f"{ready - begun:.2f} s, then {(last - start) / count:.2f} s a candidate (first {spent[0]:.2f}, "
      f"median {sorted(spent)[count // 2]:.2f}, most {max(spent):.2f})")
