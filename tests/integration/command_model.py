"""command_model.py TWAGENT FAKE_WORKER: a program as the model: it is asked on stdin, by a file, in the sandbox; it fails,
hangs, floods, prints garbage or nothing; a run that is killed asks nothing again that was answered. Prints one line a row."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from kill_common import make_problem

MODEL = r'''#!/usr/bin/env python3
import hashlib, os, re, sys, time
how, log = sys.argv[1:3]
text = open(sys.argv[3]).read() if len(sys.argv) > 3 else sys.stdin.read()
name = hashlib.sha256(text.encode()).hexdigest()
if log != "-":
    with open(log, "a") as out:
        tuned = "tuned" if "tunes them by measurement" in text else "untuned"
        out.write("asked %s %s %s %s\n" % (name, os.getcwd(), os.environ.get("HUSH", "-"), tuned))
if how == "fails":
    sys.stderr.write("no credit\n")
    sys.exit(7)
if how == "hangs":
    time.sleep(1000)
if how == "slow":
    time.sleep(0.2)
if how == "floods":
    sys.stdout.write("x" * 3000000)
    sys.exit(0)
if how == "garbage":
    sys.stdout.buffer.write(bytes(range(256)) * 4)
    sys.exit(0)
if how == "nothing":
    sys.exit(0)
wanted = re.search(r"- Exactly (\d+)|- Exactly one", text)
if wanted:
    count = int(wanted.group(1) or 1)
    titles = ["vectorize the inner loop", "block rows for the second cache", "prefetch the following panel of B",
              "transpose A once", "parallel threads over columns", "fuse additions into multiplies"]
    ideas = ",".join('{"title": "%s", "category": "memory", "why": "w", "expected": 1.2, "parent": "%s"}' % (
        titles[i % 6], (re.findall(r"r1-c\d+", text) or [""])[0]) for i in range(count))
    print('{"ideas": [%s]}' % ideas)
else:
    print("```c\n/* %s */\nvoid kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)\n{\n}\n```" % name)
if log != "-":
    with open(log, "a") as out:
        out.write("answered %s\n" % name)
'''


class Place:
    def __init__(self, twagent, worker, work):
        self.twagent, self.work = twagent, work
        self.failed = 0
        make_problem(work + "/mm", os.path.dirname(os.path.abspath(__file__)) + "/../adversarial/cpu/problems/mm")
        for name, text in (("model", MODEL), ("self", '#!/bin/sh\n[ "$1" = worker ] && exec %s --ms 2-10 --final-ms 20 "$@"\n'
                                                      'exec %s "$@"\n' % (worker, twagent))):
            with open(work + "/" + name, "w") as out:
                out.write(text)
            os.chmod(work + "/" + name, 0o755)
        os.mkdir(work + "/tmp")
        self.environment = dict(os.environ, TWAGENT_SELF=work + "/self", XDG_CONFIG_HOME=work, TMPDIR=work + "/tmp", HUSH="told")

    def check(self, truth, text):
        self.failed += not truth
        print("%s %s" % ("ok" if truth else "FAILED", text), flush=True)

    def start(self, name, how, entry="", words="", options=(), log=True):
        with open("%s/%s.yaml" % (self.work, name), "w") as out:
            out.write("models:\n  it:\n    provider: command\n    command: [%s/model, %s, %s%s]\n%s" % (
                self.work, how, "%s/%s.log" % (self.work, name) if log else "-", words, entry))
        return subprocess.Popen([self.twagent, "run", self.work + "/mm", "--model", "command/it", "--models", self.work + "/" + name +
                                 ".yaml", "--rounds", "1", "--branching", "2", "--implementations", "1", "--seed", "3", "--repairs",
                                 "0", "--tuning", "0", "--floor-share", "0", "--store", self.work + "/" + name, "--verbose",
                                 *options], env=self.environment, cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)

    def run(self, *arguments, **more):
        child = self.start(*arguments, **more)
        said = child.communicate(timeout=400)[0]
        return child.returncode, said

    def status(self, name):
        return json.loads(subprocess.run([self.twagent, "status", "r1", "--json", "--store", self.work + "/" + name],
                                         env=self.environment, capture_output=True, text=True, check=True).stdout)

    def log(self, name, kind):
        path = "%s/%s.log" % (self.work, name)
        lines = [line.split() for line in open(path)] if os.path.exists(path) else []
        return [words for words in lines if words[0] == kind]


def answers(place):
    price = "    prices: {call: 0.25}\n"
    code, said = place.run("stdin", "good", price)
    asked = place.log("stdin", "asked")
    place.check(len(asked) == 3 and code in (0, 1), "one request for ideas, one for each of two: %d, exit %d" % (len(asked), code))
    place.check(place.status("stdin")["spending"]["micro_dollars"] == 750000, "each call at its price: %s" %
                place.status("stdin")["spending"])
    place.check(all(words[2].startswith(place.work + "/tmp/") and words[3] == "told" for words in asked),
                "in a folder of its own, with our environment")
    place.check({words[4] for words in asked} == {"untuned"}, "with --tuning 0 no prompt says that the search tunes")
    place.check(os.listdir(place.work + "/tmp") == [], "which goes with it: %s" % os.listdir(place.work + "/tmp"))
    code, said = place.run("file", "good", price, ', "{file}"')
    place.check(len(place.log("file", "answered")) == 3, "asked by a file")
    for words in ("", ', "{file}"'):
        code, said = place.run("boxed" + str(len(words)), "good", "    prices: {call: 0}\n    sandbox: [%s]\n" % place.work, words,
                               log=False)
        place.check("r1-c2 kept" in said, "in the sandbox%s" % words)
    code, said = place.run("writes", "good", "    prices: {call: 0}\n    retries: 0\n    sandbox: true\n")
    place.check(place.log("writes", "asked") == [], "a sandboxed one cannot write where we can")
    code, said = place.run("capped", "good", price, options=("--budget-usd", "0.5"))
    place.check(len(place.log("capped", "asked")) == 2, "a cap of two calls: %d" % len(place.log("capped", "asked")))
    code, said = place.run("priceless", "good", options=("--budget-usd", "0.5"))
    place.check(code == 2 and "price" in said, "no cap without a price: exit %d" % code)


def faults(place):
    for how, entry, tries, words in (("fails", "    retries: 1\n", 2, "exited 7: no credit"),
                                     ("hangs", "    retries: 0\n    time_limit: 1s\n", 1, "stopped after 1"),
                                     ("floods", "    retries: 0\n    output_limit: 1M\n", 1, "more than 1048576 bytes"),
                                     ("nothing", "    retries: 0\n", 1, "printed nothing"),
                                     ("garbage", "    retries: 0\n", 1, "")):
        code, said = place.run(how, how, entry)
        first = [words[1] for words in place.log(how, "asked")][:1]
        count = sum(asked[1:2] == first for asked in place.log(how, "asked"))
        if how == "hangs":  # on a busy machine it is stopped before it has written its line: what the search counted
            count = sum(cause["times"] for model in place.status(how)["run"]["asked"]["list"] for cause in model["causes"])
        place.check(count == tries and words in said and code in (0, 1), "%s: %d tries, exit %d" % (how, count, code))
    code, said = place.run("gone", "good")
    with open(place.work + "/gone.yaml", "w") as out:
        out.write("models:\n  it: {provider: command, command: [no-such-program-here]}\n")
    done = subprocess.run([place.twagent, "run", place.work + "/mm", "--model", "command/it", "--models", place.work + "/gone.yaml",
                           "--store", place.work + "/none"], env=place.environment, capture_output=True, text=True)
    place.check(done.returncode == 3 and "no-such-program-here" in done.stderr, "no such program: exit %d" % done.returncode)
    done = subprocess.run([place.twagent, "run", place.work + "/mm", "--model", "command/unlisted", "--store", place.work + "/none"],
                          env=place.environment, capture_output=True, text=True)
    place.check(done.returncode == 2, "no such entry: exit %d" % done.returncode)


def killed(place):
    child = place.start("killed", "slow", "    prices: {call: 0.25}\n    slots: 1\n", options=("--branching", "4"))
    while len(place.log("killed", "answered")) < 3 and child.poll() is None:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    before = [words[1] for words in place.log("killed", "answered")]
    done = subprocess.run([place.twagent, "resume", "r1", "--models", place.work + "/killed.yaml", "--store", place.work + "/killed"],
                          env=place.environment, cwd=place.work, capture_output=True, text=True, timeout=400)
    asked = [words[1] for words in place.log("killed", "asked")]
    again = [name for name in before if asked.count(name) > 1]
    # the last answer may have been printed, but not yet stored, at the kill
    place.check(len(again) <= 1 and set(again) <= set(before[-1:]), "what was answered is not asked again: %d" % len(again))
    place.check(len(set(asked)) == 5 and done.returncode in (0, 1), "and the run ends: %d requests, exit %d, %s" % (
        len(set(asked)), done.returncode, done.stderr[-300:]))


def main():
    twagent, worker = (os.path.realpath(path) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory(prefix="twagent-command-") as work:
        place = Place(twagent, worker, work)
        for part in (answers, faults, killed):
            if len(sys.argv) < 4 or part.__name__ in sys.argv[3:]:
                part(place)
    sys.exit(1 if place.failed else 0)


main()
