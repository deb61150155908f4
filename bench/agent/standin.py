#!/usr/bin/env python3
"""standin.py [HOW] [LOG]: stands in for a coding agent: it gets its task on stdin, starts the MCP server that .mcp.json names,
and has kernels of a matmul evaluated, each better than the one before. HOW is what goes wrong, or "mixed": drawn by the task."""
import contextlib
import hashlib
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

FAULTS = ("well", "well", "well", "quits", "hangs", "floods", "daemon", "outside", "greedy", "garbage", "nothing", "wrong", "shell")

EACH = ("shell", "well", "quits", "floods", "daemon", "greedy", "garbage", "nothing", "wrong", "asks")
HEAD = "#include <stdint.h>\n/* %s */\nvoid kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)\n{\n"
NAIVE = """    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            float sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += A[i * K + k] * B[k * N + j];
            C[i * N + j] = sum;
        }
}
"""
ROWS = """    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++)
            C[i * N + j] = 0;
        for (int64_t k = 0; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                C[i * N + j] += A[i * K + k] * B[k * N + j];
    }
}
"""
FOUR = """    for (int64_t i = 0; i < M; i++) {
        float *restrict c = C + i * N;
        const float *restrict a = A + i * K;
        for (int64_t j = 0; j < N; j++)
            c[j] = 0;
        int64_t k = 0;
        for (; k + 4 <= K; k += 4) {
            const float *restrict b = B + k * N;
            for (int64_t j = 0; j < N; j++)
                c[j] += a[k] * b[j] + a[k + 1] * b[N + j] + a[k + 2] * b[2 * N + j] + a[k + 3] * b[3 * N + j];
        }
        for (; k < K; k++)
            for (int64_t j = 0; j < N; j++)
                c[j] += a[k] * B[k * N + j];
    }
}
"""
WRONG = "    for (int64_t i = 0; i < M * N; i++)\n        C[i] = 0;\n    (void)A, (void)B, (void)K;\n}\n"


class Server:
    def __init__(self, entry=None):
        if not entry:
            with open(".mcp.json") as file:
                entry = json.load(file)["mcpServers"]["twagent"]
        self.child = subprocess.Popen([entry["command"], *entry["args"]], env=dict(os.environ, **entry["env"]),
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.number = 0
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                "clientInfo": {"name": "standin", "version": "1"}})
        self.send({"method": "notifications/initialized"})
        self.tools = [tool["name"] for tool in self.ask("tools/list", {})["tools"]]

    def send(self, message):
        self.child.stdin.write(json.dumps(dict(message, jsonrpc="2.0")) + "\n")
        self.child.stdin.flush()

    def ask(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        for line in self.child.stdout:
            message = json.loads(line)
            if message.get("id") == self.number:
                return message.get("result") or message

    def tool(self, name, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments}).get("structuredContent") or {}


def title(seed):
    """Words that no other title has, since ideas that say the same are dropped."""
    drawn = random.Random(seed)
    return " ".join("".join(drawn.choice("bdfgklmnprstvz") + drawn.choice("aeiou") for _ in range(3)) for _ in range(4))


def ideas(text):
    wanted = re.search(r"- Exactly (\d+)|- Exactly one", text)
    count = int(wanted.group(1) or 1) if wanted else 1
    tag = hashlib.sha256(text.encode()).hexdigest()[:6]
    print(json.dumps({"ideas": [{"title": title(tag + str(i)), "category": "memory",
                                 "why": "the inner loop walks along rows", "expected": 1.5,
                                 "parent": (re.findall(r"r1-c\d+", text) or [""])[0]} for i in range(count)]}))


