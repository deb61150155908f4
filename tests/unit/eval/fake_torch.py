#!/usr/bin/python3
"""A Python interpreter, as far as a PyTorch problem's parent can tell: it is asked whether it has
torch, and it is the child that libexec/reference_torch.py is else. It describes one module, out =
x * w, and computes it. The file's first line says how it misbehaves."""

import array
import json
import math
import mmap
import os
import sys
import time

warm = []  # baselines that it was opened for
right = []  # they compute what the module does
SPEC = """
name: 7_fake
family: fake
dims: {B: 64}
hidden: {B: [1, 64]}
check: [{B: 1}, {B: 3}]
inputs:
  x: {shape: [B, 4], dtype: float32}
  labels: {shape: [B], dtype: int32, range: [0, 3]}
  signs: {shape: [B], dtype: float32, range: [-1, 1]}
  u: {shape: [3, 3], dtype: float32}
  s: {shape: [2, 3, 3], dtype: float32}
  w: {shape: [4], dtype: float32, range: [-0.5, 0.5]}
  t: {shape: [4], dtype: float32}
outputs: {out: {shape: [B, 4], dtype: float32}}
reference: 7_fake.py
"""
INITIAL = {"w": [0.25, -0.25, 0.5, -0.5], "t": [1.0, 2.0, 3.0, 4.0]}
DESCRIPTION = {
    "spec": SPEC,
    "binding": {"marker": 17},
    "draws": {"labels": "whole", "signs": "whole", "u": "upper", "s": "symmetric", "t": "given"},
    "initial": ["w", "t"],
    "notes": ["t is a table", "more"],
}


def write(fd, offset, kind, values):
    data = array.array(kind, values).tobytes()
    if os.fstat(fd).st_size < offset + len(data):
        os.pwrite(fd, b"\0", offset + len(data) - 1)
    os.pwrite(fd, data, offset)


def read(fd, offset, count):
    memory = mmap.mmap(fd, os.fstat(fd).st_size, mmap.MAP_SHARED, mmap.PROT_READ)
    return array.array("f", memory[offset : offset + 4 * count])


def compute(request):
    places = request["inputs"]
    batch = places[0]["shape"][0]
    x, w = read(3, places[0]["offset"], batch * 4), read(3, places[5]["offset"], 4)
    extra = (2.0 if warm else 1.0) if request.get("baseline") == "compile" and not right else 0.0
    results = [x[i] * w[i % 4] + extra for i in range(batch * 4)]
    kind = "d" if request["precision"] == "exact" else "f"
    write(4, request["outputs"][0]["offset"], kind, results)
    return {"ok": True}


def answer(request):
    if request["op"] == "describe":
        with open(request["file"]) as file:
            first = file.readline().strip()
        with open(os.path.join(os.path.dirname(request["file"]), "asked"), "a") as file:
            file.write("x")
        if first == "# raises":
            return {"error": "NameError: name 'y' is not defined (7_fake.py:3)"}
        if first == "# ends":
            sys.exit(3)
        if first == "# wrong spec":
            return dict(DESCRIPTION, spec=SPEC.replace("float32", "float8"))
        return DESCRIPTION
    if request["op"] == "open":
        while request["binding"] != {"marker": 17}:
            assert os.path.exists(os.path.join(os.path.dirname(request["file"]), "slow")), request
            time.sleep(0.01)
        with open(request["file"]) as file:
            right.extend(["compile"] if file.readline() == "# right\n" else [])
        if "warm" in request:
            assert request["warm"]["inputs"][0] == {"shape": [64, 4]}, request
            while os.path.exists(os.path.join(os.path.dirname(request["file"]), "slow")):
                time.sleep(0.01)
            warm.append(request["warm"]["baseline"])
        versions = {"python": "3", "torch": "0.0"}
        if request["device"] != "cpu":
            versions["visible"] = os.environ["CUDA_VISIBLE_DEVICES"]
        return {"ok": True, "versions": versions}
    if request["op"] == "initial":
        for place in request["outputs"]:
            write(4, place["offset"], "f", INITIAL[place["name"]])
        return {"ok": True}
    if request["op"] == "given":
        for place in request["outputs"]:
            count = math.prod(place["shape"])
            labels = place["name"] == "labels"
            write(4, place["offset"], "i" if labels else "f", [1 if labels else 0.75] * count)
        return {"ok": True}
    if request["op"] == "compute":
        return compute(request)
    return {"ok": True}


if "-c" in sys.argv:
    print("found", "/usr", "/usr", "3.0", "0.0", sep="\n", flush=True)
    sys.exit(0)
for line in sys.stdin:
    if line == "go\n":
        print("done", flush=True)
    else:
        print(json.dumps(answer(json.loads(line))), flush=True)
