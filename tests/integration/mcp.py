#!/usr/bin/env python3
"""twagent mcp as a client sees it: the protocol, what hostile clients send, and what is left when one goes.
usage: mcp.py TWAGENT [PART...]. With the official SDK installed (pip install mcp) its client talks to it, too: the part sdk,
which alone exits with 77 where there is none."""
import json, os, signal, subprocess, sys, tempfile, threading, time

PROGRAM = os.path.abspath(sys.argv[1])
HERE = tempfile.mkdtemp(prefix="twagent-test-mcp.")
WORK, FAILED, SKIPPED = os.path.join(HERE, "work"), [], []
os.makedirs(WORK)
ENV = dict(os.environ, TWAGENT_STORE=HERE + "/store", XDG_CONFIG_HOME=HERE, XDG_CACHE_HOME=HERE, TMPDIR=HERE,
           TWAGENT_LOCKS=HERE + "/locks", HOME=HERE)
os.makedirs(HERE + "/twagent")
with open(HERE + "/twagent/config.yaml", "w") as settings:  # what is looked at is what is said, not how precise it is
    settings.write("time-budget: 40ms\n")
MODERN = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def check(name, truth, seen=""):
    if not truth:
        FAILED.append(name)
        print(f"FAILED: {name}: {str(seen)[:600]}")


