"""agent.py: the search that bench/agent/run starts, watched while it goes on, and its tree read at its end."""
import argparse
import collections
import json
import os
import subprocess
import sys
import time

EVALUATIONS, LIMIT_S, PRICE = 5, 20, 0.05


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", required=True)
    parser.add_argument("--root", required=True)
    parser.add_argument("--attempts", type=int, default=200)
    parser.add_argument("--out")
    parser.add_argument("--sandbox", action="store_true")
    return parser.parse_args()


def marked(mark):
    """Processes of this bench, but for the search and its workers: those that agents have left."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as file:
                if mark in file.read().split(b"\0"):
                    found.append(open("/proc/%s/cmdline" % pid).read().replace("\0", " "))
        except OSError:
            pass
    return found


def memory_mib(pid):
    try:
        with open("/proc/%d/status" % pid) as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith("RssAnon"))
    except (OSError, StopIteration):
        return None


def search(args, environment):
    sys.path.insert(0, args.root + "/tests/integration")
    from kill_common import make_problem
    work = args.work
    make_problem(work + "/mm", args.root + "/tests/adversarial/cpu/problems/mm")
    with open(work + "/self", "w") as out:
        out.write('#!/bin/sh\n[ "$1" = worker ] && exec %s/bin/fake_worker --ms 2-10 --final-ms 20 "$@"\nexec %s/bin/twagent "$@"\n' % (
            work, work))
    os.chmod(work + "/self", 0o755)
    with open(work + "/models.yaml", "w") as out:
        out.write("models:\n  it:\n    provider: agent\n    command: [%s/bin/standin.py, mixed, %s/log]\n    evaluations: %d\n"
                  "    time_limit: %ds\n    output_limit: 1M\n    slots: 8\n    prices: {call: %g}\n"
                  "    json: {dollars: total_cost_usd}\n%s" % (work, work, EVALUATIONS, LIMIT_S, PRICE,
                                                               "    sandbox: [%s]\n" % work if args.sandbox else ""))
    rounds = (args.attempts + 7) // 8
    child = subprocess.Popen([work + "/bin/twagent", "run", work + "/mm", "--model", "agent/it", "--models", work + "/models.yaml",
                              "--rounds", str(rounds), "--branching", "8", "--implementations", "1", "--tuning", "0",
                              "--floor-share", "0", "--patience", "0", "--seed", "3", "--store", work + "/store"],
                             env=environment, cwd=work, stdout=open(work + "/said", "w"), stderr=subprocess.STDOUT)
    began, memory = time.monotonic(), []
    while child.poll() is None:
        memory.append(memory_mib(child.pid))
        time.sleep(1)
    return child.returncode, time.monotonic() - began, [mib for mib in memory if mib]


def tree(args, environment):
    rows = subprocess.run([args.work + "/bin/twagent", "export", "--format", "jsonl", "--store", args.work + "/store"],
                          env=environment, capture_output=True, text=True, check=True).stdout.splitlines()
    return [json.loads(row) for row in rows]


def show(args, environment, name):
    return json.loads(subprocess.run([args.work + "/bin/twagent", "show", name, "--json", "--store", args.work + "/store"],
                                     env=environment, capture_output=True, text=True, check=True).stdout)["candidate"]


def report(args, rows, shown, how, facts):
    lines = ["# Agents that do something wrong", "", "`bench/agent/run%s`: %s" % (" --sandbox" if args.sandbox else "", facts["what"]),
             "", "| the stand-in | attempts | ended | evaluated | over its budget | attempts with a kernel |",
             "| --- | --- | --- | --- | --- | --- |"]
    steps = collections.Counter(row["attempt"] for row in rows if row["attempt"])
    for kind in sorted(set(how.values())):
        mine = [shown[name] for name in shown if how.get(name) == kind]
        ended = collections.Counter((one["agent"] or one["reason"]).split(",")[0].split(":")[0] for one in mine)
        counts = [steps[one["id"]] for one in mine]
        lines.append("| %s | %d | %s | %d | %d | %d |" % (
            kind, len(mine), ", ".join("%s (%d)" % pair for pair in ended.most_common(3)), sum(counts),
            sum(count > EVALUATIONS for count in counts), sum(one["state"] == "kept" for one in mine)))
    lines.append("| all | %d | | %d | %d | %d |" % (len(shown), sum(steps.values()), sum(n > EVALUATIONS for n in steps.values()),
                                                   sum(one["state"] == "kept" for one in shown.values())))
    lines += ["", "| | |", "| --- | --- |"] + ["| %s | %s |" % pair for pair in facts["rows"]]
    return "\n".join(lines) + "\n"


def main():
    args = arguments()
    mark = "STANDIN_MARK=" + args.work
    environment = dict(os.environ, TWAGENT_SELF=args.work + "/self", XDG_CONFIG_HOME=args.work, XDG_CACHE_HOME=args.work + "/cache",
                       TWAGENT_LOCKS=args.work + "/locks", TMPDIR=args.work, STANDIN_MARK=args.work)
    code, seconds, memory = search(args, environment)
    left = marked(mark.encode())
    rows = tree(args, environment)
    writers = [row["id"] for row in rows if row["round"] > 0 and not row["attempt"]]
    shown = {name: show(args, environment, name) for name in writers}
    how = {line.split()[1]: line.split()[0] for line in open(args.work + "/log")} if not args.sandbox else {
        name: "mixed" for name in shown}
    spent = json.loads(subprocess.run([args.work + "/bin/twagent", "status", "r1", "--json", "--store", args.work + "/store"],
                                      env=environment, capture_output=True, text=True, check=True).stdout)["spending"]
    tenth = memory[len(memory) // 10] if memory else 0
    folders = os.listdir(args.work + "/store/agents")
    facts = {"what": "one search, %d attempts, 8 agents at once, %d evaluations and %d s each; %.0f s, exit code %d." % (
                 len(shown), EVALUATIONS, LIMIT_S, seconds, code),
             "rows": (("processes left over", len(left)), ("folders left over", len(folders)),
                      ("files written outside a folder", int(os.path.exists(args.work + "/store/escaped"))),
                      ("candidates in the tree that agents had evaluated", sum(bool(row["attempt"]) for row in rows)),
                      ("... whose attempt is not in the tree", sum(bool(row["attempt"]) and row["attempt"] not in shown for row in rows)),
                      ("spent", "$%.2f" % (spent["micro_dollars"] / 1e6)),
                      ("own memory of the search after a tenth of the time, at its end, at most", "%.1f, %.1f, %.1f MiB" % (
                          tenth, memory[-1] if memory else 0, max(memory, default=0))))}
    text = report(args, rows, shown, how, facts)
    with open(args.out or args.root + "/bench/results/agent.md", "w") as out:
        out.write(text)
    print(text)
    sys.exit(0 if not left and not folders else 1)


main()
