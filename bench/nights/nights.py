"""nights.py BENCH_NIGHTS TWAGENT (--check | RESULT ROOT): nights of 8 h with outages, in virtual time.

For each script one night. What an outage leaves is the time in which one of the three providers would answer; of that the
share is taken in which an answer was on its way that came, or a lane measured. And the answers of the night, against those
of an undisturbed night as long as what is left. And what the summary says, in words, which must name each cause.
A night is the same in every run, and an answer is drawn by what is asked: both nights get the same answers in the same
order, so that what differs is the outage's doing. --check: a few short nights, for the tests."""
import os
import subprocess
import sys
import tempfile
import time

PROBLEM = {
    "spec.yaml": "name: night\ndims: {M: 48, N: 40, K: 56}\ninputs:\n  A: {shape: [M, K], dtype: float32}\n"
                 "  B: {shape: [K, N], dtype: float32}\noutputs:\n  C: {shape: [M, N], dtype: float32}\n"
                 "reference: ref_impl.py\nflops: 2*M*N*K\ncheck: [{M: 1, N: 1, K: 1}]\n",
    "ref_impl.py": "def reference(A, B):\n    return A @ B\n",
    "starts/cpu/loop.c": "void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)\n{\n}\n",
}
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a night syncs some ten thousand times
NIGHT_S = 8 * 3600
CHECK_S = 4 * 3600
SLOW = ("answers of 3 minutes", "one thinks for 3 minutes")  # other latencies, so other answers an hour
AWAY = (1, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 16)  # kinds (nights.h) by which nobody is answered; 2: it depends, 9: slowly
CHECKED = ("undisturbed", "one parked until tomorrow", "one silent", "all down for 70 minutes of the first two hours",
           "all show a page for 70 minutes")
if os.environ.get("FEW_NIGHTS"):  # under a sanitizer: integration/faults has the engine meet each of these
    CHECKED = CHECKED[:1] + CHECKED[-1:]


class Script:
    def __init__(self, line):
        fields = line.split("\t")
        self.name = fields[0]
        self.named = [field[1:] for field in fields[1:] if field[0] == "!"]
        self.outages = [tuple(float(word) for word in field.split()) for field in fields[1:] if field[0] != "!"]

    def left(self, end_s):
        """The time in which somebody would answer, as intervals."""
        moments = sorted({0.0, end_s} | {min(60 * at, end_s) for outage in self.outages for at in outage[1:3]})
        left = []
        for begin, end in zip(moments, moments[1:]):
            away = 0
            for providers, from_min, to_min, kind in self.outages:
                if 60 * from_min <= begin < 60 * to_min and kind in AWAY:
                    away |= int(providers)
            if away != 7:
                left.append((begin, end))
        return left


def union(intervals):
    merged = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def within(intervals, bounds):
    return sum(max(0, min(end, to) - max(begin, since)) for begin, end in union(intervals) for since, to in bounds)