class Server:
    def __init__(self, folder=WORK):
        self.child = subprocess.Popen([PROGRAM, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder,
                                      env=ENV)
        self.next, self.answers, self.told, self.gone = 0, {}, [], False
        self.news = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            message = json.loads(line)  # each line is JSON, or this test ends
            with self.news:
                if "method" in message:
                    self.told.append(message)
                else:
                    self.answers[message.get("id")] = message
                self.news.notify_all()
        with self.news:
            self.gone = True
            self.news.notify_all()

    def send(self, message):
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        self.child.stdin.write(data)
        self.child.stdin.flush()

    def answer(self, number):
        end = time.monotonic() + 300  # a hang, not slowness
        with self.news:
            while number not in self.answers and not self.gone and time.monotonic() < end:
                self.news.wait(1)
            check(f"an answer to {number}", number in self.answers)
            return self.answers.pop(number, {})

    def start(self, method, params=None, meta=MODERN):
        self.next += 1
        params = dict(params or {})
        if meta:
            params["_meta"] = dict(meta)
        self.send({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
        return self.next

    def ask(self, method, params=None, meta=MODERN):
        return self.answer(self.start(method, params, meta))

    def tool(self, name, /, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments}).get("result", {})

    def children(self):
        path = f"/proc/{self.child.pid}/task/{self.child.pid}/children"
        return open(path).read().split() if os.path.exists(path) else []

    def leave(self):
        self.child.stdin.close()
        return self.child.wait(timeout=600)


def text_of(result):
    return result.get("content", [{}])[0].get("text", "")


def protocol():
    server = Server()
    found = server.ask("server/discover")["result"]
    check("discover names the revision", found["supportedVersions"][0] == "2026-07-28", found)
    check("a modern result is complete", found["resultType"] == "complete" and found["ttlMs"] > 0, found)
    for asked, given in (("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")):
        answer = server.ask("initialize", {"protocolVersion": asked, "capabilities": {}, "clientInfo": {}}, None)
        check(f"initialize {asked}", answer["result"]["protocolVersion"] == given, answer)
        check("no modern member for an older client", "resultType" not in answer["result"], answer)
    server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    old = dict(MODERN, **{"io.modelcontextprotocol/protocolVersion": "1900-01-01"})
    answer = server.ask("tools/list", meta=old)
    check("another version is refused", answer["error"]["code"] == -32022 and
          "2026-07-28" in answer["error"]["data"]["supported"], answer)
    check("ping", server.ask("ping", meta=None)["result"] == {})
    tools = server.ask("tools/list")["result"]["tools"]
    check("every tool has schemas", all(t["inputSchema"]["type"] == "object"
                                        for t in tools), tools)
    size = len(json.dumps(tools, separators=(",", ":")))
    check("every conversation has room for them", size < 10240, size)
    names = [t["name"] for t in tools]
    wanted = ("problems problem_check problem_new evaluate profile tune docs_search lessons history best show diff "
              "emit run status stop device prove resume wait").split()
    check("the tools", all(name in names for name in wanted), names)
    listed = server.ask("resources/list")["result"]["resources"]
    for resource in listed:
        read = server.ask("resources/read", {"uri": resource["uri"]})
        text = read["result"]["contents"][0]["text"]
        check(resource["uri"], len(text) > 100 and ("{{" not in text or "/formats/" not in resource["uri"]), read)
    uris = [resource["uri"] for resource in listed]
    check("a format for each language", all(f"twagent://formats/{name}" in uris for name in
                                            ("cpu", "cuda", "triton", "webgpu", "spec")), uris)
    check("templates", len(server.ask("resources/templates/list")["result"]["resourceTemplates"]) == 2)
    for language, signature in (("cpu", "void kernel(const float *X, float *Y, int64_t M, int64_t N)"),
                                ("cuda", "const float *X, float *Y, long long M, long long N"),
                                ("triton", "X: float32 pointer"), ("webgpu", "X: array<f32>")):
        read = server.ask("resources/read", {"uri": f"twagent://formats/{language}/softmax"})
        check(f"softmax's signature for {language}", signature in read["result"]["contents"][0]["text"], read)
    check("prompts", server.ask("prompts/list")["result"]["prompts"][0]["name"] == "make_faster")
    prompt = server.ask("prompts/get", {"name": "make_faster", "arguments": {"problem": "softmax"}})["result"]
    said = prompt["messages"][0]["content"]["text"]
    check("the prompt has the definition and the format", "ref_impl.py" in said and
          "void kernel(const float *X, float *Y" in said and "{{" not in said, said)
    check("it ends with its client", server.leave() == 0)


def hostile():
    server = Server()
    os.mkdir(HERE + "/theirs")
    guessed = f"{HERE}/twagent-mcp-{server.child.pid}"
    os.symlink(HERE + "/theirs", guessed)
    result = server.tool("evaluate", problem="softmax", source="int x;")
    check("a folder that was there before is not trusted", result.get("isError") and
          "somebody else" in text_of(result) and not os.listdir(HERE + "/theirs"), result)
    os.remove(guessed)
    for data, code in ((b"{\n", -32700), (b"\xff\xfe{}\n", -32700), (b'{"a": "\xc3\x28"}\n', -32700),
                       (b"[" * 100000 + b"\n", -32700), (b'{"a":' * 80 + b"1" + b"}" * 80 + b"\n", -32700),
                       (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}\n', -32700), (b"17\n", -32600),
                       (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n', -32600), (b"[]\n", -32600),
                       (b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600),
                       (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n', -32600),
                       (b'{"jsonrpc":"2.0","id":{},"method":"ping"}\n', -32600),
                       (b'{"jsonrpc":"2.0","id":"%s","method":"ping"}\n' % (b"i" * 5000), -32600),
                       (b'{"id":"a","method":"ping"}\n', -32600), (b'{"jsonrpc":"2.0","id":"a","method":7}\n', -32600),
                       (b'{"jsonrpc":"2.0","id":"a","method":"ping","params":[1]}\n', -32600),
                       (b'{"jsonrpc":"2.0","id":"a","method":"%s"}\n' % (b"m" * 100000), -32601),
                       (b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":3}}\n', -32602),
                       (b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"rm"}}\n', -32602),
                       (b'{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"show","arguments":[]}}\n',
                        -32602),
                       (b'{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"cursor":"x"}}\n', -32602),
                       (b"x" * (9 << 20) + b"\n", -32600), (b"\0\n", -32700), (b'{"a":"\\u0000"}\n', -32700)):
        server.send(data)
        answer = server.answer("a" if b'"id":"a"' in data else None)
        check(f"error {code} for {data[:60]}", answer.get("error", {}).get("code") == code, answer)
    server.send(b"\n \r\n" + b'{"jsonrpc":"2.0","result":{},"id":9}\n' + b'{"jsonrpc":"2.0","method":"no/such"}\n' +
                b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"none"}}\n')
    half = json.dumps({"jsonrpc": "2.0", "id": "half", "method": "ping"}).encode()
    server.send(half[:20])
    time.sleep(0.05)
    server.send(half[20:] + b"\n")
    check("a line in two parts", server.answer("half")["result"] == {})
    for uri in ("twagent://problems/../templates/agent", "twagent://guides/..", "file:///etc/passwd",
                "twagent://formats/cpu.txt", "twagent://formats/cpu/", "twagent://formats/cpu/../x",
                "twagent://formats/cpu/%2e%2e/x", "twagent://formats/cpu/%00", "twagent://formats/cpu/%5", "twagent://formats/no/softmax",
                "twagent://formats/cpu/no-such", "twagent://problems/", "twagent://", "", "twagent://reports/-o", "x" * 9999):
        answer = server.ask("resources/read", {"uri": uri})
        check(f"no resource {uri[:40]}", answer["error"]["code"] == -32602, answer)
    os.symlink("/etc", WORK + "/out")
    open(HERE + "/beside.c", "w").write("int x;\n")
    for name, arguments, says in (
            ("evaluate", {"problem": "softmax", "file": "/etc/passwd"}, "folder"),
            ("evaluate", {"problem": "softmax", "file": "../beside.c"}, "folder"),
            ("evaluate", {"problem": "softmax", "file": "out/passwd"}, "folder"),
            ("evaluate", {"problem": "softmax", "file": "none.c"}, "there is no"),
            ("evaluate", {"problem": "/etc/x.py", "source": "int x;"}, "there is no"),
            ("evaluate", {"problem": "softmax", "source": "int x;", "file": "a.c"}, "one of"),
            ("evaluate", {"problem": "softmax", "source": "int x;", "sources": ["int x;"]}, "one of"),
            ("evaluate", {"problem": "softmax", "sources": []}, "list"),
            ("evaluate", {"problem": "softmax", "sources": ["int x;"] * 7}, "list"),
            ("evaluate", {"problem": "softmax", "files": ["../beside.c"]}, "folder"),
            ("evaluate", {"problem": "softmax", "source": "int x;", "against": "../beside.c"}, "folder"),
            ("evaluate", {"problem": "softmax", "source": "int x;", "against": "out/passwd"}, "folder"),
            ("wait", {"call": "c1"}, "no call"), ("wait", {"call": "--help"}, "letters"),
            ("wait", {"call": "c1", "seconds": "x"}, "whole number"),
            ("evaluate", {"problem": "softmax"}, "source"),
            ("evaluate", {"problem": "softmax", "source": "int x;", "name": "../k.c"}, "name"),
            ("evaluate", {"problem": "softmax", "source": "x" * (2 << 20)}, "shorter"),
            ("evaluate", {"problem": "softmax", "source": "int x;", "effort": "most"}, "effort"),
            ("evaluate", {"problem": "softmax", "source": "int x;", "effort": "full --store=/x"}, "effort"),
            ("evaluate", {"problem": "softmax", "source": "int x;", "store": "/x"}, "no argument"),
            ("evaluate", {"problem": "--help", "source": "int x;"}, "there is no"),
            ("show", {"id": "--json"}, "letters"), ("show", {"id": 3}, "text"), ("show", {}, "text"),
            ("show", {"id": "r1", "source": "yes"}, "true or false"),
            ("lessons", {"last": 1.5}, "whole number"), ("docs_search", {"words": ""}, "empty"),
            ("problem_new", {"folder": "../p"}, "folder"), ("problem_new", {"folder": "out/p"}, "folder"),
            ("problem_new", {"folder": ".."}, "folder"), ("problem_new", {"folder": "/"}, "folder"),
            ("more", {"result": "e1", "part": "x"}, "no result"), ("run", {"problem": "softmax", "detach": 1}, "detach")):
        result = server.tool(name, **arguments)
        check(f"{name} {str(arguments)[:80]}", result.get("isError") and says in text_of(result), result)
    check("nothing was written outside", sorted(os.listdir(WORK)) == ["out"], os.listdir(WORK))
    server.send(b"".join(b'{"jsonrpc":"2.0","id":"f%d","method":"ping"}\n' % i for i in range(20000)))
    check("a flood is answered", server.answer("f19999")["result"] == {})
    server.child.send_signal(signal.SIGSTOP)  # none is answered before all are there
    calls = [server.start("tools/call", {"name": "problems"}) for _ in range(100)]
    server.child.send_signal(signal.SIGCONT)
    answers = [server.answer(i) for i in calls]
    busy = sum("error" in answer for answer in answers)
    check("of a crowd, some are told to wait", 0 < busy <= 36 and
          all("busy" in a["error"]["message"] for a in answers if "error" in a), busy)
    check("it ends with its client", server.leave() == 0)


def work():
    server = Server()
    listed = server.tool("problems")
    check("problems", any(item["name"] == "softmax" for item in listed["structuredContent"]["items"]), listed)
    check("the text is a person's", text_of(listed).startswith("attention"), text_of(listed))
    made = server.tool("problem_new", folder="mine")
    check("problem_new", not made["isError"] and os.path.exists(WORK + "/mine/spec.yaml") and
          made["structuredContent"]["files"][0] == "spec.yaml", made)
    judged = server.tool("problem_check", problem="mine")
    check("problem_check", judged["structuredContent"].get("fit") is True and "id" not in judged["structuredContent"] and
          "mine: fit\n" in text_of(judged), judged)
    device = server.tool("device")["structuredContent"]
    check("device", "device" in device, device)
    if "more" in device:
        check("some of it is left out", "text" not in device, device)
        for part in device["more"]["parts"]:
            rest = server.tool("more", result=device["more"]["result"], part=part)
            check(f"the rest: {part}", "part" in rest.get("structuredContent", {}), rest)
    number = server.start("tools/call", {"name": "evaluate",
                                         "arguments": {"problem": "mine", "source": "int x;\n", "effort": "search"}},
                          dict(MODERN, progressToken="t1"))
    twin = server.ask("tools/call", {"name": "status"})
    check("another call is answered beside it", text_of(twin["result"]).startswith("no runs yet"), twin)
    result = server.answer(number)["result"]
    found = result["structuredContent"]
    check("the words come with the facts", text_of(result).startswith("failed at compile: does not compile"), result)
    check("what does not compile", found["verdict"] == "failed" and "signature" in found["details"], result)
    told = [line["params"] for line in server.told]
    check("progress grows", all(a["progress"] < b["progress"] for a, b in zip(told, told[1:])) and
          all(p["progressToken"] == "t1" for p in told), told)
    leave_midway(server)


def leave_midway(server):
    with open(WORK + "/mine/ref_impl.py", "a") as out:  # no machine is so fast, and no pause so long, that a call ends
        out.write("\n\ndef reference(A, X, B):\n    import time\n    time.sleep(1000)\n")
    slow = {"name": "evaluate", "arguments": {"problem": "mine", "source": "int x;\n"}}
    first, second = server.start("tools/call", slow), server.start("tools/call", slow)
    while not server.children():
        time.sleep(0.02)
    for number in (second, first):  # the one that waits for its turn, and the one at work
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    while server.children():
        time.sleep(0.02)
    check("a cancelled call is not answered", server.ask("ping", meta=None).get("result") == {})
    check("nor later", not {first, second} & set(server.answers), server.answers)
    slow["arguments"]["detach"] = True
    apart = [server.tool(slow["name"], **slow["arguments"])["structuredContent"]["call"] for _ in "ab"]
    while not server.children():
        time.sleep(0.02)
    for call in reversed(apart):
        ended = server.tool("wait", call=call, cancel=True)
        check("a detached call is cancelled", ended.get("isError"), ended)
    while server.children():
        time.sleep(0.02)
    crowd = [server.ask("tools/call", slow) for _ in range(40)]
    taken = [answer["result"]["structuredContent"]["call"] for answer in crowd if "result" in answer]
    check("of a crowd of detached calls, some are told to wait", len(taken) == 32, crowd[-1])
    check("there is room to end one", server.tool("wait", call=taken[-1], cancel=True).get("isError"))
    while not server.children():
        time.sleep(0.02)
    left = server.children()
    check("it ends with its client", server.leave() == 0)
    check("its children ended", not any(os.path.exists(f"/proc/{pid}") for pid in left), left)
    check("its sources are gone", not any(n.startswith("twagent-mcp") for n in os.listdir(HERE)), os.listdir(HERE))


PLAIN = "void kernel(const float *A, const float *X, const float *B, float *Y, int64_t M, int64_t N)\n{\n" \
        "    for (int64_t i = 0; i < M * N; i++)\n        Y[i] = A[i] * X[i] + B[i % N];\n}\n"


def own():
    """A kernel of one's own: looked at before it is timed, compared, kept, taken on by its id."""
    server = Server()
    server.tool("problem_new", folder="own")
    with open(WORK + "/own/spec.yaml") as file:
        spec = file.read().replace("1024", "64")
    with open(WORK + "/own/spec.yaml", "w") as file:
        file.write(spec)
    read = server.ask("resources/read", {"uri": "twagent://formats/cpu/own"})
    check("its signature", PLAIN.split("\n")[0] in read["result"]["contents"][0]["text"], read)
    found = server.tool("profile", problem="own", source=PLAIN)
    code = server.tool("more", result=found["structuredContent"]["more"]["result"],
                       part="evaluation.metrics")["structuredContent"]["part"]
    check("the hot loop's instructions", "jne" in str(code.get("hot_loop")) or os.uname().machine != "x86_64", code)
    wrong = PLAIN.replace("+ B", "- B")
    for until, stage in (("compile", "compile"), ("check", "check")):
        found = server.tool("evaluate", problem="own", source=PLAIN, until=until)["structuredContent"]
        check(f"no further than {until}", (found["verdict"], found["stage"]) == ("dropped", stage), found)
    found = server.tool("evaluate", problem="own", sources=[PLAIN, wrong, "int x;"], until="check")
    verdicts = {key: item["verdict"] for key, item in found["structuredContent"].items() if isinstance(item, dict) and "verdict" in item}
    check("three in one call", list(verdicts.items()) == [("1 kernel.c", "dropped"), ("2 kernel.c", "rejected"),
                                                          ("3 kernel.c", "failed")], found)
    begun = server.tool("evaluate", problem="own", source=PLAIN, detach=True)["structuredContent"]
    number = server.start("tools/call", {"name": "wait", "arguments": {"call": begun["call"], "seconds": 600}})
    now = server.tool("wait", call=begun["call"], seconds=0)
    check("what it does now, or came of it", "state" in now["structuredContent"] or
          now["structuredContent"]["verdict"] == "kernel", now)
    answer = server.answer(number)["result"]
    check("what came of it", answer["structuredContent"]["verdict"] == "kernel" and
          text_of(answer).startswith("kernel"), answer)
    check("it is kept", server.tool("wait", call=begun["call"]) == answer, answer)
    kept = server.tool("prove", problem="own", source=PLAIN)["structuredContent"]
    check("a kernel of one's own has an id", kept["run"]["best"] == "r1-c1", kept)
    best = server.tool("best", problem="own")
    check("which best takes", "r1-c1" in text_of(best), best)
    shown = server.tool("show", id="r1-c1", source=True)
    check("and show", "Y[i] = A[i] * X[i] + B[i % N];" in str(shown), shown)
    check("and diff", not server.tool("diff", id="r1-c1", other="r1-c1").get("isError"))
    emitted = server.tool("emit", id="r1-c1", folder="package")
    check("and emit", not emitted.get("isError") and os.path.isdir(WORK + "/package"), emitted)
    found = server.tool("evaluate", problem="own", source=PLAIN, against="r1-c1", effort="search")
    check("and evaluate, against it", found["structuredContent"].get("baseline") == "rival", found)
    begun = server.tool("tune", problem="own", id="r1-c1", max_evaluations=1, detach=True)
    check("and tune, which detaches", begun.get("structuredContent", {}).get("run") == "r2", begun)
    server.tool("stop")
    while server.tool("status")["structuredContent"].get("live"):
        time.sleep(0.1)
    went_on = server.tool("resume", run="r1", budget_evaluations=2)
    check("a run goes on", went_on.get("structuredContent", {}).get("run", {}).get("id") == "r1", went_on)
    server.leave()


def detached():
    server = Server()
    begun = server.tool("run", problem="softmax", detach=True, budget_time="10m")
    check("a run began, and its id is said", begun.get("structuredContent", {}).get("run", "").startswith("r"), begun)
    check("it is let go", server.leave() == 0)
    server = Server()
    status = server.tool("status")
    check("it goes on", status.get("structuredContent", {}).get("live") is True, status)
    stopped = server.tool("stop")
    check("it is stopped", stopped.get("structuredContent", {}).get("state") == "stopped", stopped)
    check("and ended", server.tool("status").get("structuredContent", {}).get("live") is False)
    server.leave()


def sdk():
    python = os.environ.get("TWAGENT_MCP_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "from mcp import Client"], capture_output=True).returncode != 0:
        print("skipped: the SDK's client; \"pip install mcp\" has it (TWAGENT_MCP_PYTHON names its python)")
        SKIPPED.append("sdk")
        return
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mcp_sdk.py")
    done = subprocess.run([python, script, PROGRAM, WORK], env=ENV, capture_output=True, text=True)
    check("the SDK's client", done.returncode == 0, done.stdout + done.stderr)


def skill():
    command = [PROGRAM, "skill", WORK + "/skill"]
    check("a skill", subprocess.run(command, env=ENV, capture_output=True).returncode == 0)
    with open(WORK + "/skill/SKILL.md") as file:
        _, head, page = file.read().split("---\n", 2)
    keys = [line.split(": ", 1) for line in head.splitlines()]
    check("its head is YAML", [k[0] for k in keys] == ["name", "description"] and ": " not in keys[1][1], head)
    check("its page", "# The loop" in page or "## The loop" in page, page[:200])
    check("nothing is written over", subprocess.run(command, env=ENV, capture_output=True).returncode == 2)


for part in (protocol, hostile, work, own, detached, skill, sdk):
    if len(sys.argv) < 3 or part.__name__ in sys.argv[2:]:
        part()
subprocess.run(["rm", "-rf", HERE])
print(f"{len(FAILED)} failed" if FAILED else "ok")
sys.exit(1 if FAILED else 77 if SKIPPED == sys.argv[2:] else 0)
