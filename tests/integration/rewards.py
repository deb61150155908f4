"""rewards.py TWAGENT FAKE_WORKER: POST /v1/evaluate: what is accepted gets its result, over kills, dying workers and floods; whose
turn it is; what is refused. Prints one line a row."""
import http.client, json, os, re, signal, socket, subprocess, sys, tempfile, time

TWAGENT, WORKER = (os.path.realpath(path) for path in sys.argv[1:3])
FAILED, STARTED = [], []


def check(truth, text):
    if not truth:
        FAILED.append(text)
    print("%s %s" % ("ok" if truth else "FAILED", text), flush=True)


class Server:
    def __init__(self, work, worker="", *words):
        with open(work + "/self", "w") as out:
            out.write('#!/bin/sh\n[ "$1" = worker ] && exec %s %s --notes %s/notes "$@"\nexec %s "$@"\n' % (WORKER, worker, work, TWAGENT))
        os.chmod(work + "/self", 0o755)
        environment = dict(os.environ, TWAGENT_SELF=work + "/self", TWAGENT_STORE=work + "/store", XDG_CONFIG_HOME=work + "/config",
                           XDG_CACHE_HOME=work + "/cache", TWAGENT_LOCKS=work + "/locks")
        with open(work + "/stderr", "w") as stderr:
            self.process = subprocess.Popen([TWAGENT, "serve", "--listen", "127.0.0.1:0", *words], env=environment, stdout=subprocess.PIPE,
                                            stderr=stderr, text=True, cwd=work)
        STARTED.append(self.process)
        self.port = int(re.search(r":(\d+)/", self.process.stdout.readline()).group(1))

    def ask(self, method, path, body=None, headers=None):
        for left in reversed(range(20)):  # who is late with a request is taken for slow, and has asked nothing
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
            try:
                connection.request(method, path, body, headers or {})
                answer = connection.getresponse()
                return answer.status, answer.read().decode(), answer
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                if left == 0:
                    raise
            finally:
                connection.close()

    def post(self, what, **headers):
        body = what if isinstance(what, (bytes, str)) else json.dumps(what)
        return self.ask("POST", "/v1/evaluate", body, {"Content-Type": "application/json", **headers})

    def ids(self, what):
        status, text, _ = self.post(what)
        if status != 202:
            check(False, "accepted: %d %s" % (status, text))
            return []
        return json.loads(text)["ids"]

    def result(self, one):
        return json.loads(self.ask("GET", "/v1/evaluations/" + one)[1])

    def facts(self):
        return json.loads(self.ask("GET", "/v1/evaluations")[1])

    def results(self, ids):
        for one in ids:
            while (found := self.result(one))["state"] != "done":
                time.sleep(0.05)
            yield found

    def stream(self, what=None, path="/v1/evaluate"):
        """A POST, or a GET, that is answered with events: the connection and its answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        connection.sock = socket.socket()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # who does not read is soon behind
        connection.sock.settimeout(300)
        connection.sock.connect(("127.0.0.1", self.port))
        headers = {"Accept": "text/event-stream", "Content-Type": "application/json"}
        connection.request("POST" if what else "GET", path, json.dumps(what) if what else None, headers)
        return connection, connection.getresponse()

    def end(self, how=signal.SIGINT):
        self.process.send_signal(how)
        return self.process.wait(timeout=600)


def events(answer):
    """Of a stream: each event's data, None for its end; it stops where the stream does."""
    name = ""
    for line in answer:
        line = line.decode().rstrip("\n")
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield None if name == "end" else json.loads(line[6:])


def item(text, **more):
    return dict({"problem": "softmax", "source": "/* %s */" % text}, **more)


