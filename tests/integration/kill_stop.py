"""A person's stop: once ends within 10 s with everything saved, twice ends at once; nobody is left behind."""
import os
import signal
import sys
import time

from kill_common import EXIT_STOPPED, EXIT_WIN, Checks, Run, adopt_orphans, ask, make_problem, wait_alone

SOFT_S, HARD_S = 10.0, 1.5
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


def one(check, twagent, problem, store, work, number, case):
    signals, word, delay = case
    name = "%s %s: " % ("+".join(each.name for each in signals), "after '%s' + %.1f s" % (word, delay))
    rounds = "1" if word == VERIFYING else "8"
    run = Run(twagent, problem, store, work, "--rounds", rounds, "--branching", "2")
    if not check(run.wait_for(word), name + "never got there:\n" + run.tail()):
        run.wait(1)
        return
    time.sleep(delay)
    for each in signals:
        sent = time.monotonic()
        os.kill(run.pid, each)
        time.sleep(BETWEEN_S)
    limit = SOFT_S if len(signals) == 1 else HARD_S
    code = run.wait(SOFT_S + 5)
    took = time.monotonic() - sent
    waited, left = wait_alone(2)
    check(took <= limit, name + "took %.2f s, limit %.1f s:\n%s" % (took, limit, run.tail()))
    _, runs, said = ask(twagent, store, "list", "runs")
    record = next((each for each in runs or [] if each["id"] == "r%d" % number), {})
    won = record.get("win") and record.get("verified")
    # A second signal that comes when all is saved and the report is being written ends the process like any other.
    codes = (EXIT_WIN if won else EXIT_STOPPED,) if len(signals) == 1 else (EXIT_STOPPED, -signals[1])
    check(code in codes, name + "exit code %s:\n%s" % (code, run.tail()))
    check(record.get("state") == "stopped" and record.get("stopped") == "interrupted", name + "record: %s %s" %
          (record, said))
    _, candidates, said = ask(twagent, store, "list", "candidates", "r%d" % number)
    ended = [each for each in candidates or [] if each["state"] in ("kept", "rejected", "failed")]
    check(len(ended) == record.get("evaluated"), name + "%d have ended, the run counts %s %s" %
          (len(ended), record.get("evaluated"), said))
    check(all(each["state"] == "kept" for each in ended), name + "refused: %s" % [each["reason"] for each in ended])
    check(not left, name + "left behind: %s" % left)
    print("  %-15s %-10s + %.1f s: %5.2f s, exit %s, %d kept" %
          ("+".join(each.name for each in signals), word, delay, took, code, len(ended)), flush=True)


def main():
    twagent, work, source, result = sys.argv[1:5]
    check = Checks()
    adopt_orphans()
    problem = make_problem(work + "/mm", source)
    for number, case in enumerate(CASES):
        one(check, twagent, problem, work + "/store", work, number + 1, case)
    check.write(result)


main()
