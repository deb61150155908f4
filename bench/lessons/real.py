"""Real searches, one after the other on this machine: one with an empty store, and one that begins with its lessons.

  real.py TWAGENT [--problem NAME] [--evaluations N]

Says at which evaluation each was as fast as the first one ever became, within 3 % (times of a search are short ones)."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

from replay import first_below


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("twagent")
    parser.add_argument("--problem", default="matmul")
    parser.add_argument("--evaluations", type=int, default=40)
    options = parser.parse_args()
    folder = tempfile.mkdtemp()
    environment = dict(os.environ, XDG_CONFIG_HOME=folder)

    def ask(*arguments):
        done = subprocess.run([options.twagent, *arguments, "--store", folder + "/store"], env=environment,
                              capture_output=True, text=True)
        if done.returncode not in (0, 1):
            sys.exit("%s ended with %d: %s" % (arguments, done.returncode, done.stderr))
        return done.stdout

    def search(seed):
        ask("run", options.problem, "--seed", str(seed), "--branching", "8", "--implementations", "1", "--rounds",
            str(options.evaluations // 8), "--quiet", "--no-final", "--floor-share", "0")
        run = json.loads(ask("list", "--json"))[-1]["id"]
        candidates = sorted(json.loads(ask("list", "candidates", run, "--json")), key=lambda c: c["number"])
        return [c["time_ns"] if c["state"] == "kept" else float("inf") for c in candidates]

    cold, warm = search(1), search(2)
    target = 1.03 * min(cold)
    print("%s, %d evaluations each: the first search's best is %.3f ms; within 3 %% of it after %d evaluations; with its "
          "lessons after %d (best %.3f ms)" % (options.problem, options.evaluations, min(cold) / 1e6,
                                              first_below(cold, target), first_below(warm, target), min(warm) / 1e6))
    shutil.rmtree(folder)


main()
