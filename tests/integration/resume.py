"""kill -9 of twagent at random moments of a search with a model, `twagent resume` each time, until the run has ended:
the tree is that of a run that nobody disturbed, nothing is paid for twice, nobody is left alive.

The provider and the worker are fakes whose answers are functions of what they are asked, so that the tree is a function
of the seed alone. RESUME_MOMENTS kills in all, spread over as many searches as they need; KILL_SEED for moments that
come again; RESUME_KEEP=1 keeps the stores of a search that failed."""
import collections
import json
import os
import re
import signal
import subprocess
import sys
import time

from kill_common import Checks, adopt_orphans, make_problem, seed_of, wait_alone
from resume_provider import Provider, request_digest

END_S = 300  # a hang: a whole run takes some seconds
KILLS_A_SEARCH = 25
SEED = "11"
MODEL = ("--provider", "openai", "--model", "test", "--rounds", "4", "--branching", "3", "--implementations", "2",
         "--repairs", "1", "--tuning", "6")  # exactly: on a busy machine answers take long, and more would be tuned
VARIANTS = {  # searches take turns; two lanes need two cores
    "beam": (*MODEL, "--beam", "3"),
    "islands": (*MODEL, "--strategy", "islands", "--islands", "2", "--migration", "2",
                "--lanes", "2" if len(os.sched_getaffinity(0)) > 1 else "1"),
    "cold": (*MODEL, "--beam", "2", "--temperature", "0"),  # one body for an idea's implementations: asked once
    "builtin": ("--provider", "builtin", "--rounds", "6", "--branching", "8"),
}
# What may differ between two runs with one tree: wall clocks, process ids, and what lost answers cost.
RUN_FIELDS = ("id problem backend provider model state stopped baseline best win verified number round evaluated kept "
              "rejected failed speedup speedup_low speedup_high time_ns awaited").split()
CANDIDATE_DROPS = ("evaluations", "updated_ms")


class Searches:
    def __init__(self, twagent, worker, dump, work, source):
        self.twagent, self.dump_tool, self.work = twagent, dump, work
        self.problem = make_problem(work + "/mm", source)
        self.provider = Provider()
        self.environment = dict(os.environ, OPENAI_API_KEY="sk-test", TWAGENT_SELF=work + "/self")
        with open(work + "/self", "w") as out:
            out.write('#!/bin/sh\n[ "$1" = worker ] && exec %s --ms 2-20 --final-ms 30 --final-dies %s/died "$@"\nexec %s "$@"\n' %
                      (worker, work, twagent))
        os.chmod(work + "/self", 0o755)
        self.lives = 0

    def start(self, store, *arguments):
        self.lives += 1
        self.log = "%s/log" % self.work
        with open(self.log, "wb") as log:
            popen = subprocess.Popen([self.twagent, *arguments, "--store", store, "--verbose", "--json"],
                                     stdout=subprocess.DEVNULL, stderr=log, stdin=subprocess.DEVNULL,
                                     env=self.environment)
        return popen

    def run(self, store, variant):
        if os.path.exists(self.work + "/died"):  # its worker dies amid the champion's measurement, once
            os.unlink(self.work + "/died")
        return self.start(store, "run", self.problem, *VARIANTS[variant], "--seed", SEED, "--final", "--base-url",
                          self.provider.url)

    def resume(self, store):
        return self.start(store, "resume", "r1")

    def tail(self):
        with open(self.log, errors="replace") as log:
            return "\n".join(log.read().split("\n")[-12:])

    def dump(self, store):
        """Everything in the store, or None where there is none yet, or it does not open."""
        done = subprocess.run([self.dump_tool, store], capture_output=True)
        return json.loads(done.stdout, strict=False) if done.returncode == 0 else None


def tree(dump):
    """What a search has found, without when."""
    keep = {}
    for name, run in dump["runs"].items():
        keep["run " + name] = {key: run.get(key) for key in RUN_FIELDS}
    for name, record in dump["candidates"].items():
        keep["candidate " + name] = {key: value for key, value in record.items() if key not in CANDIDATE_DROPS}
    for table in ("ideas", "evaluations", "sources"):
        for name, record in dump[table].items():
            keep["%s %s" % (table, name)] = record
    for name, record in dump["lessons"].items():
        keep["lesson " + name] = {key: value for key, value in record.items() if key != "ended_ms"}
    for name, record in dump["passages"].items():
        keep["passages " + name] = record
    for name, record in dump["completions"].items():
        keep["completion " + name] = {key: record.get(key) for key in ("purpose", "sample", "request", "answer")}
    return keep


