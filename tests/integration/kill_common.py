"""What the kill tests share: a problem that is quick to evaluate, a process tree that loses nobody, a run to kill in."""
import ctypes
import glob
import json
import os
import random
import signal
import subprocess
import time

PR_SET_CHILD_SUBREAPER = 36
GONE_CPU_S = 2.0  # of its own CPU time, that is: nobody is to blame for a machine that gives none
HANG_S = 300      # what is waited for without end is a hang
TRIES = 8         # of a moment that is missed where the machine is faster, or stands still in this process alone
EXIT_WIN, EXIT_NONE, EXIT_STOPPED = 0, 1, 4
TICKS = os.sysconf("SC_CLK_TCK")
ENDS = ("kept", "rejected", "failed")
ORDER = ("proposed", "writing", "compiling", "checking", "timing", "profiling")

START = """/*---
tune:
  TILE: [8, 16, 32, 64]
  STEP: [1, 2, 4, 8]
  ROWS: [1, 2, 3, 4]
---*/
#include <stdint.h>

static void row(const float *a, const float *B, float *c, int64_t N, int64_t K)
{
    for (int64_t from = 0; from < N; from += TILE) {
        int64_t to = from + TILE < N ? from + TILE : N;
        for (int64_t j = from; j < to; j++)
            c[j] = 0;
        for (int64_t k = 0; k < K; k += STEP)
            for (int64_t l = k; l < k + STEP && l < K; l++)
                for (int64_t j = from; j < to; j++)
                    c[j] += a[l] * B[l * N + j];
    }
}

void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i += ROWS)
        for (int64_t r = i; r < i + ROWS && r < M; r++)
            row(A + r * K, B, C + r * N, N, K);
}
"""


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def __call__(self, truth, name):
        if truth:
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED: " + name, flush=True)
        return truth

    def write(self, path):
        with open(path, "w") as out:
            out.write("%d %d\n" % (self.passed, self.failed))


def adopt_orphans():
    """Whoever loses its parent becomes our child: a descendant that outlives the agent is seen, whatever it is."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def make_problem(folder, source):
    """A small matmul, from the adversarial suite's, with a start of 64 points."""
    os.makedirs(folder + "/starts/cpu")
    with open(source + "/spec.yaml") as spec, open(folder + "/spec.yaml", "w") as out:
        for line in spec:
            if line.startswith("dims:"):
                line = "dims: {M: 48, N: 40, K: 56}\n"
            elif line.startswith("check:"):
                line = "check: [{M: 1, N: 1, K: 1}, {M: 33, N: 65, K: 17}]\n"
            out.write(line)
    with open(source + "/ref_impl.py") as text, open(folder + "/ref_impl.py", "w") as out:
        out.write(text.read())
    with open(folder + "/starts/cpu/loop.c", "w") as out:
        out.write(START)
    return folder


# ---- processes ----

class Process:
    def __init__(self, pid, parent, state, started, argv, name, cpu_s):
        self.pid, self.parent, self.state, self.started, self.argv, self.name = pid, parent, state, started, argv, name
        self.cpu_s = cpu_s

    @property
    def role(self):
        second = self.argv[1] if len(self.argv) > 1 else ""
        if second in ("worker", "runner"):
            return second
        if any(part.endswith("reference.py") for part in self.argv):
            return "reference"
        if self.name in ("cc1", "cc1plus", "as", "ld", "collect2", "gcc", "g++", "clang") or "compile" in self.argv[2:4]:
            return "compiler"
        return "agent" if second == "run" else "other"

    def __repr__(self):
        return "%d %s (%s) %s" % (self.pid, self.name, self.state, " ".join(self.argv)[:100])


def read_process(pid):
    try:
        with open("/proc/%d/stat" % pid) as file:
            text = file.read()
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            argv = file.read().decode("utf-8", "replace").split("\0")[:-1]
    except OSError:
        return None
    name = text[text.index("(") + 1:text.rindex(")")]
    rest = text[text.rindex(")") + 2:].split()
    return Process(pid, int(rest[1]), rest[0], int(rest[19]), argv, name, (int(rest[11]) + int(rest[12])) / TICKS)


def descendants(root):
    """Everybody below `root` that is not a zombie."""
    everybody = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            process = read_process(int(entry))
            if process:
                everybody[process.pid] = process
    found = []
    for process in everybody.values():
        at = process.parent
        for _ in range(64):
            if at == root:
                if process.state not in "ZX":
                    found.append(process)
                break
            if at not in everybody:
                break
            at = everybody[at].parent
    return found


