#!/usr/bin/env python3
"""The commands of docs/seeds.md that need nothing but this machine, from top to bottom, at small sizes.
usage: seeds.py TWAGENT"""
import os, re, shlex, subprocess, sys, tempfile

PROGRAM = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIZES = {"matmul": "@M=33,N=17,K=65", "softmax": "@M=16,N=64"}
MEASURING = ("run", "eval", "tune", "profile")
KERNEL = """void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
}
"""


def commands(page):
    """(command, what it needs) of each row of the tables."""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        found = re.search(r"`(twagent [^`]*)`", cells[1]) if line.startswith("| ") and len(cells) >= 2 else None
        if found:
            yield found.group(1), cells[2].strip(" |") if len(cells) > 2 else ""


def cached(env):
    done = subprocess.run([PROGRAM, "cache", "list", "--json"], env=env, capture_output=True, text=True)
    return next((name for name in re.findall(r'"name": ?"(c_matmul[^"]*)"', done.stdout)), "no kernel in the cache")


def words_of(command, env):
    words = [cached(env) if word == "NAME" else word for word in shlex.split(command)[1:]]
    if words[0] in MEASURING:
        words = [word.split("@")[0] + SIZES[word.split("@")[0]] if word.split("@")[0] in SIZES else word for word in words]
    return words


def ones(path, rows, columns):
    import struct
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }" % (rows, columns)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() +
                   struct.pack("<f", 1.0) * (rows * columns))


with tempfile.TemporaryDirectory(prefix="twagent-test-seeds.") as here:
    os.makedirs(here + "/config/twagent")
    os.makedirs(here + "/work")
    with open(here + "/config/twagent/config.yaml", "w") as file:  # what is told is looked at, not how precise it is
        file.write("time-budget: 20ms\nfinal: false\n")
    with open(here + "/work/my_kernel.c", "w") as file:
        file.write(KERNEL)
    starts = sorted(os.listdir(ROOT + "/problems/softmax/starts/cpu"))
    with open(ROOT + "/problems/softmax/starts/cpu/" + starts[0]) as start, open(here + "/work/tuned.c", "w") as file:
        file.write(start.read())
    ones(here + "/work/A.npy", 33, 65)
    ones(here + "/work/B.npy", 65, 17)
    env = dict(os.environ, TWAGENT_STORE=here + "/store", XDG_CONFIG_HOME=here + "/config", XDG_CACHE_HOME=here + "/cache",
               TWAGENT_LOCKS=here + "/locks", HOME=here)
    with open(ROOT + "/docs/seeds.md") as file:
        rows = list(commands(file.read()))
    ran, failed = 0, 0
    for command, needs in rows:
        if needs:
            continue
        ran += 1
        done = subprocess.run([PROGRAM, *words_of(command, env)], cwd=here + "/work", env=env, capture_output=True, text=True)
        if done.returncode not in (0, 1, 4) or not done.stdout.strip() or "usage:" in done.stderr:
            failed += 1
            print(f"FAILED: {command}: exit code {done.returncode}: {done.stdout[:300]}{done.stderr[-600:]}")
        if command.endswith("problem new mine"):
            with open(here + "/work/mine/spec.yaml") as file:
                spec = file.read().replace("1024", "64")
            with open(here + "/work/mine/spec.yaml", "w") as file:
                file.write(spec)
    print(f"{len(rows)} commands, {ran} run, {failed} failed")
    sys.exit(1 if failed or ran < 25 else 0)
