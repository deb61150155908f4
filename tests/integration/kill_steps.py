"""kill -9 of whom the agent works through: the run goes on to its end, and nobody else pays."""
import os
import re
import sys
import time

from kill_common import (ENDS, EXIT_NONE, EXIT_WIN, Checks, Run, adopt_orphans, ask, descendants, kill, make_problem,
                         seed_of, wait_alone)

CANDIDATES = 16
KILLED = re.compile("SIGKILL|[Kk]illed|the worker ended|could not open")
PAUSES = {"runner": 0.5, "worker": 1.6, "compiler": 0.25, "reference": 0.6}  # mean seconds between kills


def one(check, twagent, problem, work, role, random):
    store = "%s/store-%s" % (work, role)
    run = Run(twagent, problem, store, work, "--rounds", "1", "--branching", str(CANDIDATES // 2))
    kills, by_name = 0, {}
    due = time.monotonic() + random.expovariate(1 / PAUSES[role])
    while run.running() and time.monotonic() - run.began < 60:
        time.sleep(random.uniform(0.001, 0.004))
        if time.monotonic() < due:
            continue
        victims = [process for process in descendants(run.pid) if process.role == role]
        if victims:
            victim = random.choice(victims)
            if kill(victim):
                kills += 1
                by_name[victim.name] = by_name.get(victim.name, 0) + 1
            due = time.monotonic() + random.expovariate(1 / PAUSES[role])
    code = run.wait(1)
    waited, left = wait_alone(2)
    named = "killing the %s: " % role
    check(kills > 0, named + "nobody was there to kill")
    check(code in (EXIT_WIN, EXIT_NONE), named + "exit code %s:\n%s" % (code, run.tail()))
    check(not left, named + "left behind: %s" % left)
    _, runs, said = ask(twagent, store, "list", "runs")
    check(runs and runs[0]["state"] == "done", named + "the run's record: %s %s" % (runs, said))
    _, candidates, said = ask(twagent, store, "list", "candidates", "r1")
    candidates = candidates or []
    check(len(candidates) == CANDIDATES, named + "%d candidates of %d %s" % (len(candidates), CANDIDATES, said))
    check(all(c["state"] in ENDS for c in candidates), named + "not ended: %s" % [c["state"] for c in candidates])
    failed = [c for c in candidates if c["state"] == "failed"]
    strange = [c["reason"] for c in candidates if c["state"] == "rejected" or c in failed and not KILLED.search(c["reason"])]
    check(not strange, named + "refused for another reason: %s" % strange)
    text = "\n".join(run.lines())
    retried = len(re.findall("candidate.retry|run.retry|run.final .*(?:ended|killed)", text))
    check(len(failed) <= kills, named + "%d candidates failed by %d kills" % (len(failed), kills))
    if role in ("worker", "reference"):  # a candidate is tried three times before it is given up
        check(3 * len(failed) <= retried + len(failed), named + "given up too early: %s" % [c["reason"] for c in failed])
    print("  %-9s %3d kills %s: %d kept, %d failed, %d retries, %.1f s, exit %s" %
          (role, kills, dict(sorted(by_name.items())), len(candidates) - len(failed), len(failed), retried,
           time.monotonic() - run.began, code), flush=True)
    for c in failed:
        print("    %s %s" % (c["id"], c["reason"][:120]))


def main():
    twagent, work, source, result = sys.argv[1:5]
    check, random = Checks(), seed_of("steps")
    adopt_orphans()
    problem = make_problem(work + "/mm", source)
    for role in os.environ.get("KILL_ROLES", "runner worker compiler reference").split():
        one(check, twagent, problem, work, role, random)
    check.write(result)


main()
