#!/usr/bin/env python3
"""Kernels whose counters are known beforehand, through `twagent profile --json`: each must get the
numbers and the limiter that its second comment says.

profiles.py TWAGENT"""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
twagent, failed, spent = sys.argv[1], 0, []


def number(metrics, name):
    if name == "kernels":
        return len(metrics["kernels"])
    if name == "dram_of_needed":
        return metrics["dram_bytes"] / metrics["roofline"]["bytes"]
    value = metrics["hot_kernel"]
    for key in name.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


for path in sorted((HERE / "profiles").glob("*.cu")):
    done = subprocess.run([twagent, "profile", str(HERE / "profiles/problem"), str(path), "--json", "--quiet"],
                          capture_output=True, text=True, timeout=120)
    try:
        record = json.loads(done.stdout)
    except ValueError:
        sys.exit(f"{path.name}: {done.stderr or done.stdout}")
    evaluation, diagnosis = record["evaluation"], record["diagnosis"]
    metrics, wrong = evaluation["metrics"], []
    if evaluation["verdict"] != "kernel":
        wrong.append(f"{evaluation['verdict']}: {evaluation['reason']}")
    elif metrics["profile"]["source"] != "counters":
        print(f"profiles: skipped: {metrics['profile']['why']}")
        sys.exit(0)
    else:
        spent.append(metrics["profile"]["ms"])
        for line in path.read_text().split("---*/\n")[1].split("*/")[0].strip("/* \n").split("\n"):
            name, _, wanted = line.strip("* ").partition(" ")
            if name == "limiter":
                if diagnosis["limiter"] != wanted:
                    wrong.append(f"limiter {diagnosis['limiter']}")
                continue
            low, high = map(float, wanted.split())
            found = number(metrics, name)
            if found is None or not low <= found <= high:
                wrong.append(f"{name} {found}, expected {wanted}")
    failed += bool(wrong)
    print(f"{'BAD ' if wrong else 'ok  '} {path.name}: {diagnosis['limiter']} {'; '.join(wrong)}")
print(f"profiles: {failed} wrong; {max(spent, default=0):.0f} ms at most")
sys.exit(failed > 0)
