"""serve.py TWAGENT FAKE_WORKER: the live view beside a search: what it shows, who may come in, what a hostile client can do to
it, what a viewer that does not read costs, and `status --watch` in a pseudo-terminal. Prints one line a row."""
import atexit
import http.client
import json
import os
import pty
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time


class Server:
    def __init__(self, twagent, environment, listen):
        kept = environment.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"  # or memory() counts what was freed
        self.process = subprocess.Popen([twagent, "serve", "--listen", listen], env=dict(environment, ASAN_OPTIONS=kept),
                                        stdout=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)  # or ctest would wait for it until its limit
        self.line = self.process.stdout.readline()
        self.port = int(re.search(r":(\d+)/", self.line).group(1))
        self.token = (re.search(r"token=(\w+)", self.line) or [None, None])[1]

    def once(self, method, path, headers, body, host):
        connection = http.client.HTTPConnection(host, self.port, timeout=120)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        text = answer.read().decode("utf-8")
        connection.close()
        return answer.status, text, answer

    def ask(self, method, path, headers=None, body=None, host="127.0.0.1"):
        for _ in range(20):  # who is late with a request is taken for slow, and has asked nothing
            try:
                return self.once(method, path, headers, body, host)
            except (http.client.RemoteDisconnected, ConnectionError):
                pass
        return self.once(method, path, headers, body, host)

    def get(self, path, **headers):
        return self.ask("GET", path, headers)

    def raw(self, data, read=True):
        peer = socket.create_connection(("127.0.0.1", self.port), timeout=120)
        try:
            peer.sendall(data)
            return (peer.recv(65536), peer) if read else (b"", peer)
        except OSError:
            return b"", peer

    def memory(self):  # what it has of its own, in KiB
        with open("/proc/%d/status" % self.process.pid) as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

    def end(self):
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=300)


def events(server, path, enough):  # the frames that come until one is enough
    peer = socket.create_connection(("127.0.0.1", server.port), timeout=120)
    peer.sendall(("GET %s HTTP/1.0\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n" % path).encode())
    frames, stream = [], peer.makefile("r", encoding="utf-8", newline="\n")
    for line in stream:
        if line.startswith("data: "):
            frames.append(json.loads(line[6:]))
            if enough(frames):
                break
    peer.close()
    return frames


def metrics(text):  # a small reading of OpenMetrics; prometheus_client's parser agrees (docs/serve.md)
    types, samples = {}, {}
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""], lines[-2:]
    for line in lines[:-2]:
        if line.startswith("# TYPE "):
            name, kind = line.split(" ")[2:]
            assert name not in types, name
            types[name] = kind
        elif not line.startswith("# "):
            found = re.fullmatch(r'(\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)+)\} (\S+)', line)
            assert found, line
            family = re.sub("_total$|_info$", "", found[1])
            assert types.get(found[1] if types.get(found[1]) == "gauge" else family), line
            assert (found[1], found[2]) not in samples, line
            samples[found[1], found[2]] = float(found[3])
    return {name: value for (name, _), value in samples.items()}


