#!/usr/bin/env python3
"""Twenty candidates through one worker, all in flight at once: seconds a candidate.

batch.py TWAGENT PROBLEM KERNEL.cu [COUNT [EFFORT]]"""
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


begun = time.time()
send({"op": "open", "id": "o", "problem": str(pathlib.Path(problem).resolve())})
answers = results()
opened = next(answers)
if opened["event"] != "result":
    sys.exit(f"open: {opened['message']}")
ready = time.time()
for i in range(count):
    send({"op": "evaluate", "id": str(i), "name": kernel.name, "effort": effort,
          "source": kernel.read_text() + f"// {i}\n"})
last, spent = ready, []
for i in range(count):
    answer = next(answers)
    now = time.time()
    spent.append(now - last)
    last = now
    e = answer.get("evaluation")
    if e is None:
        sys.exit(answer.get("message"))
    if i in (0, 1, count - 1):
        stages = {k: round(v) for k, v in e["stage_ms"].items() if v}
        time_ns = (e.get("time_ns") or {}).get("median") or 0
        print(f"  {i}: {e['verdict']} {e['reason']} {time_ns / 1e6:.3f} ms, "
              f"{e.get('timed_samples')} samples, {e.get('checks_passed')} checks, ms {stages}")
worker.stdin.close()
worker.wait(60)
print(f"batch: {count} of {kernel.name} ({effort}): open {ready - begun:.2f} s, then "
      f"{(last - ready) / count:.2f} s a candidate (first {spent[0]:.2f}, median "
      f"{sorted(spent)[count // 2]:.2f})")
