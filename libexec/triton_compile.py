"""Compiles the kernels of Triton candidates, in a sandbox.

    triton_compile.py FOLDER REQUEST CUBINS REPORT     once
    triton_compile.py FOLDER --serve                   for whoever asks at descriptor 3, until nobody can any more

REQUEST is JSON: source, arch (90), and launches: entry, args (a pointer's element type, "tensordesc<fp16[128,64]>", or
"int"), constexprs, options (num_warps, ...), variants: for each a list of what is known of each argument: "" (nothing),
"16" (a multiple of 16), "1" (it is one), "64" (it needs 64 bits), "" for pointers, which are always multiples of 16, and
tensor maps. CUBINS becomes one cubin
after the other, in the launches' order, a launch's variants one after the other; REPORT is JSON about them, which
whoever reads it does not believe. What is wrong with the candidate goes to stderr: "candidate.py:LINE: error: ...".

    server        Triton imported and warm; reads no source
      job         a fork for each request; reads its JSON, starts the rest, and gathers what they wrote
        front     the candidate's module code runs here, and what it leaves is text: Triton's first intermediate
                  language. No files but the Python's, nothing to write to, no other process or thread, no program
        back      one for each kernel: from that text to a cubin. No code of the candidate's: whatever a module patches
                  is patched in the process before. It may run ptxas, and write to a folder of its own

A request is a packet with five descriptors: REQUEST, CUBINS, REPORT, stderr, and where it is answered: "a" at once,
later the exit code as an int. FOLDER is the server's own, for temporary files.
"""

import gc
import json
import os
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from triton_confine import (  # noqa: E402
    EXECUTE,
    READ_DIR,
    READ_FILE,
    SYSTEM,
    die_with_parent,
    landlock,
    outlive_parent,
    refuse_processes,
)
from triton_kernel import NAME, Wrong, back, front, tell  # noqa: E402

del sys.path[0]

ASKED = 3  # the descriptor
TEXT_MOST, CPU_S = 64 << 20, 60


# ---- a job: one front, then the backs side by side


class Child:
    """A fork that runs one function, with a file each for its result and its words."""

    def __init__(self, folder, number, work, confine):
        folder = os.path.join(folder, str(number))
        os.mkdir(folder, 0o700)
        self.result, self.words = [open(os.path.join(folder, name), "w+b") for name in ("result", "words")]
        for name in ("result", "words"):
            os.unlink(os.path.join(folder, name))
        parent, self.status = os.getpid(), None
        self.pid = os.fork()
        if self.pid == 0:
            self.run(parent, folder, work, confine)

    def run(self, parent, folder, work, confine):
        """Never returns."""
        status = 1
        try:
            die_with_parent(parent)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
            os.dup2(self.words.fileno(), 2)
            os.dup2(2, 1)
            os.dup2(self.result.fileno(), ASKED)
            os.closerange(ASKED + 1, 1024)
            tempfile.tempdir = folder
            confine(folder)
            with os.fdopen(ASKED, "wb", closefd=False) as file:
                file.write(work(folder))
            status = 0
        except Wrong as wrong:
            tell(wrong)
        except BaseException as error:
            lines = [line for line in str(error).splitlines() if line.strip()] or ["?"]
            tell(Wrong(1, f"{type(error).__name__}: {lines[0]}"))
        os._exit(status)

    def text(self, file, most):
        file.seek(0)
        return file.read(most)


def wait_for(children, reply):
    """Until one of them has ended, which then has a status. All end where nobody waits for an answer."""
    while True:
        for child in children:
            ended, status = os.waitpid(child.pid, os.WNOHANG)
            if ended:
                child.status = os.waitstatus_to_exitcode(status)
                return child
        signal.sigtimedwait([signal.SIGCHLD], 0.05)
        if reply is not None:
            poll = select.poll()
            poll.register(reply, 0)
            if poll.poll(0):
                os._exit(1)  # and they with us


def explain_end(child):
    """What a child that failed has said, or how it ended."""
    words = child.text(child.words, 48 << 10)
    os.write(2, words)
    if child.status == -signal.SIGXCPU or child.status == -signal.SIGKILL:
        tell(Wrong(1, f"the compile took more than {CPU_S} s of CPU time"))
    elif child.status < 0:
        tell(Wrong(1, f"the compile ended by signal {-child.status}"))
    elif f"{NAME}:".encode() not in words:
        tell(Wrong(1, "the module ended its process"))
    return 1


def texts_of(request, read):
    """The front's answer, which the candidate's code may have written; None: it is none."""
    try:
        texts = json.loads(read)["texts"]
        count = sum(len(launch["variants"]) for launch in request["launches"])
        return texts if len(texts) == count and all(isinstance(text, str) for text in texts) else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def make_front(request, target, backend, folder):
    reads = SYSTEM + [sys.prefix, sys.base_prefix]

    def confine(_):
        landlock(reads, READ_FILE | READ_DIR, None)
        refuse_processes()

    return Child(folder, "front", lambda _: json.dumps(front(request, target, backend)).encode(), confine)