def differences(one, other):
    found = []
    for key in sorted(set(one) | set(other), key=lambda name: [int(x) if x.isdigit() else x
                                                               for x in re.split(r"(\d+)", name)]):
        if key not in one or key not in other:
            found.append("%s is %s" % (key, "gone" if key not in other else "new"))
        elif one[key] != other[key]:
            fields = [f for f in one[key] if one[key][f] != other[key].get(f)] if isinstance(one[key], dict) else [""]
            found.append("%s: %s" % (key, "; ".join("%s %s -> %s" % (
                f, str(one[key][f] if f else "")[:90], str(other[key].get(f) if f else "")[:90]) for f in fields[:4])))
    return found


def stored_texts(dump):
    """How often the store has an answer to these texts."""
    return collections.Counter(request_digest(record["request"]) for record in dump["completions"].values())


def check_money(check, name, provider, first_request, moments, dump):
    """`moments`: (time of a kill, what was stored then)."""
    asked = provider.asked[first_request:]
    stored = stored_texts(dump)
    counts = collections.Counter(text for _, text in asked)
    again = [text for when, before in moments for at, text in asked
             if at > when and before[text] and before[text] == stored[text]]
    check(not again, name + "%d requests were sent whose answers were stored before a kill" % len(again))
    lost = sum(counts.values()) - sum(stored.values())
    check(all(counts[text] >= count for text, count in stored.items()), name + "answers that nobody was asked for")
    check(lost >= 0, name + "%d requests, %d answers stored" % (sum(counts.values()), sum(stored.values())))
    check(bool(moments) or lost == 0, name + "%d requests were asked for nothing" % lost)
    states = collections.Counter(entry.get("state") for entry in dump["spending"].values())
    if dump["spending"]:
        check(states["settled"] == sum(stored.values()), name + "%s in the ledger, %d answers stored" %
              (dict(states), sum(stored.values())))
        check(states["reserved"] == 0, name + "reservations that nobody settled: %s" % dict(states))
        # A kill between the reservation and the request leaves one that was charged and never sent.
        check(states["charged"] + states["unknown"] >= lost, name + "%d answers were lost, %s in the ledger" %
              (lost, dict(states)))
    return lost, states["charged"] + states["unknown"]


def undisturbed(check, searches, store, variant, name):
    first = len(searches.provider.asked)
    began = time.monotonic()
    popen = searches.run(store, variant)
    try:
        code = popen.wait(END_S)
    except subprocess.TimeoutExpired:
        os.kill(popen.pid, signal.SIGKILL)
        code = popen.wait()
    took_s = time.monotonic() - began
    check(code in (0, 1), "%s: exit code %s\n%s" % (name, code, searches.tail()))
    wait_alone()
    dump = searches.dump(store)
    if not check(dump is not None and "r1" in dump["runs"], name + ": there is no run"):
        return None, took_s
    check_money(check, name + ": ", searches.provider, first, [], dump)
    if variant == "cold":
        again = [text for text, count in collections.Counter(text for _, text in searches.provider.asked[first:]).items()
                 if count > 1]
        check(not again, "%s: %d bodies were sent more than once" % (name, len(again)))
    if variant != "builtin":
        check(os.path.exists(searches.work + "/died"), name + ": no worker died in a final measurement")
        twins = [c for c in dump["candidates"].values() if c.get("duplicate_of")]
        check(len(twins) > 2, "%s: %d candidates coincide: too few to see anything" % (name, len(twins)))
    return dump, took_s


