#!/usr/bin/env python3
"""How long a tune takes beside triton.autotune, of the same source and points, on one GPU:

    bench/cuda/triton_autotune.py TWAGENT... [--points 8|16|32] [--limit SECONDS] [--baseline NAME]

problems/matmul/starts/triton/blocks.py at 4096 x 4096 x 4096 with a part of its tune space: first triton.autotune in a
process of its own, whose defaults decide how each point is timed, then `twagent tune` by each TWAGENT (two builds: with
and without a change), every point, no final measurement. Caches and stores are empty each time. Seconds are from a
process's start; both import PyTorch where --baseline is torch (left out: the problem's own). Needs PyTorch with Triton.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
START = os.path.join(ROOT, "problems/matmul/starts/triton/blocks.py")
SPACES = {
    8: {"M": [64, 128], "N": [64, 128], "num_warps": [4, 8], "num_stages": [3]},
    16: {"M": [64, 128], "N": [64, 128], "num_warps": [4, 8], "num_stages": [3, 2]},
    32: {"M": [64, 128, 32], "N": [64, 128, 32], "num_warps": [4, 8], "num_stages": [3, 2]},
}


def points(space):
    """In no order that is known to be good."""
    made = [{}]
    for name, values in space.items():
        made = [{**point, name: value} for point in made for value in values]
    return made


def candidate(space, path):
    """The start with the space's lists."""
    names = {"M": "BLOCK_SIZE_M", "N": "BLOCK_SIZE_N"}
    lists = {names.get(name, name): values for name, values in space.items()}
    lists |= {"BLOCK_SIZE_K": [32], "GROUP_SIZE_M": [8]}
    lines = []
    with open(START, encoding="utf-8") as file:
        for line in file:
            name = line.strip().split(":")[0]
            lines.append(f"  {name}: {lists[name]}\n" if line.startswith("  ") and name in lists else line)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(lines)


def autotune(path, space):
    """In a process of its own; a JSON line."""
    begun = float(os.environ["BEGUN"])
    import importlib.util

    import torch
    import triton

    spec = importlib.util.spec_from_file_location("start", path)
    start = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(start)
    n = 4096
    a, b = torch.randn(n, n, device="cuda"), torch.randn(n, n, device="cuda")
    c = torch.empty(n, n, device="cuda")
    torch.cuda.synchronize()
    ready = time.monotonic() - begun
    configs = [
        triton.Config(
            {"BLOCK_SIZE_M": p["M"], "BLOCK_SIZE_N": p["N"], "BLOCK_SIZE_K": 32, "GROUP_SIZE_M": 8},
            num_warps=p["num_warps"],
            num_stages=p["num_stages"],
        )
        for p in points(space)
    ]
    tuned = triton.autotune(configs=configs, key=[])(start.matmul)

    def launch():
        tuned[lambda m: (triton.cdiv(n, m["BLOCK_SIZE_M"]) * triton.cdiv(n, m["BLOCK_SIZE_N"]),)](a, b, c, n, n, n)

    launch()
    torch.cuda.synchronize()
    end = time.monotonic() - begun
    sweep, times = torch.empty(1 << 28, dtype=torch.int8, device="cuda"), []
    for _ in range(25):
        sweep.zero_()
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        launch()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last))
    times.sort()
    best = tuned.best_config
    words = {"M": best.kwargs["BLOCK_SIZE_M"], "N": best.kwargs["BLOCK_SIZE_N"]}
    words |= {"num_warps": best.num_warps, "num_stages": best.num_stages}
    print(json.dumps({"ready": ready, "end": end, "best": words, "ms": times[12], "triton": triton.__version__}))


def run_autotune(path, points_asked, work):
    env = {**os.environ, "TRITON_CACHE_DIR": os.path.join(work, "triton"), "BEGUN": str(time.monotonic())}
    command = [sys.executable, os.path.abspath(__file__), "--child", path, "--points", str(points_asked)]
    return json.loads(subprocess.check_output(command, env=env, text=True).splitlines()[-1])


def run_tune(twagent, path, work, limit, baseline):
    """When the lane was open, when the best so far was told for the last time, the end, and the kernels."""
    env = {**os.environ, "TWAGENT_STORE": os.path.join(work, "store"), "XDG_CACHE_HOME": os.path.join(work, "cache")}
    env["TWAGENT_TIMELINE"] = os.path.join(work, "timeline")
    command = [twagent, "tune", "matmul", path, "--backend", "cuda", "--strategy", "exhaustive", "--max-evaluations", "0"]
    command += ["--no-final", "--seed", "1", "--budget-time", f"{limit}s"]
    command += ["--baseline", baseline] if baseline else []
    told, begun = {}, time.monotonic()
    process = subprocess.Popen(command, env=env, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for line in process.stderr:
        words = line.split()
        if len(words) > 1:
            told["best" if words[1].startswith("r1-") else words[1]] = time.monotonic() - begun
        if len(words) < 2 or words[0].count(":") != 1:
            print(line, end="", file=sys.stderr)
    process.wait()
    told["end"] = time.monotonic() - begun
    rows = subprocess.check_output([twagent, "export"], env=env, text=True).splitlines()
    return told, [row for row in map(json.loads, rows) if row["verdict"] == "kernel"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("twagent", nargs="*")
    parser.add_argument("--points", type=int, default=16, choices=sorted(SPACES))
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--baseline")
    parser.add_argument("--no-autotune", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    space = SPACES[asked.points]
    if asked.child:
        autotune(asked.child, space)
        return
    count = len(points(space))
    print(f"{count} points, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    print("| what | open | best known | end | points | best point | ms |\n| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "blocks.py")
        candidate(space, path)
        if not asked.no_autotune:
            it = run_autotune(path, asked.points, work)
            best = " ".join(f"{name}={value}" for name, value in it["best"].items())
            print(f"| triton.autotune, Triton {it['triton']} | {it['ready']:.1f} s | | {it['end']:.1f} s | {count} | "
                  f"{best} | {it['ms']:.3f} |", flush=True)
    for twagent in asked.twagent:
        with tempfile.TemporaryDirectory() as work:
            path = os.path.join(work, "blocks.py")
            candidate(space, path)
            told, kernels = run_tune(os.path.abspath(twagent), path, work, asked.limit, asked.baseline)
            best = min(kernels, key=lambda row: row["latency_ms"], default=None)
            tune = json.loads(best["tune"]) if best else {}
            words = " ".join(f"{n.removeprefix('BLOCK_SIZE_')}={v}" for n, v in tune.items() if n[-6:] not in ("SIZE_K", "SIZE_M") or n == "BLOCK_SIZE_M")
            print(f"| {twagent} tune | {told.get('searching', float('nan')):.1f} s | {told.get('best', float('nan')):.1f} s | "
                  f"{told['end']:.1f} s | {len(kernels)} | {words} | {best['latency_ms'] if best else float('nan'):.3f} |", flush=True)
            where = subprocess.run([sys.executable, os.path.join(ROOT, "bench/cuda/timeline.py"), os.path.join(work, "timeline")],
                                   capture_output=True, text=True).stdout
            wanted = ("compile", "check", "time", "open.reference", "open.ahead", "open.probe", "ceilings", "step")
            print("\n".join(line for line in where.splitlines() if line.split()[:1] and line.split()[0] in wanted), flush=True)


main()