def make_backs(request, texts, target, backend, folder):
    """A function for each that starts it."""
    reads = SYSTEM + [sys.prefix, sys.base_prefix]
    launches = [launch for launch in request["launches"] for _ in launch["variants"]]

    def make(number, text, launch):
        def work(own):
            cubin, told = back(text, launch["entry"], launch["options"], target, backend, own)
            head = json.dumps(told).encode()
            return struct.pack("Q", len(head)) + head + cubin

        return Child(folder, number, work, lambda own: landlock(reads, EXECUTE | READ_FILE | READ_DIR, own))

    return [lambda n=n, t=t, k=k: make(n, t, k) for n, (t, k) in enumerate(zip(texts, launches))]


def run_all(makers, reply):
    """All of them, as many at once as there are cores; the one that failed, or None, and all."""
    waiting, running, done = list(makers), [], []
    while waiting or running:
        while waiting and len(running) < len(os.sched_getaffinity(0)):
            running.append(waiting.pop(0)())
            done.append(running[-1])
        ended = wait_for(running, reply)
        running.remove(ended)
        if ended.status != 0:
            for child in running:
                os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)
            return ended, done
    return None, done


def job(request, cubins, report, folder, reply=None):
    """An exit code. The files are open to be written."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    target = GPUTarget("cuda", request["arch"], 32)
    backend = make_backend(target)
    begun = time.monotonic()
    failed, done = run_all([lambda: make_front(request, target, backend, folder)], reply)
    texts = None if failed else texts_of(request, done[0].text(done[0].result, TEXT_MOST))
    if texts is None:
        done[0].status = done[0].status or 1
        return explain_end(done[0])
    front_ms = 1e3 * (time.monotonic() - begun)
    failed, done = run_all(make_backs(request, texts, target, backend, folder), reply)
    if failed:
        return explain_end(failed)
    kernels = []
    for child in done:
        read = child.text(child.result, TEXT_MOST)
        length = struct.unpack_from("Q", read)[0]
        cubin = read[8 + length :]
        kernels.append({**json.loads(read[8 : 8 + length]), "bytes": len(cubin)})
        cubins.write(cubin)
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu_ms = 1e3 * sum(each.ru_utime + each.ru_stime for each in spent)
    told = {"version": triton.__version__, "front_ms": front_ms, "cpu_ms": cpu_ms, "kernels": kernels}
    report.write(json.dumps(told).encode())
    return 0


# ---- the server

WARM = """
import triton
import triton.language as tl


@triton.jit
def warm(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + tl.sum(at * 1.0, 0), mask=at < n)
"""


def warm(folder):
    """What a first compile finds out once is found out here: by a source of ours."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    target = GPUTarget("cuda", 90, 32)
    launch = {
        "entry": "warm",
        "args": ["fp32", "int"],
        "said": [],
        "constexprs": {"BLOCK": 64},
        "options": {},
        "variants": [["", ""]],
    }
    backend = make_backend(target)
    texts = front({"source": WARM, "launches": [launch]}, target, backend)["texts"]
    back(texts[0], "warm", {}, target, backend, folder)


def answer(descriptors, folder, server):
    """One request, in a process of its own: never returns."""
    request, cubins, report, errors, reply = descriptors
    code = 1
    try:
        die_with_parent(server)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(ASKED)
        os.dup2(errors, 2)
        os.mkdir(folder, 0o700)
        with os.fdopen(request, "rb") as asked, os.fdopen(cubins, "wb") as out, os.fdopen(report, "wb") as told:
            code = job(json.load(asked), out, told, folder, reply)
        shutil.rmtree(folder, ignore_errors=True)
        os.write(reply, struct.pack("i", code))
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(0)


def is_alone():
    """Whoever started the server has gone, as where there turned out to be no GPU."""
    poll = select.poll()
    poll.register(ASKED, 0)
    return bool(poll.poll(0))


def serve(folder):
    outlive_parent()  # the socket's end is ours
    if is_alone():
        return
    import triton  # noqa: F401

    if is_alone():
        return
    warm(folder)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    asked, server, count = socket.socket(fileno=ASKED), os.getpid(), 0
    while True:
        packet, descriptors, _, _ = socket.recv_fds(asked, 1 << 14, 5)
        if not packet:
            return
        try:
            if len(descriptors) == 5 and os.write(descriptors[4], b"a") == 1:
                count += 1
                if os.fork() == 0:
                    answer(descriptors, os.path.join(folder, f"job-{count}"), server)
        except OSError:
            pass  # who asked is gone, or compiles by itself
        for descriptor in descriptors:
            os.close(descriptor)


def main():
    folder = sys.argv[1]
    sys.setrecursionlimit(10000)
    warnings.simplefilter("ignore")
    tempfile.tempdir = folder
    if sys.argv[2] == "--serve":
        serve(folder)
        return 0
    with open(sys.argv[2], "rb") as asked, open(sys.argv[3], "wb") as cubins, open(sys.argv[4], "wb") as report:
        return job(json.load(asked), cubins, report, folder)


status = main()
sys.stderr.flush()
os._exit(status)  # taking Triton down is a tenth of a second of work