def listed(root):
    """The same as the kernel lists them, at a tenth of the cost: it may leave out one whose sibling ends meanwhile."""
    found, parents = [], [root]
    for parent in parents:
        for path in glob.glob("/proc/%d/task/*/children" % parent):
            try:
                with open(path) as file:
                    parents += map(int, file.read().split())
            except OSError:
                pass  # it has ended, or this thread of it
        process = parent != root and read_process(parent)
        if process and process.state not in "ZX":
            found.append(process)
    return found


def reap_orphans(keep=()):
    """Zombies that became ours; children that a Popen object waits for are left to it."""
    for process in list(os.listdir("/proc")):
        if process.isdigit() and int(process) not in keep:
            found = read_process(int(process))
            if found and found.parent == os.getpid() and found.state == "Z":
                try:
                    os.waitpid(found.pid, os.WNOHANG)
                except ChildProcessError:
                    pass


class Leaving:
    """Processes that are to end, however late the machine lets them: who goes on to compute is none of those."""

    def __init__(self, cpu_s=GONE_CPU_S):
        self.most_s, self.began, self.seen = cpu_s, time.monotonic(), {}

    def over(self, left):
        """Whether it is clear what has become of them."""
        used = [each.cpu_s - self.seen.setdefault((each.pid, each.started), each.cpu_s) for each in left]
        return not left or max(used) >= self.most_s or self.waited_s() > HANG_S

    def waited_s(self):
        return time.monotonic() - self.began


def wait_alone(cpu_s=GONE_CPU_S):
    """Seconds until we have no descendant any more, and who went on for so much CPU time of its own. Kills those then."""
    leaving = Leaving(cpu_s)
    while not leaving.over(left := listed(os.getpid()) or descendants(os.getpid())):
        time.sleep(0.01)
    waited = leaving.waited_s()
    for process in left:
        kill(process)
    reap_orphans()
    return waited, left


def kill(process, number=signal.SIGKILL):
    """By its id, and only if the id still names the process that was seen."""
    now = read_process(process.pid)
    if now is None or now.started != process.started or now.state in "ZX":
        return False
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return False
    return True


# ---- runs ----

class Run:
    """`twagent run` with its events in a file."""

    def __init__(self, twagent, problem, store, work, *options):
        self.twagent, self.store = twagent, store
        self.log = work + "/log"
        self.out = work + "/out"
        self.environment = dict(os.environ, TWAGENT_STORE=store)
        self.began = time.monotonic()
        with open(self.log, "wb") as log, open(self.out, "wb") as out:
            self.popen = subprocess.Popen([twagent, "run", problem, "--verbose", "--json", *options], stdout=out,
                                          stderr=log, stdin=subprocess.DEVNULL, env=self.environment)
        self.pid = self.popen.pid

    def running(self):
        return self.popen.poll() is None

    def lines(self):
        with open(self.log, errors="replace") as file:
            return file.read().split("\n")

    def wait_for(self, text, limit_s=HANG_S):
        end, seen, running = time.monotonic() + limit_s, "", True
        with open(self.log, errors="replace") as file:
            while time.monotonic() < end and running:
                running = self.running()  # before it is read: what it said last counts
                seen = seen[-len(text):] + file.read()
                if text in seen:
                    return True
                time.sleep(0.005)
        return False

    def wait(self, limit_s=HANG_S):
        try:
            return self.popen.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.kill(self.pid, signal.SIGKILL)
            self.popen.wait()
            return None

    def took(self, limit_s):
        """Seconds that it took, or None where it still runs after `limit_s` from its beginning."""
        try:
            self.popen.wait(max(0.0, self.began + limit_s - time.monotonic()))
        except subprocess.TimeoutExpired:
            return None
        return time.monotonic() - self.began

    def tail(self, count=12):
        return "\n".join(self.lines()[-count:])


def ask(twagent, store, *arguments):
    """(exit code, JSON or None, what it said) of a reading command."""
    done = subprocess.run([twagent, *arguments, "--json"], capture_output=True, stdin=subprocess.DEVNULL,
                          env=dict(os.environ, TWAGENT_STORE=store))
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    return done.returncode, answer, done.stderr.decode("utf-8", "replace").strip()


def rank(state):
    return len(ORDER) if state in ENDS else ORDER.index(state)


def seed_of(name):
    """$KILL_SEED makes the moments come again, as far as a scheduler lets them."""
    return random.Random(os.environ.get("KILL_SEED", str(time.time_ns())) + name)
