#!/usr/bin/env python3
"""Evaluations a minute of one search on these GPUs, and then on those:
devices.py TWAGENT PROBLEM SECONDS DEVICES..., as devices.py twagent softmax@dims 15s 0 0,1

Counted from the first evaluation that is there to the last, so that opening and the final
measurement, which are the same for any number of lanes, do not count."""
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

twagent, problem, seconds = sys.argv[1:4]


def candidates(store):
    out = subprocess.run([twagent, "list", "candidates", "r1", "--json"], capture_output=True,
                         text=True, env=dict(os.environ, TWAGENT_STORE=store)).stdout
    try:
        return [c for c in json.loads(out) if c["verdict"]]
    except ValueError:
        return []


def evaluation_of(store, candidate):
    out = subprocess.run([twagent, "show", candidate, "--json"], capture_output=True, text=True,
                         env=dict(os.environ, TWAGENT_STORE=store)).stdout
    return json.loads(out).get("evaluation") or {}


def by_device(store, found):
    """How many verdicts each GPU gave, and the median milliseconds of their stages."""
    devices = collections.defaultdict(list)
    for candidate in found:
        evaluation = evaluation_of(store, candidate["id"])
        devices[(evaluation.get("device") or {}).get("gpu_index")].append(evaluation.get("stage_ms") or {})
    for device, stages in sorted(devices.items(), key=str):
        names = [name for name in stages[0] if name != "parse"]
        print(f"  GPU {device}: {len(stages)} verdicts; ms: "
              + ", ".join(f"{name} {statistics.median(stage.get(name, 0) for stage in stages):.0f}" for name in names))


rates = []
for devices in sys.argv[4:]:
    store = tempfile.mkdtemp()
    process = subprocess.Popen(
        [twagent, "run", problem, "--force", "--backend", "cuda", "--devices", devices, "--budget-time", seconds,
         "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env=dict(os.environ, TWAGENT_STORE=store))
    seen = []
    while process.poll() is None:
        count = len(candidates(store))
        if count and (not seen or count > seen[-1][1]):
            seen.append((time.monotonic(), count))
        time.sleep(0.3)
    print(process.stdout.read().strip())
    first, last = (seen[0], seen[-1]) if len(seen) > 1 else ((0, 0), (1, 0))
    rates.append(60 * (last[1] - first[1]) / (last[0] - first[0]))
    print(f"devices {devices}: {rates[-1]:.0f} evaluations a minute ({first[1]} to {last[1]} in "
          f"{last[0] - first[0]:.1f} s)")
    by_device(store, candidates(store)[:60])
    print(flush=True)
for rate, devices in list(zip(rates, sys.argv[4:]))[1:]:
    print(f"devices {devices} against {sys.argv[4]}: {rate / rates[0]:.2f} times as many a minute"
          if rates[0] > 0 else "nothing was evaluated")
