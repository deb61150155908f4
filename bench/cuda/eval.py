#!/usr/bin/env python3
"""Seconds from process start to verdict: eval.py TWAGENT PROBLEM KERNEL.cu [TURNS [ARGUMENT...]]

The first turn finds nothing remembered (the ceilings of the GPU, what a PyTorch file is) where the
caches are fresh; the last one is followed by its time line."""
import json
import os
import subprocess
import sys
import tempfile
import time

twagent, problem, kernel = sys.argv[1:4]
turns = int(sys.argv[4]) if len(sys.argv) > 4 else 3
for turn in range(turns):
    line = os.path.join(tempfile.mkdtemp(), "timeline")
    environment = dict(os.environ)
    if turn == turns - 1:
        environment["TWAGENT_TIMELINE"] = line
    begun = time.monotonic_ns()
    process = subprocess.Popen(
        [twagent, "eval", problem, kernel, "--force", "--backend", "cuda", "--json"] + sys.argv[5:],
        stdout=subprocess.PIPE, text=True, env=environment)
    text = process.stdout.readline()
    verdict_s = (time.monotonic_ns() - begun) / 1e9
    process.wait()
    exit_s = (time.monotonic_ns() - begun) / 1e9
    if not text:
        sys.exit(f"no verdict, exit status {process.returncode}")
    e = json.loads(text)
    stages = ", ".join(f"{k} {v:.0f}" for k, v in e["stage_ms"].items() if v)
    print(f"eval {turn + 1}: verdict after {verdict_s:.2f} s, end after {exit_s:.2f} s; "
          f"{e['verdict']} {e['reason']}; {(e['time_ns'] or {}).get('median', 0) / 1e6:.3f} ms, "
          f"{(e['speedup'] or {}).get('median', 0):.3f}x {e['baseline']}; {e['timed_samples']} "
          f"launches timed, {e['checks']['passed']} of {e['checks']['total']} checks; ms: {stages}; "
          f"{json.dumps(e['metrics'].get('device_state'))}")
if os.path.exists(line):
    subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__), "timeline.py"), line,
                    str(begun)])