def refusals(server):
    outside = os.path.realpath(__file__)
    for name, body, words in (
            ("no JSON", b"{", "the body"), ("a list", [1], "an object"), ("nothing", {}, "problem|source"), ("a key of no use", item("a", run=1), "run"),
            ("no source", {"problem": "softmax"}, "source"), ("a NUL", item("a", name="a\0.c"), "NUL"),
            ("a path as a name", item("a", name="../a.c"), "name"), ("no language", item("a", name="a.exe"), "language"),
            ("an unknown problem", item("a", problem="softmix"), "softmax"), ("a file of elsewhere", item("a", problem="/etc/passwd"), "folder"),
            ("a way there", item("a", problem="../" * 20 + "etc/passwd"), "folder|no problem"), ("ours", item("a", problem=outside), "folder"),
            ("an effort", item("a", effort="final"), "effort"), ("words to tune", item("a", tune={"BM": "64"}), "tune"),
            ("a large source", item("a" * (1 << 20)), "1 MiB"), ("no items", {"items": []}, "items"),
            ("too many", {"items": [item("a")] * 257}, "items"), ("one that is none", {"items": [item("a"), 3]}, r"items\[1\]"),
            ("a bad one", {"items": [item("a"), item("b", problem="x/y")]}, r"items\[1\]"), ("a client", item("a", client="a\n\x1b"), "client"),
            ("depth", b"[" * 100000, "the body")):
        status, text, _ = server.post(body)
        if status != 400 or not re.search(words, text) or "root:" in text or text.count("\n") != 1:
            check(False, "%s is refused with its reason: %d %r" % (name, status, text[:200]))
    check(server.facts()["waiting"] == 0, "what is no request is refused, and why is said")
    body = json.dumps(item("a"))
    check(server.ask("POST", "/v1/evaluate", body)[0] == 403, "no form of a page can ask")
    check(server.post(body, Origin="http://evil.example")[0] == 403, "nor a page of elsewhere")
    check(server.post(body, Host="evil.example")[0] == 421, "nor a name of elsewhere")
    try:
        status = server.post(b" " * (5 << 20))[0]
    except (BrokenPipeError, ConnectionResetError):
        status = 413
    check(status == 413, "nor more than 4 MiB: %d" % status)
    check(server.ask("GET", "/v1/evaluations/e99")[0] == 404 and server.ask("GET", "/v1/evaluations/../x")[0] == 404 and
          server.ask("GET", "/v1/evaluations/e1e")[0] == 404, "no such result")


def accepted_then_killed(work):
    """A lane that never opens: all waits. What was accepted is measured by the next process, each once."""
    server = Server(work, "--opens-never 1")
    refusals(server)
    many = server.ids({"client": "many", "problem": "softmax", "items": [{"source": "/* %d */" % i} for i in range(60)]})
    few = server.ids({"client": "few", "items": [item("few %d" % i, name="k.cc", tune={"BM": i}) for i in range(3)]})
    check(server.result(few[0])["state"] == "waiting", "it waits")
    for size in (190, 6):
        more = server.ids({"client": "many", "problem": "softmax", "items": [{"source": "/* %d %d */" % (size, i)} for i in range(size)]})
        many += more
    status, text, answer = server.post(item("one more", client="many"))
    check(status == 429 and int(answer.getheader("Retry-After")) > 0, "256 wait, the next is refused: %d %s" % (status, text))
    check(server.post({"client": "few", "items": [item("a")] * 254})[0] == 429, "all of a request or nothing")
    other = server.ids(item("other", client="other"))
    second = subprocess.run([TWAGENT, "list"], env=dict(os.environ, TWAGENT_STORE=work + "/store"), capture_output=True)
    check(second.returncode == 0, "the store of runs is free beside it")
    rival = Server(work, "")
    check(rival.post(item("a"))[0] == 503, "a second server of the store evaluates nothing")
    rival.end()
    server.end(signal.SIGKILL)
    server = Server(work, "--ms 0-2")
    everything = many + few + other
    found = list(server.results(everything))
    check(all(one["evaluation"]["verdict"] in ("kernel", "rejected", "failed") for one in found), "each of %d has its verdict" % len(found))
    check(server.facts()["accepted_before"] == len(everything), "after a kill -9")
    with open(work + "/notes") as notes:
        order = [line.split()[2].split(":")[1] for line in notes]
    check(sorted(order) == sorted(everything), "each was measured once")
    check(order.index(few[0]) < 4 and order.index(other[0]) < 5, "and who asked for few did not wait for many: %d, %d" %
          (order.index(few[0]), order.index(other[0])))
    check(server.end() == 0, "it ends by Ctrl-C")


def killed_on_the_way(work):
    """Workers that die, a server that is killed and one that is told to end, while clients go on."""
    known = []
    for round_number, how in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, None)):
        server = Server(work, "--ms 1-3 --dies 29")
        for i in range(3):
            known += server.ids({"items": [item("way %d %d %d" % (round_number, i, k), client="c%d" % (k % 3)) for k in range(16)]})
        if how:
            next(server.results(known[-20:]))
            server.end(how)
    found = list(server.results(known))
    span = json.loads(server.ask("GET", "/v1/evaluations/%s-%s" % (known[0], known[15]))[1])["items"]
    check([one["id"] for one in span] == known[:16] and span == found[:16], "those of a request in one answer")
    check({server.ask("GET", "/v1/evaluations/" + path)[0] for path in ("e2-e1", "e1-", "e1-e999", "e1-e2-e3", "e0", "e1-e9999")} == {404},
          "and no other")
    check(len(set(known)) == 192 == len(found) and all("evaluation" in one for one in found), "nothing that was accepted is lost")
    peer_frames = []
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    late = server.ids(item("late"))[0]
    connection.request("GET", "/v1/evaluations/" + late, headers={"Accept": "text/event-stream"})
    stream = connection.getresponse()
    while not peer_frames or peer_frames[-1]["state"] != "done":
        line = stream.readline().decode()
        if line.startswith("data: "):
            peer_frames.append(json.loads(line[6:]))
    connection.close()
    check(peer_frames[-1]["id"] == late, "a result comes as an event, too")
    check(server.end() == 0, "and it ends")