def acp(how):
    """The other side of the Agent Client Protocol: one session, one prompt, and questions on the way."""
    def send(**message):
        sys.__stdout__.write(json.dumps(dict(message, jsonrpc="2.0")) + "\n")
        sys.__stdout__.flush()

    def update(**what):
        send(method="session/update", params={"sessionId": "s1", "update": what})

    def ask(method, **params):
        send(id="q", method=method, params=dict(params, sessionId="s1"))
        answer = json.loads(sys.stdin.readline())
        assert answer["id"] == "q", answer
        return answer

    def may(kind, path):
        options = [{"optionId": kind + "-" + end, "name": end, "kind": end} for end in ("reject_once", "allow_always", "allow_once")]
        return ask("session/request_permission", options=options, toolCall={
            "toolCallId": "t1", "kind": kind, "locations": [{"path": path}]})["result"]["outcome"]["optionId"]

    sys.__stdout__.write("a banner that is no message\n")
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params", {})
        if method == "initialize":
            assert params["protocolVersion"] == 1 and params["clientCapabilities"]["terminal"] is False, params
            send(id=message["id"], result={"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []})
        elif method == "session/new":
            assert params["cwd"] == os.getcwd(), params
            if how == "signed-out":
                send(id=message["id"], error={"code": -32000, "message": "Authentication required", "data": {"details": "no key"}})
                continue
            servers = params["mcpServers"]
            send(id=message["id"], result={"sessionId": "s1"})
        elif method == "session/prompt":
            text = params["prompt"][0]["text"]
            here = os.getcwd() + "/kernel.c"
            boxed = os.environ.get("HOME") == os.getcwd()
            asked = [may("edit", here), may("edit", "/etc/passwd"), may("edit", os.getcwd() + "/../x"), may("execute", here)]
            assert asked == ["edit-allow_once"] + (["edit-allow_once"] * 2 + ["execute-allow_once"] if boxed else
                                                   ["edit-reject_once"] * 2 + ["execute-reject_once"]), asked
            assert "error" in ask("fs/read_text_file", path="/etc/passwd")
            with contextlib.redirect_stdout(io.StringIO()) as said:
                if "TWAGENT_ATTEMPT" in os.environ:
                    entry = dict(servers[0], env={item["name"]: item["value"] for item in servers[0]["env"]})
                    work("well", text, entry)
                else:
                    assert servers == [], servers
                    ideas(text)
            said = said.getvalue()
            for part in (said[:20], said[20:]):
                update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": part})
            update(sessionUpdate="usage_update", used=9, size=99, cost={"amount": 0.01, "currency": "USD"})
            update(sessionUpdate="usage_update", used=9, size=99, cost={"amount": 0.03, "currency": "USD"})
            send(id=message["id"], result={"stopReason": "end_turn"})


def work(how, text, entry=None):
    # Of the tests' worker what is evaluated depends on the source: with this one it is a kernel whatever the prompt says.
    tag = "ask_it" if how == "asks" else hashlib.sha256(text.encode()).hexdigest()
    bodies = [NAIVE, ROWS, FOUR] if how != "wrong" else [WRONG, WRONG]
    if how == "nothing":
        return
    if how == "garbage":
        for name in ("x.evaluate", "../up.evaluate", "a" * 300, "link.evaluate", "folder.evaluate", "pipe.evaluate", "big.submit"):
            path = ".twagent/requests/" + name
            try:
                if name.startswith("link"):
                    os.symlink("/etc/passwd", path)
                elif name.startswith("folder"):
                    os.mkdir(path)
                elif name.startswith("pipe"):
                    os.mkfifo(path)
                else:
                    with open(path, "wb") as out:
                        out.write(bytes(range(256)) * (8192 if "big" in name else 4))
            except OSError:
                pass
    if how == "shell":
        for i, body in enumerate(bodies):
            with open("k.c", "w") as out:
                out.write(HEAD % (tag + str(i)) + body)
            subprocess.run([json.load(open(".mcp.json"))["mcpServers"]["twagent"]["command"], "attempt",
                            "submit" if i == 2 else "evaluate", "k.c"], stdout=subprocess.DEVNULL, check=False)
        return
    server = Server(entry)
    assert "evaluate" in server.tools and "submit" in server.tools and "run" not in server.tools, server.tools
    if how == "garbage":
        server.child.stdin.write("no json\n{\n[1,2\n")
        server.child.stdin.flush()
    answer = {}
    for i in range(40 if how == "greedy" else len(bodies)):
        answer = server.tool("evaluate", source=HEAD % (tag + str(i)) + bodies[min(i, len(bodies) - 1)])
        if i == 0 and how == "asks":
            assert server.tool("show", id=answer["candidate"])["candidate"]["id"] == answer["candidate"]
            assert answer["parent"]["candidate"] != answer["candidate"] and answer["parent"]["time_ns"] > 0, answer
            assert "roof" in answer["profile"], answer
            looked = server.tool("evaluate", sources=[HEAD % "look" + body for body in bodies], until="check")
            looked = {key[0]: each for key, each in looked.items() if key.endswith(" kernel.c")}
            assert list(looked) == ["1", "2", "3"] and all("verdict" in each for each in looked.values()), looked
            beside = server.tool("evaluate", source=HEAD % "look" + bodies[1], against=answer["candidate"])
            assert "verdict" in beside and "candidate" not in beside, beside
            again = server.tool("evaluate", source=HEAD % (tag + "0") + bodies[0])
            assert [again[key] for key in ("candidate", "evaluations_left")] == [answer["candidate"], 4], again
        if i == 0 and how == "quits":
            os._exit(9)
        if i == 0 and how == "hangs":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(100000)
        if i == 0 and how == "floods":
            while True:
                sys.stdout.write("x" * 65536)
        if i == 0 and how == "daemon":
            subprocess.Popen(["setsid", "sh", "-c", "trap '' TERM HUP; while :; do sleep 1000; done"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            subprocess.Popen(["sh", "-c", "sleep 100000 & exec setsid sleep 100000"])
        if i == 0 and how == "outside":
            try:
                with open(os.path.join(os.getcwd(), "../../escaped"), "a") as out:
                    out.write(os.getcwd() + "\n")
            except OSError:
                pass
    if how in ("well", "daemon") and int(tag[0], 16) % 2:
        server.tool("submit", source=HEAD % (tag + "1") + bodies[1])
    print(json.dumps({"result": "done; left %s" % answer.get("evaluations_left"), "total_cost_usd": 0.02}))


def main():
    how = sys.argv[1] if len(sys.argv) > 1 else "well"
    if how in ("acp", "signed-out"):
        acp(how)
    if how in ("acp", "signed-out", "mute"):
        return
    text = sys.stdin.read()
    if "TWAGENT_ATTEMPT" not in os.environ:
        ideas(text)
        return
    if how == "each":  # by its candidate's number
        how = EACH[int(os.path.basename(os.getcwd()).split("-c")[1]) % len(EACH)]
    if how == "mixed":
        how = FAULTS[int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % len(FAULTS)]
    if len(sys.argv) > 2:
        try:
            with open(sys.argv[2], "a") as log:
                log.write("%s %s %s\n" % (how, os.path.basename(os.getcwd()), hashlib.sha256(text.encode()).hexdigest()[:8]))
        except OSError:
            pass  # sandboxed
    work(how, text)


if __name__ == "__main__":
    main()
