"""A person's stop: once ends soon with everything saved, twice ends at once; nobody is left behind. That twice is at once
is held against once, beside it on the same machine: what is measured stands still, and once waits for it for a while."""
import os
import signal
import sys
import time

from kill_common import (EXIT_STOPPED, EXIT_WIN, Checks, Run, adopt_orphans, ask, kill, listed, make_problem, wait_alone)

SEARCHING, VERIFYING = "kept", "run.final"  # words of the log by which a phase is known
CASES = (  # signals, sent once this word is in the log, and so long after it
    ((signal.SIGINT,), "run.start", 0.4),
    ((signal.SIGINT,), SEARCHING, 0.1),
    ((signal.SIGTERM,), SEARCHING, 0.3),
    ((signal.SIGHUP,), SEARCHING, 0.0),
    ((signal.SIGINT,), VERIFYING, 0.3),
    ((signal.SIGINT, signal.SIGINT), "run.start", 0.2),
    ((signal.SIGINT, signal.SIGTERM), SEARCHING, 0.2),
    ((signal.SIGINT, signal.SIGINT), VERIFYING, 0.3),
)
BETWEEN_S = 0.1  # two signals of one kind that come together count as one


def send(run, signals):
    for each in signals:
        if run.running():
            os.kill(run.pid, each)
            time.sleep(BETWEEN_S)


class Place:
    def __init__(self, check, twagent, problem, work):
        self.check, self.twagent, self.problem, self.work, self.store = check, twagent, problem, work, work + "/store"
        self.number = 0

    def start(self, rounds):
        self.number += 1
        return Run(self.twagent, self.problem, self.store, self.work, "--rounds", rounds, "--branching", "2")

    def ended(self, run, signals, name):
        """The run after its signals: code, record, how many of its candidates had ended."""
        sent = time.monotonic()
        code = run.wait()
        took = time.monotonic() - sent
        _, left = wait_alone()
        self.check(not left, name + "left behind: %s" % left)
        _, runs, said = ask(self.twagent, self.store, "list", "runs")
        record = next((each for each in runs or [] if each["id"] == "r%d" % self.number), {})
        won = record.get("win") and record.get("verified")
        # A second signal that comes when all is saved and the report is being written ends the process like any other.
        codes = (EXIT_WIN if won else EXIT_STOPPED,) if len(signals) == 1 else (EXIT_STOPPED, -signals[1])
        self.check(code in codes, name + "exit code %s:\n%s" % (code, run.tail()))
        self.check(record.get("state") == "stopped" and record.get("stopped") == "interrupted", name + "record: %s %s" %
                   (record, said))
        _, candidates, said = ask(self.twagent, self.store, "list", "candidates", "r%d" % self.number)
        ended = [each for each in candidates or [] if each["state"] in ("kept", "rejected", "failed")]
        self.check(len(ended) == record.get("evaluated"), name + "%d have ended, the run counts %s %s" %
                   (len(ended), record.get("evaluated"), said))
        self.check(all(each["state"] == "kept" for each in ended), name + "refused: %s" % [each["reason"] for each in ended])
        return code, took, len(ended)

    def over(self):
        """Whether the last run came to its own end: the machine was faster than the signal."""
        _, runs, _ = ask(self.twagent, self.store, "list", "runs")
        return any(each["id"] == "r%d" % self.number and each["state"] == "done" for each in runs or [])

    def one(self, signals, word, delay):
        name = "%s %s: " % ("+".join(each.name for each in signals), "after '%s' + %.2f s" % (word, delay))
        run = self.start("1" if word == VERIFYING else "8")
        if not self.check(run.wait_for(word), name + "never got there:\n" + run.tail()):
            run.wait(1)
            return
        time.sleep(delay)
        send(run, signals)
        if not run.running() and self.over() and delay > 0.001:
            self.one(signals, word, delay / 3)
            return
        code, took, kept = self.ended(run, signals, name)
        print("  %-15s %-10s + %.2f s: %5.2f s, exit %s, %d kept" %
              ("+".join(each.name for each in signals), word, delay, took, code, kept), flush=True)

    def stuck(self, signals):
        """How long it takes where a worker stands still amid a measurement; None where it never did."""
        name = "%s while nothing moves: " % "+".join(each.name for each in signals)
        run = self.start("8")
        while run.running():
            for worker in (each for each in listed(run.pid) if each.role == "worker"):
                kill(worker, signal.SIGSTOP)
                time.sleep(BETWEEN_S)  # what it has said is read
                _, candidates, _ = ask(self.twagent, self.store, "list", "candidates", "r%d" % self.number)
                if any(each["state"] in ("checking", "timing") for each in candidates or []):
                    send(run, signals)
                    return self.ended(run, signals, name)[1]
                kill(worker, signal.SIGCONT)
            time.sleep(0.01)
        self.check(False, name + "never was:\n" + run.tail())
        return None


def main():
    twagent, work, source, result = sys.argv[1:5]
    check = Checks()
    adopt_orphans()
    place = Place(check, twagent, make_problem(work + "/mm", source), work)
    for case in CASES:
        place.one(*case)
    for attempt in range(3):  # the difference is six seconds: a machine that took those from one of two is asked again
        once, twice = (place.stuck((signal.SIGINT,) * count) for count in (1, 2))
        if once is None or twice is None or twice < once / 2:
            break
    if once is not None and twice is not None:
        check(twice < once / 2, "twice took %.2f s where once took %.2f s" % (twice, once))
        print("  stuck worker: once %.2f s, twice %.2f s" % (once, twice), flush=True)
    check.write(result)


main()