class Night:
    def __init__(self, program, twagent, script, words=()):
        self.script = script
        with tempfile.TemporaryDirectory(prefix="twagent-nights-", dir=MEMORY) as work:
            for name, text in PROBLEM.items():
                path = os.path.join(work, "problem", name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w") as out:
                    out.write(text)
            began = time.monotonic()
            done = subprocess.run([program, work + "/problem", work + "/store", script.name, *words], text=True,
                                  capture_output=True)
            self.real_s = time.monotonic() - began
            if done.returncode != 0:
                sys.exit("bench_nights %s: exit %d\n%s" % (script.name, done.returncode, done.stderr[-2000:]))
            self.said = subprocess.run([twagent, "show", "r1", "--store", work + "/store"], text=True, capture_output=True,
                                       env=dict(os.environ, TZ="UTC")).stdout
        self.printed = done.stdout
        self.productive, self.answers, self.lost, self.evaluations = [], 0, 0, 0
        for line in done.stdout.splitlines():
            kind, *fields = line.split()
            if kind == "request" and fields[3] == "ok":
                self.productive.append((float(fields[1]) / 1e3, float(fields[2]) / 1e3))
                self.answers += 1
            elif kind == "request":
                self.lost += 1
            elif kind == "evaluation":
                self.productive.append((float(fields[3]) / 1e3, (float(fields[3]) + float(fields[4])) / 1e3))
                self.evaluations += 1
            elif kind == "end":
                self.end_s = float(fields[0]) / 1e3
                self.ledger, self.unknown, self.bill, self.dearest = (float(field) for field in fields[3:])
        left = script.left(self.end_s)
        self.left_s = sum(to - since for since, to in left)
        self.used = within(self.productive, left) / max(self.left_s, 1)
        self.outage_s = self.end_s - self.left_s
        self.rate = self.answers / max(self.left_s, 1) * 3600
        self.unnamed = [words for words in script.named if words not in self.said]

    def of(self, reference):
        return self.answers / max(reference.answers, 1)

    def faults(self, night_s, reference):
        if self.end_s < 0.97 * night_s:
            yield "it ended after %.0f min: %s" % (self.end_s / 60, [line for line in self.said.splitlines() if "r1" in line])
        if self.used < 0.95:
            yield "%.1f %% of what was left is used" % (100 * self.used)
        if self.script.name not in SLOW and self.of(reference) < 0.95:
            yield "%d answers, where an undisturbed night as long as what is left has %d" % (self.answers, reference.answers)
        for words in self.unnamed:
            yield "the summary has no \"%s\"" % words


def scripts_of(program):
    listed = subprocess.run([program, "list"], text=True, capture_output=True, check=True).stdout
    return [Script(line) for line in listed.splitlines()]


def ends(program, twagent, script):
    """Models that only repeat themselves: the run says so, and ends."""
    night = Night(program, twagent, script)
    good = "no progress: 20 rounds without a new kernel" in night.said and night.end_s < 2 * 3600
    print("%s %s: it ends after %.0f min, %d answers, $%.2f" % ("ok" if good else "FAILED", script.name, night.end_s / 60,
                                                             night.answers, night.ledger))
    return good


class Undisturbed:
    """Nights without an outage, by their length."""

    def __init__(self, program, twagent, night_s):
        self.arguments = program, twagent, next(one for one in scripts_of(program) if one.name == "undisturbed")
        self.night_s, self.nights = night_s, {}

    def as_long_as_left(self, night):
        seconds = round(self.night_s - night.outage_s)
        if seconds not in self.nights:
            self.nights[seconds] = Night(*self.arguments, ("budget_ms=%d" % (1000 * seconds),))
        return self.nights[seconds]


def check(program, twagent):
    failed, undisturbed = 0, Undisturbed(program, twagent, CHECK_S)
    for script in scripts_of(program):
        if script.name.startswith("repeat:"):
            failed += not ends(program, twagent, script)
        if script.name not in CHECKED:
            continue
        night = Night(program, twagent, script, ("budget_ms=%d" % (CHECK_S * 1000),))
        reference = undisturbed.as_long_as_left(night)
        wrong = list(night.faults(CHECK_S, reference))
        if script.name == "undisturbed" and night.printed != reference.printed:
            wrong.append("the same night again is another")
        failed += bool(wrong)
        print("%s %s: %.1f %% used, %d answers of %d, %.1f s%s" % (
            "FAILED" if wrong else "ok", script.name, 100 * night.used, night.answers, reference.answers, night.real_s,
            "".join("; " + what for what in wrong)), flush=True)
        if wrong:
            print(night.said)
    return failed > 0


def main():
    program, twagent = (os.path.realpath(path) for path in sys.argv[1:3])
    if sys.argv[3] == "--check":
        return check(program, twagent)
    result, root = sys.argv[3:5]
    rows, undisturbed, failed, said = [], Undisturbed(program, twagent, NIGHT_S), 0, {}
    for script in scripts_of(program):
        if script.name.startswith(("bill:", "repeat:", "lane:")):
            continue
        night = Night(program, twagent, script)
        reference = undisturbed.as_long_as_left(night)
        faults = list(night.faults(NIGHT_S, reference))
        failed += bool(faults)
        rows.append("| %s | %.2f | %d | %d | %.1f | %.1f | %.1f | %s |" % (
            script.name, night.left_s / 3600, night.answers, night.lost, 100 * night.used, night.rate,
            100 * night.of(reference), "; ".join(faults) if faults else "named" if script.named else ""))
        said[script.name] = [line for line in night.said.splitlines() if ": " in line and line[:12] != "r1  night  d"]
        print(rows[-1], "%.1f s" % night.real_s, flush=True)
    commit = subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    shown = "one parked until tomorrow"
    with open(result, "w") as out:
        out.write("""# Nights with outages

`bench/nights/run`, %s, commit %s.

Eight hours each, in virtual time: the search, the completion engine, its endpoints and its ledger are the real ones;
behind `loop/http.h` stand three providers that keep to a script (`bench/nights/scripts.c`), and a lane that takes 0.5
to 5 s an evaluation. Ideas take 30 to 90 s, code and repairs 40 to 180 s; 4 ideas a round, no free tuning, so that a wait shows.

"Left" is the time in which at least one provider would answer. "Used": the share of it in which an answer was on its way
that came, or the lane measured: at least 95 %%. "An hour": answers an hour of what was left. "Of undisturbed": the answers,
against those of an undisturbed night as long as what was left: at least 95 %%, but where the answers themselves are slow.
Answers are drawn by what is asked, so that both nights get the same ones, and a night is the same in every run. "Named":
`twagent show` has the words that the script asks for.

| night | left h | answers | lost | used %% | an hour | of undisturbed %% | causes |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |
%s

What the summary says of the night of "%s":

```
%s
```
""" % (time.strftime("%Y-%m-%d", time.gmtime()), commit.stdout.strip() or "unknown", "\n".join(rows), shown,
            "\n".join(line for line in said[shown] if line.strip().startswith(("asked", "a:", "b:", "c:", "paused")))))
    print("nights: %d of %d failed" % (failed, len(rows)))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
