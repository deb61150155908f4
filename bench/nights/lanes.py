"""lanes.py BENCH_NIGHTS TWAGENT (--check | RESULT ROOT): how busy one lane is, by how long answers take.

Half an hour in virtual time for each row: the search and the engine that asks are the real ones, behind them stand a provider
whose every answer takes as long as the row says, and a lane that takes 0.5 to 5 s an evaluation. The problem's start has
a tune space, as those that ship have. --check: the longest answers alone, for the tests."""
import os
import re
import subprocess
import sys
import tempfile
import time

import nights

HOUR_S, CHECK_S = 1800, 900
ANSWERS_S = (0.1, 1, 5, 15, 30, 75, 180)
OUTAGE = "lane: all down for 3 minutes in the first 30"
LEAST = 0.90
START = """/*---
tune: {A1: [1, 2, 3, 4, 6, 8, 12, 16], B1: [1, 2, 3, 4, 6, 8, 12, 16], C1: [1, 2, 3, 4, 6, 8, 12, 16], D1: [1, 2, 4, 8]}
---*/
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
}
"""
COLUMNS = (("no tuning", "tuning=0"), ("as many points as kernels", "tuning=8"), ("and on (default)", "tuning=-1"))


def evaluations(printed):
    return re.findall(r"^evaluation (\S+) search \d+ \S+ (\d+)$", printed, re.M)


class Hour:
    def __init__(self, program, script, answer_s, *words, seconds=HOUR_S, goes_on_s=0):
        with tempfile.TemporaryDirectory(prefix="twagent-lanes-", dir=nights.MEMORY) as work:
            for name, text in dict(nights.PROBLEM, **{"starts/cpu/loop.c": START}).items():
                path = os.path.join(work, "problem", name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as out:
                    out.write(text)
            play = lambda seconds, *more: self.play([
                program, work + "/problem", work + "/store", script, "answer_ms=%d" % (1000 * answer_s),
                "budget_ms=%d" % (1000 * seconds), "branching=4", "implementations=2", *words, *more])
            self.printed = play(seconds)
            self.later = play(seconds + goes_on_s, "resume=1") if goes_on_s else ""
        evaluated = [float(ms) for _, ms in evaluations(self.printed)]
        asked = [(float(one[1]), float(one[2])) for one in
                 re.finditer(r"^request \S+ (\S+) (\S+) ok", self.printed, re.M)]
        self.end_s = float(re.search(r"^end (\S+)", self.printed, re.M)[1]) / 1e3
        self.busy = sum(evaluated) / 1e3 / self.end_s
        self.answers = len(asked)
        self.in_flight = sum(to - since for since, to in asked) / 1e3 / self.end_s

    @staticmethod
    def play(command):
        done = subprocess.run(command, text=True, capture_output=True)
        if done.returncode != 0:
            sys.exit("%s: exit %d\n%s" % (" ".join(command), done.returncode, done.stderr[-2000:]))
        return done.stdout

    def words(self):
        return "%.0f | %d | %.1f" % (100 * self.busy, self.answers, self.in_flight)


def check(program):
    failed = []

    def say(good, text):
        failed.extend([] if good else [text])
        print("ok" if good else "FAILED", text, flush=True)

    hour = Hour(program, OUTAGE, 75, "tuning=-1", seconds=CHECK_S, goes_on_s=240)
    say(hour.busy >= LEAST, "answers of 75 s, 3 minutes without: the lane is busy %.1f %%, %d answers" % (
        100 * hour.busy, hour.answers))
    before, later = ([name for name, _ in evaluations(printed)] for printed in (hour.printed, hour.later))
    again = sorted(set(before) & set(later))
    # What was on its way when the time was up: 3 in the lane, and what a model wrote is measured again once mended.
    say(len(later) > 60 and len(again) <= 3, "a run that goes on has %d more, and measures %s again" % (len(later), again))
    quick, exact = (Hour(program, "undisturbed", 0.1, words, seconds=60) for words in ("tuning=-1", "tuning=8"))
    say(quick.printed == exact.printed, "answers of 0.1 s: no point beyond a round's own")
    return len(failed) > 0


def main():
    program = os.path.realpath(sys.argv[1])
    if sys.argv[3] == "--check":
        return check(program)
    result, root = sys.argv[3:5]
    rows, failed = [], 0
    for script, answer_s in [("undisturbed", one) for one in ANSWERS_S] + [(OUTAGE, 75)]:
        hours = [Hour(program, script, answer_s, words) for _, words in COLUMNS]
        failed += hours[-1].busy < LEAST and answer_s <= 75
        rows.append("| %g%s | %s |" % (answer_s, "" if script == "undisturbed" else ", nobody answers for 3 minutes",
                                       " | ".join(hour.words() for hour in hours)))
        print(rows[-1], flush=True)
    commit = subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    with open(result, "w") as out:
        out.write("""# How busy a lane is, by how long answers take

`bench/nights/run lanes`, %s, commit %s.

Half an hour each, in virtual time: the search and the engine that asks are the real ones; behind them stand a provider whose
every answer takes as long as the row says, and one lane that takes 0.5 to 5 s an evaluation. 4 ideas a round, 2 kernels
each, 8 requests at once. The start's tune space has 2,048 points. "Busy": the share of the time in which the lane
measured, %%; answers that came; requests in flight, in the mean.

| answers take s | %s |
| ---: | %s |
%s

Without tuning the lane waits for the round's longest chain of answers (ideas, code, repair). With `--tuning N` it is busy
for N points of that; the default goes on tuning for as long as an answer is on its way, or nobody can be asked. Where
answers take less than 5 s a round, nothing is filled: such a run's tree depends on no clock.
""" % (time.strftime("%Y-%m-%d", time.gmtime()), commit.stdout.strip() or "unknown",
       " | ".join("busy %%, %s | answers | in flight" % name for name, _ in COLUMNS),
       " | ".join(["---:"] * 3 * len(COLUMNS)), "\n".join(rows)))
    print("lanes: %d of %d failed" % (failed, len(rows)))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
