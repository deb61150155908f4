"""agent_model.py TWAGENT FAKE_WORKER: a coding agent as the operator of an attempt (bench/agent/standin.py plays it, well and
with every fault): what it has evaluated is in the tree, its budget holds, nothing of it stays, a kill pays for nothing twice."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from kill_common import ENDS, make_problem

HERE = os.path.dirname(os.path.abspath(__file__))
STANDIN = os.path.realpath(HERE + "/../../bench/agent/standin.py")


class Place:
    def __init__(self, twagent, worker, work):
        self.twagent, self.work = twagent, work
        self.failed = 0
        make_problem(work + "/mm", HERE + "/../adversarial/cpu/problems/mm")
        with open(work + "/self", "w") as out:
            out.write('#!/bin/sh\n[ "$1" = worker ] && exec %s --ms 2-10 --final-ms 20 "$@"\nexec %s "$@"\n' % (worker, twagent))
        os.chmod(work + "/self", 0o755)
        shutil.copy(STANDIN, work + "/standin.py")
        self.environment = dict(os.environ, TWAGENT_SELF=work + "/self", XDG_CONFIG_HOME=work, XDG_CACHE_HOME=work + "/cache",
                                TWAGENT_LOCKS=work + "/locks", TMPDIR=work, STANDIN_MARK=work)
        self.environment.pop("TWAGENT_ATTEMPT", None)

    def check(self, truth, text):
        self.failed += not truth
        print("%s %s" % ("ok" if truth else "FAILED", text), flush=True)

    def start(self, name, how, entry="", options=()):
        with open("%s/%s.yaml" % (self.work, name), "w") as out:
            out.write("models:\n  it:\n    provider: agent\n    command: [%s/standin.py, %s, %s/%s.log]\n    evaluations: 5\n"
                      "    json: {dollars: total_cost_usd}\n%s" % (self.work, how, self.work, name, entry))
        return subprocess.Popen([self.twagent, "run", self.work + "/mm", "--model", "agent/it", "--models", self.work + "/" + name +
                                 ".yaml", "--rounds", "1", "--branching", "1", "--implementations", "1", "--seed", "3",
                                 "--tuning", "0", "--floor-share", "0", "--store", self.work + "/" + name, *options],
                                env=self.environment, cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, name, how, entry="    prices: {call: 0.05}\n", options=()):
        child = self.start(name, how, entry, options)
        said = child.communicate(timeout=300)[0]
        return child.returncode, said

    def ask(self, name, *words):
        return json.loads(subprocess.run([self.twagent, *words, "--json", "--store", self.work + "/" + name], check=True,
                                         env=self.environment, capture_output=True, text=True).stdout)

    def tree(self, name):
        rows = self.ask(name, "list", "candidates", "r1")
        rows = rows["items"] if isinstance(rows, dict) else rows
        return {row["id"]: self.ask(name, "show", row["id"])["candidate"] for row in rows}

    def log(self, name):
        path = "%s/%s.log" % (self.work, name)
        return [line.split() for line in open(path)] if os.path.exists(path) else []

    def stays(self):
        """Who is still there, whom a busy machine was given the time to end: what stays at all sleeps for a quarter of an hour."""
        end = time.monotonic() + 120
        while (found := self.left_over()) and time.monotonic() < end:
            time.sleep(0.05)
        return found

    def left_over(self):
        """Processes that say in their environment that they are of this test, but for us."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as file:
                    if ("STANDIN_MARK=" + self.work).encode() in file.read().split(b"\0"):
                        found.append(open("/proc/%s/cmdline" % pid).read().replace("\0", " "))
            except OSError:
                pass
        return found


def steps_of(tree, attempt):
    return [row for row in tree.values() if row["attempt"] == attempt["id"]]


