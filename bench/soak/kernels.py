"""Does the checker ever refuse an honest kernel by an unlucky drawing, or accept an attack by a lucky one?

Every honest control of tests/adversarial and every start that ships (with the plain kernel of each problem) is
evaluated again and again, each time with fresh seeds in fresh processes; --attacks: every attack that must be refused.
The table is sorted by the largest share of the allowed error that was ever needed, for attacks by the least that a run
saw: over 1 a set was too inexact and the majority of more drawings decided, over 2 one such set refuses. Attacks that
write no number at all have no share. bench/soak/run --kernels builds and calls this."""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import threading
import time

import yaml

# Small main shapes, so that an evaluation takes seconds; the checks draw larger ones beside them.
IMAGE = "N=1,C=4,H=12,W=12"
SHAPES = {
    "M=16,N=256": "softmax layernorm rmsnorm sum_rows gemv relu",
    "M=16,N=64": "gelu gelu_tanh tanh sigmoid silu leaky_relu",
    "M=64,N=64": "transpose",
    "M=48,N=48,K=48": "matmul matmul_bf16 matmul_fp16 matmul_tf32 matmul_bias_gelu",
    "BATCH=2,M=32,N=32,K=32": "matmul_batched",
    "H=2,L=32,D=16": "attention attention_causal attention_fp16",
    IMAGE + ",K=8": "conv2d conv2d_bias_relu conv2d_batchnorm_silu",
    IMAGE + ",G=2": "group_norm",
    IMAGE: "depthwise_conv2d avg_pool2d max_pool2d batch_norm upsample_bilinear upsample_nearest",
}
SHAPE_OF = {name: shape for shape, names in SHAPES.items() for name in names.split()}
SUFFIX = {"cpu": (".c", ".cc"), "webgpu": (".wgsl",)}
NEAR = 0.5  # of what is allowed: what comes so near is evaluated more often


class Kernel:
    def __init__(self, backend, name, problem, path):
        self.backend, self.name, self.problem, self.path = backend, name, problem, path
        self.runs, self.odd, self.share, self.at, self.over = 0, [], None, "", 0

    def take(self, record, text, attacks):
        self.runs += 1
        verdict = record.get("verdict", "")
        error = record.get("metrics", {}).get("error") or {}
        share = error.get("of_allowed") or 0.0
        self.over += share > 1
        if share > 0 and (self.share is None or (share < self.share if attacks else share > self.share)):
            self.share = share
            self.at = "%s %s" % (error["inputs"], ",".join("%s=%d" % pair for pair in error["shape"].items()))
        said = record.get("reason") or text.strip()[-200:]
        return "%s: %s" % (verdict or "no verdict", said)


def controls(root, backend, attacks):
    folder = "%s/tests/adversarial/%s" % (root, backend)
    with open(folder + "/manifest.yaml") as manifest:
        cases = yaml.safe_load(manifest)
    for case in cases:
        if case["verdict"] == "refused" if attacks else case["verdict"] == "kernel":
            yield Kernel(backend, "%s %s" % (case["problem"], os.path.basename(case["file"])),
                         "%s/problems/%s" % (folder, case["problem"]), "%s/%s" % (folder, case["file"]))


def starts(root, backend):
    for name in sorted(SHAPE_OF):
        folder = "%s/problems/%s" % (root, name)
        files = [path for path in ("%s/starts/%s" % (folder, backend), folder + "/baselines") if os.path.isdir(path)]
        for path in ("%s/%s" % (path, file) for path in files for file in sorted(os.listdir(path))):
            plain = "/baselines/" not in path or os.path.basename(path).startswith("naive")
            if plain and path.endswith(SUFFIX[backend]):
                yield Kernel(backend, "%s %s" % (name, os.path.basename(path)), "%s@%s" % (folder, SHAPE_OF[name]), path)


