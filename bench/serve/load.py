"""load.py TWAGENT FAKE_WORKER [REQUESTS [LANES [MS]]]: 64 clients post REQUESTS (1000) sources to `twagent serve` and fetch
their results, while the server is killed with SIGKILL once and started again. With LANES so many lanes stand behind a
stand-in for srun, and clients follow what they post as a stream, which they take up again by its ids where it breaks. The
evaluator is a stand-in that takes 20 to 40 ms, or MS, a thirtieth of what a real one takes, so that the server has thirty
times its work. One client is greedy: it posts a third of all at once. Prints the lanes' busy share, what each client waited,
the server's memory, and what was lost, which fails it."""
import http.client, json, os, random, re, signal, statistics, subprocess, sys, tempfile, threading, time

TWAGENT, WORKER = (os.path.realpath(path) for path in sys.argv[1:3])
REQUESTS = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
LANES = int(sys.argv[4]) if len(sys.argv) > 4 else 0
MS = sys.argv[5] if len(sys.argv) > 5 else "20-40"
CLIENTS = 64


class Bench:
    def __init__(self, work):
        self.work, self.lock, self.refused, self.turned_away, self.again = work, threading.Lock(), 0, 0, 0
        self.ids, self.ends, self.waits, self.lost = {}, [], {}, []
        with open(work + "/self", "w") as out:
            out.write('#!/bin/sh\n[ "$1" = worker ] && exec %s --ms %s "$@"\nexec %s "$@"\n' % (WORKER, MS, TWAGENT))
        with open(work + "/launch", "w") as out:
            out.write('#!/bin/sh\nexec %s --ms %s --host node$$ "$@"\n' % (WORKER, MS))
        os.chmod(work + "/self", 0o755)
        os.chmod(work + "/launch", 0o755)
        self.start()

    def start(self):
        environment = dict(os.environ, TWAGENT_SELF=self.work + "/self", TWAGENT_STORE=self.work + "/store", XDG_CONFIG_HOME=self.work,
                           XDG_CACHE_HOME=self.work, TWAGENT_LOCKS=self.work + "/locks")
        lanes = ["--lanes", str(LANES), "--launcher", self.work + "/launch"] if LANES else []
        self.process = subprocess.Popen([TWAGENT, "serve", "--listen", "127.0.0.1:0", *lanes], env=environment, stdout=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+)/", self.process.stdout.readline()).group(1))

    def ask(self, method, path, body=None):
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
            try:
                connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read() or "{}") if answer.status < 300 else answer.getheader("Retry-After")
            except (OSError, http.client.HTTPException):
                with self.lock:
                    self.again += 1
                time.sleep(0.1)
            finally:
                connection.close()

    def follow(self, method, path, body=None):
        """A stream's events, until its end or until it breaks; or when to come again."""
        connection, name = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300), ""
        try:
            connection.request(method, path, body, {"Content-Type": "application/json", "Accept": "text/event-stream"})
            answer = connection.getresponse()
            if answer.status != 200:
                yield answer.getheader("Retry-After")
                return
            for line in answer:
                if line.startswith(b"data: ") and name != "end":
                    yield json.loads(line[6:])
                name = line[7:].strip().decode() if line.startswith(b"event: ") else name
        except (OSError, http.client.HTTPException):
            with self.lock:
                self.again += 1
            time.sleep(0.1)
        finally:
            connection.close()

    def streaming_client(self, number, count):
        name, chance, own, begun = "c%d" % number, random.Random(number), {}, time.monotonic()
        while len(own) < count:
            size = min(count - len(own), 200 if number == 0 else chance.randint(1, 4))
            body = json.dumps({"client": name, "problem": "softmax", "effort": "search", "items": [
                {"source": "/* %s %d %s */" % (name, len(own) + i, "x" * chance.randint(0, 20000))} for i in range(size)]})
            batch, events = {}, self.follow("POST", "/v1/evaluate", body)
            while len(batch) < size or any(state != "done" for state in batch.values()):
                for event in events:
                    if not isinstance(event, dict):
                        with self.lock:
                            self.refused += 1
                        time.sleep(min(float(event or 1), 2) * chance.random())
                        break
                    batch[event["id"]] = event["state"]
                    if "error" in event:
                        self.lost.append(event["id"])
                if not batch:
                    break
                first = int(next(iter(batch))[1:])
                events = self.follow("GET", "/v1/evaluations/e%d-e%d" % (first, first + size - 1))
            own.update(batch)
        with self.lock:
            self.ids[name] = list(own)
            self.waits[name] = time.monotonic() - begun

    def client(self, number, count):
        name, chance, own, begun = "c%d" % number, random.Random(number), [], time.monotonic()
        while len(own) < count:
            size = min(count - len(own), 200 if number == 0 else chance.randint(1, 4))
            body = json.dumps({"client": name, "problem": "softmax", "effort": "search", "items": [
                {"source": "/* %s %d %s */" % (name, len(own) + i, "x" * chance.randint(0, 20000))} for i in range(size)]})
            status, answer = self.ask("POST", "/v1/evaluate", body)
            if status == 202:
                own += answer["ids"]
            else:
                with self.lock:
                    self.refused += 1
                time.sleep(min(float(answer or 1), 2) * chance.random())
        for one in own:
            while True:
                status, answer = self.ask("GET", "/v1/evaluations/" + one)
                if status == 404 or (status == 200 and "error" in answer):
                    with self.lock:
                        self.lost.append(one)
                elif answer["state"] != "done":
                    time.sleep(0.2 + chance.random() / 5)
                    continue
                break
        with self.lock:
            self.ids[name] = own
            self.waits[name] = time.monotonic() - begun

    def memory(self):
        with open("/proc/%d/status" % self.process.pid) as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def main():
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(work)
        shares = [REQUESTS // 3] + [0] * (CLIENTS - 1)
        for i in range(REQUESTS - shares[0]):
            shares[1 + i % (CLIENTS - 1)] += 1
        memory = [bench.memory()]
        threads = [threading.Thread(target=bench.streaming_client if LANES else bench.client, args=(i, shares[i])) for i in range(CLIENTS)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        facts = lambda: bench.ask("GET", "/v1/evaluations")[1]
        while facts()["done"] < REQUESTS // 4:
            time.sleep(0.3)
        memory.append(bench.memory())
        before = facts()
        bench.process.send_signal(signal.SIGKILL)
        bench.process.wait()
        bench.start()
        while facts()["waiting"] + facts()["measuring"] > 2:
            memory.append(bench.memory())
            time.sleep(0.5)
        after = facts()
        for thread in threads:
            thread.join()
        took = time.monotonic() - began
        everything = [one for own in bench.ids.values() for one in own]
        others = sorted(wait for name, wait in bench.waits.items() if name != "c0")
        print("requests          %d of %d clients in %.1f s, 1 killed server; %d refused with 429, %d asked again" %
              (len(everything), CLIENTS, took, bench.refused, bench.again))
        for name, seen in (("before", before), ("after", after)):
            shares_busy = [100 * lane["busy_share"] for lane in seen["lanes"]]
            print("lanes busy        %.1f %% of %.1f s, %s the kill%s" %
                  (statistics.mean(shares_busy), seen["lanes"][0]["since_ms"] / 1000, name,
                   "" if len(shares_busy) == 1 else "; the least busy of %d %.1f %%" % (len(shares_busy), min(shares_busy))))
        print("fair              c0, with %d of them, had all after %.1f s; the others, with %d each, after %.1f s (median; last %.1f s)" %
              (shares[0], bench.waits["c0"], shares[1], statistics.median(others), others[-1]))
        print("server's memory   %d KiB at first, %d before the kill; after it %d to %d" %
              (memory[0], memory[1], min(memory[2:]), max(memory[2:])))
        print("lost              %d; ids given twice %d" % (len(bench.lost), len(everything) - len(set(everything))))
        bench.process.send_signal(signal.SIGINT)
        bench.process.wait()
        return 1 if bench.lost or len(everything) != len(set(everything)) or len(everything) != REQUESTS else 0


sys.exit(main())
