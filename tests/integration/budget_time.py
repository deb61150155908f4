"""budget_time.py TWAGENT FAKE_WORKER: a budget of time holds while another twagent times on the cores, for ever: amid the
search, amid the champion's last measurement; what went by waiting is no busy lane. It holds where a problem is never open,
and what a worker says that the last measurement takes is kept back for it. Prints one line a row. The runs wait most of their
time, so they wait together."""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time

from kill_common import make_problem


RUNS = {  # name: what the worker does, and the budget, in seconds: an hour where the run ends by itself
    "search": ("--waits 4", 4),
    "final": ("--waits -1 --says-final 6000", 16),
    "never": ("--opens-never 1", 1),
    "dear": ("--says-final 3600000", 1700),
    "cheap": ("--says-final 20", 3600),
    "noisy": ("--says-final 20 --noisy 1", 3600),
}


def run(twagent, worker, work, name, budget_s):
    options = RUNS[name][0]
    store = "%s/%s" % (work, name)
    with open(store + ".self", "w") as out:
        out.write('#!/bin/sh\n[ "$1" = worker ] && exec %s --ms 2-10 --final-ms 20 --notes %s.notes %s "$@"\nexec %s "$@"\n' %
                  (worker, store, options, twagent))
    os.chmod(store + ".self", 0o755)
    environment = dict(os.environ, TWAGENT_SELF=store + ".self", XDG_CONFIG_HOME=work + "/config")
    done = subprocess.run([twagent, "run", work + "/mm", "--rounds", "3", "--branching", "2", "--seed", "2", "--floor-share", "0",
                           "--budget-time", "%ds" % budget_s, "--store", store] + ["--verbose"] * (name != "never"), env=environment, cwd=work, capture_output=True,
                          text=True, timeout=400)  # nobody waits for ever
    record = json.loads(subprocess.run([twagent, "show", "r1", "--json", "--store", store], env=environment, capture_output=True,
                                       text=True, check=True).stdout)
    return done.returncode, done.stdout + done.stderr, record.get("run", record)


def far_enough(work, name, record):
    if name == "search":
        return record["evaluated"] >= 3 and record["lane_waits"] > record["lane_busy"]
    efforts = [one[0] for one in notes(work, "final")]
    return name != "final" or (efforts[-1:] == ["final"] and "full" in efforts)


def in_time(twagent, worker, work, name):
    """With a budget in which this machine, as busy as it is, gets as far as the test asks: twice as long until it does."""
    budget_s = RUNS[name][1]
    while True:
        subprocess.run(["rm", "-rf", "%s/%s" % (work, name), "%s/%s.notes" % (work, name)], check=True)
        answer = run(twagent, worker, work, name, budget_s)
        if far_enough(work, name, answer[2]) or budget_s >= 128:
            return answer
        budget_s *= 2


def full_disk(twagent, worker, work, check, seconds):
    """No room from the beginning: a run that waits for some says so, while it begins (where a worker is soon open) as while
    it ends (where none ever is). Whether both were met: a slow machine is given more seconds for it."""
    children, told = {}, {"1": [], "0": []}
    for never in told:
        store = "%s/never%s.%d" % (work, never, seconds)
        with open(store + ".self", "w") as out:
            out.write('#!/bin/sh\nulimit -Sf unlimited\n[ "$1" = worker ] && exec %s --ms 1-2 --opens-never %s "$@"\nexec %s "$@"\n' %
                      (worker, never, twagent))
        os.chmod(store + ".self", 0o755)
        for kib in range(32, 64, 4):  # how many its first pages take is LMDB's own affair
            said = "%s.said%d" % (store, kib)
            with open(said, "w") as out:
                children[never, kib] = said, subprocess.Popen(
                    ["sh", "-c", 'ulimit -Sf %d; exec "$@"' % (2 * kib), "sh", twagent, "run", work + "/mm", "--budget-time",
                     "%ds" % seconds, "--store", "%s.%d" % (store, kib)], stdout=out, stderr=out, cwd=work,
                    env=dict(os.environ, TWAGENT_SELF=store + ".self", XDG_CONFIG_HOME=work + "/config"))
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and any(child.poll() is None for _, child in children.values()):
        time.sleep(0.1)
        for (never, kib), (said, child) in children.items():
            if kib not in told[never] and "paused since" in open(said).read():
                told[never].append(kib)
                child.terminate()
    for (never, kib), (_, child) in children.items():
        check(child.poll() is not None, "what waits for room says so, with %d KiB%s" % (kib, ", never open" * int(never)))
        child.kill()
        child.wait(timeout=120)
    return all(told.values())


