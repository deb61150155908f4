"""A compiler that has long to go dies with the agent and with the worker, its driver's children too."""
import os
import signal
import sys
import time

from kill_common import (TRIES, Checks, Leaving, Run, adopt_orphans, kill, listed, make_problem, read_process, wait_alone)

STATEMENTS = 6000  # ten seconds and more of gcc -O3


def write_slow_start(path):
    body = "".join("    x = x * 1.5f + A[%d] * y;\n    if (x > %d)\n        y += x;\n" % (i % 50, i)
                   for i in range(STATEMENTS))
    with open(path, "w") as out:
        # A source that nobody has built: what is kept of another build starts no compiler.
        out.write("/*---\ntune:\n  FIRST: [1, 2, 3]\n---*/\n/* %d */\n#include <stdint.h>\n" % time.time_ns() +
                  "void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)\n{\n"
                  "    float x = FIRST, y = B[0];\n%s    C[0] = x + y;\n}\n" % body)


def compilers(run):
    return [each for each in listed(run.pid) if each.name in ("cc1", "clang")]


def living(processes):
    """Those that are still there, as they are now."""
    now = [read_process(each.pid) for each in processes]
    return [new for old, new in zip(processes, now) if new and new.started == old.started and new.state not in "ZX"]


def at_work(run):
    """Compilers amid their work, which stand still there: none ends before it has lost its parents."""
    found = []
    while run.running() and not found:
        found = living([each for each in compilers(run) if each.cpu_s > 0.1 and kill(each, signal.SIGSTOP)])
        time.sleep(0.01)
    return found


def one(check, twagent, problem, store, work, role):
    for attempt in range(TRIES):
        run = Run(twagent, problem, "%s-%s-%d" % (store, role, attempt), work)
        found = at_work(run)
        if found:
            break
    victim = next((each for each in listed(os.getpid()) if each.role == role), None)
    killed = victim is not None and kill(victim)
    for each in found:
        kill(each, signal.SIGCONT)
    leaving = Leaving()
    while not leaving.over(left := living(found)):
        time.sleep(0.01)
    check(killed and found, "the %s: nobody to kill, or no compiler under it" % role)
    check(not left, "the %s was killed; its compilers go on: %s" % (role, left))
    print("  orphans   %d compilers ended %.2f s after the %s" % (len(found), leaving.waited_s(), role), flush=True)
    if run.running():
        os.kill(run.pid, 9)
    run.wait()
    wait_alone(0)


def main():
    twagent, work, source, result = sys.argv[1:5]
    check = Checks()
    adopt_orphans()
    problem = make_problem(work + "/mm", source)
    write_slow_start(problem + "/starts/cpu/loop.c")
    for role in ("agent", "worker"):
        one(check, twagent, problem, work + "/store", work, role)
    check.write(result)


main()
