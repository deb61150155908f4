"""budgets.py TWAGENT alone|busy|both NAMES SECONDS ROOT: when searches with a budget of time end, and with what.
NAMES and SECONDS are separated by commas; "all" and the usual budgets where they are empty.

A store of its own for each search, and one cache of the machine's ceilings, as whoever searches again has it. A row is
right where the search ended at most a twentieth of its budget (or 2 s) late and as much early, with a kernel."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

TORCH = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x * 2.0, dim=-1) + torch.relu(x)


def get_inputs():
    return [torch.rand(512, 1024)]


def get_init_inputs():
    return []
"""
SPEC = """name: %s
dims: {M: 1024, N: 1024}
inputs: {X: {shape: [M, N], dtype: float32}}
outputs: {Y: {shape: [M, N], dtype: float32}}
reference: %s
check: [{M: 1, N: 1}, {M: 5, N: 17}, {M: 31, N: 129}]
"""
OWN_NUMPY = "import numpy as np\n\n\ndef reference(X):\n    return np.tanh(X) * np.sqrt(np.abs(X)) + X\n"
OWN_START = """/*---
tune:
  U: [1, 4]
---*/
#include <math.h>

void kernel(const float *X, float *Y, int64_t M, int64_t N)
{
#pragma omp parallel for
    for (int64_t i = 0; i < M * N; i++)
        Y[i] = tanhf(X[i]) * sqrtf(fabsf(X[i])) + X[i];
}
"""
OWN_C = """#include <math.h>
#include <stdint.h>

void reference(const float *X, float *Y, int64_t M, int64_t N)
{
    for (int64_t i = 0; i < M * N; i++)
        Y[i] = sqrtf(fabsf(X[i])) + X[i] * X[i];
}
"""
BUDGETS_S = (10, 30, 60, 150)
LOOPS = 8


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as out:
        out.write(text)


def make_problems(work):
    problems = {"softmax": "softmax", "matmul": "matmul", "conv2d": "conv2d", "numpy": work + "/numpy", "C": work + "/C"}
    write(work + "/numpy/spec.yaml", SPEC % ("own", "ref_impl.py"))
    write(work + "/numpy/ref_impl.py", OWN_NUMPY)
    write(work + "/numpy/starts/cpu/loop.c", OWN_START)
    write(work + "/C/spec.yaml", SPEC % ("own_in_c", "ref_impl.c"))
    write(work + "/C/ref_impl.c", OWN_C)
    if os.environ.get("TWAGENT_PYTHON"):
        problems["PyTorch"] = work + "/sums.py"
        write(work + "/sums.py", TORCH)
    return problems


def search(twagent, work, name, problem, budget_s):
    store = "%s/%s" % (work, name)
    environment = dict(os.environ, XDG_CACHE_HOME=work + "/cache", XDG_CONFIG_HOME=work + "/config")
    begun = time.monotonic()
    done = subprocess.run([twagent, "run", problem, "--budget-time", "%ds" % budget_s, "--store", store, "--rounds", "1000"],
                          env=environment, capture_output=True, text=True, errors="replace")
    took = time.monotonic() - begun
    shown = subprocess.run([twagent, "show", "r1", "--json", "--store", store], env=environment, capture_output=True, text=True)
    record = json.loads(shown.stdout or "{}")
    record = record.get("run", record)
    said = re.search(r"^  ended +(.*)$", done.stdout, re.M)
    return took, record, said[1] if said else (done.stderr.strip().splitlines() or ["nothing"])[-1]


def main():
    twagent, what, names, budgets, root = sys.argv[1:6]
    budgets = [int(one) for one in budgets.split(",")] if budgets else BUDGETS_S
    rows, wrong = [], 0
    with tempfile.TemporaryDirectory(prefix="twagent-budgets-") as work:
        problems = make_problems(work)
        wanted = names.split(",") if names else list(problems)
        search(twagent, work, "ceilings", "softmax", 30)
        for beside in [one for one in ("alone", "busy") if what in (one, "both")]:
            loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(LOOPS * (beside == "busy"))]
            try:
                for name in wanted:
                    for budget_s in budgets:
                        took, record, said = search(twagent, work, "%s-%s-%d" % (beside, name, budget_s), problems[name], budget_s)
                        late = took - budget_s
                        good = abs(late) <= max(2, budget_s / 20) and record.get("kept", 0) > 0
                        wrong += not good
                        rows.append("| %s | %s | %d | %.1f | %+.0f %% | %d | %s | %s | %s |" % (
                            name, "8 busy loops" if beside == "busy" else "nothing", budget_s, took, 100 * late / budget_s,
                            record.get("evaluated", 0), "yes" if record.get("verified") else "no", "" if good else "no", said))
                        print(rows[-1], flush=True)
            finally:
                for loop in loops:
                    loop.kill()
                    loop.wait()
    commit = subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    print("""
%s, commit %s, %d cores. Right: it ended at most 5 %% of its budget (or 2 s) late or early, with a kernel.

| problem | beside | budget s | took s | off | evaluated | verified | right | ended |
| --- | --- | ---: | ---: | ---: | ---: | --- | --- | --- |
%s
""" % (time.strftime("%Y-%m-%d", time.gmtime()), commit.stdout.strip() or "unknown", len(os.sched_getaffinity(0)), "\n".join(rows)))
    print("budgets: %d of %d are not right" % (wrong, len(rows)))
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
