"""batch.py TWAGENT FAKE_PROVIDER FAKE_WORKER: a run whose requests go in batches: killed while it waits and gone on with, one
request that expires, half price in its status; one that is stopped, whose batch is cancelled. Prints one line a check."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from kill_common import make_problem

KEY = "sk-hush-0123456789abcdef"
KERNEL = "/* @HASH@ */\nvoid kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)\n{\n}\n"


class Place:
    def __init__(self, tools, work):
        self.twagent, self.provider, worker = tools
        self.work, self.failed = work, 0
        make_problem(work + "/mm", os.path.dirname(os.path.abspath(__file__)) + "/../adversarial/cpu/problems/mm")
        os.makedirs(work + "/sources")
        for name, text in (("sources/one.c", KERNEL),
                           ("self", '#!/bin/sh\n[ "$1" = worker ] && exec %s --ms 2-10 --final-ms 20 "$@"\nexec %s "$@"\n' %
                            (worker, self.twagent))):
            with open(work + "/" + name, "w") as out:
                out.write(text)
        os.chmod(work + "/self", 0o755)
        self.environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        self.environment.update({"OPENAI_API_KEY": KEY, "TWAGENT_SELF": work + "/self", "XDG_CONFIG_HOME": work + "/config",
                                 "no_proxy": "*"})

    def check(self, truth, text):
        self.failed += not truth
        print("%s %s" % ("ok" if truth else "FAILED", text), flush=True)

    def serve(self, *options):
        self.server = subprocess.Popen([self.provider, "--key", KEY, "--by-content", self.work + "/sources", *options],
                                       stdout=subprocess.PIPE)
        self.url = "http://127.0.0.1:%d" % int(self.server.stdout.readline().split()[1])
        with open(self.work + "/models.yaml", "w") as out:
            out.write("models:\n  test:\n    provider: openai\n    url: %s/v1\n    key: OPENAI_API_KEY\n"
                      "    prices: {prompt: 10, completion: 10}\n    batch: {gather: 400ms, poll: 100ms}\n" % self.url)

    def ask(self, path):
        return json.load(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(self.url + path))

    def start(self, store, *words):
        return subprocess.Popen([self.twagent, *words, "--models", self.work + "/models.yaml", "--store",
                                 self.work + "/" + store, "--verbose"], env=self.environment, cwd=self.work, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, store, *options):
        return self.start(store, "run", self.work + "/mm", "--model", "test", "--rounds", "1", "--branching", "3",
                          "--implementations", "1", "--seed", "3", "--repairs", "0", "--tuning", "0", "--floor-share", "0",
                          "--max-tokens", "2000", *options)

    def status(self, store):
        done = subprocess.run([self.twagent, "status", "r1", "--json", "--store", self.work + "/" + store],
                              env=self.environment, capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def wait_for_batches(self, child, count):
        """Until the provider was looked at once the run knew of so many batches."""
        while child.poll() is None and self.ask("/_counts")["batches"] < count:
            time.sleep(0.02)
        time.sleep(0.1)


def killed(place):
    # Each is made, and nobody hears of it: it is found by its name, the second one after the kill.
    place.serve("--fault", "ok", "--fault", "stall", "--batch", "end ok", "--batch", "end pings", "--batch",
                "create close after=0 times=0", "--batch", "list ok", "--batch", "list status code=503 times=12")
    child = place.run("killed", "--budget-usd", "5")
    place.wait_for_batches(child, 2)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    place.ask("/_release")
    child = place.start("killed", "resume", "r1")
    said = child.communicate(timeout=300)[0]
    status, counts, asked = place.status("killed"), place.ask("/_counts"), place.ask("/_answered")
    spent = status["spending"]
    place.check(child.returncode in (0, 1), "it goes on to its end: exit %d" % child.returncode)
    place.check(sorted((row["answered"], row["requests"]) for row in asked) == [(1, 1), (1, 1), (1, 1), (1, 2)],
                "each request was answered once, and one, which expired, was asked twice: %s" % asked)
    place.check(spent["micro_dollars"] == 5 * spent["tokens"] and spent["tokens"] > 0 and spent["reserved_tokens"] == 0,
                "at half the price: %s" % spent)
    place.check("expired" in said and "batch.made" in said and "batch.ended" in said and KEY not in said, "and says so")
    if place.failed:
        print(said[-3000:], asked, counts)
    place.server.kill()


def stopped(place):
    place.serve("--batch", "end ok", "--batch", "end stall")
    child = place.run("stopped", "--budget-time", "2h")
    place.wait_for_batches(child, 2)
    child.send_signal(signal.SIGTERM)
    said = child.communicate(timeout=300)[0]
    place.check(child.returncode in (1, 4) and ("batch.cancelled" in said or "batch.left" in said),
                "stopped: the batch is cancelled: exit %d" % child.returncode)
    place.check("batches of test may take 25 h, and this run ends in" in said, "a time that is shorter is said at once")
    child = place.start("stopped", "resume", "r1")
    said = child.communicate(timeout=300)[0]
    asked = place.ask("/_answered")
    place.check([row["answered"] for row in asked] == [1, 1, 1, 1], "what was answered is not asked again: %s" %
                [row["answered"] for row in asked])
    place.check(place.status("stopped")["spending"]["reserved_tokens"] == 0, "and nothing stays reserved")
    if place.failed:
        print(said[-3000:], asked)
    place.server.kill()


def main():
    with tempfile.TemporaryDirectory(prefix="twagent-batch-") as work:
        place = Place([os.path.realpath(path) for path in sys.argv[1:4]], work)
        for part in (killed, stopped):
            part(place)
    print("batch: %d failed" % place.failed)
    sys.exit(place.failed > 0)


if __name__ == "__main__":
    main()
