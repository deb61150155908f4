"""kill -9 of whom the agent works through: the run goes on to its end, and nobody else pays."""
import os
import re
import sys
import time

from kill_common import (ENDS, EXIT_NONE, EXIT_STOPPED, EXIT_WIN, HANG_S, Checks, Run, adopt_orphans, ask, kill, listed,
                         make_problem, seed_of, wait_alone)

CANDIDATES = max(8, min(50, int(os.environ.get("KILL_MOMENTS", "0")) // 4))
ENDED_CODES = (EXIT_WIN, EXIT_NONE, EXIT_STOPPED)  # the last where it was too noisy to say
PROGRESS = 3  # as many as are in the lane at once
PAUSES = {"runner": 0.8, "worker": 0.5, "compiler": 0.4, "reference": 0.4}  # mean seconds between kills
ENDED = re.compile(r"candidate\.move \S+ (kept|rejected|failed)|round\.start|run\.final|run\.verified")
RETRIED = re.compile(r"warn (candidate\.retry|run\.retry|lane\.reopen|run\.final)")
# Who is asked again costs no candidate. A compiler or a runner that was killed fails its own candidate at most.
FREE = ("worker", "reference")


class Killer:
    """Kills one of `role` at random moments. A worker or a reference is killed again only once three candidates have
    ended since: who dies three times over one step is given up, as it should be."""

    def __init__(self, run, role, random, hurry):
        self.run, self.role, self.random, self.pause = run, role, random, PAUSES[role] / hurry
        self.kills, self.names, self.ended = 0, {}, -PROGRESS
        self.rest()

    def rest(self):
        self.due = time.monotonic() + self.random.uniform(0.2, 1.8) * self.pause

    def step(self):
        left = self.due - time.monotonic()
        time.sleep(min(max(left, self.random.uniform(0.001, 0.005)), 0.05))
        if left > 0:
            return
        ended = len(ENDED.findall("\n".join(self.run.lines())))
        if self.role in FREE and ended < self.ended + PROGRESS:
            self.rest()
            return
        victims = [process for process in listed(self.run.pid) if process.role == self.role]
        if victims:
            victim = self.random.choice(victims)
            if kill(victim):
                self.kills += 1
                self.ended = ended
                self.names[victim.name] = self.names.get(victim.name, 0) + 1
            self.rest()


def one(check, twagent, problem, work, role, random):
    for attempt in range(8):  # where the machine is so fast that a run ends before the first kill, with shorter pauses
        store = "%s/store-%s-%d" % (work, role, attempt)
        run = Run(twagent, problem, store, work, "--rounds", "1", "--branching", str(CANDIDATES // 2))
        killer = Killer(run, role, random, 2 ** attempt)
        while run.running() and time.monotonic() - run.began < HANG_S:
            killer.step()
        code = run.wait(1)
        waited, left = wait_alone()
        if killer.kills > 0 or left or code not in ENDED_CODES:
            break
    named = "killing the %s: " % role
    check(killer.kills > 0, named + "nobody was there to kill")
    check(code in ENDED_CODES, named + "exit code %s:\n%s" % (code, run.tail()))
    check(not left, named + "left behind: %s" % left)
    _, runs, said = ask(twagent, store, "list", "runs")
    check(runs and runs[0]["state"] == "done", named + "the run's record: %s %s" % (runs, said))
    _, candidates, said = ask(twagent, store, "list", "candidates", "r1")
    candidates = candidates or []
    check(len(candidates) == CANDIDATES, named + "%d candidates of %d %s" % (len(candidates), CANDIDATES, said))
    check(all(c["state"] in ENDS for c in candidates), named + "not ended: %s" % [c["state"] for c in candidates])
    refused = [(c["id"], c["state"], c["reason"]) for c in candidates if c["state"] != "kept"]
    check(all(state == "failed" for _, state, _ in refused), named + "called wrong: %s" % refused)
    check(len(refused) <= (0 if role in FREE else killer.kills), named + "too many were failed: %s" % refused)
    retried = sum(bool(RETRIED.search(line)) for line in run.lines())
    print("  %-9s %3d kills %s: %d kept, %d failed, %d retries, %.1f s, exit %s" %
          (role, killer.kills, dict(sorted(killer.names.items())), len(candidates) - len(refused), len(refused), retried,
           time.monotonic() - run.began, code), flush=True)
    for name, _, reason in refused:
        print("    %s %s" % (name, reason[:120]))


def main():
    twagent, work, source, result = sys.argv[1:5]
    check, random = Checks(), seed_of("steps")
    adopt_orphans()
    problem = make_problem(work + "/mm", source)
    for role in os.environ.get("KILL_ROLES", "runner worker compiler reference").split():
        one(check, twagent, problem, work, role, random)
    check.write(result)


main()