def hostile(server, check):
    """What no client of ours sends."""
    for path in ("/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/runs/../../../etc/passwd", "/v1/runs/..%2f..%2fetc", "//etc/passwd",
                 "/runs/r1%00.html", "/runs/r1%0d%0aSet-Cookie:%20x", "/v1/runs/r99999999999999999999", "/x" * 2000, "/\xff"):
        status, text, _ = server.ask("GET", path.encode("latin-1").decode("latin-1") if path.isascii() else "/%ff")
        if status not in (400, 404, 414, 431) or "root:" in text:
            check(False, "%s is %d" % (path[:60], status))
    check(True, "no path leads out")
    huge, _ = server.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * (1 << 20) + b"\r\n\r\n")
    check(huge == b"" or b" 431 " in huge[:40] or b" 413 " in huge[:40], "a huge header is refused: %r" % huge[:40])
    many, _ = server.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: b\r\n" * 100000 + b"\r\n")
    check(many == b"" or many[9:10] == b"4", "so are many: %r" % many[:40])
    large, _ = server.raw(b"POST /v1/runs/r1/stop HTTP/1.1\r\nHost: localhost\r\nX-Twagent-Confirm: r1\r\nContent-Length: 99999999\r\n\r\n")
    check(b" 413 " in large[:40], "a large body is refused before it comes: %r" % large[:40])
    chunked, _ = server.raw(b"POST /v1/runs/r1/pause HTTP/1.1\r\nHost: localhost\r\nX-Twagent-Confirm: r1\r\n"
                            b"Transfer-Encoding: chunked\r\n\r\n" + (b"1000\r\n" + b"a" * 4096 + b"\r\n") * 50)
    check(b" 200 " not in chunked[:40], "and one that does not say its size, as it comes: %r" % chunked[:40])
    chance = random.Random(5)
    valid = b"GET /v1/runs HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nCookie: a=b\r\n\r\n"
    for i in range(200):
        data = bytearray(valid if i % 4 else bytes(chance.randrange(256) for _ in range(200)))
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        _, peer = server.raw(bytes(data[:chance.randrange(1, len(data) + 1)]), read=False)
        peer.close()
    check(server.get("/v1/runs")[0] == 200, "200 mutilated requests leave it as it was")


def control(server, check, state):
    stop = "/v1/runs/r1/stop"
    confirm = {"X-Twagent-Confirm": "r1"}
    own = {"Origin": "http://127.0.0.1:%d" % server.port}
    check(server.ask("POST", stop)[0] == 403, "no act without a confirmation")
    check(server.ask("POST", stop, {"X-Twagent-Confirm": "r2"})[0] == 400, "nor with another run's")
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1:%d.evil.example" % server.port):
        if server.ask("POST", stop, dict(confirm, Origin=origin))[0] != 403:
            check(False, "a page of %s can stop a run" % origin)
    check(server.ask("POST", stop, dict(confirm, **{"Sec-Fetch-Site": "cross-site"}))[0] == 403, "nor for a page of elsewhere")
    check(server.ask("GET", stop, confirm)[0] == 404 and server.ask("PUT", stop, confirm)[0] == 405, "nor by GET or PUT")
    check(server.ask("OPTIONS", stop, own)[0] == 405, "and no preflight is granted")
    check(state() == "running", "the run has noticed nothing of it")
    check(server.ask("POST", "/v1/runs/r1/pause", dict(confirm, **own))[0] == 200, "pause, from its own page")
    frames = events(server, "/v1/runs/r1/status", lambda seen: seen[-1]["state"] == "paused")
    check(frames[-1]["words"].startswith("PAUSED"), "and the page sees it: " + frames[-1]["words"])
    return lambda act: server.ask("POST", "/v1/runs/r1/" + act, dict(confirm, **own))[0]


def strangers(server, check):
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "127.0.0.1:80@evil.example", "", "[::1]x"):
        if server.get("/v1/runs", Host=host)[0] not in (400, 421):
            check(False, "Host: %s is let in" % host)
    check(server.get("/", Host="localhost:9999")[0] == 200, "names of elsewhere are refused, a forwarded port is not")
    if os.geteuid() == 0:  # so that another user can be had
        asked = subprocess.run([sys.executable, "-c", "import os, socket\nc = socket.socket(); os.setgid(65534); os.setuid(65534)\n"
                                "c.connect(('127.0.0.1', %d)); c.close(); c = socket.socket(); c.connect(('127.0.0.1', %d))\n"
                                "c.send(b'GET / HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n'); print(c.recv(12)[9:].decode())" %
                                (server.port, server.port)], capture_output=True, text=True)
        check(asked.stdout == "401\n", "another user of this machine is refused: %r %s" % (asked.stdout, asked.stderr[-300:]))
        other, ours = socket.socket(), socket.socket()  # a port that is ours towards another address
        for one in (other, ours):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.2", server.port))
        other.listen()
        ours.bind(("127.0.0.1", 0))
        ours.connect(("127.0.0.2", server.port))
        asked = subprocess.run([sys.executable, "-c", "import os, socket\nos.setgid(65534); os.setuid(65534); c = socket.socket()\n"
                                "c.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); c.bind(('127.0.0.1', %d))\n"
                                "c.connect(('127.0.0.1', %d)); c.send(b'GET / HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n')\n"
                                "print(c.recv(12)[9:].decode())" % (ours.getsockname()[1], server.port)], capture_output=True, text=True)
        check(asked.stdout == "401\n", "also from a port that is ours elsewhere: %r %s" % (asked.stdout, asked.stderr[-300:]))
        other.close()
        ours.close()


