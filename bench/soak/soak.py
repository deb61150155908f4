"""A search against a provider that fails at random, watched from outside: memory, descriptors and threads over time,
what was spent, what was claimed, which pauses were named. bench/soak/run builds what this needs and calls it."""
import argparse
import collections
import json
import os
import re
import signal
import subprocess
import sys
import time

from watch import Relay, folder_mb, sample, slope

MODEL, PROMPT_PRICE, ANSWER_PRICE = "soak-model", 0.5, 2.0  # dollars a million tokens
LONGER = 1.1  # a run ends before a round that its time does not suffice for
SMALL_CAP_USD, ONE_REQUEST_USD = 0.03, 0.015  # of a request's reservation, at most
FIGURES = ("resident_mb", "own_mb", "descriptors", "threads")
SPACE = """/*---
tune:
  TILE: [8, 12, 16, 24, 32, 48, 64, 96]
  STEP: [1, 2, 3, 4, 6, 8]
  ROWS: [1, 2, 3, 4, 6, 8]
---*/
/* @HASH@ */
void kernel(const float *A, const float *B, float *C, int64_t M, int64_t N, int64_t K)
{
    for (int64_t i = 0; i < M * N; i++)
        C[i] = 0;
    for (int64_t k0 = 0; k0 < K; k0 += TILE * STEP)
        for (int64_t i0 = 0; i0 < M; i0 += ROWS)
            for (int64_t i = i0; i < (i0 + ROWS < M ? i0 + ROWS : M); i++)
                for (int64_t k = k0; k < (k0 + TILE * STEP < K ? k0 + TILE * STEP : K); k++)
                    for (int64_t j = 0; j < N; j++)
                        C[i * N + j] += A[i * K + k] * B[k * N + j];
}
"""


