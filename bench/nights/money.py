"""money.py BENCH_NIGHTS TWAGENT (--check | RESULT ROOT): providers that bill otherwise than they say, under a cap.

Each keeps a bill of what it read and wrote; the ledger is the run's. The bill must pass the cap by one answer at most, and
the ledger must be within 10 % of the bill, but where a model reasons and nobody says so."""
import os
import re
import subprocess
import sys
import time

from nights import Night, scripts_of

CAPS = (0.3, 3.0)  # dollars; prompts at $1, answers at $4 a million tokens
UNTOLD = ("bill: reasoning, of which nothing is said",)  # nobody can know: the cap holds, the summary says up to how much
UNSAID = UNTOLD + ("bill: no usage is said", "bill: usage that is no number", "bill: usage of one token",
                   "bill: reasoning, of which the entry alone says how much")
CHECKED = ("bill: as it is said", "bill: reasoning outside of max_tokens", "bill: every second stream breaks",
           "bill: usage that is no number", "bill: usage of one token", "bill: reasoning, of which nothing is said",
           "bill: reasoning, of which the entry alone says how much",
           "bill: reasoning, in the cost that is said, and not in the tokens")


def wrong_of(script, cap, night):
    if night.bill > cap + night.dearest:
        yield "the bill passes the cap by more than one answer"
    off = night.ledger / night.bill - 1 if night.bill else 0
    if script.name not in UNTOLD and abs(off) > 0.1:
        yield "the ledger is %+.1f %% off" % (100 * off)
    more = re.search(r"up to \$([\d.]+) more: \d+ answers? did not say", night.said)
    if (script.name in UNSAID) != bool(more):
        yield "the summary says %s" % (more[0] if more else "nothing of a bill that is not said")
    if more and night.bill > night.ledger + float(more[1]) + 0.005:
        yield "the bill is $%.3f, beyond %s" % (night.bill, more[0])


def main():
    program, twagent = (os.path.realpath(path) for path in sys.argv[1:3])
    checks = sys.argv[3] == "--check"
    rows, failed = [], 0
    for script in scripts_of(program):
        if not script.name.startswith("bill:") or (checks and script.name not in CHECKED):
            continue
        for cap in CAPS[:1] if checks else CAPS:
            night = Night(program, twagent, script, ("cap_micro=%d" % (cap * 1e6),))
            wrong = list(wrong_of(script, cap, night))
            failed += bool(wrong)
            rows.append("| %s | %.2f | %d | %d | %.3f | %.3f | %+.1f | %.3f | %s |" % (
                script.name[6:], cap, night.answers, night.lost, night.bill, night.ledger,
                100 * (night.ledger / night.bill - 1) if night.bill else 0, night.dearest, "; ".join(wrong)))
            print("%s %s" % ("FAILED" if wrong else "ok", rows[-1]), flush=True)
            if wrong and checks:
                print(night.said)
    if not checks:
        result, root = sys.argv[3:5]
        commit = subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
        with open(result, "w") as out:
            out.write("""# Bills

`bench/nights/run money`, %s, commit %s.

Three providers in virtual time (`bench/nights`), each with a bill of its own of what it read and wrote, whether or not that
was seen; 8 requests at once a key; the run has a cap in dollars and goes on until it is reached, or for 8 h. The bill must
not pass the cap by more than one answer (the dearest one's cost stands in the table), and the ledger must be within 10 %% of
the bill. Of an answer without a usage that can be read the prompt and the text tell what it cost, but not what a model may
have thought unseen: the ledger has the estimate, and what else was reserved is kept for it, so that the cap holds; the
summary then says up to how much more the bill may be, and it is no more. Where a model's entry says how much it reasons
(`reasoning` in models.yaml), or an answer says its cost in dollars (OpenRouter's `usage.cost`), that is in the ledger.

| what is billed | cap $ | answers | lost | bill $ | ledger $ | ledger off %% | dearest answer $ | |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
%s
""" % (time.strftime("%Y-%m-%d", time.gmtime()), commit.stdout.strip() or "unknown", "\n".join(rows)))
    print("money: %d of %d failed" % (failed, len(rows)))
    return failed > 0


sys.exit(main())
