"""kill -9 of the agent at random moments of its life, every time in the same store.

What counts as acknowledged, and must be there when the store is opened again:
 - whatever a second process that read the store during the run was ever shown: runs and candidates, in
   that state or one further on (states never go back), with verdict, reason, time and speed-up;
 - what the agent itself said after a commit: "candidate.move C compiling" is said once C is on disk as
   proposed, "run.best C" and "run.final C" once C is on disk as kept;
 - everything of the runs that were killed before.
And what is committed as one piece is there as one piece: a kept or rejected candidate has its evaluation
and source, every candidate has its run.
"""
import os
import re
import signal
import sys
import threading
import time

from kill_common import ENDS, Checks, Run, adopt_orphans, ask, make_problem, rank, seed_of, wait_alone

POLL_S = 0.1
FINAL_EVERY = 5                # a run with the champion's verification takes three times as long
DEFAULT_MOMENTS, LEAST_MOMENTS, DEFAULT_S = 40, 8, 45.0  # the least however long it takes
OPTIONS = ("--rounds", "1", "--branching", "3", "--implementations", "1")
FIXED = ("verdict", "reason", "time_ns", "speedup", "speedup_low", "speedup_high")  # of a candidate that has ended


def as_dict(records):
    return {record["id"]: record for record in records or []}


class Reader(threading.Thread):
    """Reads the store beside the running agent, until the agent is dead; keeps the last answer of each kind."""

    def __init__(self, twagent, store, run):
        super().__init__()
        self.twagent, self.store, self.run_id = twagent, store, run
        self.over = False
        self.runs, self.candidates, self.reads, self.errors = {}, {}, 0, []

    def look(self, *arguments):
        code, answer, said = ask(self.twagent, self.store, *arguments)
        if code == 0 and answer is not None:
            self.reads += 1
            return as_dict(answer)
        if self.runs:  # before the first run is there, there may be nothing to open
            self.errors.append("%s: exit %d %s" % (" ".join(arguments), code, said))
        return {}

    def run(self):
        while not self.over:
            began = time.monotonic()
            runs = self.look("list", "runs")
            self.runs = runs or self.runs
            if self.run_id in runs:
                self.candidates = self.look("list", "candidates", self.run_id) or self.candidates
            time.sleep(max(POLL_S, 3 * (time.monotonic() - began)))  # a quarter of the time: the run is to get on


def went_back(before, after):
    """Why `after` takes back something of `before`, or None."""
    for name, old in before.items():
        new = after.get(name)
        if new is None:
            return "%s is gone (it was %s)" % (name, old["state"])
        if rank(new["state"]) < rank(old["state"]):
            return "%s went back from %s to %s" % (name, old["state"], new["state"])
        if old["state"] in ENDS and (new["state"] != old["state"] or any(new[key] != old[key] for key in FIXED)):
            return "%s is another: %s, was %s" % (name, new, old)
    return None


def missing_of_log(lines, candidates):
    for line in lines:
        said = re.search(r"(candidate\.move|run\.best|run\.final) (r\d+-c\d+)\b", line)
        if not said:
            continue
        found = candidates.get(said[2])
        if found is None:
            return "%s is gone, which the agent spoke of: %s" % (said[2], line)
        if said[1] != "candidate.move" and found["state"] != "kept":
            return "%s is %s, but: %s" % (said[2], found["state"], line)
    return None


def incomplete(twagent, store, candidates):
    for name, record in candidates.items():
        if record["state"] not in ("kept", "rejected"):
            continue
        code, shown, said = ask(twagent, store, "show", name)
        if code != 0 or not shown or not shown.get("evaluation"):
            return "%s is %s without its evaluation: exit %d %s" % (name, record["state"], code, said)
    return None