def result_of(place, name, tree, attempt):
    """What it submitted, where that is right, else the last right one."""
    steps = steps_of(tree, attempt)
    right = [row["id"] for row in steps if row["state"] == "kept"]
    wanted = re.search(r"submitted (\S+)", attempt["agent"])
    due = wanted.group(1) if wanted and wanted.group(1) in right else right[-1] if right else None
    result = [row["id"] for row in steps if row["source"] == attempt["source"]]
    place.check(result == [due] and attempt["state"] == "kept" if right else attempt["state"] == "failed",
                "%s: its last right kernel, or what it submitted, is the attempt's: %s of %s" % (name, result, right))
    place.check(all(row["state"] in ENDS and row["parent"] == attempt["parent"] and row["idea"] == attempt["idea"] for row in steps),
                "%s: what it had evaluated is in the tree: %s" % (name, [row["id"] for row in steps]))


def nothing_stays(place, name):
    left = place.stays()
    place.check(left == [] and os.listdir(place.work + "/" + name + "/agents") == [], "%s: nothing of it stays: %s" % (name, left))


def together(place):
    """Ten agents beside each other, most of which do something wrong."""
    place.run("each", "each", "    prices: {call: 0.05}\n    output_limit: 1M\n    slots: 4\n", ("--branching", "10"))
    tree = place.tree("each")
    attempts = sorted((row for row in tree.values() if row["agent"]), key=lambda row: row["number"])
    due = (("quits", "exited 9, 1 evaluated"), ("floods", "more than 1048576 bytes (output_limit), 1 evaluated"),
           ("daemon", "exited 0, 3 evaluated"), ("greedy", "exited 0, 5 evaluated"), ("garbage", "exited 0, 3 evaluated"),
           ("nothing", "exited 0, nothing evaluated"), ("wrong", "exited 0, 2 evaluated"),
           ("asks", "exited 0, 3 evaluated"), ("shell", "exited 0, 3 evaluated, submitted"), ("well", "exited 0, 3 evaluated"))
    place.check(len(attempts) == len(due), "each attempt ended: %d" % len(attempts))
    for attempt, (how, words) in zip(attempts, due):
        place.check(words in attempt["agent"], "%s: %s" % (how, attempt["agent"]))
        result_of(place, how, tree, attempt)
    nothing_stays(place, "each")
    said = [row for row in place.log("each") if row[0] == "quits"]
    spent = place.ask("each", "status", "r1")["spending"]["micro_dollars"]
    # ideas, quits, floods and shell, nothing, garbage say no price: then it is the entry's
    place.check(len(said) == 1 and spent == 5 * 50000 + 6 * 20000, "at its own word, else at its price: %d" % spent)


def alone(place):
    for limit_s in (3, 12, 48, 192):  # in which this machine, as busy as it is, has the idea that comes before
        shutil.rmtree(place.work + "/hangs", ignore_errors=True)
        code, said = place.run("hangs", "hangs", "    prices: {call: 0.05}\n    time_limit: %ds\n" % limit_s)
        attempt = place.tree("hangs").get("r1-c2")
        if attempt:
            break
    told = attempt["agent"] + attempt["reason"] if attempt else said
    place.check("stopped after %d.0 s" % limit_s in told, "hangs: it is ended: %s" % told)
    nothing_stays(place, "hangs")
    place.run("boxed", "outside", "    prices: {call: 0.05}\n    sandbox: [%s, %s]\n" % (place.work, os.path.dirname(place.twagent)))
    tree = place.tree("boxed")
    attempt = next(row for row in tree.values() if row["agent"])
    result_of(place, "boxed", tree, attempt)
    place.check(len(steps_of(tree, attempt)) == 3 and not os.path.exists(place.work + "/boxed/escaped"),
                "a sandboxed one works, and writes in its folder alone")
    place.run("few", "well", options=("--budget-evaluations", "4", "--branching", "2"))
    tree = place.tree("few")
    ended = [row["agent"] for row in tree.values() if row["parent"] and not row["attempt"]]
    place.check(sum(row["evaluations"] for row in tree.values()) == 4 and len(ended) == 2 and all(
        text.startswith("exited 0, ") for text in ended),
                "at the run's last evaluation its agents get their answers and end by themselves: %s" % ended)
    code, said = place.run("capped", "well", options=("--budget-usd", "0.04"))
    place.check(place.log("capped") == [], "no dollars, no agent: exit %d" % code)