class Soak:
    def __init__(self, given):
        self.given, self.lock, self.began, self.told = given, threading.Lock(), time.monotonic(), 0.0
        self.kernels = [kernel for backend in given.backends.split(",")
                        for kernel in [*controls(given.root, backend, given.attacks),
                                       *(() if given.attacks else starts(given.root, backend))]
                        if re.search(given.only, "%s %s" % (backend, kernel.name))]
        self.state = threading.local()
        self.commit = subprocess.run(["git", "-C", given.root, "rev-parse", "--short", "HEAD"], capture_output=True,
                                     text=True).stdout.strip() or "unknown"

    def environment(self):
        """Stores and locks of each thread's own: nobody is waited for."""
        if not hasattr(self.state, "environment"):
            home = "%s/%d" % (self.given.work, threading.get_ident())
            for core in range(256):
                os.makedirs("%s/locks/cpu%d" % (home, core), exist_ok=True)
            self.state.environment = {**os.environ, "TWAGENT_STORE": home + "/store", "TWAGENT_LOCKS": home + "/locks",
                                      "XDG_CONFIG_HOME": home + "/config", "XDG_CACHE_HOME": home + "/cache"}
        return self.state.environment

    def evaluate(self, kernel):
        given = self.given
        done = subprocess.run([given.bin + "/twagent", "eval", kernel.problem, kernel.path, "--backend", kernel.backend,
                               "--force", "--effort", given.effort, "--no-profile", "--time-budget", given.budget,
                               "--call-timeout", "2s" if given.attacks else "60s", "--json"], capture_output=True, text=True, errors="replace",
                              stdin=subprocess.DEVNULL, env=self.environment())
        try:
            record = json.loads(done.stdout)
        except ValueError:
            record = {}
        with self.lock:
            said = kernel.take(record, done.stderr, given.attacks)
            accepted = record.get("verdict") == "kernel"
            if accepted == given.attacks or not record.get("verdict"):
                kernel.odd.append(said)
                print("%s %s: %s" % (kernel.backend, kernel.name, said), flush=True)
            if time.monotonic() - self.told > 60:
                self.told = time.monotonic()
                self.write()

    def round(self, kernels):
        with concurrent.futures.ThreadPoolExecutor(self.given.jobs) as pool:
            list(pool.map(self.evaluate, kernels))

    def run(self):
        for _ in range(self.given.times):
            self.round(self.kernels)
        for _ in range(self.given.more):
            self.round([kernel for kernel in self.kernels if (kernel.share or 0) > NEAR or kernel.odd])

    def write(self):
        given = self.given
        odd, most = ("accepted", "least") if given.attacks else ("refused", "largest")
        lines = ["# %s, evaluated again and again" % ("Attacks" if given.attacks else "Honest kernels"), "",
                 "`bench/soak/run --kernels`, %s, commit %s, %d evaluations in %d s, `--effort %s`." % (
                     time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), self.commit,
                     sum(kernel.runs for kernel in self.kernels), time.monotonic() - self.began, given.effort), "",
                 "| backend | kernel | runs | %s | runs over 1 | %s error of allowed | inputs, shape |" % (odd, most),
                 "| --- | --- | ---: | ---: | ---: | ---: | --- |"]
        key = lambda kernel: (-len(kernel.odd), (kernel.share or 0) * (1 if given.attacks else -1))
        for kernel in sorted((kernel for kernel in self.kernels if kernel.runs > 0), key=key):
            lines.append("| %s | %s | %d | %d | %d | %s | %s |" % (
                kernel.backend, kernel.name, kernel.runs, len(kernel.odd), kernel.over,
                "-" if kernel.share is None else "%.3g" % kernel.share, kernel.at))
        for kernel in self.kernels:
            lines += ["", *["- %s %s: %s" % (kernel.backend, kernel.name, said) for said in sorted(set(kernel.odd))]] \
                if kernel.odd else []
        text = "\n".join(lines) + "\n"
        if given.out:
            with open(given.out + ".new", "w") as out:
                out.write(text)
            os.replace(given.out + ".new", given.out)
        return text


def main():
    parser = argparse.ArgumentParser(prog="bench/soak/run --kernels", description=__doc__)
    parser.add_argument("--attacks", action="store_true", help="attacks that must be refused, in place of honest kernels")
    parser.add_argument("--times", type=int, default=30, help="evaluations of each (30)")
    parser.add_argument("--more", type=int, default=0, help="and so many of each that came near what is allowed (0)")
    parser.add_argument("--jobs", type=int, default=2, help="at once (2)")
    parser.add_argument("--only", default="", help="a regular expression for \"BACKEND PROBLEM FILE\"")
    parser.add_argument("--backends", default="cpu,webgpu")
    parser.add_argument("--effort", default="search")
    parser.add_argument("--budget", default="1ms", help="eval's --time-budget (1ms)")
    parser.add_argument("--out", help="the table, written again each minute")
    for name in ("--bin", "--work", "--root"):
        parser.add_argument(name, required=True, help=argparse.SUPPRESS)
    soak = Soak(parser.parse_args())
    try:
        soak.run()
    finally:
        print(soak.write())
    return 1 if any(kernel.odd for kernel in soak.kernels) else 0


sys.exit(main())
