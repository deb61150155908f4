"""What a Triton candidate's compile takes in a batch:  bench/cuda/triton_compile.py TWAGENT [AT_ONCE]

Points of the tune spaces of matmul, softmax and relu, each for what is known of its numbers at the check shapes, as an
evaluation asks for it: without the cache by the compile server, which is warm (TWAGENT_TRITON_PYTHON names the Python),
AT_ONCE side by side (2). No GPU is needed.
"""

import concurrent.futures
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = os.environ.get("TWAGENT_TRITON_PYTHON", sys.executable)
STARTS = {  # file, pointers, shapes (the main one first), points
    "matmul": (
        "matmul/starts/triton/blocks.py",
        3,
        [(4096, 4096, 4096), (1, 1, 1), (1, 67, 129), (131, 1, 31), (127, 65, 33)],
        [
            ({"BM": m, "BN": n, "BK": 32, "GROUP": 8}, {"num_warps": w, "num_stages": s})
            for m, n in ((64, 64), (128, 64), (64, 128))
            for w, s in ((4, 3), (8, 2))
        ],
    ),
    "softmax": (
        "softmax/starts/triton/rows.py",
        2,
        [(16384,), (1,), (17,)],
        [({"BLOCK": b}, {"num_warps": w}) for b in (4096, 2048, 8192) for w in (8, 4)],
    ),
    "relu": (
        "relu/starts/triton/linear.py",
        2,
        [(8192, 8192), (1, 1), (1, 17), (7, 61)],
        [({"BLOCK": b}, {"num_warps": w}) for b in (1024, 2048, 4096) for w in (4, 8)],
    ),
}


def known(number):
    return "1" if number == 1 else "16" if number % 16 == 0 else ""


def requests():
    for name, (file, pointers, shapes, points) in STARTS.items():
        with open(os.path.join(ROOT, "problems", file), encoding="utf-8") as opened:
            source = opened.read()
        variants = []
        for shape in shapes + [(7,) * len(shapes[0])]:
            variant = [""] * pointers + [known(number) for number in shape]
            variants += [variant] if variant not in variants else []
        for constexprs, options in points:
            launch = {
                "entry": name,
                "args": ["fp32"] * pointers + ["int"] * len(shapes[0]),
                "said": [],
                "constexprs": constexprs,
                "options": options,
                "variants": variants,
            }
            yield name, json.dumps({"source": source, "arch": 90, "launches": [launch]}).encode()


def ask(server, request):
    """Seconds, those of CPU time, and how many kernels came of it."""
    begun = time.monotonic()
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as cubins, tempfile.TemporaryFile() as report:
        asked.write(request)
        asked.seek(0)
        here, there = os.pipe()
        socket.send_fds(server, [b"Asm_90a\0"], [asked.fileno(), cubins.fileno(), report.fileno(), 2, there])
        os.close(there)
        answer = b""
        while len(answer) < 5 and (more := os.read(here, 5 - len(answer))):
            answer += more
        os.close(here)
        if answer != b"a" + bytes(4):
            sys.exit(f"the server answered {answer!r}")
        report.seek(0)
        told = json.load(report)
        return time.monotonic() - begun, told["cpu_ms"] / 1e3, len(told["kernels"])


def main():
    twagent, at_once = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 2
    prefixes = subprocess.check_output(
        [PYTHON, "-I", "-c", "import sys; print(sys.prefix, sys.base_prefix, sep='\\n')"], text=True
    ).split()
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    script_of_ours = os.path.join(ROOT, "libexec", "triton_compile.py")
    command = [twagent, "cuda-compile", "--triton-serve", PYTHON, *prefixes, script_of_ours]
    script = 'exec 3<&"$0"; exec "$@"'
    child = subprocess.Popen(["bash", "-c", script, str(its.fileno()), *command], pass_fds=[its.fileno()])
    its.close()
    todo = list(requests())
    first = ask(ours, todo[-1][1])[0]
    begun, each, kernels = time.monotonic(), {name: [] for name in STARTS}, 0
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for name, (seconds, cpu, count) in pool.map(lambda job: (job[0], ask(ours, job[1])), todo):
            each[name].append((seconds, cpu))
            kernels += count
    whole = time.monotonic() - begun
    ours.close()
    child.wait()
    for name, times in each.items():
        seconds, cpu = (statistics.median(column) for column in zip(*times))
        print(f"{name:<8} {len(times)} candidates, {seconds:.2f} s from request to answer, {cpu:.2f} s of CPU time")
    cpu = sum(cpu for times in each.values() for _, cpu in times) / len(todo)
    print(f"batch    {whole / len(todo):.2f} s a candidate, {cpu:.2f} s of CPU time: {cpu / 2:.2f} s on two idle cores")
    print(f"         {len(todo)} candidates, {kernels} kernels, {at_once} at once, {os.cpu_count()} cores, load")
    print(f"         {os.getloadavg()[0]:.1f}; the first, with the server's start, {first:.2f} s")


main()
