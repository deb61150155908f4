#!/usr/bin/env python3
"""How long a tune takes beside triton.autotune, of the same source and points, on one GPU:

    bench/cuda/triton_autotune.py [TWAGENT...] [--tutorial FILE] [--points 8|16|32] [--limit SECONDS] [--baseline NAME]
                                  [--keep FOLDER]

FILE is Triton's tutorial 03 (python/tutorials/03-matrix-multiplication.py, not in this repository), with its own
configurations, as `twagent import` makes a candidate for matmul_fp16 of it; without it problems/matmul's start in Triton
with a part of its tune space. 4096 x 4096 x 4096: first triton.autotune in a process of its own, as its defaults have
it, then `twagent tune` by each TWAGENT (two builds: with and without a change), every point, no final measurement.
Caches and stores are empty each time. Seconds are from a process's start. --baseline torch: the tune imports PyTorch,
too; else it has the problem's own baseline. Needs a Python that has PyTorch with Triton.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
START = os.path.join(ROOT, "problems/matmul/starts/triton/blocks.py")
FIXED = {"BLOCK_SIZE_K": [32], "GROUP_SIZE_M": [8]}
SPACES = {
    8: {"BLOCK_SIZE_M": [64, 128], "BLOCK_SIZE_N": [64, 128], **FIXED, "num_warps": [4, 8], "num_stages": [3]},
    16: {"BLOCK_SIZE_M": [64, 128], "BLOCK_SIZE_N": [64, 128], **FIXED, "num_warps": [4, 8], "num_stages": [3, 2]},
    32: {"BLOCK_SIZE_M": [64, 128], "BLOCK_SIZE_N": [64, 128], "BLOCK_SIZE_K": [32, 16], "GROUP_SIZE_M": [8],
         "num_warps": [4, 8], "num_stages": [3, 2]},
}  # fmt: skip
N = 4096


def points(space):
    made = [{}]
    for name, values in space.items():
        made = [{**point, name: value} for point in made for value in values]
    return made


def write_start(space, path):
    with open(START, encoding="utf-8") as file, open(path, "w", encoding="utf-8") as out:
        front = True  # the source has names with a colon, too
        for i, line in enumerate(file):
            front = front and not (i > 0 and line.startswith("---"))
            name = line.strip().split(":")[0]
            out.write(f"  {name}: {space[name]}\n" if front and line.startswith("  ") and name in space else line)


def write_tutorial(path, out):
    """Up to its tests, which run where it is imported."""
    with open(path, encoding="utf-8") as file, open(out, "w", encoding="utf-8") as cut:
        cut.write(file.read().split("\ntorch.manual_seed(")[0])


# ---- triton.autotune, in a process of its own


def child(path, count):
    begun = float(os.environ["BEGUN"])
    import importlib.util

    import torch
    import triton

    spec = importlib.util.spec_from_file_location("source", path)
    source = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(source)
    dtype = torch.float16 if count == 0 else torch.float32
    a, b = (torch.randn(N, N, device="cuda", dtype=dtype) for _ in range(2))
    torch.cuda.synchronize()
    ready = time.monotonic() - begun
    if count == 0:
        kernel = source.matmul_kernel

        def launch():
            source.matmul(a, b)

    else:
        options = ("num_warps", "num_stages")
        configs = [
            triton.Config({k: v for k, v in p.items() if k not in options}, **{k: p[k] for k in options})
            for p in points(SPACES[count])
        ]
        kernel, c = triton.autotune(configs=configs, key=[])(source.matmul), torch.empty_like(a)

        def launch():
            kernel[lambda m: (triton.cdiv(N, m["BLOCK_SIZE_M"]) * triton.cdiv(N, m["BLOCK_SIZE_N"]),)](a, b, c, N, N, N)

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
    best = {**kernel.best_config.kwargs, "num_warps": kernel.best_config.num_warps}
    best["num_stages"] = kernel.best_config.num_stages
    told = {"ready": ready, "end": end, "best": best, "ms": sorted(times)[12], "points": len(kernel.configs)}
    print(json.dumps({**told, "triton": triton.__version__, "gpu": torch.cuda.get_device_name()}))


def run_autotune(path, count, work):
    env = {**os.environ, "TRITON_CACHE_DIR": os.path.join(work, "triton"), "BEGUN": str(time.monotonic())}
    command = [sys.executable, os.path.abspath(__file__), "--child", path, str(count)]
    return json.loads(subprocess.check_output(command, env=env, text=True).splitlines()[-1])


# ---- twagent tune


def run_tune(twagent, problem, path, work, asked):
    """Seconds to each phase, to the last better kernel and to the end; its rows."""
    timeline = os.path.join(work, "timeline")
    if os.path.exists(timeline):
        os.unlink(timeline)
    env = {**os.environ, "TWAGENT_STORE": os.path.join(work, "store"), "XDG_CACHE_HOME": os.path.join(work, "cache")}
    env["TWAGENT_TIMELINE"] = timeline
    command = [twagent, "tune", problem, path, "--backend", "cuda", "--strategy", "exhaustive", "--no-final"]
    command += ["--max-evaluations", "0", "--seed", "1", "--budget-time", f"{asked.limit}s"]
    command += ["--baseline", asked.baseline] if asked.baseline else []
    told, begun = {}, time.monotonic()
    process = subprocess.Popen(command, env=env, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for line in process.stderr:  # "  0:07  r1-c2    4.20 us  0.98x naive", "  0:05  searching"
        words = line.split()
        if len(words) > 1 and words[0].replace(":", "").isdigit():
            told["best" if re.match(r"r\d+-", words[1]) else words[1]] = time.monotonic() - begun
        else:
            print(line, end="", file=sys.stderr)
    process.wait()
    told["end"] = time.monotonic() - begun
    exported = subprocess.run([twagent, "export"], env=env, text=True, stdout=subprocess.PIPE, check=False).stdout
    rows = [json.loads(line) for line in exported.splitlines()]
    run = max((row["run"] for row in rows), key=lambda name: int(name[1:]), default="")
    return told, [row for row in rows if row["run"] == run], begun


def say(what, opened, best, end, count, point, ms):
    words = " ".join(f"{name.removeprefix('BLOCK_SIZE_')}={value}" for name, value in point.items())
    print(f"| {what} | {opened:.1f} s | {best:.1f} s | {end:.1f} s | {count} | {words} | {ms:.4f} |", flush=True)


def keep(work, name, rows, asked):
    os.makedirs(asked.keep, exist_ok=True)
    shutil.copy(os.path.join(work, "timeline"), os.path.join(asked.keep, f"{name}.timeline"))
    with open(os.path.join(asked.keep, f"{name}.json"), "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)


def tune(twagent, problem, path, asked, number):
    nan = float("nan")
    with tempfile.TemporaryDirectory() as work:
        for again in ("", ", again"):
            told, rows, begun = run_tune(os.path.abspath(twagent), problem, path, work, asked)
            kernels = [row for row in rows if row["verdict"] == "kernel"]
            best = min(kernels, key=lambda row: row["latency_ms"], default={"tune": "{}", "latency_ms": nan})
            say(f"{twagent} tune{again}", told.get("searching", nan), told.get("best", nan), told["end"],
                f"{len(rows)}, {len(kernels)} kernels", json.loads(best["tune"]), best["latency_ms"])  # fmt: skip
            for row in rows:
                if row["verdict"] != "kernel" and not again:
                    print(f"    {row['tune']}: {row['verdict']} {row['reason'][:150]}")
            if asked.keep:
                keep(work, f"{asked.points if not asked.tutorial else 0}-{number}{again and '-again'}", rows, asked)
            command = [sys.executable, os.path.join(ROOT, "bench/cuda/timeline.py"), os.path.join(work, "timeline")]
            command += [str(int(1e9 * begun))]
            steps = ("step", "compile", "check", "time", "ceilings")
            for line in subprocess.run(command, text=True, stdout=subprocess.PIPE, check=False).stdout.splitlines():
                if line.split() and (line.split()[0] in steps or line.startswith("open.")):
                    print("   ", line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("twagent", nargs="*")
    parser.add_argument("--tutorial")
    parser.add_argument("--points", type=int, default=16, choices=sorted(SPACES))
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--baseline")
    parser.add_argument("--no-autotune", action="store_true")
    parser.add_argument("--keep")
    asked = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    print("| what | open | its best known | end | points | best | ms |\n| --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with tempfile.TemporaryDirectory() as work:
        path, count = os.path.join(work, "source.py"), 0 if asked.tutorial else asked.points
        if asked.tutorial:
            write_tutorial(asked.tutorial, path)
        else:
            write_start(SPACES[count], path)
        if not asked.no_autotune:
            for again in ("", ", again"):
                it = run_autotune(path, count, work)
                what = f"triton.autotune, Triton {it['triton']}, {it['gpu']}{again}"
                say(what, it["ready"], it["end"], it["end"], it["points"], it["best"], it["ms"])
        ours = os.path.join(work, "ours.py") if asked.tutorial else path
        for number, twagent in enumerate(asked.twagent):
            if asked.tutorial:
                command = [twagent, "import", f"{path}:matmul", "matmul_fp16", "-o", ours]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            tune(twagent, "matmul_fp16" if asked.tutorial else "matmul", ours, asked, number)
            if asked.tutorial:
                os.unlink(ours)


if sys.argv[1:2] == ["--child"]:
    child(sys.argv[2], int(sys.argv[3]))
else:
    main()
