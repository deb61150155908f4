"""How many evaluations a search of the built-in proposer needs to be as fast as one that began with an empty store, when
it begins with what a search of the night before has left: the real program, with recorded times in place of measured
ones (./table_worker). Medians over seeds.

  replay.py TWAGENT [--seeds N] [--evaluations N] [--noise SHARE]

A search has EVALUATIONS. "As fast" is, by the table's own times, first 95 % of the fastest point in the table, then the
fastest that the search with the empty store found by itself. Exit 1 where the median with lessons of the same table is
more than half of the median without."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TABLES = {1: HERE + "/../proposer/tables/matmul-512-1thread.csv", 2: HERE + "/../proposer/tables/matmul-512-2threads.csv"}


class Replay:
    def __init__(self, options):
        self.options, self.folder, self.noise_seed = options, tempfile.mkdtemp(), 0
        self.tables = {threads: self.read(path) for threads, path in TABLES.items()}

    @staticmethod
    def read(path):
        table = {}
        for line in open(path):
            if not line.startswith("#") and line.strip():
                start, *fields, last = line.strip().split(",")
                tune = frozenset((name, int(value)) for name, value in (field.split("=") for field in fields))
                table[start, tune] = float("inf") if last == "fail" else float(last)
        return table

    def search(self, store, threads, seed):
        """The table's own times of what was evaluated, in order."""
        self.noise_seed += 1
        wrapper = self.folder + "/self"
        with open(wrapper, "w") as out:
            out.write('#!/bin/sh\n[ "$1" = worker ] && exec %s/table_worker %s %d %g %d\nexec %s "$@"\n' % (
                HERE, TABLES[threads], threads, self.options.noise, self.noise_seed, self.options.twagent))
        os.chmod(wrapper, 0o755)
        environment = dict(os.environ, TWAGENT_SELF=wrapper, XDG_CONFIG_HOME=self.folder)
        done = subprocess.run([self.options.twagent, "run", "matmul", "--force", "--store", store, "--seed", str(seed), "--branching",
                               "8", "--implementations", "1", "--rounds", str(self.options.evaluations // 8), "--quiet",
                               "--no-final", "--floor-share", "0", "--json"], env=environment, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit("a search ended with %d: %s" % (done.returncode, done.stderr))
        runs = json.loads(subprocess.run([self.options.twagent, "list", "--store", store, "--json"], capture_output=True,
                                         text=True, env=environment, check=True).stdout)
        listed = subprocess.run([self.options.twagent, "list", "candidates", runs[-1]["id"], "--store", store, "--json"],
                                capture_output=True, text=True, env=environment, check=True).stdout
        candidates = sorted(json.loads(listed), key=lambda candidate: candidate["number"])
        return [self.tables[threads].get((c["name"], frozenset(c["tune"].items())), float("inf")) for c in candidates]

    def store(self, name, threads=None, seed=None):
        """An empty one, or one with a night's search on a table in it."""
        path = "%s/%s" % (self.folder, name)
        shutil.rmtree(path, ignore_errors=True)
        if threads:
            self.search(path, threads, seed)
        return path


def first_below(times, target):
    """Evaluations until one is that fast; one more than there were where none was."""
    return next((i + 1 for i, time in enumerate(times) if time <= target), len(times) + 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("twagent")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--evaluations", type=int, default=64)
    parser.add_argument("--noise", type=float, default=0.01)
    options = parser.parse_args()
    options.twagent = os.path.abspath(options.twagent)
    replay = Replay(options)
    failed = False
    print("%d seeds, %d evaluations a search, error %g %%; median evaluations (worst)" % (
        options.seeds, options.evaluations, 100 * options.noise))
    print("%-24s %-24s %-30s %12s %12s %7s" % ("today", "the night before", "until as fast as", "empty", "lessons", "ratio"))
    for today in TABLES:
        best = min(replay.tables[today].values())
        colds = {seed: replay.search(replay.store("cold"), today, seed) for seed in range(1, options.seeds + 1)}
        for night in (today, 3 - today):
            warm = {seed: replay.search(replay.store("warm", night, seed + 100), today, seed) for seed in colds}
            for words, target in (("95 % of the table's best", lambda seed: best / 0.95),
                                  ("the other search's best", lambda seed: min(colds[seed]))):
                without = [first_below(colds[seed], target(seed)) for seed in colds]
                with_them = [first_below(warm[seed], target(seed)) for seed in colds]
                ratio = statistics.median(with_them) / statistics.median(without)
                failed = failed or (night == today and ratio > 0.5)
                print("%-24s %-24s %-30s %6.1f (%3d) %6.1f (%3d) %7.2f" % (
                    "matmul, %d thread%s" % (today, "s" * (today > 1)), "matmul, %d thread%s" % (night, "s" * (night > 1)),
                    words, statistics.median(without), max(without), statistics.median(with_them), max(with_them), ratio),
                    flush=True)
    shutil.rmtree(replay.folder)
    return failed


if __name__ == "__main__":
    sys.exit(main())