def tokens(twagent, environment, check):
    server = Server(twagent, environment, "0.0.0.0:0")
    token = server.token
    bearer = lambda text: server.get("/v1/runs", Authorization="Bearer " + text)[0]
    check(token and len(token) == 32 and "/?token=" + token in server.line, "at an address of others' it prints a token")
    check(server.get("/v1/runs")[0] == 401 and server.get("/v1/runs", Host="localhost")[0] == 401, "without it nobody comes in")
    wrong = ["", "x", token[:-1], token + "0", token[:-1] + ("0" if token[-1] != "0" else "1"), token.upper() + " "]
    check([bearer(text) for text in wrong] == [401] * len(wrong), "nor with one that is nearly it")
    check(bearer(token) == 200, "with it, in a header")
    status, text, answer = server.get("/?token=" + token)
    cookie = answer.getheader("Set-Cookie") or ""
    check(status == 200 and "HttpOnly" in cookie and "SameSite=Strict" in cookie and token not in text, "in the address once: " + cookie[:20])
    check(server.get("/v1/runs", Cookie=cookie.split(";")[0])[0] == 200, "then as a cookie")
    check(server.ask("POST", "/v1/runs/r1/stop", {"Cookie": cookie.split(";")[0], "Origin": "http://evil.example",
                                                  "X-Twagent-Confirm": "r1"})[0] == 403, "which another origin cannot use")
    check(os.stat(environment["TWAGENT_STORE"] + "/serve.token").st_mode & 0o77 == 0, "and its file is the user's own")
    check(server.end() == 0, "it ends by Ctrl-C")


