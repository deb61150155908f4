"""Real searches on this machine, in pairs: one with an empty store, and one, with another seed, that begins with what the
first has left. How many evaluations each needs until it is as fast as the first one ever became.

  real.py TWAGENT [--problem NAME] [--evaluations N] [--seeds N] [--minutes M]

No pair begins that the time left does not suffice for, and a search that is still going when the time is up is stopped;
what was seen until then is printed. "As fast" is within 3 %: a search's times are short ones."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from replay import first_below

ROUND = 8  # evaluations


class Real:
    def __init__(self, options):
        self.options, self.folder, self.began = options, tempfile.mkdtemp(), time.monotonic()
        self.environment = dict(os.environ, XDG_CONFIG_HOME=self.folder)

    def left_s(self):
        return 60 * self.options.minutes - (time.monotonic() - self.began)

    def ask(self, store, *arguments):
        process = subprocess.Popen([self.options.twagent, *arguments, "--store", store], env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        try:
            out, said = process.communicate(timeout=max(1, self.left_s()))
        except subprocess.TimeoutExpired:
            process.terminate()
            process.communicate()
            return None
        if process.returncode not in (0, 1):
            sys.exit("%s ended with %d: %s" % (" ".join(arguments), process.returncode, said))
        return out

    def search(self, store, seed):
        """The times of what was evaluated, in order; None where the time was up."""
        began = time.monotonic()
        if self.ask(store, "run", self.options.problem, "--force", "--seed", str(seed), "--branching", str(ROUND), "--implementations",
                    "1", "--rounds", str(self.options.evaluations // ROUND), "--quiet", "--no-final", "--floor-share",
                    "0") is None:
            return None
        run = json.loads(self.ask(store, "list", "--json") or "[]")
        listed = run and self.ask(store, "list", "candidates", run[-1]["id"], "--json")
        if not listed:
            return None
        candidates = sorted(json.loads(listed), key=lambda candidate: candidate["number"])
        times = [c["time_ns"] if c["state"] == "kept" else float("inf") for c in candidates]
        print("  seed %d, %s: %d evaluations in %.0f s, best %.3f ms" % (
            seed, "empty" if run[-1]["id"] == "r1" else "with lessons", len(times), time.monotonic() - began,
            min(times) / 1e6), flush=True)
        return times

    def pair(self, number):
        store = "%s/store%d" % (self.folder, number)
        cold = self.search(store, number)
        warm = cold and self.search(store, number + 100)
        shutil.rmtree(store, ignore_errors=True)
        if not warm:
            return None
        target = 1.03 * min(cold)
        return first_below(cold, target), first_below(warm, target)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("twagent")
    parser.add_argument("--problem", default="matmul")
    parser.add_argument("--evaluations", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=8)
    options = parser.parse_args()
    options.twagent = os.path.abspath(options.twagent)
    real, pairs, longest_s = Real(options), [], 0
    print("%s, measured on this machine, %d evaluations a search" % (options.problem, options.evaluations), flush=True)
    for number in range(1, options.seeds + 1):
        began = time.monotonic()
        if longest_s > real.left_s():
            print("  no time is left for seed %d" % number)
            break
        pair = real.pair(number)
        if pair is None:
            print("  seed %d: its time was up" % number)
            break
        pairs.append(pair)
        longest_s = max(longest_s, time.monotonic() - began)
    shutil.rmtree(real.folder)
    if not pairs:
        sys.exit("not one pair of searches ended within %g minutes" % options.minutes)
    cold, warm = (statistics.median(column) for column in zip(*pairs))
    print("until as fast as the search with the empty store ever became, median of %d: %.1f evaluations with an empty store, "
          "%.1f with its lessons: %.2f (pairs: %s)" % (
              len(pairs), cold, warm, warm / cold, " ".join("%d/%d" % (w, c) for c, w in pairs)))
    return warm / cold > 0.5


sys.exit(main())