def read_arguments():
    parser = argparse.ArgumentParser(prog="bench/soak/run")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--hours", type=float)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--every", type=float, help="seconds between samples (10; a sixtieth of a short soak)")
    parser.add_argument("--fail-rate", type=float, default=0.15, help="share of requests that meet a fault")
    parser.add_argument("--latency-ms", default="1000-8000", help="of the provider's first byte")
    parser.add_argument("--evaluation-ms", default="500-3000", help="of the fake worker")
    parser.add_argument("--dies", type=int, default=97, help="the worker dies in every Nth evaluation; 0: never")
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument("--cap-usd", type=float, help="spend at most (30 dollars an hour, at least 1)")
    parser.add_argument("--outage-s", type=float, help="the provider is away so long, every twelfth of the time")
    parser.add_argument("--real", action="store_true", help="the real CPU lane in place of the fake worker")
    parser.add_argument("--out", help="bench/results/soak.md, or soak-short.md of less than 10 minutes")
    for name in ("--bin", "--work", "--root"):
        parser.add_argument(name, required=True, help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.total_s = (given.hours or 0) * 3600 + (given.minutes or 0) * 60 + (given.seconds or 0) or 45 * 60
    given.every = given.every or min(10.0, given.total_s / 60)
    given.cap_usd = given.cap_usd or max(1.0, 30 * given.total_s / 3600)
    given.outage_s = min(75, given.total_s / 10) if given.outage_s is None else given.outage_s
    given.out = given.out or "%s/bench/results/soak%s.md" % (given.root, "" if given.total_s >= 600 else "-short")
    return given


class Soak:
    def __init__(self, given):
        self.given, self.failures, self.samples, self.outages = given, [], [], 0
        self.notes, self.run, self.children = [], None, []
        self.store, self.log = given.work + "/store", given.work + "/log"
        self.environment = {**os.environ, "OPENAI_API_KEY": "sk-soak", "XDG_CONFIG_HOME": given.work + "/config",
                            "TWAGENT_STORE": self.store}
        self.environment.pop("OPENAI_BASE_URL", None)

    def check(self, truth, text):
        if not truth and text not in self.failures:
            self.failures.append(text)
            print("FAILED: " + text, flush=True)

    def tool(self, name):
        return "%s/%s" % (self.given.bin, name)

    # ---- what is there before the search ----

    def prepare(self):
        work, given = self.given.work, self.given
        sys.path.insert(0, given.root + "/tests/integration")
        import kill_common
        self.kill_common = kill_common
        kill_common.adopt_orphans()
        self.problem = kill_common.make_problem(work + "/mm", given.root + "/tests/adversarial/cpu/problems/mm")
        os.makedirs(work + "/sources")
        for i in range(4):
            with open("%s/sources/%d.c" % (work, i), "w") as out:
                out.write(SPACE.replace("TILE: [8, ", "TILE: [%d, " % (4 + i)))
        with open(work + "/self", "w") as out:
            worker = "%s --ms %s %s" % (self.tool("fake_worker"), given.evaluation_ms,
                                        "--dies %d" % given.dies if given.dies else "")
            out.write('#!/bin/sh\n%sexec %s "$@"\n' % (
                "" if given.real else '[ "$1" = worker ] && exec %s "$@"\n' % worker, self.tool("twagent")))
        os.chmod(work + "/self", 0o755)
        self.environment["TWAGENT_SELF"] = work + "/self"
        provider = subprocess.Popen([self.tool("fake_provider"), "--by-content", work + "/sources", "--fail-rate",
                                     str(given.fail_rate), "--latency-ms", given.latency_ms, "--seed", "1", "--model",
                                     MODEL], stdout=subprocess.PIPE, text=True)
        self.children.append(provider)
        self.provider_port = int(provider.stdout.readline().split()[1])
        self.relay = Relay(self.provider_port)
        with open(work + "/models.yaml", "w") as out:
            out.write("models:\n  %s: {provider: openai, url: 'http://127.0.0.1:%d/v1', key: OPENAI_API_KEY, max_tokens: 4000, "
                      "prices: {prompt: %g, completion: %g}}\n" %
                      (MODEL, self.relay.port, PROMPT_PRICE, ANSWER_PRICE))

    def command(self, cap_usd, total_s):
        given = self.given
        return [self.tool("twagent"), "run", self.problem, "--provider", "openai", "--model", MODEL, "--models",
                     given.work + "/models.yaml", "--rounds", "100000", "--branching", "4", "--implementations", "2",
                     "--lanes", str(given.lanes), "--seed", "1", "--floor-share", "0", "--first-byte-limit", "20s",
                     "--silence-limit", "8s", "--budget-usd",
                     "%g" % cap_usd, "--budget-time", "%ds" % total_s, "--verbose", "--json"]

    def start(self):
        given = self.given
        with open(self.log, "wb") as log, open(given.work + "/out", "wb") as out:
            self.run = subprocess.Popen(self.command(given.cap_usd, LONGER * given.total_s), stdout=out, stderr=log,
                                        stdin=subprocess.DEVNULL, env=self.environment)
        self.began = time.monotonic()

    # ---- while it runs ----

    def watch(self):
        given = self.given
        events = sorted([(given.total_s * k / 12, "outage") for k in (2, 5, 8)] +
                        [(given.total_s * k / 12 + given.outage_s, "back") for k in (2, 5, 8)] +
                        [(given.total_s * 0.5, "pause"), (given.total_s * 0.5 + given.outage_s / 2, "go on")])
        written, looked = time.monotonic(), 0.0
        while self.run.poll() is None:
            now_s = time.monotonic() - self.began
            if now_s > LONGER * given.total_s + 60:
                self.check(False, "the run went on for 60 s after its time")
                self.stop()
                return
            while events and now_s >= events[0][0]:
                self.event(events.pop(0)[1])
            if now_s - looked >= given.every or (not self.samples and now_s > 0.5):
                looked = now_s
                one = sample(self.run.pid)
                if one:
                    self.samples.append({"at_s": now_s, **one})
            if time.monotonic() - written > 60:
                written = time.monotonic()
                self.write("running")
            try:
                self.run.wait(min(1.0, given.every))
            except subprocess.TimeoutExpired:
                pass

    def event(self, name):
        if name in ("outage", "back"):
            if self.given.outage_s > 0:
                self.relay.outage(name == "outage")
                self.outages += name == "outage"
            return
        done = subprocess.run([self.tool("twagent"), "pause" if name == "pause" else "resume", "r1"], text=True,
                              capture_output=True, env=self.environment, stdin=subprocess.DEVNULL)
        self.check(done.returncode == 0, "twagent %s r1: exit %d: %s" % (name, done.returncode, done.stderr[-200:]))

    def stop(self):
        began = time.monotonic()
        self.run.send_signal(signal.SIGTERM)
        try:
            self.run.wait(10)
        except subprocess.TimeoutExpired:
            self.check(False, "SIGTERM did not end it within 10 s")
            self.run.kill()
            self.run.wait()
        self.notes.append("stopped by SIGTERM, out after %.1f s" % (time.monotonic() - began))

    def run_to_the_cap(self):
        """A second run in the same store, whose cap ends it long before its time."""
        time_s = max(20, min(60, self.given.total_s / 3))
        with open(self.given.work + "/log-cap", "wb") as log:
            run = subprocess.Popen(self.command(SMALL_CAP_USD, time_s), stdout=subprocess.DEVNULL, stderr=log,
                                   stdin=subprocess.DEVNULL, env=self.environment)
        try:
            run.wait(time_s + 30)
        except subprocess.TimeoutExpired:
            self.check(False, "the run with the small cap went on for 30 s after its time")
            run.kill()
            run.wait()

    # ---- afterwards ----

    def dump(self):
        done = subprocess.run([self.tool("store_dump"), self.store], capture_output=True)
        if done.returncode != 0:
            self.check(False, "the store does not open: %s" % done.stderr.decode(errors="replace")[-200:])
            return {name: {} for name in ("runs", "candidates", "completions", "spending", "events")}
        return json.loads(done.stdout, strict=False)

    def judge(self, dump):
        record = dump["runs"].get("r1", {})
        code = self.run.returncode
        self.check(code in (0, 1, 4), "exit code %s: %s" % (code, self.tail()))
        self.check(record.get("state") in ("done", "stopped"), "the run's record says %r" % record.get("state"))
        for name, run in dump["runs"].items():
            claimed = run.get("best") or run.get("win")
            self.check(not run.get("win") or run.get("verified"), "%s calls %s a win, unverified" % (name, run.get("best")))
            final = dump["evaluations"].get("%s-final" % run.get("best"))
            self.check(not claimed or not run.get("verified") or (final or {}).get("verdict") == "kernel",
                       "%s: its champion %s has no final measurement as a kernel" % (name, run.get("best")))
        self.judge_spend(dump)
        self.judge_pauses(record)
        self.judge_memory(record)
        left = self.wait_gone(3)
        self.check(not left, "left behind: %s" % left)
        return record

    def wait_gone(self, limit_s):
        mine, began = {child.pid for child in self.children}, time.monotonic()
        while True:
            self.kill_common.reap_orphans(mine | {self.run.pid})
            left = [p for p in self.kill_common.descendants(os.getpid()) if p.pid not in mine]
            if not left or time.monotonic() - began > limit_s:
                return left
            time.sleep(0.05)

    def spent(self, dump, run, cap_usd):
        """What the ledger says of one run: settled, charged and, were there any, still reserved."""
        cap, spent, states = round(cap_usd * 1e6), 0, collections.Counter()
        for name, entry in dump["spending"].items():
            if name.startswith(run + "-"):
                states[entry.get("state")] += 1
                spent += entry.get("reserved_micro_dollars" if entry.get("state") == "reserved" else "micro_dollars", 0)
        record = dump["runs"].get(run, {}).get("micro_dollars", 0)
        self.check(spent <= cap, "%s spent %.6f of %.6f dollars" % (run, spent / 1e6, cap / 1e6))
        self.check(record <= cap, "%s: the record says %.6f of %.6f dollars" % (run, record / 1e6, cap / 1e6))
        self.check(not states["reserved"], "%s: %d reservations were never settled" % (run, states["reserved"]))
        return spent / 1e6, states

    def judge_spend(self, dump):
        usd, states = self.spent(dump, "r1", self.given.cap_usd)
        small_usd, small = self.spent(dump, "r2", SMALL_CAP_USD)
        self.spend = {"usd": usd, "ledger": dict(states), "completions": len(dump["completions"]), "small_usd": small_usd,
                      "small": dict(small)}
        settled = collections.Counter(entry.get("completion") for entry in dump["spending"].values()
                                      if entry.get("state") == "settled")
        twice = sum(settled.values()) - len(settled)  # an empty answer costs what it says, and is asked for once more
        empty = sum("completion.retry" in line and "empty" in line for line in self.lines() + self.lines("log-cap"))
        self.spend["twice"] = twice
        never = sum("completion.failed" in line and "empty" in line for line in self.lines() + self.lines("log-cap"))
        unstored = len(set(settled) - set(dump["completions"]))  # empty twice: paid for, and there is nothing to store
        self.check(set(dump["completions"]) <= set(settled) and unstored <= never,
                   "%d completions settled, %d stored, %d empty for good" % (len(settled), len(dump["completions"]), never))
        self.check(twice <= empty, "%d answers were paid twice, of them %d for being empty" % (twice, empty))
        stopped = dump["runs"].get("r2", {}).get("stopped", "")
        self.check("budget" in stopped, "the run with the small cap ended by %r" % stopped)

    def judge_pauses(self, record):
        """A pause is said when it begins (run.pause); the record and the report must name all of them."""
        lines = self.lines()
        said = [line.split("run.pause", 1)[1].split(None, 1)[-1].strip() for line in lines if "run.pause" in line]
        named = [pause.get("reason", "") for pause in (record.get("pauses") or {}).get("list", [])]
        self.pauses = collections.Counter(re.sub(r"\d+", "N", reason)[:120] for reason in named)
        self.check(len(named) >= min(len(said), 100), "%d pauses were said, %d are in the record" % (len(said), len(named)))
        self.check(all(named), "a pause without a reason")
        report = self.store + "/reports/r1/report.txt"
        if named and os.path.exists(report):
            with open(report, errors="replace") as file:
                text = file.read()
            missing = [reason for reason in named if re.split(r"\d", reason)[0].strip() not in text]
            self.check(not missing, "the report does not name: %s" % missing[:2])
        if self.outages and self.given.outage_s >= 30:
            self.check(bool(said), "%d outages, and no pause was named" % self.outages)

    def lines(self, name="log"):
        with open("%s/%s" % (self.given.work, name), errors="replace") as file:
            return file.read().split("\n")

    def tail(self):
        return " | ".join(self.lines()[-6:])[-600:]

    # ---- the result ----

    def settled_s(self):
        """Until then pools and caches fill: the 96 best kernels, say."""
        return min(600.0, self.given.total_s / 3)

    def slopes(self):
        rows = []
        skip = self.settled_s()
        for name in FIGURES:
            late = [(s["at_s"], s[name]) for s in self.samples if s["at_s"] >= skip]
            half = [(s["at_s"], s[name]) for s in self.samples if s["at_s"] >= self.given.total_s / 2]
            values = [s[name] for s in self.samples]
            show = lambda fit: "-" if fit is None else "%+.2f ± %.2f" % fit
            rows.append((name, values[0], max(values), values[-1], show(slope(late)), show(slope(half))))
        return rows

    def growth(self, record):
        """Bytes of its own for each candidate, by the slope, once pools are full."""
        fit = slope([(s["at_s"], s["own_mb"]) for s in self.samples if s["at_s"] >= self.settled_s()])
        an_hour = record.get("evaluated", 0) / max(1.0, self.samples[-1]["at_s"]) * 3600
        return fit[0] * 1048576 / max(1.0, an_hour) if fit else 0.0

    def heap(self):
        """What the program itself says of its heap, once a minute."""
        said = [re.search(r"([\d.]+) MB in use, ([\d.]+) MB in holes", line) for line in self.lines() if "run.memory" in line]
        said = [found for found in said if found]
        if len(said) < 3:
            return ""
        early = said[min(len(said) - 2, int(self.settled_s() / 60))]
        return "; of its heap %s MB were in use then and %s at the end, with %s and %s in holes" % (
            early[1], said[-1][1], early[2], said[-1][2])

    def judge_memory(self, record):
        """Flat, or a few hundred bytes a candidate (docs/search.md); in less than half an hour the pools alone show."""
        fit = slope([(s["at_s"], s["own_mb"]) for s in self.samples if s["at_s"] >= self.settled_s()])
        if self.given.total_s >= 1800 and fit:
            self.check(fit[0] - 2 * fit[1] < 1 or self.growth(record) < 512,
                       "its own memory grows by %.2f MB an hour" % fit[0])

    def write(self, state, record=None):
        given, record = self.given, record or {}
        lines = ["# The soak: a long search against a provider that fails", "",
                 "`bench/soak/run`, %s, commit %s; %s." % (time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
                                                         self.commit(), state), "",
                 "- Machine: %s, %d logical cores, load %s; evaluations by %s" % (
                     self.cpu(), os.cpu_count(), " ".join("%.2f" % load for load in os.getloadavg()),
                     "the real CPU lane" if given.real else "a fake worker, %s ms each, which dies in every %s" % (
                         given.evaluation_ms, "%dth" % given.dies if given.dies else "never")),
                 "- Provider: the fake one; %.0f %% of requests meet a fault, %s ms to the first byte, %d outages of %.0f s" %
                 (given.fail_rate * 100, given.latency_ms, self.outages, given.outage_s),
                 "- %.0f of %.0f s, %d samples, %d lanes" % (self.samples[-1]["at_s"] if self.samples else 0, given.total_s,
                                                            len(self.samples), given.lanes), ""]
        if self.samples:
            lines += ["| figure | first | most | last | slope an hour, after the first %.0f s | of the second half |" %
                      self.settled_s(),
                      "| --- | ---: | ---: | ---: | ---: | ---: |"]
            lines += ["| %s | %.1f | %.1f | %.1f | %s | %s |" % row for row in self.slopes()]
            lines += ["", "CPU of the agent: %.1f s (%.2f %% of one core); the store's folder: %.1f MB." % (
                self.samples[-1]["cpu_s"], 100 * self.samples[-1]["cpu_s"] / max(1.0, self.samples[-1]["at_s"]),
                folder_mb(self.store))]
        if record:
            spend = self.spend
            lines += ["", "- Run: %s%s; %d evaluated (%d kernels, %d rejected, %d failed) in %d rounds" % (
                record.get("state"), ": " + record["stopped"] if record.get("stopped") else "", record.get("evaluated", 0),
                record.get("kept", 0), record.get("rejected", 0), record.get("failed", 0), record.get("round", 0)),
                "- The agent's own memory after the first %.0f s: %+.0f bytes for each candidate that was evaluated%s" % (
                    self.settled_s(), self.growth(record), self.heap()),
                "- Champion: %s, %s" % (record.get("best") or "none", "verified" if record.get("verified") else
                                        "not verified, and not called a win"),
                "- Spend: %.4f dollars by the ledger, cap %.4f; ledger %s" % (spend["usd"], given.cap_usd, spend["ledger"]),
                "- A second run with a cap of %.4f dollars, %s: %.4f; ledger %s. %d completions stored by both, %d of them paid twice "
                "since the first answer was empty" % (
                    SMALL_CAP_USD, "which it met" if SMALL_CAP_USD - spend["small_usd"] < ONE_REQUEST_USD else
                    "which its time ended first", spend["small_usd"], spend["small"], spend["completions"], spend["twice"]),
                "- Pauses, all with a reason: %s" % ("; ".join("%d x %s" % (n, r) for r, n in self.pauses.items()) or "none")]
            lines += ["- " + note for note in self.notes]
            lines += ["", "**%s**" % ("All held." if not self.failures else "FAILED: " + "; ".join(self.failures))]
        text = "\n".join(lines) + "\n"
        with open(given.out + ".new", "w") as out:
            out.write(text)
        os.replace(given.out + ".new", given.out)
        return text

    def commit(self):
        done = subprocess.run(["git", "-C", self.given.root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
        return done.stdout.strip() or "unknown"

    @staticmethod
    def cpu():
        with open("/proc/cpuinfo") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "unknown")

    def end(self):
        for child in [self.run, *self.children]:
            if child is not None and child.poll() is None:
                child.kill()
                child.wait()


def main():
    soak = Soak(read_arguments())
    try:
        soak.prepare()
        soak.start()
        soak.watch()
        soak.run_to_the_cap()
        record = soak.judge(soak.dump())
        print(soak.write("ended", record))
    except Exception as problem:  # the table of what was seen until then is worth more than a traceback alone
        soak.check(False, "the soak itself failed: %r" % problem)
        print(soak.write("broken off: %r" % problem))
        raise
    finally:
        soak.end()
    return 1 if soak.failures else 0


sys.exit(main())