def spoken(place):
    """One that speaks the Agent Client Protocol, with what it asks for refused but in a sandbox."""
    for name, entry in (("acp", ""), ("acp-boxed", "    sandbox: [%s, %s]\n" % (place.work, os.path.dirname(place.twagent)))):
        code, said = place.run(name, "acp", "    prices: {call: 0.05}\n    acp: true\n" + entry)
        tree = place.tree(name)
        attempt = next((row for row in tree.values() if row["agent"]), None)
        place.check(attempt is not None and attempt["agent"].startswith("exited 0, 3 evaluated") and attempt["state"] == "kept",
                    "%s: it works as its operator: %s" % (name, attempt["agent"] if attempt else said))
        result_of(place, name, tree, attempt)
        spent = place.ask(name, "status", "r1")["spending"]["micro_dollars"]
        place.check(spent == 2 * 30000, "%s: at its own word, an idea and an attempt: %d" % (name, spent))
        nothing_stays(place, name)
    code, said = place.run("mute", "mute", "    prices: {call: 0.05}\n    acp: true\n")
    code, out = place.run("signed-out", "signed-out", "    prices: {call: 0.05}\n    acp: true\n")
    place.check("refused: Authentication required: no key: start it by hand once, and sign in there" in out and place.stays() == [],
                "one that is not signed in says so: %s" % out)
    place.check("the agent ended before its answer" in said and place.stays() == [], "one that says nothing has failed: %s" % said)


def killed(place):
    child = place.start("killed", "hangs", "    prices: {call: 0.05}\n    time_limit: 2m\n")
    while child.poll() is None and not (place.log("killed") and any(
            row["attempt"] and row["state"] in ENDS for row in place.tree("killed").values())):
        time.sleep(0.1)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    left = place.stays()
    place.check(left == [], "killed: its agent dies with the run: %s" % left)
    before = place.tree("killed")
    with open(place.work + "/killed.yaml") as file:
        text = file.read().replace("hangs", "well")
    with open(place.work + "/killed.yaml", "w") as out:
        out.write(text)
    done = subprocess.run([place.twagent, "resume", "r1", "--models", place.work + "/killed.yaml", "--store", place.work + "/killed"],
                          env=place.environment, cwd=place.work, capture_output=True, text=True, timeout=300)
    after = place.tree("killed")
    attempt = next(row for row in after.values() if row["agent"])
    steps = steps_of(after, attempt)
    kept = [row for row in before.values() if row["attempt"]]
    place.check(all(after[row["id"]]["evaluations"] == 1 and after[row["id"]]["source"] == row["source"] for row in kept) and
                len(steps) == len(kept) + 3 and attempt["state"] in ENDS, "resumed: %s, %s, exit %d" % (
                    attempt["agent"], [row["id"] for row in steps], done.returncode))
    asked = len(place.log("killed"))
    subprocess.run([place.twagent, "resume", "r1", "--models", place.work + "/killed.yaml", "--store", place.work + "/killed",
                    "--rounds", "1"], env=place.environment, cwd=place.work, capture_output=True, text=True, timeout=300)
    place.check(len(place.log("killed")) == asked and len(place.tree("killed")) == len(after), "an agent that ended is not asked again")


def main():
    twagent, worker = (os.path.realpath(path) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory(prefix="twagent-agent-") as work:
        place = Place(twagent, worker, work)
        for part in (together, alone, spoken, killed):
            if len(sys.argv) < 4 or part.__name__ in sys.argv[3:]:
                part(place)
    sys.exit(1 if place.failed else 0)


main()
