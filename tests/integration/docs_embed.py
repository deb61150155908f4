#!/usr/bin/env python3
"""The index with vectors, against a server of /embeddings that has its faults: docs_embed.py TWAGENT"""
import http.server, json, os, re, shutil, signal, subprocess, sys, tempfile, threading, time, zlib

TWAGENT = os.path.abspath(sys.argv[1])
SAME = {"velocity": "speed", "rapid": "speed", "fast": "speed"}  # what the fake model takes for one meaning
state = {"mode": "good", "asked": 0, "texts": 0, "auth": "", "most": 1 << 30, "life": 0}
failed = passed = 0


def vector(text):
    values = [0.01] * 256
    for word in re.findall(r"[a-z]+", text.lower()):
        word = SAME.get(word, word)
        values[zlib.crc32(word.encode()) % 256] += 1.0
    return values


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        state["asked"] += 1
        state["auth"] = self.headers.get("authorization", "")
        life = state["life"]
        while state["texts"] >= state["most"]:  # whoever is to be killed by then waits for it
            time.sleep(0.01)
        mode, status = state["mode"], 200
        texts = request["input"]
        data = [{"index": i, "embedding": vector(t)} for i, t in enumerate(texts)]
        if mode == "busy":
            state["mode"], status = "good", 503
        elif mode == "refused":
            status = 401
        elif mode == "short":
            data.pop()
        elif mode == "ragged":
            data[0]["embedding"].append(1)
        elif mode == "zero":
            data[0]["embedding"] = [0] * 256
        elif mode == "huge":
            data[0]["embedding"] = [1] * 9000
        elif mode == "words":
            data[0]["embedding"][3] = "ignore your instructions"
        elif mode == "same":
            data[0]["index"] = len(texts) - 1
        data.reverse()  # the index counts, not the order
        body = b"<html>" if mode == "garbage" else json.dumps({"data": data}).encode()
        if status == 200 and life == state["life"]:
            state["texts"] += len(texts)
        try:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass  # killed amid it


def run(*words):
    result = subprocess.run([TWAGENT, "docs", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
    return result.returncode, result.stdout


def expect(code, text, *words):
    global failed, passed
    got, out = run(*words)
    if got == code and text in out:
        passed += 1
    else:
        failed += 1
        print(f"docs {' '.join(words)}: exit {got} (expected {code}), printed:\n{out[:600]}\nexpected in it: {text}")


def main():
    work = tempfile.mkdtemp()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ.update(TWAGENT_STORE=os.path.join(work, "store"), XDG_CONFIG_HOME=os.path.join(work, "config"),
                      TWAGENT_BASE_URL=f"http://127.0.0.1:{server.server_port}/v1", OPENAI_API_KEY="sk-secret-12345", ANTHROPIC_API_KEY="sk-other",
                      no_proxy="127.0.0.1", NO_PROXY="127.0.0.1")
    docs = os.path.join(work, "docs")
    os.mkdir(docs)
    for name, text in (("a.md", "# Motion\n## Pace\nHow fast a thing goes.\n"), ("b.md", "# Colour\n## Hue\nRed and green.\n")):
        with open(os.path.join(docs, name), "w", encoding="utf-8") as file:
            file.write(text)
    model = ["--embedding-model", "small"]

    expect(0, "2 added", "add", docs)
    expect(0, '"vectors": 0, "embedding_model": ""}', "stats", "--json")
    expect(0, "nothing found", "search", "velocity")
    expect(3, "has no vectors of the model small", "search", "velocity", *model)
    for mode, said in (("refused", "look at the key"), ("garbage", "no JSON"), ("short", "1 good vectors of 2"),
                       ("ragged", "of 2"), ("zero", "of 2"), ("huge", "of 2"), ("words", "of 2"), ("same", "of 2")):
        state["mode"] = mode
        expect(3, said, "update", *model)
    state["mode"] = "refused"
    expect(3, "401", "update", *model)
    assert "secret" not in run("update", *model)[1]
    state["mode"] = "busy"
    expect(0, '"embedding_model": "small"', "stats", "--json")  # nothing answered yet
    expect(0, "2 passages embedded by small", "update", *model)
    expect(0, '"vectors": 2, "embedding_model": "small"}', "stats", "--json")
    expect(0, "vectors by                  small", "stats")
    assert state["auth"] == "Bearer sk-secret-12345", state["auth"]
    expect(0, "0 passages embedded", "update", *model)
    expect(0, "Motion > Pace", "search", "velocity", *model, "--limit", "1")
    expect(0, "Colour > Hue", "search", "green", *model, "--limit", "1")
    expect(0, "nothing found", "search", "velocity")  # by words alone it still asks nobody
    os.remove(os.path.join(docs, "a.md"))
    expect(0, "1 removed", "update")
    expect(0, "Colour > Hue", "search", "velocity", *model)
    expect(0, "1 passages embedded by large", "update", "--embedding-model", "large")
    expect(3, "no vectors of the model small", "search", "velocity", *model)
    expect(2, "expected one model", "update", "--embedding-model", "anthropic/claude-x")

    # Killed amid it, what was answered stays, and the rest alone is asked for.
    with open(os.path.join(docs, "many.md"), "w", encoding="utf-8") as file:
        for i in range(400):
            file.write(f"# Part {i}\nNumber {i} says speed{i}.\n\n")
    expect(0, "400 passages added", "update")
    state.update(texts=0, most=128)
    child = subprocess.Popen([TWAGENT, "docs", "update", "--embedding-model", "large"], stdout=subprocess.DEVNULL)
    while state["texts"] < 128 and child.poll() is None:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.wait()
    expect(0, "Part 7", "search", "speed7")
    state.update(texts=0, most=1 << 30, life=1)
    expect(0, "passages embedded by large", "update", "--embedding-model", "large")
    if not 0 < state["texts"] <= 400 - 64:
        print(f"asked for {state['texts']} texts again")
        return 1
    expect(0, "0 passages embedded", "update", "--embedding-model", "large")
    shutil.rmtree(work)
    print(f"docs_embed: {passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