class Agent:
    def __init__(self, twagent, problem, store, work):
        self.twagent, self.problem, self.store, self.work = twagent, problem, store, work
        self.number = 0
        self.known = {}   # run -> its candidates as they were last seen
        self.phases, self.worst_s, self.reads, self.seen, self.whole = {}, 0.0, 0, 0, 0

    def start(self, final):
        self.number += 1
        return Run(self.twagent, self.problem, self.store, self.work, *OPTIONS, "--final" if final else "--no-final")

    def whole_run(self, check, final):
        """How long a run takes that nobody kills."""
        run = self.start(final)
        code = run.wait()
        took_s = time.monotonic() - run.began
        check(code in (0, 1, 4), "a run that nobody kills: exit code %s\n%s" % (code, run.tail()))
        wait_alone()
        name = "r%d" % self.number
        self.known[name] = as_dict(ask(self.twagent, self.store, "list", "candidates", name)[1])
        return took_s

    def moment(self, check, delay_s, final):
        """None where the agent was still there to be killed, else how long it took."""
        run = self.start(final)
        reader = Reader(self.twagent, self.store, "r%d" % self.number)
        reader.start()
        took_s = run.took(delay_s)
        if took_s is None:
            os.kill(run.pid, signal.SIGKILL)
            run.wait()
        reader.over = True
        reader.join()
        waited, left = wait_alone()
        self.judge(check, run, reader, left, "killed after %.3f s" % delay_s)
        if took_s is None:
            self.worst_s = max(self.worst_s, waited)
            phase = self.phase_of(run)
            self.phases[phase] = self.phases.get(phase, 0) + 1
        return took_s

    @staticmethod
    def phase_of(run):
        text = "\n".join(run.lines())
        for phase, mark in (("closing", "run.end"), ("verifying", "run.final"), ("searching", "idea.new"),
                            ("preparing", "run.start")):
            if mark in text:
                return phase
        return "starting"

    def judge(self, check, run, reader, left, name):
        name = "r%d, %s: " % (self.number, name)
        code, runs, said = ask(self.twagent, self.store, "list", "runs")
        if not check(code == 0 and runs is not None, name + "the store does not open: exit %d %s" % (code, said)):
            return
        runs = as_dict(runs)
        said = re.search(r"run\.start (r\d+)\b", "\n".join(run.lines()))
        if said and said[1] in runs:  # another than expected where a run before it died with a number and no record
            self.number = int(said[1][1:])
        this = "r%d" % self.number
        check(all(one in runs for one in reader.runs), name + "runs are gone: %s" %
              sorted(set(reader.runs) - set(runs)))
        check(not reader.errors, name + "a reader beside it failed: %s" % reader.errors[:2])
        check(not left, name + "going on: %s" % left)
        if this not in runs:  # killed before its first commit; its number may be taken all the same
            check(not any("run.best" in line or "candidate.move" in line for line in run.lines()), name + "no record")
            known = [int(one[1:]) for one in runs]
            self.number = max(known) if known else 0
            return
        candidates = as_dict(ask(self.twagent, self.store, "list", "candidates", this)[1])
        self.seen += len(reader.candidates)
        self.reads += reader.reads
        self.whole += sum(record["state"] in ENDS for record in candidates.values())
        for problem in (went_back(reader.candidates, candidates), missing_of_log(run.lines(), candidates),
                        incomplete(self.twagent, self.store, candidates)):
            check(problem is None, name + str(problem))
        self.known[this] = candidates

    def judge_past(self, check):
        """Every run that was killed before is as it was then."""
        for run, before in self.known.items():
            now = as_dict(ask(self.twagent, self.store, "list", "candidates", run)[1])
            check(now == before, "%s is not as it was: %s" % (run, went_back(before, now) or "it grew"))


def main():
    twagent, work, source, result = sys.argv[1:5]
    asked = os.environ.get("KILL_MOMENTS")
    moments = int(asked or DEFAULT_MOMENTS)
    check, random = Checks(), seed_of("agent")
    adopt_orphans()
    agent = Agent(twagent, make_problem(work + "/mm", source), work + "/store", work)
    whole_s = {final: agent.whole_run(check, final) for final in (False, True)}
    killed, tries, began = 0, 0, time.monotonic()
    while killed < moments and tries < 2 * moments + 10 and (
            asked or killed < LEAST_MOMENTS or time.monotonic() - began < DEFAULT_S):
        final = killed % FINAL_EVERY == FINAL_EVERY - 1
        took_s = agent.moment(check, random.random() * whole_s[final], final)
        killed += took_s is None
        whole_s[final] = took_s or whole_s[final]  # a store that knows the candidates makes runs shorter
        tries += 1
    agent.judge_past(check)
    check(killed >= (moments if asked else LEAST_MOMENTS), "only %d moments met a living agent" % killed)
    agent.whole_run(check, False)
    print("  agent     %3d kills in %d runs (%s); the last whole one took %.2f s, with verification %.2f s" %
          (killed, tries, ", ".join("%s %d" % item for item in sorted(agent.phases.items())), whole_s[False],
           whole_s[True]))
    print("            %d reads beside them showed %d candidates, of all %d had ended; every process was gone within "
          "%.2f s; %.0f s" % (agent.reads, agent.seen, agent.whole, agent.worst_s, time.monotonic() - began), flush=True)
    check.write(result)


main()
