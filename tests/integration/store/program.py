#!/usr/bin/python3
"""What can happen to a store, at the level of the program: program.py TWAGENT FAKE_WORKER
STORE_CHILD BROKEN_DISK_SO. Each case: a clear message, nothing acknowledged lost, and a run that
goes on once there is room. Prints what failed and exits non-zero."""

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TWAGENT, WORKER, CHILD, BROKEN = sys.argv[1:5]
EVALUATIONS = 60
WRITES = 150  # that a disk takes before it breaks: some evaluations' worth, and far from all
HANG_S = 250  # what waits longer has hung: a busy machine is late, and no more
failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED: " + what, flush=True)


def environment(**more):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TWAGENT")}
    return dict(kept, **more)


def arguments(store, evaluations=EVALUATIONS, ms="20-40"):
    return [TWAGENT, "run", "matmul", "--store", store, "--verbose", "--launcher",
            "%s --ms %s" % (WORKER, ms), "--budget-evaluations", str(evaluations), "--seed", "7",
            "--rounds", "100", "--floor-share", "0", "--disk-floor", "0"]


class Run:
    """A run in the background, its words in a file."""

    def __init__(self, folder, command, **env):
        self.words_file = os.path.join(folder, "words-%d" % random.getrandbits(40))
        self.out = open(self.words_file, "wb")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.out,
                                        stderr=self.out, env=environment(**env))

    def words(self):
        with open(self.words_file, "r", errors="replace") as file:
            return file.read()

    def wait_for(self, text):
        end = time.monotonic() + HANG_S
        while time.monotonic() < end:
            if text in self.words():
                return True
            if self.process.poll() is not None:
                return text in self.words()
            time.sleep(0.05)
        return False

    def end(self):
        try:
            return self.process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


def tool(*command, **env):
    done = subprocess.run([TWAGENT, *command], capture_output=True, text=True, timeout=HANG_S,
                          errors="replace", env=environment(**env))
    return done.returncode, done.stdout + done.stderr


def evaluated(store):
    """How many evaluations a reader finds."""
    done = subprocess.run([CHILD, "count", store], capture_output=True, text=True, timeout=HANG_S)
    return int(done.stdout) if done.returncode == 0 else -1


def last_words(run):
    return "".join("    " + line + "\n" for line in run.words().splitlines()[-6:])


def expect_whole(run, store, what, code=0, evaluations=EVALUATIONS):
    ended = run.end()
    expect(ended == code, "%s: exit %s, expected %s\n%s" % (what, ended, code, last_words(run)))
    found = evaluated(store)
    expect(found >= evaluations, "%s: %d evaluations of %d are stored" % (what, found, evaluations))


# --- no room, for a while ---


def on_broken_disk(folder, name, number):
    """Breaks by count, not by time: however late we are, the run is in its middle."""
    store, control = os.path.join(folder, name), os.path.join(folder, name + ".errno")
    with open(control, "w") as file:
        file.write("%d %d" % (number, WRITES))
    return store, control, Run(folder, arguments(store), LD_PRELOAD=BROKEN, BROKEN_DISK=control,
                               ASAN_OPTIONS="verify_asan_link_order=0")


def wait_then_room(folder, name, number):
    """The disk refuses writes for some seconds in the middle of a run."""
    store, control, run = on_broken_disk(folder, name, number)
    expect(run.wait_for("store.full"), "%s: nothing is said\n%s" % (name, last_words(run)))
    expect("othing is lost" in run.words(), "%s: the message does not say that nothing is lost" % name)
    before = evaluated(store)
    expect(0 < before < EVALUATIONS, "%s: %d evaluations before it broke" % (name, before))
    time.sleep(2.5)
    expect(run.process.poll() is None, "%s: the run ended\n%s" % (name, last_words(run)))
    expect(evaluated(store) == before, "%s: something was stored on a disk that refuses" % name)
    os.unlink(control)
    expect_whole(run, store, name)
    expect("store.room" in run.words(), "%s: that there is room again is not said" % name)


