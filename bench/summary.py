"""Reads what bench/run left in a folder and prints the figures as Markdown."""
import glob
import json
import os
import statistics
import sys

folder, load = sys.argv[1], sys.argv[2]
TURNS = 9


def read(name):
    with open(os.path.join(folder, name)) as file:
        return json.load(file)


def ms(ns):
    return f"{ns / 1e6:.3f} ms"


doctor = read("doctor.json")
device, versions = doctor["device"], doctor["versions"]
print("# What bench/run measured\n")
print(f"Machine: {device['cpu']}, {device['cores']} cores, L3 {device['l3_bytes'] >> 20} MiB, "
      f"{device['vector_bytes']}-byte vectors; copy {device['copy_bytes_per_s'] / 1e9:.1f} GB/s, "
      f"read {device['read_bytes_per_s'] / 1e9:.1f} GB/s, {device['flops_per_s'] / 1e9:.0f} GFLOP/s "
      f"(measured). Load average at the start: {load}.")
print("Versions: " + ", ".join(f"{k} {v}" for k, v in versions.items()) + ".\n")
print("Command: `bench/run`\n")

print("| problem | kernel | time | against | speed-up (95 %) | evaluated | lane busy |")
print("| --- | --- | --- | --- | --- | --- | --- |")
for path in sorted(glob.glob(os.path.join(folder, "run.*.json"))):
    result = read(os.path.basename(path))
    run, champion = result["run"], result["champion"]
    if not champion:
        print(f"| {run['problem']} | none | | | | {run['evaluated']} | |")
        continue
    first = True
    for name, against in sorted(champion["baselines"].items()):
        speedup = against["speedup"]
        head = (f"| {run['problem']} | {run['best']} | {ms(champion['time_ns']['median'])} " if first
                else "| | | ")
        tail = (f"{run['evaluated']} in {run['elapsed_ms'] / 1e3:.0f} s | {100 * run['lane_busy']:.1f} % |"
                if first else "| |")
        print(head + f"| {name}: {ms(against['ns']['median'])} | {speedup['median']:.3f} "
              f"({speedup['low']:.3f} to {speedup['high']:.3f}){' win' if against['win'] else ''} | " + tail)
        first = False

print("\n| aim | figure |\n| --- | --- |")
matmul = read("run.matmul.json") if os.path.exists(os.path.join(folder, "run.matmul.json")) else {"champion": None, "run": None}
if matmul["champion"]:
    for name in "openblas", "openblas-avx512":
        against = matmul["champion"]["baselines"].get(name)
        if against:
            print(f"| matmul 512 fp32, all cores: at least 80 % of {name}'s sgemm, same run | "
                  f"{100 * against['speedup']['median']:.0f} % |")


def turns(problem):
    """For each turn: the copy's bytes a second (before and after it, their mean) and what the kernel moved of its least."""
    copies = [read(f"copy.{problem}.{i}.json")["device"]["copy_bytes_per_s"] for i in range(TURNS + 1)]
    least = read(f"run.{problem}.json")["champion"]["metrics"]["roofline"]["bytes"]
    for i in range(1, TURNS + 1):
        again = read(f"again.{problem}.{i}.json")
        if again["verdict"] == "kernel":
            yield (copies[i - 1] + copies[i]) / 2, least / again["time_ns"]["median"] * 1e9


for problem in "softmax", "layernorm", "relu", "transpose":
    if os.path.exists(os.path.join(folder, f"again.{problem}.1.json")) and read(f"run.{problem}.json")["champion"]:
        measured = list(turns(problem))
        shares = [rate / copy for copy, rate in measured]
        print(f"| {problem} 4096x4096: at least 80 % of the measured copy bandwidth | "
              f"{statistics.median(rate for _, rate in measured) / 1e9:.1f} GB/s, "
              f"{100 * statistics.median(shares):.0f} % of {statistics.median(copy for copy, _ in measured) / 1e9:.1f} "
              f"({', '.join(f'{100 * share:.0f}' for share in shares)}) |")
        pairs = read(f"pairs.{problem}.json")
        print(f"| the same in turns with a copy between the same pages | {pairs['kernel_bytes_per_s'] / 1e9:.1f} GB/s, "
              f"{100 * pairs['ratio']:.0f} % of {pairs['copy_bytes_per_s'] / 1e9:.1f} "
              f"(quartiles {100 * pairs['low']:.0f} to {100 * pairs['high']:.0f}) |")
evals = [read(os.path.basename(p)) for p in sorted(glob.glob(os.path.join(folder, "eval.*.json")))]
totals = [sum(e["stage_ms"].values()) for e in evals]
if totals:
    print(f"| one evaluation of matmul 512, compile to verdict, default settings: median under 1.0 s | "
          f"{statistics.median(totals) / 1e3:.2f} s ({min(totals) / 1e3:.2f} to {max(totals) / 1e3:.2f}, "
          f"{len(totals)} evaluations) |")
if matmul["run"]:
    print(f"| lane busy after the first candidate: at least 90 % | {100 * matmul['run']['lane_busy']:.1f} % |")
