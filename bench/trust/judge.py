"""What twagent says of mutants: those of a start as the points of one candidate, so that one session judges them all."""
import json
import os
import queue
import re
import subprocess
import tempfile

from rules import ROOT

MOST_POINTS, MOST_BYTES = 60, 900 << 10
lanes = queue.SimpleQueue()  # of sets of cores, where several judge at once
# Where the spec's own main shape would take a second a call, or a set of inputs a second.
ROWS = ("softmax", "layernorm", "rmsnorm", "relu", "leaky_relu", "sigmoid", "silu", "tanh", "transpose", "gemv", "sum_rows")
CONV = ("conv2d", "conv2d_bias_relu", "conv2d_batchnorm_silu")
PRODUCTS = ("matmul", "matmul_bf16", "matmul_fp16", "matmul_tf32", "matmul_bias_gelu")
MAIN = {"cuda": {
    **dict.fromkeys((*ROWS, "gelu"), {"M": 2048, "N": 4096}), **dict.fromkeys(PRODUCTS, {"M": 1024, "N": 1024, "K": 1024}),
    **dict.fromkeys(CONV, {"N": 8, "C": 64, "H": 56, "W": 56, "K": 64}), "matmul_batched": {"BATCH": 16, "M": 512, "N": 512, "K": 512},
    "depthwise_conv2d": {"N": 8, "C": 64, "H": 112, "W": 112}, "batch_norm": {"N": 16, "C": 64, "H": 56, "W": 56},
    "group_norm": {"N": 16, "C": 64, "H": 56, "W": 56, "G": 16}, "max_pool2d": {"N": 8, "C": 64, "H": 112, "W": 112},
    "avg_pool2d": {"N": 8, "C": 64, "H": 112, "W": 112}, "attention": {"H": 8, "L": 512, "D": 64},
    "attention_fp16": {"H": 16, "L": 1024, "D": 64}, "attention_causal": {"H": 16, "L": 1024, "D": 64},
    "upsample_bilinear": {"N": 8, "C": 64, "H": 56, "W": 56}, "upsample_nearest": {"N": 8, "C": 64, "H": 56, "W": 56}}, "cpu": {
    **dict.fromkeys(ROWS, {"M": 1024, "N": 1024}),
    "gelu": {"M": 384, "N": 512}, "matmul_bias_gelu": {"M": 256, "N": 256, "K": 256}, "matmul": {"M": 512, "N": 512, "K": 512},
    "matmul_batched": {"BATCH": 16, "M": 128, "N": 128, "K": 128}, "batch_norm": {"N": 4, "C": 64, "H": 56, "W": 56},
    "group_norm": {"N": 4, "C": 64, "H": 56, "W": 56, "G": 16}, "max_pool2d": {"N": 2, "C": 64, "H": 112, "W": 112},
    "avg_pool2d": {"N": 2, "C": 64, "H": 112, "W": 112}, "depthwise_conv2d": {"N": 2, "C": 64, "H": 56, "W": 56},
    **dict.fromkeys(CONV, {"N": 2, "C": 32, "H": 56, "W": 56, "K": 64}), "attention": {"H": 4, "L": 512, "D": 64},
    "upsample_bilinear": {"N": 2, "C": 64, "H": 56, "W": 56}, "upsample_nearest": {"N": 2, "C": 64, "H": 56, "W": 56}}}


def pinned(text):
    """Front matter without its fence, each tune parameter at its first number, and the text behind it."""
    match = re.match(r"/\*---\n(.*?)---\*/\n", text, re.S)
    if not match:
        return None, text
    lines, where = [], False
    for line in match[1].splitlines(True):
        if re.match(r"  where:", line):  # it holds at the first numbers
            where = True
            continue
        if where and re.match(r"    ", line):
            continue
        where = False
        lines.append(re.sub(r"^(  \w+: )\[(-?\d+)[^\]]*\]", r"\1[\2]", line) if "tune:" in match[1] else line)
    return "".join(lines), text[match.end():]


