#!/usr/bin/env python3
"""Candidates that fault, hang, overstep and cheat, one after the other on one worker: each must get
the verdict that its second comment says, an honest one among them must be a kernel, and neither
host nor device may be short of memory after it.

faults.py TWAGENT COUNT"""
import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
twagent, count = sys.argv[1], int(sys.argv[2])


def memory_used():
    try:
        text = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, timeout=60).stdout
        return int(text.split()[0])
    except (OSError, ValueError, IndexError):
        return -1


def resident(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024
    return -1


worker = subprocess.Popen([twagent, "worker", "--backend", "cuda"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True, bufsize=1)


def ask(request):
    worker.stdin.write(json.dumps(request) + "\n")
    for line in worker.stdout:
        answer = json.loads(line)
        if answer["event"] != "stage":
            return answer
    sys.exit("the worker has died")


opened = ask({"op": "open", "id": "o", "problem": str(HERE / "problem"), "call_timeout_ms": 300})
if opened["event"] != "result":
    sys.exit(f"open: {opened['message']}")
device = opened["device"]
sources = sorted(p for p in (HERE / "faults").glob("*.cu"))
honest = HERE / "faults" / "honest.cu"
bad, slowest, before = [], (0.0, ""), None
started = time.time()
for i in range(count):
    path = honest if i % 10 == 9 else sources[i % len(sources)]
    text = path.read_text()
    comment = text.split("---*/\n")[1].split("*/")[0].strip("/* \n")
    verdict, _, reason = comment.partition(" ")
    begun = time.time()
    answer = ask({"op": "evaluate", "id": str(i), "name": path.name, "effort": "search",
                  "source": text + f"// {i}\n"})
    spent = time.time() - begun
    got = answer.get("evaluation", {"verdict": "error", "reason": answer.get("message", "")})
    said = got["reason"] + " " + got.get("details", "")
    if got["verdict"] != verdict or reason.strip() not in said:
        bad.append(f"{path.name}: {got['verdict']} ({got['reason']}), expected {comment}")
    slowest = max(slowest, (spent, path.name))
    if i == 19:
        before = (resident(worker.pid), memory_used(), len(os.listdir(f"/proc/{worker.pid}/fd")))
after = (resident(worker.pid), memory_used(), len(os.listdir(f"/proc/{worker.pid}/fd")))
worker.stdin.close()
worker.wait(60)
time.sleep(1)
for line in dict.fromkeys(bad):
    print("WRONG", line)
print(f"faults: {count - len(bad)} of {count} as expected in {time.time() - started:.1f} s on "
      f"{device.get('gpu')}; slowest {slowest[1]} {slowest[0]:.1f} s")
print(f"after 20 and after {count}: worker {before} -> {after} (MiB resident, MiB of the GPU in use, "
      f"descriptors); GPU memory when it has ended: {memory_used()} MiB")
leak = before is not None and (after[0] > before[0] + 64 or after[1] > before[1] + 600 or
                               after[2] > before[2] + 4)
if leak:
    print("LEAK")
sys.exit(1 if bad or leak else 0)
