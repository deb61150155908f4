#!/usr/bin/env python3
"""Kernels whose counters are known beforehand, through `twagent profile --json`: each must get the
numbers and the limiter that its second comment says, or be rejected as it says. Of each, events and
CUPTI's records of the same launches must agree; a second profile by the same process must have all
that the first one has.

profiles.py TWAGENT"""
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LAUNCHES = 5
twagent, failed, spent, skipped = sys.argv[1], 0, [], ""


def number(metrics, name):
    if name == "kernels":
        return len(metrics["kernels"])
    if name == "dram_of_needed":
        return metrics["dram_bytes"] / metrics["roofline"]["bytes"]
    value = metrics["hot_kernel"]
    for key in name.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def clocks(evaluation):
    """What two clocks say of the same launches, and the timed median beside: words, and what is wrong."""
    records, timed = evaluation["metrics"]["profile"]["records"], evaluation["time_ns"]["median"]
    if records["launches"] != LAUNCHES:
        return "", [f"{records['launches']} launches with records: {records.get('why')}"]
    event, span, kernels = records["event_ns"], records["span_ns"], records["kernels_ns"]
    words = (f"events {event / 1e3:.2f} us, records {span / 1e3:.2f} us (kernels {kernels / 1e3:.2f} us: "
             f"{records['kernels']} and {records['memsets']} memsets), timed {timed / 1e3:.2f} us")
    wrong = []
    if not span - 2000 - 0.02 * span <= event <= 1.1 * span + 50000:
        wrong.append("events and records disagree")
    if not 0 < kernels <= span + 1:
        wrong.append("kernels take longer than the span from the first to the last")
    return words, wrong


def ask(*arguments):
    done = subprocess.run([twagent, *map(str, arguments), "--quiet"], capture_output=True, text=True, timeout=120)
    try:
        return [json.loads(line) for line in done.stdout.splitlines()]
    except ValueError:
        sys.exit(f"{arguments}: {done.stderr or done.stdout}")


def report(name, words, wrong):
    global failed
    failed += bool(wrong)
    print(f"{'BAD ' if wrong else 'ok  '} {name}: {words}{': ' if wrong else ''}{'; '.join(wrong)}")


def expected(path):
    comment = path.read_text().split("---*/\n")[1].split("*/")[0].strip("/* \n")
    return [line.strip("* ").partition(" ")[::2] for line in comment.split("\n")]


for path in sorted((HERE / "profiles").glob("*.cu")):
    record, = ask("profile", HERE / "profiles/problem", path, "--json")
    evaluation, diagnosis, wrong = record["evaluation"], record["diagnosis"], []
    metrics, rows = evaluation["metrics"], expected(path)
    profile = metrics.get("profile", {})
    if profile.get("source") == "resources":
        print(f"profiles: skipped: {profile['why']}")
        sys.exit(failed > 0)
    refusal = dict(rows).get("rejected")
    if refusal is not None:
        if evaluation["verdict"] != "rejected" or refusal not in evaluation["reason"]:
            wrong.append(f"{evaluation['verdict']}, expected a rejection: {refusal}")
        report(path.name, evaluation["reason"], wrong)
        continue
    if evaluation["verdict"] != "kernel":
        report(path.name, evaluation["verdict"], [evaluation["reason"]])
        continue
    spent.append(profile["ms"])
    words, wrong = clocks(evaluation)
    for name, wanted in rows if profile["source"] == "counters" else []:
        if name == "limiter":
            if diagnosis["limiter"] != wanted:
                wrong.append(f"limiter {diagnosis['limiter']}")
            continue
        low, high = map(float, wanted.split())
        found = number(metrics, name)
        if found is None or not low <= found <= high:
            wrong.append(f"{name} {found}, expected {wanted}")
    if profile["source"] != "counters":
        skipped = f"; counters skipped: {profile['why']}"
    report(path.name, f"{diagnosis['limiter']}; {words}", wrong)

sources = []
for evaluation in ask("eval", HERE / "profiles/problem", HERE / "profiles/two_launches.cu", "--backend", "cuda",
                      "--effort", "search", "--profile", "--sweep", "0"):
    words, wrong = clocks(evaluation) if evaluation["verdict"] == "kernel" else ("", [evaluation["reason"]])
    sources.append(evaluation["metrics"].get("profile", {}).get("source"))
    if sources[-1] != sources[0]:
        wrong.append(f"{sources[-1]}, after {sources[0]}: {evaluation['metrics']['profile'].get('why')}")
    report(f"two_launches.cu {evaluation['tune']}", words, wrong)
if len(sources) != 2:
    report("two profiles by one process", f"there are {len(sources)}", ["two were expected"])
print(f"profiles: {failed} wrong; {max(spent, default=0):.0f} ms at most{skipped}")
sys.exit(failed > 0)