def stop_while_full(folder):
    store, control, run = on_broken_disk(folder, "stopped", errno.ENOSPC)
    expect(run.wait_for("store.full"), "stopped: nothing is said\n%s" % last_words(run))
    before = evaluated(store)
    run.process.send_signal(signal.SIGTERM)
    ended = run.end()
    expect(ended is not None, "stopped: still there after SIGTERM\n%s" % last_words(run))
    expect(ended is None or ended >= 0, "stopped: ended by signal %s\n%s" % (ended, last_words(run)))
    os.unlink(control)
    expect(evaluated(store) >= before > 0, "stopped: acknowledged evaluations are missing")
    again = Run(folder, [TWAGENT, "resume", "r1", "--store", store, "--verbose", "--launcher",
                         "%s --ms 20-40" % WORKER, "--disk-floor", "0"])
    expect_whole(again, store, "resumed after a full disk")


def full_map(folder):
    store = os.path.join(folder, "map")
    many = 150
    expect(sh(CHILD, "ballast", store, "650000"), "map: no ballast")
    run = Run(folder, arguments(store, many, "1-2"), TWAGENT_STORE_MAP_MIB="1")
    expect(run.wait_for("store.full"), "map: a map of 1 MiB is never full\n%s" % last_words(run))
    expect("TWAGENT_STORE_MAP_MIB" in run.words(), "map: the way out is not said")
    before = evaluated(store)
    run.process.send_signal(signal.SIGTERM)
    expect(run.end() is not None, "map: still there after SIGTERM\n%s" % last_words(run))
    expect(evaluated(store) == before > 0, "map: acknowledged evaluations are missing")
    again = Run(folder, [TWAGENT, "resume", "r1", "--store", store, "--verbose", "--launcher",
                         "%s --ms 1-2" % WORKER, "--disk-floor", "0"])
    expect_whole(again, store, "resumed with a larger map", evaluations=many)


# --- what needs a mount ---


def mounted(folder):
    """Mounts of our own: again in a namespace, as root of one where we are not root."""
    me = [sys.executable, os.path.abspath(__file__), TWAGENT, WORKER, CHILD, BROKEN, "--mounted",
          folder]
    for flags in (["-m"], ["-m", "-U", "-r"]):
        can = subprocess.run(["unshare", *flags, "mount", "-t", "tmpfs", "none", folder],
                             capture_output=True)
        if can.returncode == 0:
            done = subprocess.run(["unshare", *flags, *me])
            expect(done.returncode == 0, "on a file system of its own: exit %d" % done.returncode)
            return
    print("skipped: no file system may be mounted here")


def sh(*command):
    return subprocess.run(command, capture_output=True).returncode == 0


def on_small_disk(folder):
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    expect(sh("mount", "-t", "tmpfs", "-o", "size=320k", "small", disk), "small disk: no mount")
    store = os.path.join(disk, "store")
    run = Run(folder, arguments(store))
    expect(run.wait_for("store.full"), "small disk: never full\n%s" % last_words(run))
    expect("is the disk full?" in run.words(), "small disk: the message\n%s" % last_words(run))
    time.sleep(2.5)
    expect(run.process.poll() is None, "small disk: the run ended\n%s" % last_words(run))
    said, deadline = "", time.monotonic() + HANG_S
    while "is full, and the run waits" not in said and time.monotonic() < deadline:
        time.sleep(0.5)
        _, said = tool("status", "r1", "--store", store)
    expect("PAUSED" in said and "is full" in said, "small disk: status says\n%s" % said)
    sh("mount", "-o", "remount,size=64m", disk)
    expect_whole(run, store, "small disk")
    expect(sh("mount", "-o", "remount,ro", disk), "read-only: no remount")
    code, words = tool("list", "--store", store)
    expect(code == 0 and "r1" in words, "read-only: list says %d %s" % (code, words))
    run = Run(folder, arguments(store))
    code = run.end()
    expect(code == 3, "read-only: run exits %s\n%s" % (code, last_words(run)))
    expect("Read-only file system" in run.words(), "read-only: %s" % last_words(run))
    sh("mount", "-o", "remount,rw", disk)
    expect(evaluated(store) >= EVALUATIONS, "read-only: evaluations are missing")


# --- damage, other owners, other versions ---


def content(path):
    with open(path, "rb") as file:
        return file.read()


def refused(store, what, word, code=None):
    before = content(os.path.join(store, "data.mdb"))
    for command in (["list", "--store", store], ["show", "r1", "--store", store],
                    arguments(store)[1:]):
        ended, words = tool(*command)
        name = "%s: %s" % (what, command[0])
        expect(ended > 0 and (code is None or ended == code), "%s exits %d" % (name, ended))
        expect(word in words, "%s says: %s" % (name, words[-300:]))
    expect(content(os.path.join(store, "data.mdb")) == before, what + ": the file was changed")


