"""budgets.py TWAGENT alone|busy|both RESULT ROOT: when searches with a budget of time end, and with what.

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
BUDGETS_S = (10, 30, 60)
LOOPS = 8


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
    twagent, what, result, root = sys.argv[1:5]
    rows, wrong = [], 0
    with tempfile.TemporaryDirectory(prefix="twagent-budgets-") as work:
        problems = [("softmax", "softmax"), ("matmul", "matmul")]
        if os.environ.get("TWAGENT_PYTHON"):
            with open(work + "/sums.py", "w") as out:
                out.write(TORCH)
            problems.append(("a PyTorch file", work + "/sums.py"))
        search(twagent, work, "ceilings", "softmax", 30)
        for beside in [one for one in ("alone", "busy") if what in (one, "both")]:
            loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(LOOPS * (beside == "busy"))]
            try:
                for name, problem in problems:
                    for budget_s in BUDGETS_S:
                        took, record, said = search(twagent, work, "%s-%s-%d" % (beside, name.split()[-1], budget_s), problem, budget_s)
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
    with open(result, "w") as out:
        out.write("""# Budgets of time

`bench/budgets/run`, %s, commit %s, %d cores. Searches without a model, each in a store of its own. Right: it ended at
most 5 %% of its budget (or 2 s) late or early, with a kernel.

| problem | beside | budget s | took s | off | evaluated | verified | right | ended |
| --- | --- | ---: | ---: | ---: | ---: | --- | --- | --- |
%s
""" % (time.strftime("%Y-%m-%d", time.gmtime()), commit.stdout.strip() or "unknown", len(os.sched_getaffinity(0)), "\n".join(rows)))
    print("budgets: %d of %d are not right" % (wrong, len(rows)))
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