def bundle(start, texts):
    """One candidate, whose point 0 is the start and point i the i-th text."""
    head, _ = pinned(start)
    if head is None:
        head = "tune:\n"
    elif "tune:\n" not in head:
        head = "tune:\n" + head
    head = head.replace("tune:\n", "tune:\n  MUTANT: [%s]\n" % ", ".join(map(str, range(len(texts) + 1))), 1)
    first = re.findall(r"^#include[^\n]*\n", pinned(start)[1], re.M)
    parts = ["/*---\n", head, "---*/\n", *first]
    for i, text in enumerate([start, *texts]):
        body = re.sub(r"^#include[^\n]*\n", "\n", pinned(text)[1], flags=re.M)
        parts.append("%s MUTANT == %d\n%s\n" % ("#elif" if i else "#if", i, body))
    return "".join([*parts, "#endif\n"])


def batches(mutants):
    """Mutants of one start, as many at a time as one candidate holds."""
    by_start = {}
    for mutant in mutants:
        by_start.setdefault(mutant.source.path, []).append(mutant)
    for path, some in by_start.items():
        batch, size = [], 0
        for mutant in some:
            if batch and (len(batch) == MOST_POINTS or size + len(mutant.text) > MOST_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(mutant)
            size += len(mutant.text)
        if batch:
            yield batch


def problem_at(problem, backend):
    main = MAIN.get(backend, {}).get(problem)
    return problem if main is None else "%s@%s" % (problem, ",".join("%s=%d" % one for one in main.items()))


def share_cores(at_once):
    """Each of so many judges has cores of its own."""
    cores = sorted(os.sched_getaffinity(0))
    each = max(1, len(cores) // at_once)
    for i in range(at_once):
        lanes.put(set((cores * 2)[i * each % len(cores):][:each]))


def words(record):
    """What of a verdict is kept."""
    return {"verdict": record["verdict"], "reason": record.get("reason", "")[:400], "win": record.get("win", False),
            "checked_up_to": record.get("metrics", {}).get("checked_up_to")}


def run(twagent, problem, path, *more, timeout=1800):
    command = [twagent, "eval", problem, path, "--json", "--no-profile", "--quiet", "--time-budget", "1ms", *more]
    cores = lanes.get()
    try:
        with tempfile.TemporaryDirectory() as folder:  # locks of its own: times count for nothing here, others need not wait
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=ROOT,
                                  preexec_fn=lambda: os.sched_setaffinity(0, cores),
                                  env={**os.environ, "TWAGENT_LOCKS": folder, "TWAGENT_STORE": os.path.join(folder, "store")})
    finally:
        lanes.put(cores)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], done


def judge(twagent, batch, backend, say=lambda text: None):
    """{name: what twagent says}; the start's own verdict is under its path."""
    source, told = batch[0].source, {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mutants" + os.path.splitext(source.path)[1])
        with open(path, "w") as file:
            file.write(bundle(source.text, [m.text for m in batch]))
        records, done = run(twagent, problem_at(source.problem, backend), path, "--sweep", "0", "--effort", "full",
                            "--backend", backend)
        for record in records:
            point = record["tune"]["MUTANT"]
            told[batch[point - 1].name if point else source.path] = words(record)
    if len(records) <= len(batch):
        say("%s: %d of %d verdicts (exit %d): %s" % (source.path, len(records), len(batch) + 1, done.returncode,
                                                     done.stderr[-300:]))
    return told


def alone(twagent, mutant, backend, effort):
    """One mutant by itself, as a person would ask."""
    suffix = os.path.splitext(mutant.source.path)[1]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mutant" + suffix)
        with open(path, "w") as file:
            file.write(mutant.text)
        records, done = run(twagent, problem_at(mutant.source.problem, backend), path, "--force", "--effort", effort,
                            "--backend", backend)
    return words(records[-1]) if records else {"verdict": "none", "reason": done.stderr[-300:], "win": False,
                                               "checked_up_to": None}
