"""faults_run.py TWAGENT FAKE_PROVIDER FAKE_WORKER: the rows of the fault table that a whole run has to answer, in each
format: answers that were cut, prompts that are too long, quotas, wrong keys and models. Prints one line a row."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

from kill_common import make_problem

KEY = "sk-hush-0123456789abcdef"
KERNEL = """/*---
tune: {BM: [1, 2]}
---*/
/* @HASH@ */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
}
"""
FORMATS = {"openai": ("/v1", "OPENAI_API_KEY"), "anthropic": ("", "ANTHROPIC_API_KEY"),
           "gemini": ("", "GOOGLE_API_KEY")}


def room(body):
    """The most tokens that a request allows."""
    config = body.get("generationConfig", {})
    return body.get("max_tokens") or body.get("max_completion_tokens") or config.get("maxOutputTokens") or 0


def words(body):
    return json.dumps(body, ensure_ascii=False)


class Run:
    """One run against one provider, and what came of it."""

    def __init__(self, tools, work, kind, faults, options=(), key=KEY, provider_options=(), entry=""):
        twagent, provider, _ = tools
        shutil.rmtree(work + "/row", ignore_errors=True)
        os.makedirs(work + "/row/bodies")
        arguments = [argument for fault in faults for argument in ("--fault", fault)]
        server = subprocess.Popen([provider, "--key", KEY, "--by-content", work + "/sources", "--record",
                                   work + "/row/bodies", *provider_options, *arguments], stdout=subprocess.PIPE)
        port = int(server.stdout.readline().split()[1])
        path, variable = FORMATS[kind]
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
        environment.update({variable: key, "TWAGENT_SELF": work + "/self", "XDG_CONFIG_HOME": work + "/config",
                            "no_proxy": "*"})
        url = "http://127.0.0.1:%d" % port
        with open(work + "/row/models.yaml", "w") as out:
            out.write("models:\n  test:\n    provider: %s\n    url: %s\n    key: %s\n%s" %
                      (kind, url + path, variable, entry))
        done = subprocess.run([twagent, "run", work + "/mm", "--model", "test", "--models", work + "/row/models.yaml",
                               "--rounds", "1", "--branching", "1", "--implementations", "1", "--seed", "3", "--repairs", "1",
                                                             "--store", work + "/row/store", "--max-tokens", "2000", "--verbose", *options],
                              env=environment, cwd=work, capture_output=True, timeout=400)
        self.code, self.said = done.returncode, (done.stdout + done.stderr).decode(errors="replace")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self.counts = json.load(opener.open(url + "/_counts"))
        server.kill()
        server.wait()
        names = sorted(os.listdir(work + "/row/bodies"))
        self.bodies = [json.load(open(work + "/row/bodies/" + name)) for name in names]
        self.leaked = key in self.said
        path = work + "/row/store/data.mdb"
        if os.path.exists(path):
            with open(path, "rb") as store:
                self.leaked = self.leaked or key.encode() in store.read()


def cut(run):
    yield len(run.bodies) == 3, "%d requests, not 3" % len(run.bodies)
    if len(run.bodies) == 3:
        yield room(run.bodies[2]) > room(run.bodies[1]), \
            "%d tokens, then %d" % (room(run.bodies[1]), room(run.bodies[2]))
    yield run.said.count("candidate.move r1-c2 compiling") == 1, "what was cut was compiled"


def shrunk(run):
    yield len(run.bodies) == 3, "%d requests, not 3" % len(run.bodies)
    if len(run.bodies) == 3:
        before, after = len(words(run.bodies[1])), len(words(run.bodies[2]))
        yield after < before, "%d bytes, then %d" % (before, after)


def shrunk_once(run):
    yield from shrunk(run)
    yield "candidate.move r1-c2 failed: HTTP 400" in run.said, "no reason is given"


def complained(run):
    yield len(run.bodies) == 3, "%d requests, not 3" % len(run.bodies)
    if len(run.bodies) == 3:
        yield "no code block found" in words(run.bodies[2]), "the model is not told what was wrong"


def texts(body):
    """All that a model is told, in bytes."""
    if isinstance(body, str):
        return len(body.encode())
    return sum(texts(item) for item in (body.values() if isinstance(body, dict) else body if isinstance(body, list) else ()))


def fits(run, context):
    """What is sent goes in, by a token for three bytes; what had to give way were the quotations first."""
    yield len(run.bodies) >= 2, "%d requests" % len(run.bodies)
    for body in run.bodies:
        yield texts(body) / 3 + room(body) <= context, "%d bytes and %d tokens sent" % (texts(body), room(body))
        yield "a quotation" not in words(body), "passages are quoted"
    yield any("multiply" in words(body) or "matmul" in words(body) for body in run.bodies), "the problem is not said"


def goes_in(run):
    yield len(run.bodies) >= 2 and "a quotation" in words(run.bodies[0]), "the test tests nothing"


def refused(run):
    yield not run.bodies and run.counts["chat"] == 0, "%d requests" % len(run.bodies)
    yield "`context` (" in run.said and "models.yaml:" in run.said, "the setting is not named"
    yield run.code in (0, 4), "exit code %d" % run.code


def stopped(run, reason):
    yield len(run.bodies) == 1, "%d requests, not 1" % len(run.bodies)
    # 0: what the starts gave was a verified win; 4: it was none
    yield run.code in (0, 4), "exit code %d" % run.code
    yield reason in run.said and "resume" in run.said, "the reason, or how to go on, is not given"


def paid_for_nothing(run):
    """Refused ideas leave a line with what they cost, and the next round asks in other words."""
    asked = [words(body) for body in run.bodies]
    yield len(asked) >= 2 and len(set(asked)) == len(asked), "%d requests, %d different" % (len(asked), len(set(asked)))
    yield all("could not be used" in one for one in asked[1:3]), "the next request does not say what became of the last"
    yield re.search(r"2 answers for nothing, .*\$[0-9.]+: ", run.said), "no line says what they cost"


def told_of_the_cut(run):
    yield run.said.count("its server cuts prompts") == 1 and "`context`" in run.said, "it is not said once, with the setting"


def told_apart(run):
    for status, times in ((503, 3), (500, 2)):
        yield re.search(r"%d failures, [^\n]*: HTTP %d" % (times, status), run.said), "HTTP %d is not told apart" % status


def before_work(run, reason):
    yield run.counts["requests"] > 0 and not run.bodies, "%s" % run.counts
    yield run.code in (2, 3), "exit code %d" % run.code
    yield reason in run.said, "no \"%s\"" % reason
    yield "r1-c1" not in run.said, "work was begun"


def rows(work):
    context = "status code=400 kind=context"
    once = ("--repairs", "0")  # whether what it writes then is right is a matter of its bytes, and so of what prompts say
    say = "say text=" + work + "/prose"
    yield "finish reason length: asked again with more room", dict(faults=("ok", "length")), cut
    yield "context length: the prompt is shrunk", dict(faults=("ok", context), options=once), shrunk
    yield "context length: shrunk once, then the request fails", dict(faults=("ok", context, context), options=once), shrunk_once
    yield "413: shrunk once", dict(faults=("ok", "status code=413"), options=once), shrunk
    yield "no code block: feedback", dict(faults=("ok", say)), complained
    yield "a model's context: what goes in is sent whole", dict(faults=(), entry="    context: 100000\n"), goes_in
    yield "a model's context: passages give way first", dict(faults=(), entry="    context: 4100\n"), lambda run: fits(run, 4100)
    yield "a model's context: what cannot go in is refused", dict(faults=(), entry="    context: 400\n", options=("--rounds", "4")), refused
    yield "refused ideas: what they cost, and other words", dict(
        faults=("refuse times=2",), options=("--rounds", "3"), entry="    prices: {prompt: 100, completion: 400}\n"), paid_for_nothing
    yield "a prompt that was cut in silence", dict(faults=("usage text=cut times=0",)), told_of_the_cut
    yield "nothing is said of a prompt that was read", dict(faults=()), \
        lambda run: [("cuts prompts" not in run.said, "it is said without a reason")]
    yield "statuses are told apart", dict(faults=("status code=503 times=3", "status code=500 times=2")), told_apart
    yield "402: the run says why it stops", dict(faults=("status code=402 times=0",)), \
        lambda run: stopped(run, "402")
    yield "a wrong key: before any work", dict(faults=(), key="sk-wrong-9876543210"), \
        lambda run: before_work(run, "key")
    yield "404 model: before any work", dict(faults=(), provider_options=("--model", "another-model")), \
        lambda run: before_work(run, "test")


THREE = {  # what one of three does to its requests, and what the summary says of it
    "parked until tomorrow": ("status code=429 text=inf times=0", "b: parked since"),
    "breaker open": ("status code=503 times=0", "b: breaker open"),
    "blocked": ("status code=402 times=0", "b: blocked since"),
}


def start_three(tools, work, fault):
    """Three providers, of which b has the fault; returns them, and an environment to run with."""
    servers, entries = [], "models:\n"
    shutil.rmtree(work + "/three", ignore_errors=True)
    for name in "abc":
        faults = ("--fault", fault) if name == "b" else ()
        os.makedirs(work + "/three/" + name)
        server = subprocess.Popen([tools[1], "--key", KEY, "--by-content", work + "/sources", "--record",
                                   work + "/three/" + name, *faults], stdout=subprocess.PIPE)
        port = int(server.stdout.readline().split()[1])
        servers.append((server, "http://127.0.0.1:%d" % port))
        entries += "  %s: {provider: openai, url: \"http://127.0.0.1:%d/v1\", key: OPENAI_API_KEY}\n" % (name, port)
    with open(work + "/three/models.yaml", "w") as out:
        out.write(entries)
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environment.update({"OPENAI_API_KEY": KEY, "TWAGENT_SELF": work + "/self", "XDG_CONFIG_HOME": work + "/config",
                        "no_proxy": "*"})
    return servers, environment


def moved_and_resumed(tools, work):
    """Questions that moved to others are theirs when the run goes on, though b could be asked then: nothing is paid twice."""
    servers, environment = start_three(tools, work, "status code=503 times=7")
    start = [tools[0], "run", work + "/mm", "--model", "a,b,c", "--models", work + "/three/models.yaml", "--rounds", "4",
             "--branching", "3", "--implementations", "1", "--tuning", "0", "--seed", "3", "--budget-evaluations", "6",
             "--store", work + "/three/store"]
    go_on = [tools[0], "resume", "r1", "--budget-evaluations", "100", "--store", work + "/three/store"]
    seen, said, wrong = set(), "", []
    for command in (start, go_on):
        done = subprocess.run(command, env=environment, cwd=work, capture_output=True, timeout=400, text=True)
        said += done.stdout + done.stderr
        asked = {(name, file) for name in "abc" for file in os.listdir(work + "/three/" + name)}
        bodies = {key: words(json.load(open(work + "/three/%s/%s" % key)).get("messages")) for key in asked - seen}
        if command is start:
            answered = {text for (name, _), text in bodies.items() if name != "b"}
            # on their way when the run ended: asked again, rightly
            lost = sum(int(sent) - int(back) for sent, back in re.findall(r"[ac]: (\d+) asked, (\d+) answered", said))
            if not answered & {text for (name, _), text in bodies.items() if name == "b"}:
                wrong.append("nothing moved")
        elif len(answered & set(bodies.values())) > lost:
            wrong.append("%d questions are asked twice, %d were lost" % (len(answered & set(bodies.values())), lost))
        elif not any(name == "b" for name, _ in bodies):
            wrong.append("b is not asked again")
        seen |= asked
    for server, _ in servers:
        server.kill()
        server.wait()
    return wrong, said


def three(tools, work, kind):
    """One of three providers is away: its share is asked of the others, and the summary names it."""
    fault, says = THREE[kind]
    servers, environment = start_three(tools, work, fault)
    done = subprocess.run([tools[0], "run", work + "/mm", "--model", "a,b,c", "--models", work + "/three/models.yaml",
                           "--rounds", "3", "--branching", "2", "--implementations", "2", "--seed", "3", "--store",
                           work + "/three/store"], env=environment, cwd=work, capture_output=True, timeout=400, text=True)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    counts = [json.load(opener.open(url + "/_counts")) for _, url in servers]
    for server, _ in servers:
        server.kill()
        server.wait()
    said = done.stdout + done.stderr
    wrong = []
    if done.returncode not in (0, 4):
        wrong.append("exit %d" % done.returncode)
    if "all rounds done" not in said or "paused" in said:
        wrong.append("it did not go on")
    if says not in said:
        wrong.append("the summary has no \"%s\"" % says)
    if counts[1]["chat"] == 0 or min(counts[0]["answered"], counts[2]["answered"]) == 0:
        wrong.append("asked: %s" % counts)
    return wrong, said


def main():
    tools = [os.path.realpath(path) for path in sys.argv[1:4]]
    wanted = sys.argv[4] if len(sys.argv) > 4 else ""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="twagent-faults-") as work:
        here = os.path.dirname(os.path.abspath(__file__))
        make_problem(work + "/mm", here + "/../adversarial/cpu/problems/mm")
        os.makedirs(work + "/sources")
        for name, text in (("sources/one.c", KERNEL), ("prose", "I would tile the loops, and then unroll them.\n"),
                           ("self", '#!/bin/sh\n[ "$1" = worker ] && exec %s --ms 2-10 --final-ms 20 "$@"\n'
                                    'exec %s "$@"\n' % (tools[2], tools[0]))):
            with open(work + "/" + name, "w") as out:
                out.write(text)
        os.chmod(work + "/self", 0o755)
        for name, settings, check in rows(work):
            for kind in FORMATS:
                if wanted not in name:
                    continue
                run = Run(tools, work, kind, **settings)
                wrong = [what for truth, what in check(run) if not truth]
                wrong += ["the key leaked"] * run.leaked
                failed += bool(wrong)
                print("%s %s (%s): %d requests%s" % ("FAILED" if wrong else "ok", name, kind, len(run.bodies),
                                                     "".join("; " + what for what in wrong)), flush=True)
                if wrong:
                    print("    " + "\n    ".join(run.said.splitlines()[-16:]))
                    for body in run.bodies:
                        print("    asked: room %d, %d bytes: %.300s" % (room(body), len(words(body)), words(body)))
        for kind in [*THREE, "away, then back when the run goes on"]:
            if wanted not in kind:
                continue
            wrong, said = three(tools, work, kind) if kind in THREE else moved_and_resumed(tools, work)
            failed += bool(wrong)
            print("%s one of three %s%s" % ("FAILED" if wrong else "ok", kind, "".join("; " + what for what in wrong)))
            if wrong:
                print("    " + "\n    ".join(said.splitlines()[-30:]))
    print("faults_run: %d failed" % failed)
    sys.exit(failed > 0)


main()