def notes(work, name):  # effort, id and what is left of the time, of each evaluation that was begun
    if not os.path.exists("%s/%s.notes" % (work, name)):
        return []
    with open("%s/%s.notes" % (work, name)) as lines:
        return [(words[1], words[2], int(words[3])) for words in map(str.split, lines)]


def main():
    twagent, worker = (os.path.realpath(path) for path in sys.argv[1:3])
    failed = 0

    def check(truth, text):
        nonlocal failed
        failed += not truth
        print("%s %s" % ("ok" if truth else "FAILED", text), flush=True)

    with tempfile.TemporaryDirectory(prefix="twagent-time-") as work:
        make_problem(work + "/mm", os.path.dirname(os.path.abspath(__file__)) + "/../adversarial/cpu/problems/mm")
        with concurrent.futures.ThreadPoolExecutor(len(RUNS)) as pool:
            ended = dict(zip(RUNS, pool.map(lambda name: in_time(twagent, worker, work, name), RUNS)))
        code, said, record = ended["search"]
        check(record["state"] == "done" and "budget" in record["stopped"], "the search ends by its budget: %s, %r" % (
            record["state"], record["stopped"]))
        check(record["evaluated"] == 3 and code in (0, 1, 4), "with what was measured: %d, exit %d" % (record["evaluated"], code))
        check(not record["win"] and not record["verified"], "nothing is called a win that was not measured again")
        check(record["lane_waits"] > record["lane_busy"], "waited %.2f of the time, busy %.2f" % (
            record["lane_waits"], record["lane_busy"]))
        check("waiting for another twagent" in said, "the summary says so: %s" % [
            line for line in said.splitlines() if "lane busy" in line])
        code, said, record = ended["final"]
        check(record["state"] == "done" and not record["verified"] and not record["win"], "the champion stays unverified")
        check("the champion stays unverified" in said and code in (1, 4), "and that is said, exit %d" % code)
        check("waited for another twagent" in record["stopped"], "also why it ended: %r" % record["stopped"])
        efforts = [one[0] for one in notes(work, "final")]
        check(efforts[-1] == "final" and "full" in efforts, "a run-off that waits leaves it its time: %s" % efforts)
        code, said, record = ended["never"]
        check(record["state"] == "done" and "before the problem was open" in record["stopped"] and code == 4,
              "a problem that is never open: %s, %r, exit %d" % (record["state"], record["stopped"], code))
        check("a budget of 1 s is too short for a verified kernel" in said, "which is said at once: %s" % said)
        again = run(twagent, worker, work, "never", RUNS["never"][1])[1]
        check("opening adversarial_mm alone took" in again, "and the next time what it took at least: %s" % again)
        code, said, record = ended["dear"]
        begun = notes(work, "dear")
        check(record["state"] == "done" and "budget" in record["stopped"] and all(one[0] == "search" for one in begun),
              "a last measurement of an hour is not begun: %s" % begun)
        check(record["evaluated"] == 12 and not record["verified"] and "stays unverified" in said,
              "%d verdicts, all of the rounds: nothing is kept back for it, and that is said" % record["evaluated"])
        check("too little for the champion's last measurement, which takes about 3600 s" in record["stopped"], "also why it ended: %r" % record["stopped"])
        code, said, record = ended["cheap"]
        begun = notes(work, "cheap")
        finals = [one[2] for one in begun if one[0] == "final"]
        check(record["verified"] and any(one[0] == "full" for one in begun), "one of 20 ms comes after a run-off")
        check(finals and all(0 < left < 3600000 for left in finals), "and knows how much time is left: %s" % finals)
        first = [one[1] for one in begun if one[0] == "final"][:1]
        code, said, record = ended["noisy"]
        begun = [one[1] for one in notes(work, "noisy") if one[0] == "final"]
        check("too noisy to say" in said and begun[:1] == first, "a run-off too noisy to say changes nothing: %s, %s" % (begun, first))
        check(any(full_disk(twagent, worker, work, check, seconds) for seconds in (2, 8, 32)), "some of either kind wait")
        if failed:
            print(said[-3000:])
    print("budget_time: %d failed" % failed)
    sys.exit(failed > 0)


main()