class Victim:
    """One search that is killed again and again."""

    def __init__(self, check, searches, store, variant, name, random, whole_s):
        self.check, self.searches, self.store, self.variant, self.name = check, searches, store, variant, name
        self.random, self.whole_s = random, whole_s
        self.kills, self.states, self.worst_s, self.resumes = 0, collections.Counter(), 0.0, 0
        self.moments, self.first = [], len(searches.provider.asked)

    def life(self, may_kill):
        """True where the run has ended by itself."""
        begun = os.path.exists(self.store) and self.dumped() is not None
        popen = self.searches.resume(self.store) if begun else self.fresh()
        self.resumes += begun
        delay_s = self.random.expovariate(4 / self.whole_s) if self.random.random() < 0.7 else \
            self.random.uniform(0, self.whole_s)
        try:
            code = popen.wait(delay_s if may_kill else END_S)
            self.check(code in (0, 1), self.name + "exit code %s\n%s" % (code, self.searches.tail()))
            return True
        except subprocess.TimeoutExpired:
            pass
        os.kill(popen.pid, signal.SIGKILL)
        popen.wait()
        if not self.check(may_kill, self.name + "it did not end within %d s\n%s" % (END_S, self.searches.tail())):
            return True
        self.killed()
        return False

    def fresh(self):
        """A kill before the first commit leaves no run to resume, and the next one's ids would be others."""
        subprocess.run(["rm", "-rf", self.store], check=True)
        self.first = len(self.searches.provider.asked)
        self.moments = []
        return self.searches.run(self.store, self.variant)

    def dumped(self):
        dump = self.searches.dump(self.store)
        return dump if dump is not None and "r1" in dump["runs"] else None

    def killed(self):
        self.kills += 1
        waited, left = wait_alone()
        self.worst_s = max(self.worst_s, waited)
        self.check(not left, self.name + "going on: %s" % left)
        dump = self.dumped()
        if dump is None:
            self.states["before the first commit"] += 1
            return
        self.moments.append((time.monotonic(), stored_texts(dump)))
        under_way = [c["state"] for c in dump["candidates"].values() if c["state"] not in ("kept", "rejected", "failed")]
        self.states[sorted(under_way)[-1] if under_way else self.phase(dump)] += 1

    def phase(self, dump):
        with open(self.searches.log, errors="replace") as log:
            text = log.read()
        for phase, mark in (("closing", "run.end"), ("verifying", "run.final"), ("between candidates", "candidate.move"),
                            ("asking for ideas", "round.start")):
            if mark in text:
                return phase
        return "preparing"


def main():
    twagent, worker, dump_tool, work, source, result = sys.argv[1:7]
    wanted = int(os.environ.get("RESUME_MOMENTS", "12"))
    check, random = Checks(), seed_of("resume")
    adopt_orphans()
    searches = Searches(twagent, worker, dump_tool, work, source)
    expected, whole_s = {}, {}
    for variant in VARIANTS:
        reference, whole_s[variant] = undisturbed(check, searches, "%s/store-%s" % (work, variant), variant, variant)
        again, _ = undisturbed(check, searches, "%s/store-%s-again" % (work, variant), variant, variant + " again")
        if reference is None or again is None:
            check.write(result)
            return
        expected[variant] = tree(reference)
        found = differences(expected[variant], tree(again))
        check(not found, "%s: two runs with one seed differ in %d places:\n  %s" % (variant, len(found), "\n  ".join(found[:6])))
        print("  %-8s a whole run: %.2f s, %d candidates, %d completions, %d evaluations" % (
            variant, whole_s[variant], len(reference["candidates"]), len(reference["completions"]),
            len(reference["evaluations"])), flush=True)
    kills = number = lost = charged = resumes = 0
    states, worst_s, began = collections.Counter(), 0.0, time.monotonic()
    while kills < wanted and check.failed < 10:
        number += 1
        store = "%s/store-%d" % (work, number)
        variant = list(VARIANTS)[number % len(VARIANTS)]
        victim = Victim(check, searches, store, variant, "search %d, %s: " % (number, variant), random, whole_s[variant])
        share = min(KILLS_A_SEARCH, max(2, wanted // 6), wanted - kills)
        before = check.failed
        while not victim.life(victim.kills < share):
            pass
        wait_alone()
        dump = victim.dumped()
        kills += victim.kills
        resumes += victim.resumes
        states += victim.states
        worst_s = max(worst_s, victim.worst_s)
        if check(dump is not None, victim.name + "the run is gone"):
            found = differences(expected[variant], tree(dump))
            check(not found, victim.name + "after %d kills the tree differs in %d places:\n  %s" %
                  (victim.kills, len(found), "\n  ".join(found[:8])))
            one = check_money(check, victim.name, searches.provider, victim.first, victim.moments, dump)
            lost, charged = lost + one[0], charged + one[1]
        if check.failed == before or not os.environ.get("RESUME_KEEP"):
            subprocess.run(["rm", "-rf", store], check=True)
    print("  %d kills in %d searches (%s)" % (kills, number, ", ".join("%s %d" % item for item in sorted(states.items()))))
    print("  %d resumes; %d answers lost on their way, %d reservations charged; every process was gone within %.2f s; "
          "%.0f s" % (resumes, lost, charged, worst_s, time.monotonic() - began), flush=True)
    check.write(result)


main()
