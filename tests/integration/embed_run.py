"""embed_run.py TWAGENT FAKE_PROVIDER FAKE_WORKER STORE_DUMP: a run whose prompts find passages by meaning too: what is
asked, what it costs, what a resume asks again, and that nothing that ails it stops a run. Prints one line a row."""
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from kill_common import make_problem

KERNEL = """/*---
tune: {BM: [1, 2]}
---*/
/* @HASH@ */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
}
"""
# Not a word of the problem, but what the fake model takes for the same.
NOTES = {"pace.md": "# Gemmatic\n## Assaults\nTiny gemmatic antagonistic assaults, processor.\n", "hue.md": "# Colour\n## Hue\nRed.\n"}
EMBED = ("--embedding-model", "embed")
ROUNDS, ROWS = "2", []


def row(name):
    return lambda check: ROWS.append((name, check))


class Scene:
    """A provider, a store with an index in it, and runs there."""

    def __init__(self, tools, work, faults=(), embeds="{prompt: 1, completion: 0}", vectors=True, writes="{prompt: 1, completion: 1}"):
        self.twagent, self.provider, _, self.dump_tool = tools
        self.work, self.runs = work, 0
        shutil.rmtree(work + "/row", ignore_errors=True)
        os.makedirs(work + "/row/notes")
        for file, text in NOTES.items():
            with open(work + "/row/notes/" + file, "w") as out:
                out.write(text)
        self.environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        self.environment.update({"OPENAI_API_KEY": "sk-test", "TWAGENT_SELF": work + "/self", "no_proxy": "*",
                                 "XDG_CONFIG_HOME": work + "/config"})
        self.writes, self.server = writes, None
        self.serve(())  # the index is made while all is well
        self.put_models(embeds)
        code, said = self.call("docs", "add", work + "/row/notes", *(EMBED if vectors else ()))
        assert code == 0, said
        before = self.port
        self.serve(faults, before)

    def serve(self, faults, port=None):
        if self.server:
            self.close()
        arguments = [argument for fault in faults for argument in ("--embedding-fault", fault)]
        self.server = subprocess.Popen([self.provider, "--by-content", self.work + "/sources", "--latency-ms", "5-30", *arguments],
                                       stdout=subprocess.PIPE)
        self.port = int(self.server.stdout.readline().split()[1])

    def put_models(self, embeds):
        self.embeds = embeds
        url = "http://127.0.0.1:%d/v1" % self.port
        with open(self.work + "/row/models.yaml", "w") as out:
            out.write("models:\n  test: {provider: openai, url: '%s', key: OPENAI_API_KEY, max_tokens: 500%s}\n"
                      "  embed: {provider: openai, url: '%s', key: OPENAI_API_KEY%s}\n" %
                      (url, ", prices: " + self.writes if self.writes else "", url, ", prices: " + embeds if embeds else ""))

    def command(self, *words):
        models = ("--models", self.work + "/row/models.yaml") if words[0] in ("run", "resume", "docs") else ()
        return [self.twagent, *words, "--store", self.work + "/row/store", *models]

    def call(self, *words):
        done = subprocess.run(self.command(*words), env=self.environment, cwd=self.work, capture_output=True, text=True, timeout=400,
                              stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout + done.stderr

    def words(self, *options):
        return ("run", self.work + "/mm", "--model", "test", "--rounds", ROUNDS, "--branching", "2", "--implementations", "2",
                "--seed", "3", "--no-final", "--floor-share", "0", "--verbose", *options)

    def run(self, *options):
        self.put_models(self.embeds)
        self.code, self.said = self.call(*self.words(*options))
        return self

    def start(self, *options):
        self.put_models(self.embeds)
        return subprocess.Popen(self.command(*self.words(*options)), env=self.environment, cwd=self.work,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def counts(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        return json.load(opener.open("http://127.0.0.1:%d/_counts" % self.port))

    def dump(self):
        done = subprocess.run([self.dump_tool, self.work + "/row/store"], capture_output=True, check=True)
        return json.loads(done.stdout, strict=False)

    def close(self):
        self.server.kill()
        self.server.wait()


def embeddings(dump):
    return {key: one for key, one in dump["completions"].items() if one["purpose"] == "embedding"}


def tree(dump, run="r1"):
    """Ideas, sources, what prompts quoted, who was asked what."""
    ideas = {key: (one["title"], one["parent"]) for key, one in dump["ideas"].items() if key.startswith(run + "-")}
    candidates = {key: (one["state"], one["source"], one["parent"]) for key, one in dump["candidates"].items()
                  if key.startswith(run + "-")}
    quoted = {key: one for key, one in dump["passages"].items() if key.startswith(run + "-")}
    asked = sorted((one["asker"], one["purpose"], one["step"], one["request"]["prompt"]) for one in dump["completions"].values()
                   if one["purpose"] != "embedding")
    vectors = sorted((one["request"]["prompt"], one["answer"]["text"]) for one in embeddings(dump).values())
    return {"ideas": ideas, "candidates": candidates, "quoted": quoted, "asked": asked, "vectors": vectors}


def ended(scene, run="r1"):
    record = scene.dump()["runs"].get(run)
    if not record:
        yield False, "no run %s, exit %d: %s" % (run, scene.code, scene.said[-300:])
        return
    yield scene.code in (0, 1) and record["state"] == "done", "exit %d, %s" % (scene.code, record["state"])
    yield record["round"] == int(ROUNDS), "round %s" % record["round"]
    yield not record["pauses"]["list"], "pauses: %s" % record["pauses"]


def said_once(scene, text=""):
    lines = [line for line in scene.said.splitlines() if "warn prompt.embeddings" in line]
    yield len(lines) == 1 and text in lines[0], "said: %s" % lines


@row("asked, stored, counted, and found by meaning")
def good(tools, work):
    scene = Scene(tools, work).run(*EMBED)
    yield from ended(scene)
    dump, counts = scene.dump(), scene.counts()
    asked = embeddings(dump)
    yield len(asked) == counts["embeddings"] > 0, "%d stored, %d requests" % (len(asked), counts["embeddings"])
    texts = collections.Counter(one["request"]["prompt"] for one in asked.values())
    yield max(texts.values()) == 1, "the same words twice"
    for key, one in asked.items():
        spent = [entry for entry in dump["spending"].values() if entry["completion"] == key]
        yield len(spent) == 1 and spent[0]["state"] == "settled", "%s: %s" % (key, spent)
        yield spent[0]["micro_dollars"] == one["answer"]["prompt_tokens"] == one["cost_micro_dollars"], \
            "cost %s of %s" % (spent[0], one["answer"]["prompt_tokens"])
    titles = [one.get("source", "") for one in dump["passages"].values()]
    yield any("pace.md" in title for title in titles), "the passage that only its meaning finds is in no prompt"
    yield "words alone" not in scene.said, "complains"


@row("by words alone where nobody is named: other passages, nobody asked")
def lexical(tools, work):
    scene = Scene(tools, work, vectors=False).run()
    yield from ended(scene)
    yield scene.counts()["embeddings"] == 0 and not embeddings(scene.dump()), "somebody was asked"
    yield not any("pace.md" in one.get("source", "") for one in scene.dump()["passages"].values()), "the test tests nothing"


@row("the index names the model")
def named(tools, work):
    scene = Scene(tools, work)
    scene.serve(())  # at another address than that of the index
    scene.run()
    yield from ended(scene)
    yield scene.counts()["embeddings"] == 0, "asked at an address that nobody named"
    yield from said_once(scene, "would be asked at")
    scene.call("docs", "update", *EMBED)
    scene.run()
    yield from ended(scene, "r2")
    yield scene.counts()["embeddings"] > 0 and embeddings(scene.dump()), "nobody was asked"
    before = scene.counts()["embeddings"]
    scene.run("--embedding-model", "none")
    yield from ended(scene, "r3")
    yield scene.counts()["embeddings"] == before, "asked although told not to"


@row("kill -9 at many moments: nothing is asked twice, and the tree is the same")
def killed(tools, work):
    scene = Scene(tools, work)
    scene.run(*EMBED)
    wanted = tree(scene.dump())
    for moment in range(6):
        scene = Scene(tools, work)
        child, began = scene.start(*EMBED), time.monotonic()
        while not scene.counts()["embeddings"] and time.monotonic() - began < 250:
            time.sleep(0.002)
        time.sleep(0.02 * moment)
        child.send_signal(signal.SIGKILL)
        child.wait()
        killed_at = scene.counts()["embeddings"]
        scene.code, scene.said = scene.call("resume", "r1", "--verbose")
        yield from ended(scene)
        got, dump = tree(scene.dump()), scene.dump()
        for part in wanted:
            yield got[part] == wanted[part], "%s differ" % part
        asked, stored = scene.counts()["embeddings"], len(embeddings(dump))
        lost = sum(entry["state"] in ("charged", "unknown") for entry in dump["spending"].values())
        yield stored <= asked <= stored + lost, "%d asked (%d before the kill), %d stored, %d lost" % (asked, killed_at, stored, lost)


@row("a cap in dollars: what does not fit is not asked, and never exceeded")
def cap(tools, work):
    scene = Scene(tools, work, embeds="{prompt: 100000, completion: 0}").run(*EMBED, "--budget-usd", "1")
    yield from ended(scene)
    yield scene.counts()["embeddings"] == 0 and "another request could pass" in scene.said, "no room, and yet asked"
    dump = scene.dump()
    yield sum(entry["micro_dollars"] for entry in dump["spending"].values()) <= 1000000, "above the cap"
    yield from said_once(scene)


@row("a cap in dollars and no price: refused where it was asked for, else not asked")
def unpriced(tools, work):
    scene = Scene(tools, work, embeds="")
    scene.serve(())
    scene.run(*EMBED, "--budget-usd", "1")
    yield scene.code == 2 and "embed has none" in scene.said, "exit %d: %s" % (scene.code, scene.said[-200:])
    scene.put_models("")
    scene.call("docs", "update", *EMBED)
    before = scene.counts()["embeddings"]
    scene.run("--budget-usd", "1")
    yield from ended(scene)
    yield scene.counts()["embeddings"] == before, "asked although it may cost what nobody knows"
    yield from said_once(scene, "has no prices")


@row("what is said of money: nothing paid, not known, known in part")
def money(tools, work):
    for writes, embeds, words in (("{prompt: 0, completion: 0}", "{prompt: 0, completion: 0}", "spent      $0.00,"),
                                  ("", "{prompt: 0, completion: 0}", "spent      not priced,"),
                                  ("{prompt: 1000, completion: 1}", "", ": not all is priced,")):
        scene = Scene(tools, work, embeds=embeds, writes=writes).run(*EMBED)
        yield from ended(scene)
        code, status = scene.call("status", "r1")
        for text in (scene.said, status, scene.call("show", "r1")[1]):
            yield words in text, "not \"%s\" but %s" % (words, [line for line in text.splitlines() if "spent" in line])


FAULTS = {"500": "status code=500 times=0", "401": "status code=401 times=0", "404": "status code=404 times=0",
          "402": "status code=402 times=0", "an hour's patience": "status code=429 text=3600 times=0", "a reset": "reset after=0 times=0",
          "half an answer": "close after=900 times=0", "no vectors": "empty times=0", "null": "null times=0", "HTML": "html times=0"}
for fault, line in FAULTS.items():
    @row("%s, always: the run goes on, and it is said" % fault)
    def failing(tools, work, line=line):
        scene = Scene(tools, work, faults=(line,)).run(*EMBED)
        yield from ended(scene)
        yield 0 < scene.counts()["embeddings"] <= 16, "%d requests" % scene.counts()["embeddings"]
        yield not embeddings(scene.dump()), "something was stored"
        yield from said_once(scene)
        open_ones = [entry for entry in scene.dump()["spending"].values() if entry["state"] == "reserved"]
        yield not open_ones, "left reserved: %s" % open_ones


@row("500 once: asked again, and found by meaning")
def busy(tools, work):
    scene = Scene(tools, work, faults=("status code=500",)).run(*EMBED)
    yield from ended(scene)
    stored = len(embeddings(scene.dump()))
    yield scene.counts()["embeddings"] == stored + 1, "%d asked, %d stored" % (scene.counts()["embeddings"], stored)
    yield "words alone" not in scene.said, "complains"


@row("usage that is missing or negative: charged by the text")
def usage(tools, work):
    scene = Scene(tools, work, faults=("usage text=missing", "usage text=negative")).run(*EMBED)
    yield from ended(scene)
    yield "no usage to believe" in scene.said, "not charged"


def main():
    tools = [os.path.realpath(path) for path in sys.argv[1:5]]
    wanted = sys.argv[5] if len(sys.argv) > 5 else ""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="twagent-embed-") as work:
        here = os.path.dirname(os.path.abspath(__file__))
        make_problem(work + "/mm", here + "/../adversarial/cpu/problems/mm")
        os.makedirs(work + "/sources")
        for name, text in (("sources/one.c", KERNEL),
                           ("self", '#!/bin/sh\n[ "$1" = worker ] && exec %s --ms 2-10 --final-ms 20 "$@"\n'
                                    'exec %s "$@"\n' % (tools[2], tools[0]))):
            with open(work + "/" + name, "w") as out:
                out.write(text)
        os.chmod(work + "/self", 0o755)
        for name, check in ROWS:
            if wanted not in name:
                continue
            began = time.monotonic()
            wrong = [what for truth, what in check(tools, work) if not truth]
            failed += bool(wrong)
            print("%s %s (%.1f s)%s" % ("FAILED" if wrong else "ok", name, time.monotonic() - began,
                                        "".join("; " + what for what in wrong)), flush=True)
    print("embed_run: %d failed" % failed)
    sys.exit(failed > 0)


main()
