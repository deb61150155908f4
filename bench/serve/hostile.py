"""hostile.py TWAGENT FAKE_WORKER [SECONDS [SEED]]: clients that mean no good post to `twagent serve` for SECONDS (60), while it is killed
with SIGKILL every 4 to 12 s and started again, on four lanes behind a stand-in for srun whose workers die in every 97th
evaluation. Prints what came of it; fails where a source that a client was told of has no result, or the server ends by itself."""
import http.client, json, os, random, re, signal, socket, struct, subprocess, sys, tempfile, threading, time

TWAGENT, WORKER = (os.path.realpath(path) for path in sys.argv[1:3])
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 60
random.seed(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
KEPT = 10000  # results, the last ones
STOP, LOCK, TOLD, COUNTS = threading.Event(), threading.Lock(), set(), {}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


PORT = free_port()


def count(what):
    with LOCK:
        COUNTS[what] = COUNTS.get(what, 0) + 1


def start(work):
    environment = dict(os.environ, TWAGENT_STORE=work + "/store", XDG_CONFIG_HOME=work, XDG_CACHE_HOME=work, TWAGENT_LOCKS=work + "/locks")
    command = [TWAGENT, "serve", "--listen", "127.0.0.1:%d" % PORT, "--lanes", "4", "--launcher", work + "/launch"]
    with open(work + "/err", "a") as errors:
        server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=work)
    server.stdout.readline()
    return server


def request(items, client, most=0):
    """A POST of so many sources as a stream: its head and its body."""
    sources = [{"source": "/* %s %f %s */" % (client, random.random(), "x" * random.randint(0, most))} for _ in range(items)]
    body = json.dumps({"client": client, "problem": random.choice(["softmax", "gemv"]), "effort": "search", "items": sources}).encode()
    head = ("POST /v1/evaluate HTTP/1.1\r\nHost: localhost:%d\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n"
            "Content-Length: %d\r\n\r\n" % (PORT, len(body)))
    return head.encode(), body


def connect(buffer=None):
    peer = socket.socket()
    if buffer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    peer.settimeout(20)
    peer.connect(("127.0.0.1", PORT))
    return peer


def note(got):
    """What the server said of sources: it has to keep its word."""
    with LOCK:
        TOLD.update(one.decode() for one in re.findall(rb'"id":"(e\d+)"', got))


def leaves(number):
    """Follows what it posts, and goes at a random moment, at times with a reset."""
    with connect(random.choice([None, 2048])) as peer:
        peer.sendall(b"".join(request(random.randint(1, 20), "leaves%d" % number, 3000)))
        got, end = b"", time.monotonic() + random.choice([0, 0.01, 0.1, 1, 5])
        try:
            while (left := end - time.monotonic()) > 0:
                peer.settimeout(max(left, 0.01))
                more = peer.recv(65536)
                if not more:
                    break
                got += more
        finally:
            note(got)
            count("streams to their end" if b"event: end" in got else "streams that were left")
            if random.random() < 0.3:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def halves(_):
    """Sends a part of a request."""
    with connect() as peer:
        whole = b"".join(request(3, "halves"))
        peer.sendall(whole[:random.randint(1, len(whole) - 1)])
        count("halves of requests")
        STOP.wait(random.random() * 6 if random.random() < 0.3 else 0.02)


def never_reads(number):
    with connect(1024) as peer:
        peer.sendall(b"".join(request(64, "never%d" % number, 100)))
        count("streams that nobody read")
        STOP.wait(random.random() * 40)


def floods(_):
    peers = [connect() for _ in range(40)]
    STOP.wait(random.random())
    for peer in peers:
        peer.close()
    count("floods of 40 connections")


def honest(number):
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    try:
        connection.request("POST", "/v1/evaluate", request(4, "honest%d" % number)[1],
                           {"Content-Type": "application/json", "Accept": "text/event-stream"})
        answer = connection.getresponse()
        if answer.status != 200:
            STOP.wait(0.2)
        for line in answer:
            note(line)
            if line.startswith(b"event: end"):
                count("honest streams to their end")
    finally:
        connection.close()


def again_and_again(act, number):
    while not STOP.is_set():
        try:
            act(number)
        except (OSError, http.client.HTTPException):
            STOP.wait(0.05)


def get(path):
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read()
            return json.loads(text) if answer.status == 200 else {"state": answer.status}
        except (OSError, http.client.HTTPException):
            time.sleep(0.1)
        finally:
            connection.close()


def memory(server):
    with open("/proc/%d/status" % server.pid) as lines:
        return next((int(line.split()[1]) for line in lines if line.startswith("RssAnon")), 0)


def main(work):
    with open(work + "/launch", "w") as out:
        out.write('#!/bin/sh\nexec %s --host node$$ --ms 2-8 --dies 97 "$@"\n' % WORKER)
    os.chmod(work + "/launch", 0o755)
    server, kills, seen, died = start(work), 0, [], False
    threads = [threading.Thread(target=again_and_again, args=(act, i))
               for act, many in ((leaves, 20), (halves, 4), (never_reads, 6), (honest, 6), (floods, 2)) for i in range(many)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and not died:
        STOP.wait(random.uniform(4, 12))
        died = server.poll() is not None
        seen.append(0 if died else memory(server))
        server.kill()
        server.wait()
        server, kills = start(work), kills + 1
    STOP.set()
    for thread in threads:
        thread.join()
    while (facts := get("/v1/evaluations"))["waiting"] + facts["measuring"] > 0:
        time.sleep(0.3)
    results = {one: get("/v1/evaluations/" + one) for one in TOLD}
    oldest = max(int(one[1:]) for one in TOLD) - KEPT + 2000  # later ones, of which nobody was told, may have cost some
    lost = sorted(one for one, result in results.items() if result["state"] != "done" and int(one[1:]) > oldest)
    print("told            %d sources; lost %d %s; without a verdict %d" %
          (len(TOLD), len(lost), lost[:5], sum("error" in result for result in results.values())))
    print("killed          %d times%s" % (kills, ", and it ENDED BY ITSELF" if died else ""))
    for what, many in sorted(COUNTS.items()):
        print("%-15s %d" % ("", many), what)
    print("server's memory %d KiB before a kill at most, %d at the end; %d open files" %
          (max(seen), memory(server), len(os.listdir("/proc/%d/fd" % server.pid))))
    server.send_signal(signal.SIGINT)
    return 1 if lost or died or server.wait(60) != 0 else 0


with tempfile.TemporaryDirectory() as folder:
    sys.exit(main(folder))
