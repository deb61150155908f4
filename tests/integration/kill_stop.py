"""A person's stop: once ends soon with everything saved, twice ends at once; nobody is left behind. Where what is measured
stands still once waits for it, for as long as a timer of the agent's runs, and twice is over before that can have fired."""
import os
import signal
import sys
import time

from kill_common import (EXIT_STOPPED, EXIT_WIN, TRIES, Checks, Run, adopt_orphans, ask, kill, listed, make_problem,
                         wait_alone)

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
SOFT_STOP_S = 6.0  # of src/agents/search/search.c


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

    def ended(self, run, signals, name, sent):
        """The run after its signals, the first of them at `sent`: code, seconds, how many of its candidates had ended."""
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

    def over(self, run):
        """Whether it came to its own end: the machine was faster than the signal."""
        run.wait()
        _, runs, _ = ask(self.twagent, self.store, "list", "runs")
        return any(each["id"] == "r%d" % self.number and each["state"] == "done" for each in runs or [])

    def one(self, signals, word, delay):
        name = "%s %s: " % ("+".join(each.name for each in signals), "after '%s' + %.2f s" % (word, delay))
        for attempt in range(TRIES):
            run = self.start("1" if word == VERIFYING else "8")
            there = run.wait_for(word)
            time.sleep(delay / 3 ** attempt)
            sent = time.monotonic()
            send(run, signals)
            if not self.over(run):
                break
        self.check(there, name + "never got there:\n" + run.tail())
        code, took, kept = self.ended(run, signals, name, sent)
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
                    sent = time.monotonic()
                    send(run, signals)
                    return self.ended(run, signals, name, sent)[1]
                kill(worker, signal.SIGCONT)
            time.sleep(0.01)
        return None

    def takes(self, count, words, right):
        """One of some: a machine may stand still, and a worker that was seen amid a measurement may have ended it."""
        took_s = []
        while len(took_s) < TRIES and not any(each is not None and right(each) for each in took_s):
            took_s.append(self.stuck((signal.SIGINT,) * count))
        self.check(took_s[-1] is not None and right(took_s[-1]), "stuck worker: %s: %s" % (words, took_s))
        print("  stuck worker: %s: %s s" % (words, took_s), flush=True)


def main():
    twagent, work, source, result = sys.argv[1:5]
    check = Checks()
    adopt_orphans()
    place = Place(check, twagent, make_problem(work + "/mm", source), work)
    for case in CASES:
        place.one(*case)
    place.takes(1, "once waits", lambda took_s: took_s > SOFT_STOP_S - 0.5)  # a loop's clock is late by a turn
    place.takes(2, "twice does not", lambda took_s: took_s < SOFT_STOP_S)
    check.write(result)


main()
