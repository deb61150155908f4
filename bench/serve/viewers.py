"""viewers.py TWAGENT FAKE_WORKER [PAIRS [MS [ROUNDS]]]: what 50 viewers cost the search that they watch, and what 50 cost that never read.

The same search (same seed, a store of its own, an evaluator that takes MS, 20-40 milliseconds, a fraction of what a real one takes;
ROUNDS of 8 ideas, 3) with `twagent serve` beside it, in turns: nobody watches, 50 streams of events of the run are read. Which comes
first alternates. Three slow-downs in many short pairs, as medians with 95 % intervals (by signs): of the search's wall time, which
strays with whatever else runs; the processor time that all of the search's processes take more, as a share of the search's wall time,
which does not; and that together with what the server takes more, which bounds the slow-down also where every moment of the server's
were one that the search waited for a core. (The kernel counts processor time to the nanosecond, whatever else runs.)"""
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

VIEWERS = 50


class Viewers(threading.Thread):
    def __init__(self, port, reads):
        super().__init__(daemon=True)
        self.ended = False
        self.bytes = 0
        self.selector = selectors.DefaultSelector()
        self.peers = [socket.create_connection(("127.0.0.1", port)) for _ in range(VIEWERS)]
        for peer in self.peers:
            peer.sendall(b"GET /v1/runs/r1/status HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n")
            if reads:
                self.selector.register(peer, selectors.EVENT_READ)

    def run(self):
        while not self.ended:
            for key, _ in self.selector.select(0.5):
                self.bytes += len(key.fileobj.recv(65536))

    def end(self):
        self.ended = True
        self.join()
        for peer in self.peers:
            peer.close()


def cpu_s(pid):
    """Of all threads; those that ended are few and short."""
    total = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, thread)) as stat:
            total += int(stat.read().split()[0])
    return total / 1e9


def own_kib(pid):
    with open("/proc/%d/status" % pid) as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def turn(twagent, worker, work, kind, ms, rounds):
    """One search, watched as `kind` says: its seconds, the server's share of a core, its memory's growth, bytes read, the
    processor's seconds for the search, and for the server meanwhile."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        with open(folder + "/self", "w") as out:
            out.write('#!/bin/sh\n[ "$1" = worker ] && exec %s --ms %s --final-ms 2 "$@"\nexec %s "$@"\n' % (worker, ms, twagent))
        os.chmod(folder + "/self", 0o755)
        environment = dict(os.environ, TWAGENT_SELF=folder + "/self", TWAGENT_STORE=folder + "/store", XDG_CONFIG_HOME=folder,
                           XDG_CACHE_HOME=folder, TWAGENT_LOCKS=folder)
        server = subprocess.Popen([twagent, "serve", "--listen", "0"], env=environment, stdout=subprocess.PIPE, text=True)
        port = int(re.search(r":(\d+)/", server.stdout.readline()).group(1))
        begun = time.monotonic()
        search = subprocess.Popen([twagent, "run", "matmul", "--force", "--rounds", rounds, "--branching", "8", "--seed", "7", "--floor-share", "0",
                                   "--quiet"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(folder + "/store/logs/r1.log"):
            time.sleep(0.01)
        memory, used = own_kib(server.pid), cpu_s(server.pid)
        viewers = Viewers(port, kind == "read") if kind != "none" else None
        if viewers:
            viewers.start()
        _, _, usage = os.wait4(search.pid, 0)  # its own and that of all that it waited for: workers, compilers
        search.returncode = 0
        seconds = time.monotonic() - begun
        served, growth = cpu_s(server.pid) - used, own_kib(server.pid) - memory
        if viewers:
            viewers.end()
        server.send_signal(signal.SIGINT)
        server.wait()
        return seconds, served / seconds, growth, viewers.bytes if viewers else 0, usage.ru_utime + usage.ru_stime, served


def interval(values):
    """Median, and the order statistics that hold it in 95 % of cases."""
    ordered, n = sorted(values), len(values)
    below, k, chance = 0.0, 0, 0.5 ** n
    while below + chance <= 0.025 and k < n // 2:
        below += chance
        k += 1
        chance = chance * (n - k + 1) / k
    middle = ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2
    return middle, ordered[max(k - 1, 0)], ordered[min(n - k, n - 1)]


def main():
    twagent, worker = (os.path.realpath(path) for path in sys.argv[1:3])
    pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    ms, rounds = (sys.argv[4:] + ["20-40", "3"][len(sys.argv[4:]):])[:2]
    walls, processors, all_of_it, results = [], [], [], {"none": [], "read": [], "stalled": []}
    with tempfile.TemporaryDirectory() as work:
        turn(twagent, worker, work, "none", ms, rounds)
        for pair in range(pairs):
            for kind in ("none", "read") if pair % 2 else ("read", "none"):
                results[kind].append(turn(twagent, worker, work, kind, ms, rounds))
            read, none = results["read"][-1], results["none"][-1]
            walls.append(100 * (read[0] / none[0] - 1))
            processors.append(100 * (read[4] - none[4]) / none[0])
            all_of_it.append(100 * (read[4] + read[5] - none[4] - none[5]) / none[0])
            if pair % 4 == 0:
                results["stalled"].append(turn(twagent, worker, work, "stalled", ms, rounds))
    print("%d pairs, searches of %.1f s; load %.1f on %d cores" %
          (pairs, interval([r[0] for r in results["none"]])[0], os.getloadavg()[0], os.cpu_count()))
    print("wall time with %d viewers: %+.2f %% (95 %%: %.2f to %.2f)" % ((VIEWERS,) + interval(walls)))
    print("processor time of the search's processes: %+.2f %% of its wall time (95 %%: %.2f to %.2f), of %.1f %%" %
          (interval(processors) + (100 * interval([r[4] / r[0] for r in results["none"]])[0],)))
    print("together with the server's: %+.2f %% (95 %%: %.2f to %.2f)" % interval(all_of_it))
    for kind, words in (("none", "nobody watches"), ("read", "%d read" % VIEWERS), ("stalled", "%d never read" % VIEWERS)):
        print("%-16s server %.2f %% of a core, %d KiB more, %d KiB read" %
              (words, 100 * interval([r[1] for r in results[kind]])[0], interval([r[2] for r in results[kind]])[0],
               interval([r[3] for r in results[kind]])[0] // 1024))


main()