def watch(twagent, environment, check):
    """`status --watch` in a terminal of 40 columns."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve("/bin/sh", ["sh", "-c", "stty cols 40 rows 24; exec %s status --watch r1" % twagent], environment)
    seen = b""
    while seen.count(b"\x1b[J") < 2:
        seen += os.read(terminal, 65536)
    os.write(terminal, b"\x03")
    try:
        while True:
            data = os.read(terminal, 65536)
            if not data:
                break
            seen += data
    except OSError:
        pass
    status = os.waitpid(pid, 0)[1]
    check(os.WIFEXITED(status) and os.WEXITSTATUS(status) == 130, "Ctrl-C ends status --watch, %d" % status)
    lines = re.sub(rb"\x1b\[[0-9;]*[A-Za-z]", b"", seen).decode("utf-8").replace("\r", "").split("\n")
    check(max(map(len, lines)) <= 40 and any("evaluated" in line for line in lines), "no line is wider than 40 columns")
    # A reader that goes away ends it, too.
    gone = subprocess.Popen([twagent, "status", "--watch", "--json", "r1"], env=environment, stdout=subprocess.PIPE, text=True)
    first = json.loads(gone.stdout.readline())
    gone.stdout.close()
    check(gone.wait(timeout=300) == 0 and first["state"] == "running", "and so does a pipe that nobody reads")


def main():
    twagent, worker = (os.path.realpath(path) for path in sys.argv[1:3])
    failed = 0

    def check(truth, text):
        nonlocal failed
        failed += not truth
        print("%s %s" % ("ok" if truth else "FAILED", text), flush=True)

    with tempfile.TemporaryDirectory() as work:
        with open(work + "/self", "w") as out:
            out.write('#!/bin/sh\n[ "$1" = worker ] && exec %s --ms 60-80 --final-ms 2 "$@"\nexec %s "$@"\n' % (worker, twagent))
        os.chmod(work + "/self", 0o755)
        environment = dict(os.environ, TWAGENT_SELF=work + "/self", TWAGENT_STORE=work + "/store", XDG_CONFIG_HOME=work + "/config",
                           XDG_CACHE_HOME=work + "/cache")
        server = Server(twagent, environment, "127.0.0.1:0")
        check(json.loads(server.get("/v1/runs")[1])["runs"] == [] and server.get("/metrics")[1] == "# EOF\n", "a store without runs")
        search = subprocess.Popen([twagent, "run", "matmul", "--rounds", "100000", "--branching", "2", "--seed", "3", "--quiet",
                                   "--floor-share", "0"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(search.kill)
        events(server, "/v1/runs", lambda seen: seen[-1]["runs"])
        # Half a request each, and a byte more now and then; and viewers that do not read.
        drips = [server.raw(b"GET / HTTP/1.1\r\nHost: local", read=False)[1] for _ in range(60)]
        memory = server.memory()
        view = b"GET /v1/runs/r1/status HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
        stalled = [server.raw(view, read=False)[1] for _ in range(40)]
        while not (seen := metrics(server.get("/metrics")[1])):  # what was made before the run is told for a while
            time.sleep(0.1)
        check(seen["twagent_live"] == 1 and seen["twagent_round"] >= 0, "metrics of the run that goes on")
        shown = subprocess.run([twagent, "status", "--metrics"], env=environment, capture_output=True, text=True, check=True).stdout
        check(metrics(shown).keys() == seen.keys(), "the same by status --metrics")
        page = server.get("/runs/r1")[2]
        policy = page.getheader("Content-Security-Policy")
        check("frame-ancestors 'none'" in policy and "unsafe" not in policy, "a page says what it may load")
        loads = re.findall(r'(?:src|href)="(/\w+\.\w+)"', server.get("/runs/r1")[1] + server.get("/")[1])
        check(len(loads) == 5 and {server.get(path)[0] for path in loads} == {200}, "which is there: %s" % loads)
        facts = json.loads(server.get("/v1/runs/r1/report")[1])
        check(facts["run"] == "r1" and len(facts["columns"]) > 20, "what the report's page draws from, while the run goes on")
        tag = server.get("/")[2].getheader("ETag")
        check(server.get("/", **{"If-None-Match": tag})[0] == 304, "and what is known is not sent again")
        state = lambda: json.loads(server.get("/v1/runs/r1/status")[1])["state"]
        act = control(server, check, state)
        strangers(server, check)
        hostile(server, check)
        tokens(twagent, environment, check)
        check(act("resume") == 200, "go on")
        frames = events(server, "/v1/runs/r1/status", lambda seen: seen[-1]["state"] == "running" and len(seen) > 1)
        check(len(frames) > 1, "and the page sees it go on")
        watch(twagent, environment, check)
        for drip in drips:  # late is fine: each is dropped at last, however often it sends a byte
            drip.settimeout(0.2)
            while True:
                try:
                    drip.send(b"a")
                    if drip.recv(1) == b"":
                        break
                except socket.timeout:
                    continue
                except OSError:
                    break
        check(True, "a request that never ends is dropped")
        grown = server.memory() - memory
        check(grown < 16 << 10, "40 viewers that do not read cost %d KiB, of %d" % (grown, memory))
        check(act("stop") == 200, "stop")
        events(server, "/v1/runs/r1/status", lambda seen: seen[-1]["state"] == "stopped")
        search.wait(timeout=300)
        check(search.returncode in (0, 4), "the run has ended in order, %d" % search.returncode)
        check(act("stop") == 409, "and cannot be stopped again")
        check(server.end() == 0, "Ctrl-C ends the server, whoever watches")
        for peer in stalled:
            peer.close()
    return failed > 0


sys.exit(main())