def streams(work):
    """What is posted, and followed in the same request."""
    server = Server(work, "--ms 1-3")
    connection, answer = server.stream({"problem": "softmax", "items": [{"source": "/* s %d */" % i} for i in range(40)]})
    seen = list(events(answer))
    ids = ["e%d" % i for i in range(1, 41)]
    check(answer.status == 200 and seen[-1] is None and None not in seen[:-1], "a POST as a stream has an end, and nothing after it")
    check([one["id"] for one in seen[:40]] == ids, "it begins with what was posted, in its order")
    check({one["id"]: one["state"] for one in seen[:-1]} == {one: "done" for one in ids}, "each has its result")
    rank = {"waiting": 0, "measuring": 1, "done": 2}
    states = [[rank[one["state"]] for one in seen[:-1] if one["id"] == name] for name in ids]
    check(all(own == sorted(set(own)) for own in states), "its states go one way, each once: %s" %
          [own for own in states if own != sorted(set(own))])
    check([one for one in seen[:-1] if one["state"] == "done" and one != server.result(one["id"])] == [], "the result is that of GET")
    again = list(events(server.stream(path="/v1/evaluations/e1-e40")[1]))
    check([one["id"] for one in again[:-1]] == ids and {one["state"] for one in again[:-1]} == {"done"} and again[-1] is None,
          "who comes later has all at once, and the end")
    check(server.stream(item("x", problem="none"))[1].status == 400 and server.stream(path="/v1/evaluations/e99")[1].status == 404,
          "what is refused is no stream")
    slow, answer = server.stream({"problem": "softmax", "client": "slow", "items": [{"source": "/* slow %d */" % i} for i in range(256)]})
    ids = ["e%d" % i for i in range(41, 297)]
    feed = events(answer)
    seen = [next(feed) for _ in server.results(ids)]  # an event a result is late, and no silence for which it would be dropped
    seen += feed
    check(sorted(one["id"] for one in seen[:-1] if one["state"] == "done") == sorted(ids) and seen[-1] is None,
          "who reads late misses no result")
    server.end()
    server = Server(work, "--opens-never 1")
    held = [server.stream(item("held %d" % i, client="h%d" % i)) for i in range(128)]
    check({answer.status for _, answer in held} == {200}, "128 follow")
    refused = [server.stream(item("one more"))[1].status, server.stream(path="/v1/evaluations/e297")[1].status]
    check(refused == [503, 503] and server.result("e424")["state"] == "waiting" and
          server.ask("GET", "/v1/evaluations/e425")[0] == 404, "the next is refused before anything is accepted: %s" % refused)
    check(len(server.ids(item("no stream"))) == 1, "who wants no events is not")
    for connection, answer in held[1:]:
        answer.close()
        connection.close()
    while server.stream(path="/v1/evaluations/e297")[1].status == 503:
        time.sleep(0.1)
    first = json.loads(held[0][1].readline()[6:])
    server.end(signal.SIGKILL)
    try:
        rest = list(events(held[0][1]))
    except (http.client.HTTPException, OSError):
        rest = []
    check(first["state"] == "waiting" and rest == [], "a server that is killed ends no stream by its word: %s" % rest)
    server = Server(work, "--ms 1-3")
    lost = [one for one in server.results(["e%d" % i for i in range(297, 426)]) if "evaluation" not in one]
    check(lost == [], "who went away lost nothing: %s" % lost)
    seen = list(events(server.stream(path="/v1/evaluations/" + first["id"])[1]))
    check(seen[-1] is None and seen[-2]["state"] == "done", "a stream is taken up again by its ids")
    check(server.end() == 0, "it ends")


def launcher(work, jobs):
    """A stand-in for srun: the Nth job is on node N. `jobs` has what stands in the shell for some of them."""
    with open(work + "/launch", "w") as out:
        out.write('#!/bin/sh\nn=1; until mkdir %s/job$n 2>/dev/null; do n=$((n + 1)); done\necho $$ >%s/job$n/pid\ncase $n in\n' % (work, work))
        out.write("".join("%s) %s;;\n" % (which, does) for which, does in jobs))
        out.write('esac\n[ "$2" = worker ] || exit 9\nexec %s --host node$n --ms 1-3 $more "$@"\n' % WORKER)
    os.chmod(work + "/launch", 0o755)
    return "--launcher", work + "/launch", "--lanes", "3"