def damaged(folder, whole):
    copy = os.path.join(folder, "damaged")
    data = os.path.join(copy, "data.mdb")
    good = content(os.path.join(whole, "data.mdb"))
    shutil.copytree(whole, copy)
    for length in (0, 100, 4096, len(good) // 2):
        with open(data, "wb") as file:
            file.write(good[:length])
        refused(copy, "cut to %d bytes" % length, "damaged")
    os.unlink(data)
    code, words = tool("list", "--store", copy)
    expect(code > 0 and "damaged" in words, "gone: list says %d %s" % (code, words))
    drawn = random.Random(5)
    _, right = tool("list", "--store", whole, "--json")
    found = 0
    for _ in range(60):
        place = drawn.randrange(len(good))
        bad = bytearray(good)
        bad[place] ^= 1 << drawn.randrange(8)
        with open(data, "wb") as file:
            file.write(bad)
        code, words = tool("list", "--store", copy, "--json")
        expect(code >= 0, "bit of byte %d: list died of signal %d" % (place, -code))
        expect(words == right or (code > 0 and "damaged" in words),
               "bit of byte %d: exit %d: %s" % (place, code, words[:300]))
        found += code > 0
    print("of 60 flipped bits %d were in what `list` reads" % found)


def second_instance(folder):
    store, control, first = on_broken_disk(folder, "two", errno.ENOSPC)  # it waits for us in its middle
    expect(first.wait_for("store.full"), "two: the disk does not break\n%s" % last_words(first))
    code, words = tool(*arguments(store)[1:])
    expect(code == 3 and "process %d has the store" % first.process.pid in words and "--store FOLDER" in words,
           "two: exit %d: %s" % (code, words[-300:]))
    code, words = tool("list", "--store", store)
    expect(code == 0 and "r1" in words, "two: a reader beside it: %d %s" % (code, words))
    os.unlink(control)
    expect_whole(first, store, "two")


def few_addresses(folder):
    """A job of some GiB, all of which no map of 64 GiB has room in."""
    limited = ["sh", "-c", "ulimit -v 8000000 && exec \"$@\"", "sh"]
    if not sh(*limited, TWAGENT, "--version"):
        print("skipped: a sanitizer needs more addresses")
        return
    store = os.path.join(folder, "addresses")
    expect_whole(Run(folder, limited + arguments(store)), store, "ulimit -v")
    expect(sh(*limited, TWAGENT, "list", "--store", store), "ulimit -v: list")


def versions(folder, whole):
    copy = os.path.join(folder, "version")
    for schema, word in ((2, "newer twagent"), (9, "newer twagent")):
        shutil.copytree(whole, copy)
        expect(sh(CHILD, "schema", copy, str(schema)), "schema %d: not written" % schema)
        refused(copy, "schema %d" % schema, word)
        shutil.rmtree(copy)
    shutil.copytree(whole, copy)
    expect(sh(CHILD, "older-tables", copy), "older tables: not written")
    for command in (["list"], ["show", "r1"]):
        code, words = tool(*command, "--store", copy)
        expect(code == 0 and "r1" in words, "older tables: %s: %d %s" % (command[0], code, words))
    expect_whole(Run(folder, arguments(copy)), copy, "a run in an older store")
    code, words = tool("list", "--store", copy)
    expect("r1" in words and "r2" in words, "older tables: runs are missing: %s" % words)


def main():
    if len(sys.argv) > 6:
        on_small_disk(sys.argv[6])
        return 1 if failures else 0
    folder = tempfile.mkdtemp(prefix="twagent-store-program-")
    try:
        whole = os.path.join(folder, "whole")
        expect_whole(Run(folder, arguments(whole)), whole, "undisturbed")
        for name, number in (("ENOSPC", errno.ENOSPC), ("EIO", errno.EIO), ("EROFS", errno.EROFS)):
            wait_then_room(folder, name, number)
        stop_while_full(folder)
        full_map(folder)
        mounted(folder)
        damaged(folder, whole)
        second_instance(folder)
        few_addresses(folder)
        versions(folder, whole)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("%d failures" % len(failures))
    return 1 if failures else 0


sys.exit(main())