def jobs_of(work):
    return [name for name in os.listdir(work) if name.startswith("job")]


def elsewhere(work):
    """Lanes behind a launcher: a worker each, for all problems; those that die, cannot start or never come cost no source."""
    server = Server(work, "", *launcher(work, (("2", 'more="--cpu other"'),)))
    found, nodes = [], {"node1", "node2", "node3"}
    while not found or (all("evaluation" in one for one in found) and {one["host"] for one in found} < nodes):  # until each had one
        ids = server.ids({"items": [item("far %d" % (len(found) + i), problem=("softmax", "gemv")[i % 2], client="c%d" % (i % 3))
                                    for i in range(60)]})
        found += server.results(ids)
    check(all("evaluation" in one for one in found) and {one["host"] for one in found} <= nodes,
          "results of lanes elsewhere say where: %s" % sorted({one["host"] for one in found}))
    lanes = server.facts()["lanes"]
    check(sorted(lane.get("host", "") for lane in lanes) == ["node1", "node2", "node3"] and {lane["state"] for lane in lanes} == {"open"},
          "and so do the lanes: %s" % lanes)
    machines = {lane["machine"] for lane in lanes}
    with open(work + "/stderr") as stderr:
        said = stderr.read()
    check(machines == {"fake", "other"} and re.search('warn queue.unlike cpu one lane is on "(fake|other)", another', said),
          "machines of two kinds are told apart: %s %s" % (machines, said))
    check({one["evaluation"]["device"]["cpu"] for one in found if one["host"] == "node2"} == {"other"}, "by each result, too")
    check(len(jobs_of(work)) == 3, "one job a lane measures both problems: %s" % jobs_of(work))
    for name in ("job1", "job2", "job3"):  # while they have nothing to do
        with open("%s/%s/pid" % (work, name)) as pid:
            os.kill(int(pid.read()), signal.SIGKILL)
    ids = server.ids({"items": [item("again %d" % i) for i in range(30)]})
    check(all(one["host"] in ("node4", "node5", "node6") for one in server.results(ids)), "jobs that ended are begun again")
    check(server.end() == 0, "it ends")
    left = work + "/left"
    os.mkdir(left)
    server = Server(left, "", *launcher(left, (("1", "exec sleep 1000"), ("2|4|5|6", "echo no node is free >&2; exit 1"), ("*", 'more="--dies 7"'))))
    ids = server.ids({"items": [item("worse %d" % i) for i in range(60)]})
    found = list(server.results(ids))
    check(all("evaluation" in one for one in found), "a job that waits, one that cannot start and workers that die cost no source: %s" %
          [one["error"] for one in found if "error" in one])
    lanes = server.facts()["lanes"]
    check("opens" in [lane["state"] for lane in lanes], "the one that waits for its node is named: %s" % lanes)
    with open("%s/job1/pid" % left) as pid:
        sleeper = int(pid.read())
    check(server.end() == 0 and not os.path.exists("/proc/%d" % sleeper), "it ends, with the job that waits")
    none = work + "/none"
    os.mkdir(none)
    server = Server(none, "", *launcher(none, (("*", "echo no node is free >&2; exit 1"),)))
    deadline = time.monotonic() + 300
    one = server.ids(item("never"))
    while not (lanes := [lane for lane in server.facts()["lanes"] if lane["state"] == "fails"]) and time.monotonic() < deadline:
        time.sleep(0.05)
    check(lanes and "no node is free" in lanes[0]["why"], "why a lane fails is said: %s" % lanes)
    check(server.result(one[0])["state"] == "waiting", "and its source waits")
    with open(none + "/stderr") as stderr:
        check("warn queue.open" in stderr.read(), "on its terminal, too")
    check(server.end() == 0, "it ends")
    few = subprocess.run([TWAGENT, "serve", "--listen", "127.0.0.1:0", "--lanes", "3", "--cores", "0"], capture_output=True, text=True,
                         env=dict(os.environ, TWAGENT_STORE=work + "/few"))
    check(few.returncode == 2 and "3 lanes need as many cores" in few.stderr, "more lanes here than cores are refused: %s" % few.stderr)


with tempfile.TemporaryDirectory() as folder:
    try:
        for name, part in (("one", accepted_then_killed), ("two", killed_on_the_way), ("three", elsewhere), ("four", streams)):
            os.makedirs(folder + "/" + name)
            part(folder + "/" + name)
    finally:
        for process in STARTED:
            process.kill()
sys.exit(1 if FAILED else 0)
